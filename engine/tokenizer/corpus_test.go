package tokenizer

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// corpusOut is where to write the corpus for the reference implementations (tools/tokenizer).
var corpusOut = flag.String("corpus", "", "write the corpus to this file, as lines of JSON, and do nothing else")

func TestMain(m *testing.M) {
	flag.Parse()
	if *corpusOut != "" {
		if err := writeCorpus(*corpusOut); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func writeCorpus(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, s := range corpus() {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// corpusSum tells whether expected sums were made of this corpus.
var corpusSum = sync.OnceValue(func() uint32 {
	h := fnv.New32a()
	for _, s := range corpus() {
		h.Write([]byte(s))
		h.Write([]byte{0xff})
	}
	return h.Sum32()
})

// prose is ordinary text: cuts and mixtures of it meet the merges that count.
var prose = []string{
	"The quick brown fox jumps over the lazy dog. It wasn't the first time, and they'll say it won't be the last; I'd bet 1,234.56 on it!",
	"In the beginning the Universe was created. This has made a lot of people very angry and been widely regarded as a bad move.",
	"Der schnelle braune Fuchs springt über den faulen Hund; Straßenbahnhaltestellenhäuschen sind größer als man denkt.",
	"Le renard brun saute par-dessus le chien paresseux, où l'été n'est jamais loin — « déjà vu », dit-il à l'œuvre.",
	"El veloz murciélago hindú comía feliz cardillo y kiwi. ¿Dónde está el niño? ¡Mañana será otro día!",
	"Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка стоит в углу №5.",
	"Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Η γάτα κοιμάται στον ήλιο.",
	"صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت — يَحظى الضَجيعُ بِها نَجلاءَ مِعطارِ ١٢٣٤٥",
	"דג סקרן שט בים מאוכזב ולפתע מצא לו חברה. שָׁלוֹם עֲלֵיכֶם",
	"ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णुवतार भगवान श्रीराम १२३",
	"เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
	"いろはにほへと ちりぬるを。わかよたれそ つねならむ、ウヰノオクヤマ ケフコエテ！東京タワーは３３３メートルです。",
	"天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。今天天气很好，我们去公园散步吧！2024年12月31日。",
	"다람쥐 헌 쳇바퀴에 타고파. 키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.",
	"Tiếng Việt có dấu thanh: Mười lăm người đã uống hết những chai rượu ấy rồi. Pijamalı hasta yağız şoföre çabucak güvendi.",
	"Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Árvíztűrő tükörfúrógép.",
	"ყველა ადამიანი იბადება თავისუფალი. Բոլոր մարդիկ ծնվում են ազատ. ሁሉም ሰዎች ነጻ ሆነው ተወልደዋል።",
	"தமிழ் மொழி பழமையானது. తెలుగు భాష అందమైనది. ಕನ್ನಡ ಭಾಷೆ. മലയാളം. বাংলা ভাষা। ਪੰਜਾਬੀ ଓଡ଼ିଆ සිංහල မြန်မာ ខ្មែរ ລາວ བོད་ཡིག",
}

var code = []string{
	"def fib(n: int) -> int:\n    \"\"\"Return the n'th number.\"\"\"\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n\nif __name__ == '__main__':\n\tprint([fib(i) for i in range(10)])  # 0, 1, 1, 2\n",
	"#include <stdio.h>\n\nint main(int argc, char **argv) {\n\tfor (size_t i = 0; i < 0x7fffffffUL; ++i) { printf(\"%zu\\n\", i); }\n\treturn argc > 1 ? -1 : 0;\n}\r\n",
	"func (t *Tokenizer) Encode(s string) ([]int32, error) {\n\tif len(s) == 0 {\n\t\treturn nil, fmt.Errorf(\"empty: %w\", ErrNoText)\n\t}\n\treturn t.merge(s[1:len(s)-1]), nil\n}\n",
	"{\"model\": \"qwen\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\\u00e9\"}], \"temperature\": 0.7, \"n\": 1e-3, \"stop\": null}\n",
	"SELECT u.id, COUNT(*) AS cnt FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.created_at >= '2024-01-01' GROUP BY 1 HAVING COUNT(*) > 10;\n",
	"<!DOCTYPE html>\n<html lang=\"en\"><body class='a b'>\n  <p>Hello&nbsp;&amp; goodbye</p><table><tr><td>1</td></tr></table>\n</body></html>",
	"#!/bin/sh\nset -eu\nfor f in *.txt; do\n  grep -E '^[A-Z]+[0-9]{2,}$' \"$f\" | awk '{ print $1 }' >> /tmp/out.$$ || true\ndone\n",
	"\\begin{equation}\n  \\int_{-\\infty}^{\\infty} e^{-x^2}\\,dx = \\sqrt{\\pi} \\tag{1}\n\\end{equation}\n% comment ≤ ≥ ∑ ∂ ∇ ⇒ ∀x∈ℝ\n",
	"https://user:pa55@example.com:8080/a/b_c/d-e?f=%20g&h=i+j#k  mailto:someone@example.org  C:\\Windows\\System32\\drivers\\etc\\hosts",
	"- [x] **bold** _it_ `code`\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n1. one\n2. two\n> quote --- *** ___ ~~~ ===\n",
}

// names look like added tokens of the models in use, are some, or nearly are.
var names = []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|repo_name|>",
	"<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|python_tag|>", "<|reserved_special_token_7|>", "<bos>", "<eos>", "<pad>", "<unk>", "<mask>",
	"[multimodal]", "<start_of_turn>", "<end_of_turn>", "<unused12>", "<unused6241>", "<image_soft_token>", "<0x0A>", "<0xFF>", "<table>", "</table>", "<h1>", "<strong>",
	"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜place▁holder▁no▁7｜>", "<｜fim▁hole｜>", "<|EOT|>",
	"<|im_sta", "|im_start|>", "<|im_start|", "< think>", "<THINK>", "<<think>>", "<|", "|>", "<｜", "｜>", "▁", "▁▁", "▁▁▁▁", "<unused", "<s>", "</s>", "[INST]", "<|user|>", "<|end|>"}

var blanks = []string{" ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\v", "\f", "\u200b", "\ufeff", "\u202f", "\u1680"}

var emoji = []string{"😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇫🇷🇯🇵", "1️⃣", "❤️", "☺", "🤷🏿‍♀️", "🧑‍🚀", "🫠", "\u200d", "\ufe0f", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "👁️‍🗨️"}

var marks = []string{"\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u0300\u0316", "\u05b8", "\u064e", "\u093c", "\u3099", "\u20dd", "\u0f71\u0f74", "\u302a"}

var digitsOf = []rune{'0', '0', '0', '٠', '०', '๐', '０', '𝟎', '\U0001d7d8', '᠐', '\U00010d40', '\U00011de0'}

// blocks are ranges of characters from which texts are drawn.
var blocks = [][2]rune{{0, 0x7f}, {0x20, 0x7e}, {0x80, 0x24f}, {0x250, 0x36f}, {0x370, 0x52f}, {0x530, 0x6ff}, {0x700, 0x8ff}, {0x900, 0xdff}, {0xe00, 0xfff}, {0x1000, 0x13ff},
	{0x1400, 0x17ff}, {0x1800, 0x1cff}, {0x1c80, 0x1c8f}, {0x1d00, 0x1fff}, {0x2000, 0x22ff}, {0x2300, 0x2bff}, {0x2c00, 0x2fff}, {0x3000, 0x30ff}, {0x3040, 0x30ff}, {0x3100, 0x33ff},
	{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0x4e00, 0x9fff}, {0xa000, 0xabff}, {0xa7c0, 0xa7ff}, {0xac00, 0xd7ff}, {0xe000, 0xf8ff}, {0xf900, 0xfaff}, {0xfb00, 0xfdff}, {0xfe00, 0xffff},
	{0x10000, 0x103ff}, {0x10400, 0x10fff}, {0x11000, 0x12fff}, {0x13000, 0x1afff}, {0x1b000, 0x1d0ff}, {0x1d100, 0x1dfff}, {0x1e000, 0x1efff}, {0x1f000, 0x1faff}, {0x20000, 0x2a6df},
	{0x2f800, 0x2fa1f}, {0xe0000, 0xe01ef}, {0xf0000, 0xf0fff}, {0x10fff0, 0x10ffff}}

// corpus is more than 6,000 texts, the same ones each time, all of valid UTF-8.
var corpus = sync.OnceValue(drawCorpus)

func drawCorpus() []string {
	r := rand.New(rand.NewPCG(5, 2026))
	all := []string{"", " ", "  ", "a", " a", "a ", "\n", "\x00", "\x7f", "'", "'s", "'S", "'ſ", "'ſt", "it'ſ", "don't DON'T Don'T ''re'LL'", "\u0301", "\u0301a", "é", "e\u0301", "\ufffd", "▁", "▁a", " ▁ ", "a▁b"}
	all = append(all, prose...)
	all = append(all, code...)
	all = append(all, names...)
	g := &texts{r}
	for len(all) < 6400 {
		all = append(all, g.text(len(all)%16))
	}
	return all
}

// texts draws texts.
type texts struct{ r *rand.Rand }

func pick[T any](t *texts, from []T) T { return from[t.r.IntN(len(from))] }

func (t *texts) char() string {
	b := pick(t, blocks)
	for {
		if c := b[0] + t.r.Int32N(b[1]-b[0]+1); utf8.ValidRune(c) {
			return string(c)
		}
	}
}

// cut draws a part of a text, from a character to a character.
func (t *texts) cut(s string) string {
	runes := []rune(s)
	lo := t.r.IntN(len(runes))
	return string(runes[lo:min(len(runes), lo+1+t.r.IntN(60))])
}

func (t *texts) join(n int, part func() string) string {
	var b strings.Builder
	for range n {
		b.WriteString(part())
	}
	return b.String()
}

func (t *texts) number() string {
	zero := pick(t, digitsOf)
	return t.join(1+t.r.IntN(9), func() string { return string(zero + t.r.Int32N(10)) })
}

func (t *texts) text(kind int) string {
	few := 1 + t.r.IntN(8)
	switch kind {
	case 0, 1:
		return t.cut(pick(t, prose))
	case 2:
		return t.cut(pick(t, code)) + t.cut(pick(t, code))
	case 3: // mixed scripts
		return t.join(few, func() string { return t.cut(pick(t, prose)) + pick(t, blanks) })
	case 4: // white space
		return t.join(few, func() string {
			return t.join(t.r.IntN(4), func() string { return pick(t, blanks) }) + pick(t, []string{"a", "1", ".", "的", ""})
		})
	case 5: // digits
		return t.join(few, func() string { return t.number() + pick(t, []string{"", " ", ".", ",", "x", "年", "½", "Ⅷ", "²"}) })
	case 6:
		return t.join(few, func() string { return pick(t, emoji) + pick(t, []string{"", " ", "a", "!"}) })
	case 7: // marks, also in the wrong order
		return t.join(few, func() string { return t.char() + t.join(t.r.IntN(4), func() string { return pick(t, marks) }) })
	case 8, 9: // names of added tokens
		return t.join(few, func() string { return pick(t, names) + pick(t, []string{"", "", " ", "a", "\n", " x "}) })
	case 10: // one block
		b := pick(t, blocks)
		return t.join(4*few, func() string {
			if c := b[0] + t.r.Int32N(b[1]-b[0]+1); utf8.ValidRune(c) {
				return string(c)
			}
			return " "
		})
	case 11: // any characters
		return t.join(2*few, t.char)
	case 12: // contractions and punctuation
		return t.join(few, func() string {
			return pick(t, []string{"'", "’", "I", "we", "x", "É", "1", " ", "ſ"}) + pick(t, []string{"'s", "'S", "'re", "'Ve", "'LL", "'d", "'ſ", "n't", "'", "''"})
		})
	case 13:
		return t.join(2*few, func() string {
			return pick(t, []string{".", ",", "!", "?", ";", ":", "-", "_", "(", ")", "[", "]", "{", "}", "\"", "/", "\\", "*", "&", "^", "%", "$", "#", "@", "~", "`", "+", "=", "<", ">", "|", "—", "…", "、", "。", "«", "€", "→", " ", "\n", "a", "Z"})
		})
	case 14: // long runs
		return strings.Repeat(t.cut(pick(t, []string{"a", "ab", " ", "\n", "\t", "=", "-", "0", "的", "é", "😀", "ha", "the ", "ー", "\u0301", "▁", "Ａ", "\r\n", "x\u200b"})), 1+t.r.IntN(150))
	}
	return t.join(few, func() string { return t.text(t.r.IntN(15)) }) // all kinds
}

func TestCorpusIsTheSameEachTime(t *testing.T) {
	if all := corpus(); len(all) < 5000 || !slices.Equal(all, drawCorpus()) {
		t.Errorf("%d texts, or not the same ones", len(all))
	}
	for _, s := range corpus() {
		if !utf8.ValidString(s) {
			t.Errorf("%q", s)
		}
	}
}

package chaos

import (
	"bytes"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/core/room"
	"baton/engine/recall"
	"baton/engine/sample"
	"baton/engine/weights/gguf"
	"baton/serve/leg"
)

// refused runs the binary and wants exit code 1, nothing on standard output, and all words in
// the one line by which it says why, the last on standard error.
func refused(t *testing.T, env []string, args []string, words ...string) {
	t.Helper()
	stdout, stderr, code := runs(t, env, args...)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	why := lines[len(lines)-1]
	if code != 1 || stdout != "" {
		t.Errorf("%v: exit code %d and %q on standard output, want 1 and nothing", args, code, stdout)
	}
	if strings.Contains(stderr, "goroutine ") {
		t.Errorf("%v: a stack is no answer:\n%s", args, stderr)
	}
	for _, w := range append(words, "baton: ") {
		if !strings.Contains(why, w) {
			t.Errorf("%v: %q does not say %q", args, why, w)
		}
	}
}

func TestServeRefusesAPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	refused(t, nil, []string{"serve", "--listen", addr}, addr, "taken by another process", "--listen")
	refused(t, nil, []string{"worker", "--role", "unified", "--kv-tokens", "256", "--http", addr}, addr, "taken by another process", "--http")
	refused(t, []string{"BATON_SECRET=" + secret}, []string{"worker", "--role", "prefill", "--kv-tokens", "256", "--link", addr}, addr, "taken by another process", "--link")
}

// tensorInfo returns the place behind a tensor's name in a model file: dimensions, type, offset.
func tensorInfo(t *testing.T, b []byte, name string) int {
	t.Helper()
	at := bytes.Index(b, append(endian.LittleEndian.AppendUint64(nil, uint64(len(name))), name...))
	if at < 0 {
		t.Fatalf("no tensor %s in the file", name)
	}
	return at + 8 + len(name)
}

// spoilt returns the embedded model after f.
func spoilt(f func(b []byte) []byte) []byte { return f(slices.Clone(recall.GGUF())) }

// foreign is a small file of an architecture that nobody knows, without a tokenizer.
func foreign(t *testing.T) []byte {
	t.Helper()
	var w gguf.Writer
	w.Set("general.architecture", "frobnicator")
	w.Set("frobnicator.block_count", uint32(1))
	w.AddF32("token_embd.weight", []uint64{16, 16}, make([]float32, 256))
	b, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A model that cannot be served is refused by name, whoever is asked to serve it.
func TestModelsThatCannotBeServedAreRefused(t *testing.T) {
	const tensor = "token_embd.weight"
	whole := len(recall.GGUF())
	info := tensorInfo(t, recall.GGUF(), tensor)
	le := endian.LittleEndian
	dims := int(le.Uint32(recall.GGUF()[info:]))
	again := "fetch it again"
	for _, row := range []struct {
		file  string
		bytes []byte
		words []string
	}{
		{"empty", nil, []string{"is empty"}},
		{"text", []byte("this is no model"), []string{`"this"`, "GGUF"}},
		{"cut-in-header", recall.GGUF()[:20], []string{"header", "incomplete", again}},
		{"cut-in-keys", recall.GGUF()[:4000], []string{"key", "incomplete", again}},
		{"cut-in-infos", recall.GGUF()[:info+6], []string{tensor, "incomplete", again}},
		{"cut-in-data", recall.GGUF()[:whole/2], []string{"tensor", "incomplete", again}},
		{"cut-by-a-byte", recall.GGUF()[:whole-1], []string{"tensor", "incomplete", again}},
		{"many-tensors", spoilt(func(b []byte) []byte { le.PutUint64(b[8:], 1<<60); return b }),
			[]string{"1152921504606846976 tensors announced", again}},
		{"more-tensors", spoilt(func(b []byte) []byte { le.PutUint64(b[8:], le.Uint64(b[8:])+1); return b }),
			[]string{"tensor"}}, // what follows is read as one more
		{"many-keys", spoilt(func(b []byte) []byte { le.PutUint64(b[16:], math.MaxUint64); return b }),
			[]string{"18446744073709551615 keys announced", again}},
		{"wide-tensor", spoilt(func(b []byte) []byte { le.PutUint64(b[info+4:], 1<<62); return b }),
			[]string{tensor, "4611686018427387904", "bytes of the file", again}},
		{"offset-beyond", spoilt(func(b []byte) []byte { le.PutUint64(b[info+4+8*dims+4:], 1<<50); return b }),
			[]string{tensor, "offset 1125899906842624", "beyond its end", again}},
		{"foreign", foreign(t), []string{`"frobnicator"`, "use a model of llama, qwen2"}},
	} {
		t.Run(row.file, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), row.file+".gguf")
			if err := os.WriteFile(path, row.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			words := append(row.words, path)
			refused(t, nil, []string{"serve", "--listen", "127.0.0.1:0", "--model", path}, words...)
			refused(t, nil, []string{"worker", "--role", "unified", "--model", path}, words...)
			refused(t, nil, []string{"bench", "engine", "--model", path}, row.words...)
		})
	}
	missing := filepath.Join(t.TempDir(), "missing.gguf")
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"worker", "--role", "unified"}, {"bench", "engine"}} {
		refused(t, nil, append(args, "--model", missing), `no model "`+missing+`"`, "smollm2", "path of a .gguf")
	}
	cache := "BATON_MODELS=" + t.TempDir()
	refused(t, []string{cache}, []string{"serve", "--model", "smollm2"}, "smollm2", "not on this machine", "baton pull smollm2")
}

// What a fleet cannot be made of is refused before a worker is started: nothing but the one
// line is on standard error.
func TestFlagsThatCannotServeAreRefusedBeforeAnythingStarts(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"serve --threads -1", "--threads -1: want 0 to 256"},
		{"serve --threads many", "--threads many: want a whole number"},
		{"serve --kv-tokens 3", "--kv-tokens 3: want at least 16"},
		{"serve --chunk-tokens 17", "--chunk-tokens 17: want a multiple of 16"},
		{"serve --max-batch 5000", "--max-batch 5000: want 1 to 4096"},
		{"serve --max-running 0", "--max-running 0: want 1 to 65536"},
		{"serve --max-queued-requests -5", "--max-queued-requests -5: want 0 to 65536"},
		{"serve --kv-dtype fp4", `--kv-dtype: `},
		{"serve --request-timeout 0s", "--request-timeout 0s: want more than 0s"},
		{"serve --request-timeout soon", "--request-timeout soon: want a time with its unit, as 5s"},
		{"serve --drain-timeout -1s", "--drain-timeout -1s: want more than 0s"},
		{"serve --body-bytes 9", "--body-bytes 9: want 1024 to 67108864"},
		{"serve --log-level loud", `--log-level "loud": want debug, info, warn or error`},
		{"serve --record /dev/null/traces", `--record "/dev/null/traces"`},
		{"worker --role unified --record /dev/null", "traces need a directory that can be written to"},
		{"replay /dev/null", "/dev/null: the file is empty"},
		{"serve --prefill 0", "--prefill 0 and --decode 1: want at least one worker of each, or --unified"},
		{"serve --decode 1000", "1000 workers of a role; want 0 to 256"},
		{"serve --unified --decode 2", "--unified and --decode exclude each other"},
		{"serve --unified 2", "--unified=2"},
		{"serve now", `no arguments, got "now"`},
		{"serve --frobnicate", "--frobnicate"},
		{"serve --listen :8000", "0.0.0.0:8000 or [::]:8000 for every interface"},
		{"serve --listen nonsense", `"nonsense": listen tcp: address nonsense: missing port in address; --listen wants HOST:PORT`},
		{"serve --listen 127.0.0.1:99999", "--listen wants HOST:PORT"},
		{"worker --role cook", `"cook"; want prefill, decode or unified`},
		{"worker", `"role"`},
		{"worker --role prefill", "a prefill worker needs at least 16, the same on every worker"},
		{"worker --role unified --max-queued-requests 0", "--max-queued-requests 0: want 1 to 65536"},
		{"worker --role unified --max-batch -1", "max batch: -1; want 1 to 4096"},
		{"worker --role unified --threads 257", "threads: 257; want 0 to 256"},
		{"bench engine --threads 0", "--threads 0: want 1 to 256"},
		{"bench engine --tests pp", `--tests "pp": want ppN`},
		{"frobnicate", `"frobnicate"`},
	} {
		args := strings.Fields(row.args)
		_, stderr, _ := runs(t, []string{"BATON_SECRET="}, args...)
		if n := strings.Count(strings.TrimSpace(stderr), "\n"); n > 0 {
			t.Errorf("%s: %d lines before it says why:\n%s", row.args, n, stderr)
		}
		refused(t, []string{"BATON_SECRET="}, args, row.want)
	}
	refused(t, []string{"BATON_SECRET=swordfish"}, []string{"worker", "--role", "decode"}, "BATON_SECRET", "hexadecimal")
	refused(t, []string{"BATON_SECRET=abcd"}, []string{"worker", "--role", "decode"}, "2 bytes", "at least 16")
	refused(t, []string{"KERNELS=mmx"}, []string{"worker", "--role", "unified"}, `"mmx"`, "generic", "KERNELS")
}

// roomsGiven keeps the rooms of this process apart.
var roomsGiven room.ID

// request is a short greedy leg; link is empty on the prefill side.
func request(tokens []int32, link string) leg.Request {
	roomsGiven++
	p := sample.Default()
	p.Temperature, p.MaxTokens = 0, 40
	return leg.Request{RID: fmt.Sprintf("byhand-%d", roomsGiven), Room: roomsGiven, Tokens: tokens, Params: p,
		LeftMS: time.Minute.Milliseconds(), Link: link}
}

// Workers that must not be paired say why in the leg's end, with what differs; neither forgets
// the room.
func TestWorkersThatDoNotMatchRefuseEachOther(t *testing.T) {
	changed := spoilt(func(b []byte) []byte { b[len(b)-1000] ^= 1; return b }) // one weight: the same shapes
	other := filepath.Join(t.TempDir(), "other.gguf")
	if err := os.WriteFile(other, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	digest := func(b []byte) string {
		f, err := gguf.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%016x", f.Digest())
	}
	here, there := digest(changed), digest(recall.GGUF())
	prefill := startWorker(t, secret, "--role", "prefill")
	for _, row := range []struct {
		name, secret string
		args         []string
		words        []string
	}{
		{"secret", otherSecret, nil, []string{"(secret)", "does not know this fleet's secret", "the same one", prefill.Link}},
		{"model", secret, []string{"--model", other}, []string{"(manifest)", "model: " + here + " here, " + there + " there",
			`"model":"` + here + `"`, `"model":"` + there + `"`, "the same model file", prefill.Link}},
		{"kv", secret, []string{"--kv-dtype", "f32"}, []string{"(manifest)", "dtype: f32 here, bf16 there", `"dtype":"f32"`, `"dtype":"bf16"`, prefill.Link}},
	} {
		t.Run(row.name, func(t *testing.T) {
			decode := startWorker(t, row.secret, append([]string{"--role", "decode"}, row.args...)...)
			r := request([]int32{1, 2, 3}, "")
			pre := prefill.openLeg(t, r)
			r.Link = prefill.Link
			dec := decode.openLeg(t, r)
			dec.failedWith(t, room.Internal, row.words...)
			pre.leave() // as a gateway does when the other leg has ended
			<-pre.over
			prefill.awaitEmpty(t)
			decode.awaitEmpty(t)
		})
	}
}

// Legs that no worker can run are refused before the stream, with their field.
func TestBadLegsAreRefusedOverHTTP(t *testing.T) {
	decode := startWorker(t, secret, "--role", "decode")
	good, err := json.Marshal(request([]int32{1, 2, 3}, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ old, new, word string }{
		{`"tokens":[1,2,3]`, `"tokens":[]`, "tokens"},
		{`"tokens":[1,2,3]`, `"tokens":[1,-2]`, "tokens[1]: -2"},
		{`"tokens":[1,2,3]`, `"tokens":[1,99999999]`, "tokens[1]: 99999999"},
		{`"tokens":[1,2,3]`, `"tokens":"one"`, "tokens"},
		{`"link":"127.0.0.1:1"`, `"link":"nowhere"`, `"nowhere" is not host:port`},
		{`"left_ms":60000`, `"left_ms":-1`, "left_ms: -1"},
		{`{`, ``, "not a leg request"},
	} {
		body := strings.Replace(string(good), row.old, row.new, 1)
		if body == string(good) {
			t.Fatalf("no %s in %s", row.old, good)
		}
		status, answer := post(t, "http://"+decode.HTTP+"/leg/decode", body)
		end, err := leg.ParseEnd(answer)
		if err != nil || status != http.StatusBadRequest || end.Cause != room.ClientError || !strings.Contains(end.Message, row.word) {
			t.Errorf("%s: status %d, %s (%v); want 400 and a word about %q", row.new, status, answer, err, row.word)
		}
	}
	decode.awaitEmpty(t)
}

func post(t *testing.T, url, body string) (status int, answer []byte) {
	t.Helper()
	hc, hangUp := client()
	defer hangUp()
	res, err := hc.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(io.LimitReader(res.Body, 1<<20)); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// What a client sends wrong comes back as 400 with the field's name, and reaches no worker.
func TestBadRequestsAreRefusedByField(t *testing.T) {
	c := start(t, "--max-running", "4")
	const chat, text = "/v1/chat/completions", "/v1/completions"
	hi := `"messages":[{"role":"user","content":"hi"}]`
	long := strings.Repeat("amber falcon ", 20000)
	for _, row := range []struct{ path, body, param, word string }{
		{chat, `{"messages":[{"role":"user","content":"` + long + `"}]}`, "messages", "token"},
		{text, `{"prompt":"` + long + `"}`, "prompt", "token"},
		{text, `{"prompt":"hi","max_tokens":9999999}`, "max_tokens", "9999999"},
		{chat, `{` + hi + `,"max_completion_tokens":9999999}`, "max_completion_tokens", "9999999"},
		{chat, `{` + hi, "", "JSON"},
		{chat, ``, "", "JSON"},
		{chat, `[]`, "", "JSON object"},
		{chat, `null`, "", "null"},
		{chat, "{\"messages\":\"\xff\"}", "", "UTF-8"},
		{chat, `{}`, "messages", "messages"},
		{chat, `{"messages":[]}`, "messages", "messages"},
		{chat, `{"messages":"hi"}`, "messages", `"hi"`},
		{chat, `{"messages":[{"role":"king","content":"hi"}]}`, "messages[0].role", "king"},
		{text, `{}`, "prompt", "prompt"},
		{text, `{"prompt":7}`, "prompt", "7"},
		{text, `{"prompt":[1,-1]}`, "prompt", "-1"},
		{text, `{"prompt":[99999999]}`, "prompt", "99999999"},
		{chat, `{` + hi + `,"temperature":"hot"}`, "temperature", `a number, got "hot"`},
		{chat, `{` + hi + `,"temperature":3}`, "temperature", "[0, 2]"},
		{chat, `{` + hi + `,"top_p":0}`, "top_p", "(0, 1]"},
		{chat, `{` + hi + `,"min_p":2}`, "min_p", "[0, 1]"},
		{chat, `{` + hi + `,"top_k":1.5}`, "top_k", "an integer, got 1.5"},
		{chat, `{` + hi + `,"max_tokens":0}`, "max_tokens", "0 is not between 1"},
		{chat, `{` + hi + `,"max_tokens":"ten"}`, "max_tokens", "an integer"},
		{chat, `{` + hi + `,"stream":"yes"}`, "stream", "true or false"},
		{chat, `{` + hi + `,"stop":[1]}`, "stop", "strings"},
		{chat, `{` + hi + `,"stop":""}`, "stop", "0 bytes"},
		{chat, `{` + hi + `,"top_logprobs":21,"logprobs":true}`, "top_logprobs", "21"},
		{chat, `{` + hi + `,"stop_token_ids":[-7]}`, "stop_token_ids", "-7"},
	} {
		status, answer := post(t, c.URL+row.path, row.body)
		var e struct {
			Error struct {
				Message, Type string
				Param         *string
			}
		}
		if err := json.Unmarshal(answer, &e); err != nil {
			t.Errorf("%s %.60s: %q: %v", row.path, row.body, answer, err)
			continue
		}
		param := ""
		if e.Error.Param != nil {
			param = *e.Error.Param
		}
		if status != http.StatusBadRequest || e.Error.Type != "invalid_request_error" || param != row.param || !strings.Contains(e.Error.Message, row.word) {
			t.Errorf("%s %.60s: status %d, param %q, %s; want 400, %q and a word about %q", row.path, row.body, status, param, answer, row.param, row.word)
		}
	}
	status, answer := post(t, c.URL+chat, `{"model":"gpt-7",`+hi+`}`)
	if status != http.StatusNotFound || !bytes.Contains(answer, []byte(`"param":"model"`)) || !bytes.Contains(answer, []byte(`gpt-7`)) {
		t.Errorf("another model: status %d, %s; want 404 and its name", status, answer)
	}
	s, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if why := s.Quiet(); why != "" {
		t.Errorf("refused requests left %s", why)
	}
	if legs, ok := Metric(t.Context(), "http://"+s.Workers[0].HTTP, fmt.Sprintf("baton_steps_total{role=%q}", s.Workers[0].Role)); !ok || legs != 0 {
		t.Errorf("%v engine steps (shown: %v) for requests that were refused", legs, ok)
	}
}

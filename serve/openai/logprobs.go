package openai

import (
	"unicode/utf8"

	"baton/engine/sample"
)

// logprobs returns a piece's log-probabilities in the endpoint's shape, or nil.
func (a *Answer) logprobs(p *Piece) any {
	if a.Request.Params.Logprobs < 0 || len(p.Logprobs) == 0 {
		return nil
	}
	if a.Request.Endpoint == Chat {
		return chatOf(p.Logprobs)
	}
	return a.completionLogprobs(p)
}

type chatLogprobs struct {
	Content []chatLogprob `json:"content"`
	Refusal *string       `json:"refusal"`
}

type chatLogprob struct {
	topLogprob
	Top []topLogprob `json:"top_logprobs"`
}

type topLogprob struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func chatOf(tokens []sample.TokenLogprob) chatLogprobs {
	out := chatLogprobs{Content: make([]chatLogprob, 0, len(tokens))}
	for i := range tokens {
		t := &tokens[i]
		l := chatLogprob{top(t.Bytes, t.Logprob), make([]topLogprob, 0, len(t.Top))}
		for _, alt := range t.Top {
			l.Top = append(l.Top, top(alt.Bytes, alt.Logprob))
		}
		out.Content = append(out.Content, l)
	}
	return out
}

func top(text []byte, logprob float32) topLogprob {
	l := topLogprob{Token: string(text), Logprob: sample.Clamp(logprob), Bytes: make([]int, len(text))}
	for i, b := range text {
		l.Bytes[i] = int(b)
	}
	return l
}

type completionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float32            `json:"token_logprobs"`
	TopLogprobs   []map[string]float32 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

func (a *Answer) completionLogprobs(p *Piece) completionLogprobs {
	var out completionLogprobs
	for len(a.offset) <= p.Choice {
		a.offset = append(a.offset, 0)
	}
	for i := range p.Logprobs {
		t := &p.Logprobs[i]
		text := string(t.Bytes)
		out.Tokens = append(out.Tokens, text)
		out.TokenLogprobs = append(out.TokenLogprobs, sample.Clamp(t.Logprob))
		out.TextOffset = append(out.TextOffset, a.offset[p.Choice])
		a.offset[p.Choice] += utf8.RuneCountInString(text)
		tops := make(map[string]float32, len(t.Top)+1)
		tops[text] = sample.Clamp(t.Logprob) // the chosen token is always among them, as vLLM does
		for _, alt := range t.Top {
			tops[string(alt.Bytes)] = sample.Clamp(alt.Logprob)
		}
		out.TopLogprobs = append(out.TopLogprobs, tops)
	}
	return out
}

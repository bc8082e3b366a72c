package sample

import (
	"math"
	"slices"
)

// counted is a token of the output and how often it was generated.
type counted struct {
	id int32
	n  int32
}

// history is what the penalties look at. Each list holds a token once, so that what a token costs
// grows with the different tokens and not with the length of the text.
type history struct {
	output []counted // for presence_penalty and frequency_penalty; nil unless one is set
	all    []int32   // of prompt and output, for repetition_penalty
	seen   []uint64  // a bit per token: it is in all; nil unless repetition_penalty is set
}

func newHistory(p *Params, vocab int, prompt []int32) history {
	var h history
	if p.PresencePenalty != 0 || p.FrequencyPenalty != 0 {
		h.output = make([]counted, 0, min(p.MaxTokens, idsFirst))
	}
	if p.repeats() {
		h.seen = make([]uint64, (vocab+63)/64)
		h.all = make([]int32, 0, min(len(prompt), vocab)+min(p.MaxTokens, idsFirst))
		for _, id := range prompt {
			h.see(id)
		}
	}
	return h
}

func (h *history) see(id int32) {
	if id < 0 || int(id>>6) >= len(h.seen) {
		return
	}
	if bit := uint64(1) << (id & 63); h.seen[id>>6]&bit == 0 {
		h.seen[id>>6] |= bit
		h.all = append(h.all, id)
	}
}

// push adds a token of output.
func (h *history) push(id int32) {
	h.see(id)
	if h.output == nil {
		return
	}
	for i := range h.output {
		if h.output[i].id == id {
			h.output[i].n++
			return
		}
	}
	h.output = append(h.output, counted{id, 1})
}

// repeats says whether repetition_penalty changes anything; 0 stands in parameters that nobody
// validated.
func (p *Params) repeats() bool { return p.RepetitionPenalty != 1 && p.RepetitionPenalty != 0 }

// plain says that logits are taken as they are.
func (s *Sequence) plain() bool {
	p := &s.p
	return len(p.LogitBias) == 0 && len(p.AllowedIDs) == 0 && len(p.Bad) == 0 && len(s.ids) >= p.MinTokens &&
		s.grammar == nil && s.history.output == nil && s.history.seen == nil
}

// adjust returns the logits with everything that the parameters and the output so far change about
// them, in the order that Params says. They are in scratch's memory.
func (s *Sequence) adjust(logits []float32, scratch *Scratch) []float32 {
	l := append(scratch.adjusted[:0], logits...)
	scratch.adjusted = l
	p := &s.p
	for _, b := range p.LogitBias {
		if int(b.ID) < len(l) {
			l[b.ID] += float32(b.Add)
		}
	}
	if len(p.AllowedIDs) > 0 {
		allow(l, p.AllowedIDs)
	}
	for _, word := range p.Bad {
		if last := len(word) - 1; last <= len(s.ids) && slices.Equal(s.ids[len(s.ids)-last:], word[:last]) {
			forbid(l, word[last])
		}
	}
	if len(s.ids) < p.MinTokens {
		for _, id := range s.tok.EOS() {
			forbid(l, id)
		}
		for _, id := range p.StopIDs {
			forbid(l, id)
		}
	}
	if s.grammar != nil {
		words := max(s.grammar.Words(), (len(l)+63)/64) // a model may have fewer logits than tokens, or more
		scratch.mask = slices.Grow(scratch.mask[:0], words)[:words]
		clear(scratch.mask)
		s.grammar.Allowed(scratch.mask)
		keepOnly(l, scratch.mask)
	}
	s.penalise(l)
	return l
}

func (s *Sequence) penalise(l []float32) {
	if r := float32(s.p.RepetitionPenalty); s.history.seen != nil {
		for _, id := range s.history.all {
			if int(id) >= len(l) {
				continue
			}
			if x := l[id]; x > 0 {
				l[id] = x / r
			} else { // also what is no number, which stays so
				l[id] = x * r
			}
		}
	}
	presence, frequency := float32(s.p.PresencePenalty), float32(s.p.FrequencyPenalty)
	for _, c := range s.history.output {
		l[c.id] -= presence + float32(frequency*float32(c.n))
	}
}

var never = float32(math.Inf(-1))

func forbid(l []float32, id int32) {
	if int(id) < len(l) {
		l[id] = never
	}
}

// keepOnly forbids all tokens whose bit is not set.
func keepOnly(l []float32, mask []uint64) {
	for w, bits := range mask {
		if bits == ^uint64(0) {
			continue
		}
		part := l[min(w*64, len(l)):min(w*64+64, len(l))]
		if bits == 0 {
			for i := range part {
				part[i] = never
			}
			continue
		}
		for i := range part {
			if bits>>i&1 == 0 {
				part[i] = never
			}
		}
	}
}

// allow forbids all tokens but ids, which ascend.
func allow(l []float32, ids []int32) {
	next := 0
	for _, id := range ids {
		for ; next < int(id) && next < len(l); next++ {
			l[next] = never
		}
		next = int(id) + 1
	}
	for ; next < len(l); next++ {
		l[next] = never
	}
}

package model

import (
	"math"

	"baton/engine/kernel"
)

// forward is the step as each thread of the team runs it: the same program on every thread,
// work divided by Split, with a Barrier wherever one thread reads what another wrote.
func (r *Runner) forward(w *kernel.Worker) {
	m, n := r.m, len(r.ids)
	w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.embed(lo, hi) })
	w.Barrier()
	for i := range m.weights.layers {
		l := &m.weights.layers[i]
		r.attention(w, i, l)
		r.multiply(w, &l.out, &r.inAtt)
		w.Barrier()
		w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.addNorm(&l.out, l.ffnNorm, lo, hi) })
		w.Barrier()
		r.multiply(w, &l.gateUp, &r.inWidth)
		w.Barrier()
		w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.activate(&l.gateUp, lo, hi) })
		w.Barrier()
		r.multiply(w, &l.down, &r.inFFN)
		w.Barrier()
		if i+1 < len(m.weights.layers) {
			next := m.weights.layers[i+1].attnNorm
			w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.addNorm(&l.down, next, lo, hi) })
			w.Barrier()
		}
	}
	if len(r.want) == 0 {
		return
	}
	last := &m.weights.layers[len(m.weights.layers)-1]
	w.Split(len(r.want), rowGrain(len(r.want), w.N), func(lo, hi int) { r.finish(&last.down, lo, hi) })
	w.Barrier()
	r.multiplyInto(w, &m.weights.head, &r.inHead, r.logits)
}

// rowGrain divides rows so that each thread gets a few pieces. Pieces of 16 rows, a group of an
// Input, do not share cache lines of it.
func rowGrain(rows, threads int) int {
	return max(1, min(16, rows/threads))
}

// embed starts rows [lo,hi): token embeddings, angles, and the first layer's norm.
func (r *Runner) embed(lo, hi int) {
	m := r.m
	c, e := &m.config, &m.weights.embed
	half := c.RopeDim / 2
	for i := lo; i < hi; i++ {
		x := r.x[i*c.Width:][:c.Width]
		mustDequant(x, e.Type, e.Row(int(r.ids[i])))
		for j, f := range m.freq {
			s, co := math.Sincos(float64(r.pos[i]) * f)
			r.cos[i*half+j], r.sin[i*half+j] = float32(co), float32(s)
		}
		kernel.RMSNorm(r.h[i*c.Width:][:c.Width], x, m.weights.layers[0].attnNorm, c.NormEps)
	}
	r.inWidth.SetRange(r.h, c.Width, lo, hi)
}

// attention leaves the prepared input of the output projection in inAtt.
func (r *Runner) attention(w *kernel.Worker, i int, l *layer) {
	c := &r.m.config
	r.multiply(w, &l.qkv, &r.inWidth)
	w.Barrier()
	w.Split(len(r.spans), 1, func(lo, hi int) {
		for s := lo; s < hi; s++ {
			r.store(i, &l.qkv, &r.spans[s])
		}
	})
	w.Barrier()
	// Late positions see the longest context, so they are taken first.
	units := len(r.spans) * c.KVHeads
	w.Split(units, 1, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			s := &r.spans[len(r.spans)-1-u/c.KVHeads]
			h := u % c.KVHeads
			kernel.AttendChunk(r.att[s.row*c.QWidth():], c.QWidth(), r.y[s.row*l.qkv.width:], l.qkv.width,
				&r.pages, i, r.items[s.item].Table, s.pos, s.n, h, h+1, &r.scratch[w.Index])
		}
	})
	w.Barrier()
	n := len(r.ids)
	w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.inAtt.SetRange(r.att, c.QWidth(), lo, hi) })
	w.Barrier()
}

// store turns the queries and keys of a span and stores its keys and values. A span lies in one
// block, so no other thread writes the block; its row 0 clears the rows that follow (M2).
func (r *Runner) store(layer int, qkv *product, s *span) {
	c := &r.m.config
	half := c.RopeDim / 2
	block := r.kv.Block(r.items[s.item].Table[s.pos/BlockTokens])
	for j := range s.n {
		row := r.y[(s.row+j)*qkv.width:][:qkv.width]
		cos, sin := r.cos[(s.row+j)*half:][:half], r.sin[(s.row+j)*half:][:half]
		turned := row[:c.QWidth()+c.KVWidth()]
		for h := 0; h < len(turned); h += c.HeadDim {
			kernel.RopeInterleaved(turned[h:][:c.RopeDim], cos, sin)
		}
		r.kv.layout.StoreKV(block, layer, (s.pos+j)%BlockTokens, row[c.QWidth():][:c.KVWidth()], row[c.QWidth()+c.KVWidth():][:c.KVWidth()])
	}
}

// addNorm adds the results of a product to the residual stream and prepares the next input.
func (r *Runner) addNorm(p *product, norm []float32, lo, hi int) {
	c := &r.m.config
	for i := lo; i < hi; i++ {
		x := r.x[i*c.Width:][:c.Width]
		kernel.Add(x, r.y[i*p.width:][:c.Width])
		kernel.RMSNorm(r.h[i*c.Width:][:c.Width], x, norm, c.NormEps)
	}
	r.inWidth.SetRange(r.h, c.Width, lo, hi)
}

// activate is the middle of the feed-forward: silu(gate)·up, in the place of gate.
func (r *Runner) activate(p *product, lo, hi int) {
	ffn := r.m.config.FFN
	for i := lo; i < hi; i++ {
		row := r.y[i*p.width:][:p.width]
		kernel.SiluMul(row[:ffn], row[:ffn], row[ffn:][:ffn])
	}
	r.inFFN.SetRange(r.y, p.width, lo, hi)
}

// finish adds the last layer's results for wanted rows [lo,hi) and prepares the head's input.
// Rows of h are reused in the order of want, which ascends: row k of h is not read any more.
func (r *Runner) finish(p *product, lo, hi int) {
	c := &r.m.config
	for k := lo; k < hi; k++ {
		i := int(r.want[k])
		x := r.x[i*c.Width:][:c.Width]
		kernel.Add(x, r.y[i*p.width:][:c.Width])
		kernel.RMSNorm(r.h[k*c.Width:][:c.Width], x, r.m.weights.norm, c.NormEps)
	}
	r.inHead.SetRange(r.h, c.Width, lo, hi)
}

// multiply computes a product of all rows into y.
func (r *Runner) multiply(w *kernel.Worker, p *product, in *kernel.Input) {
	r.multiplyInto(w, p, in, r.y)
}

// piecesPerThread is into how many pieces a product is divided per thread: few enough that
// taking one costs nothing, enough that a thread which lost its processor for a moment delays
// one piece only.
const piecesPerThread = 8

func (r *Runner) multiplyInto(w *kernel.Worker, p *product, in *kernel.Input, y []float32) {
	w.Split(p.panels, max(1, p.panels/(w.N*piecesPerThread)), func(lo, hi int) {
		first := 0
		for i, m := range p.mats {
			a, b := max(lo-first, 0), min(hi-first, m.Panels())
			if a < b {
				kernel.MatMul(y[p.at[i]:], p.width, m, in, a, b)
			}
			first += m.Panels()
		}
	})
}

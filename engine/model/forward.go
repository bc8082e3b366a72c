package model

import (
	"slices"

	"baton/engine/kernel"
)

// forward is layers [from,to) of the step as each thread of the team runs it, the embedding before
// the first and the head behind the last: the same program on every thread,
// work divided by Split, with a Barrier wherever one thread reads what another wrote. MatMul
// keeps a run of panels in cache while all rows pass by, so that the rows of a step need no
// tiles of their own.
//
// Behind the keys and values of the last layer only the rows whose logits are wanted go on: a
// chunk in the middle of a prompt ends there.
func (r *Runner) forward(w *kernel.Worker) {
	m := r.m
	if r.from == 0 {
		w.Split(len(r.ids), rowGrain(len(r.ids), w.N), func(lo, hi int) { r.embed(lo, hi) })
		w.Barrier()
	}
	last := len(m.weights.layers) - 1
	for i := r.from; i < min(r.to, last); i++ {
		r.project(w, i, r.single)
		r.attend(w, i, r.single)
		r.feed(w, &m.weights.layers[i], r.rows)
		r.endLayer(w, &m.weights.layers[i], r.rows, m.weights.layers[i+1].attnNorm, &r.inWidth)
	}
	if r.to <= last {
		return
	}
	all := len(r.want) == len(r.rows)
	r.project(w, last, r.single && all)
	switch {
	case len(r.want) == 0:
		return
	case all:
		r.attend(w, last, r.single)
	default:
		r.narrow(w, last)
	}
	r.feed(w, &m.weights.layers[last], r.want)
	r.endLayer(w, &m.weights.layers[last], r.want, m.weights.norm, &r.inHead)
	r.multiply(w, &m.weights.head, &r.inHead, r.logits)
	if m.config.LogitCap != 0 {
		w.Barrier()
		w.Split(len(r.want), 1, func(lo, hi int) {
			kernel.SoftCap(r.logits[lo*m.weights.head.width:hi*m.weights.head.width], m.config.LogitCap)
		})
	}
}

// rowGrain divides rows so that each thread gets a few pieces. Pieces of 16 rows, a group of an
// Input, do not share cache lines of it.
func rowGrain(rows, threads int) int {
	return max(1, min(16, rows/threads))
}

// embed starts rows [lo,hi): token embeddings, angles, and the first layer's norm.
func (r *Runner) embed(lo, hi int) {
	m := r.m
	c, half := &m.config, m.config.RopeDim/2
	for i := lo; i < hi; i++ {
		x := r.x[i*c.Width:][:c.Width]
		m.weights.embed.row(x, int(r.ids[i]))
		if c.EmbedScale != 0 {
			kernel.Scale(x, c.EmbedScale)
		}
		for t := range m.turns {
			at := (t*len(r.ids) + i) * half
			m.turns[t].fill(r.cos[at:][:half], r.sin[at:][:half], int(r.pos[i]))
		}
		kernel.RMSNorm(r.h[i*c.Width:][:c.Width], x, m.weights.layers[0].attnNorm, c.NormEps)
	}
	r.inWidth.SetRange(r.h, c.Width, lo, hi)
}

// project computes queries, keys and values of all rows and stores keys and values, but with
// later leaves the storing to attend. That is right if no item has more than one token: then no
// row attends to what another one stores, and a barrier is saved.
func (r *Runner) project(w *kernel.Worker, i int, later bool) {
	c, l := &r.m.config, &r.m.weights.layers[i]
	r.multiply(w, &l.qkv, &r.inWidth, r.y)
	w.Barrier()
	if later {
		return
	}
	w.Split(len(r.spans), 1, func(lo, hi int) {
		for s := lo; s < hi; s++ {
			r.store(i, &r.spans[s], 0, c.KVHeads)
		}
	})
	w.Barrier()
}

// store finishes the queries and keys of a span for the KV heads [h0,h1), bias, norm and turn, and
// stores the keys and values. A span lies in one block, so no other thread writes these heads of
// the block; its row 0 clears the rows that follow (M2).
func (r *Runner) store(layer int, s *span, h0, h1 int) {
	c, l := &r.m.config, &r.m.weights.layers[layer]
	half, share, width := c.RopeDim/2, c.Heads/c.KVHeads, l.qkv.width
	first := 0
	if len(r.m.turns) > 1 && c.slides(layer) {
		first = len(r.ids)
	}
	block := r.kv.Block(r.items[s.item].Table[s.pos/BlockTokens])
	for j := range s.n {
		row := r.y[(s.row+j)*width:][:width]
		at := (first + s.row + j) * half
		cos, sin := r.cos[at:][:half], r.sin[at:][:half]
		keys, values := row[c.QWidth():][:c.KVWidth()], row[c.QWidth()+c.KVWidth():][:c.KVWidth()]
		q, k, v := row[h0*share*c.HeadDim:h1*share*c.HeadDim], keys[h0*c.HeadDim:h1*c.HeadDim], values[h0*c.HeadDim:h1*c.HeadDim]
		if b := l.qkvBias; b != nil {
			kernel.Add(q, b[h0*share*c.HeadDim:][:len(q)])
			kernel.Add(k, b[c.QWidth()+h0*c.HeadDim:][:len(k)])
			kernel.Add(v, b[c.QWidth()+c.KVWidth()+h0*c.HeadDim:][:len(v)])
		}
		r.turn(q, l.qNorm, cos, sin)
		r.turn(k, l.kNorm, cos, sin)
		r.kv.layout.StoreHeads(block, layer, (s.pos+j)%BlockTokens, h0, h1, keys, values)
	}
}

// turn norms each head if there are weights for it, and turns it.
func (r *Runner) turn(heads, norm, cos, sin []float32) {
	c := &r.m.config
	for at := 0; at < len(heads); at += c.HeadDim {
		h := heads[at:][:c.HeadDim]
		if norm != nil {
			kernel.RMSNorm(h, h, norm, c.NormEps)
		}
		r.m.rope(h[:c.RopeDim], cos, sin)
	}
}

// attend leaves the attention of all rows in inAtt, ready for the output projection. Its units
// are a span and a KV head; late positions see the longest context, so they are taken first.
func (r *Runner) attend(w *kernel.Worker, i int, store bool) {
	c, width := &r.m.config, r.m.weights.layers[i].qkv.width
	w.Split(len(r.spans)*c.KVHeads, 1, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			s, h := &r.spans[len(r.spans)-1-u/c.KVHeads], u%c.KVHeads
			if store {
				r.store(i, s, h, h+1)
			}
			kernel.AttendChunk(r.att[s.row*c.QWidth():], c.QWidth(), r.y[s.row*width:], width,
				r.pagesOf(i), i, r.items[s.item].Table, s.pos, s.n, h, h+1, &r.scratch[w.Index])
		}
	})
	w.Barrier()
	w.Split(len(r.rows), rowGrain(len(r.rows), w.N), func(lo, hi int) { r.inAtt.SetRange(r.att, c.QWidth(), lo, hi) })
	w.Barrier()
}

// pagesOf returns the pool as layer i sees it.
func (r *Runner) pagesOf(i int) *kernel.Pages {
	if r.m.config.slides(i) {
		return &r.sliding
	}
	return &r.pages
}

// narrow is attend for the wanted rows of the last layer only; from here on row k of every
// activation but x is that of want[k]. By M1 it makes no difference to them.
func (r *Runner) narrow(w *kernel.Worker, i int) {
	c, width := &r.m.config, r.m.weights.layers[i].qkv.width
	if w.Index == 0 {
		tiled, _ := slices.BinarySearch(r.want, int32(r.tiled))
		r.inputs(len(r.want), tiled)
	}
	w.Split(len(r.want)*c.KVHeads, 1, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			k, h := u/c.KVHeads, u%c.KVHeads
			row := int(r.want[k])
			kernel.AttendChunk(r.att[k*c.QWidth():], c.QWidth(), r.y[row*width:], width,
				r.pagesOf(i), i, r.items[r.of[row]].Table, int(r.pos[row]), 1, h, h+1, &r.scratch[w.Index])
		}
	})
	w.Barrier()
	w.Split(len(r.want), rowGrain(len(r.want), w.N), func(lo, hi int) { r.inAtt.SetRange(r.att, c.QWidth(), lo, hi) })
	w.Barrier()
}

// feed is a layer behind its attention, up to the product that endLayer adds: output
// projection, norm, silu(gate)·up (or gelu), down. rows says which row of x belongs to each row.
func (r *Runner) feed(w *kernel.Worker, l *layer, rows []int32) {
	n, ffn := len(rows), r.m.config.FFN
	r.multiply(w, &l.out.product, &r.inAtt, r.y)
	w.Barrier()
	w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.addNorm(&l.out, rows, l.ffnNorm, &r.inWidth, lo, hi) })
	w.Barrier()
	r.multiply(w, &l.gateUp, &r.inWidth, r.y)
	w.Barrier()
	w.Split(n, rowGrain(n, w.N), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := r.y[i*l.gateUp.width:][:2*ffn]
			if l.gateUpBias != nil {
				kernel.Add(row, l.gateUpBias)
			}
			if r.m.config.GELU {
				kernel.GeluMul(row[:ffn], row[ffn:])
			} else {
				kernel.SiluMul(row[:ffn], row[:ffn], row[ffn:])
			}
		}
		r.inFFN.SetRange(r.y, l.gateUp.width, lo, hi)
	})
	w.Barrier()
	r.multiply(w, &l.down.product, &r.inFFN, r.y)
	w.Barrier()
}

// endLayer prepares the next product: the next layer's, or the head's.
func (r *Runner) endLayer(w *kernel.Worker, l *layer, rows []int32, norm []float32, in *kernel.Input) {
	w.Split(len(rows), rowGrain(len(rows), w.N), func(lo, hi int) { r.addNorm(&l.down, rows, norm, in, lo, hi) })
	w.Barrier()
}

// addNorm adds rows [lo,hi) of a product to the residual stream and prepares the next input.
func (r *Runner) addNorm(p *output, rows []int32, norm []float32, in *kernel.Input, lo, hi int) {
	c := &r.m.config
	for i := lo; i < hi; i++ {
		x := r.x[int(rows[i])*c.Width:][:c.Width]
		y := r.y[i*p.width:][:c.Width]
		if p.bias != nil {
			kernel.Add(y, p.bias)
		}
		if p.post != nil {
			kernel.RMSNorm(y, y, p.post, c.NormEps)
		}
		kernel.Add(x, y)
		kernel.RMSNorm(r.h[i*c.Width:][:c.Width], x, norm, c.NormEps)
	}
	in.SetRange(r.h, c.Width, lo, hi)
}

// piecesPerThread is how many of the smallest pieces of a product a thread's share has: few enough
// that taking one costs nothing, enough that all threads end together.
const piecesPerThread = 8

// multiply computes a product of all rows of in into y, without waiting for the other threads.
func (r *Runner) multiply(w *kernel.Worker, p *product, in *kernel.Input, y []float32) {
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

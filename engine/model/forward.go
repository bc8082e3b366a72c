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
// are a span and some KV heads; late positions see the longest context, so they come first in each
// thread's share.
func (r *Runner) attend(w *kernel.Worker, i int, store bool) {
	width, groups := r.m.weights.layers[i].qkv.width, r.m.config.KVHeads/r.together
	w.Split(len(r.spans)*groups, 1, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			s, h0 := &r.spans[len(r.spans)-1-u/groups], u%groups*r.together
			if store {
				r.store(i, s, h0, h0+r.together)
			}
			r.attention(w, i, s.row, s.n, s.pos, r.y[s.row*width:], r.items[s.item].Table, h0)
		}
	})
	w.Barrier()
}

// attention computes KV heads from h0 on, as many as make whole blocks of inAtt, for n rows from
// row on, whose queries begin at y, and prepares their columns of inAtt.
func (r *Runner) attention(w *kernel.Worker, layer, row, n, pos int, y []float32, table []int32, h0 int) {
	c := &r.m.config
	kernel.AttendChunk(r.att[row*c.QWidth():], c.QWidth(), y, r.m.weights.layers[layer].qkv.width,
		r.pagesOf(layer), layer, table, pos, n, h0, h0+r.together, &r.scratch[w.Index])
	columns := c.Heads / c.KVHeads * c.HeadDim
	r.inAtt.SetBlocks(r.att, c.QWidth(), row, row+n, h0*columns/kernel.BlockCols, (h0+r.together)*columns/kernel.BlockCols)
}

// headsTogether is how few neighbouring KV heads have queries that fill whole blocks of an Input.
func headsTogether(c *Config) int {
	for n := 1; n < c.KVHeads; n++ {
		if c.KVHeads%n == 0 && n*c.Heads/c.KVHeads*c.HeadDim%kernel.BlockCols == 0 {
			return n
		}
	}
	return c.KVHeads
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
	width, groups := r.m.weights.layers[i].qkv.width, r.m.config.KVHeads/r.together
	if w.Index == 0 {
		tiled, _ := slices.BinarySearch(r.want, int32(r.tiled))
		r.inputs(len(r.want), tiled)
	}
	w.Barrier()
	w.Split(len(r.want)*groups, 1, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			k, row := u/groups, int(r.want[u/groups])
			r.attention(w, i, k, 1, int(r.pos[row]), r.y[row*width:], r.items[r.of[row]].Table, u%groups*r.together)
		}
	})
	w.Barrier()
}

// feed is a layer behind its attention, up to the product that endLayer adds: output
// projection, norm, silu(gate)·up (or gelu), down. rows says which row of x belongs to each row.
func (r *Runner) feed(w *kernel.Worker, l *layer, rows []int32) {
	n := len(rows)
	r.multiply(w, &l.out.product, &r.inAtt, r.y)
	w.Barrier()
	w.Split(n, rowGrain(n, w.N), func(lo, hi int) { r.addNorm(&l.out, rows, l.ffnNorm, &r.inWidth, lo, hi) })
	w.Barrier()
	blocks := r.m.config.FFN / kernel.BlockCols
	w.Split(blocks, pieceGrain(blocks, w.N), func(lo, hi int) { r.gate(l, n, lo, hi) })
	w.Barrier()
	r.multiply(w, &l.down.product, &r.inFFN, r.y)
	w.Barrier()
}

// gateBytes is how much of gate and up lies in y before it is gated: a thread's share of the
// third-level cache. Less would have prompts read their activations more often than that is worth.
const gateBytes = 2 << 20

// gate computes blocks [lo,hi) of silu(gate)·up (or gelu) of n rows and prepares them for down:
// whoever multiplied them has them in its cache, and what others read is a quarter of the size.
func (r *Runner) gate(l *layer, n, lo, hi int) {
	ffn, blockPanels := r.m.config.FFN, kernel.BlockCols/kernel.PanelRows
	run := max(1, gateBytes/(2*4*kernel.BlockCols*n))
	for end := 0; lo < hi; lo = end {
		end = min(lo+run, hi)
		a, b := lo*blockPanels, end*blockPanels
		l.gateUp.multiply(&r.inWidth, r.y, a, b)
		l.gateUp.multiply(&r.inWidth, r.y, ffn/kernel.PanelRows+a, ffn/kernel.PanelRows+b)
		from, to := lo*kernel.BlockCols, end*kernel.BlockCols
		for i := range n {
			row := r.y[i*l.gateUp.width:]
			gate, up := row[from:to], row[ffn+from:ffn+to]
			if bias := l.gateUpBias; bias != nil {
				kernel.Add(gate, bias[from:to])
				kernel.Add(up, bias[ffn+from:ffn+to])
			}
			if r.m.config.GELU {
				kernel.GeluMul(gate, up)
			} else {
				kernel.SiluMul(gate, gate, up)
			}
		}
		r.inFFN.SetBlocks(r.y, l.gateUp.width, 0, n, lo, end)
	}
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

// pieceGrain is the size of the smallest pieces of a product's panels, or blocks of them.
func pieceGrain(total, threads int) int { return max(1, total/(threads*piecesPerThread)) }

// multiply computes a product of all rows of in into y, without waiting for the other threads.
func (r *Runner) multiply(w *kernel.Worker, p *product, in *kernel.Input, y []float32) {
	w.Split(p.panels, pieceGrain(p.panels, w.N), func(lo, hi int) { p.multiply(in, y, lo, hi) })
}

// multiply computes panels [lo,hi) of the product.
func (p *product) multiply(in *kernel.Input, y []float32, lo, hi int) {
	first := 0
	for i, m := range p.mats {
		a, b := max(lo-first, 0), min(hi-first, m.Panels())
		if a < b {
			kernel.MatMul(y[p.at[i]:], p.width, m, in, a, b)
		}
		first += m.Panels()
	}
}

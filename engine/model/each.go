package model

import "baton/engine/kernel"

// Each calls f for every i from 0 to n-1 on the threads of this runner's steps, several at a time, and
// returns when all have returned. thread is below Model.Threads and is one goroutine's at a time: for
// what f does with the logits of the last Step. It allocates nothing. Of one model, Steps and Eaches of
// all runners take turns. On a closed runner it calls f as well, one after the other.
func (r *Runner) Each(n int, f func(i, thread int)) {
	r.m.stepping.Lock()
	defer r.m.stepping.Unlock()
	if r.closed || r.m.team == nil || n == 1 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	if r.each == nil {
		r.each = func(w *kernel.Worker) {
			thread := w.Index
			w.Split(r.eachN, 1, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					r.eachF(i, thread)
				}
			})
		}
	}
	r.eachN, r.eachF = n, f
	r.team.Run(r.each)
	r.eachF = nil
}

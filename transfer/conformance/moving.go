package conformance

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/core/room"
	"baton/transfer"
)

func chunksArriveWhole(t *testing.T, f Factory) {
	for _, size := range []int{1, 4096, 5000, 65536, 200_000} {
		r := newRig(t, f, plan{blockBytes: size})
		c := r.up()
		for i, n := range []int{1, 7, 0, 16, 3} {
			w := r.write(c, 1, i, 10*i, n)
			e := r.await(1, ofChunk("decode.Placed", 1, i))[0]
			want := transfer.Chunk{Room: 1, Lease: lease(1), Conn: c, Chunk: i, FirstBlock: 10 * i, N: n}
			if e.chunk != want || e.side != string(w.Side) {
				t.Errorf("placed %+v with %q, want %+v with %q", e.chunk, e.side, want, w.Side)
			}
		}
		r.write(c, 1, 99, 0, 1)
		if e := r.await(1, ofChunk("decode.Placed", 1, 99))[0]; !e.chunk.Last {
			t.Error("the last chunk came without its flag")
		}
		for _, e := range r.await(6, is("prefill.WriteDone")) {
			if e.err != nil {
				t.Errorf("write of chunk %d: %v", e.chunk.Chunk, e.err)
			}
		}
		// Sums that prefill takes itself are as good.
		r.prefill.Write(transfer.Write{Room: 2, Lease: lease(2), Conn: c, Blocks: []int32{0, 1}})
		r.await(1, ofChunk("decode.Placed", 2, 0))
		r.close()
	}
}

func blocksLargerThanTheWindow(t *testing.T, f Factory) {
	r := newRig(t, f, plan{blocks: 4, srcBlocks: 4, blockBytes: 700_001, bounds: transfer.Bounds{Window: 100_000, Buffer: 64 << 10}})
	c := r.up()
	for i := range 3 {
		r.write(c, 1, i, 0, 4)
	}
	r.await(3, is("decode.Placed"))
	if got, want := r.decode.Stats().PlacedBytes, int64(3*4*700_001); got != want {
		t.Errorf("%d bytes placed, want %d", got, want)
	}
	r.close()
}

func wordsArriveInOrder(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	c := r.up()
	const n = 500
	for i := uint64(1); i <= n; i++ {
		r.decode.Prealloc(c, room.Prealloc{Room: room.ID(i), Lease: lease(i), Conn: c, Tokens: 100, From: 32, Left: 7})
		r.decode.Cancel(c, room.Cancel{Room: room.ID(i), Lease: lease(i), Cause: room.Deadline})
		r.prefill.Settle(room.Settled{Room: room.ID(i), Lease: lease(i), Outcome: room.Fail(room.Overload), Chunks: 3})
	}
	for i, e := range r.await(n, is("prefill.Prealloc")) {
		if want := (room.Prealloc{Room: room.ID(i + 1), Lease: lease(uint64(i + 1)), Conn: c, Tokens: 100, From: 32, Left: 7}); e.prealloc != want {
			t.Fatalf("got %+v, want %+v", e.prealloc, want)
		}
	}
	for i, e := range r.await(n, is("prefill.Cancel")) {
		if want := (room.Cancel{Room: room.ID(i + 1), Lease: lease(uint64(i + 1)), Cause: room.Deadline}); e.cancel != want {
			t.Fatalf("got %+v, want %+v", e.cancel, want)
		}
	}
	for i, e := range r.await(n, is("decode.Settled")) {
		if want := (room.Settled{Room: room.ID(i + 1), Lease: lease(uint64(i + 1)), Outcome: room.Fail(room.Overload), Chunks: 3}); e.settled != want || e.peer != 4 {
			t.Fatalf("got %+v from %d, want %+v from 4", e.settled, e.peer, want)
		}
	}
	r.prefill.Settle(room.Settled{Room: 1, Lease: room.Lease{Boot: 99, Seq: 1}, Outcome: room.Done()})
	if got := r.prefill.Stats().WordsDropped; got != 1 {
		t.Errorf("%d words dropped, want the one to an unknown boot", got)
	}
	r.close()
}

func unwantedIsScrapped(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	r.accept = func(c transfer.Chunk) bool { return c.Chunk != 1 }
	c := r.up()
	for i := range 3 {
		r.write(c, 1, i, 0, 8)
	}
	r.await(1, ofChunk("decode.Placed", 1, 2))
	r.await(1, ofChunk("decode.Placed", 1, 0))
	s := r.decode.Stats()
	if s.ScrapBytes != 8*5000 || s.ScrapChunks != 1 || s.PlacedChunks != 2 {
		t.Errorf("stats %+v, want one chunk of 40000 bytes scrapped and two placed", s)
	}
	r.close()
}

// lateCalls are so many that a goroutine for each would still be running when the last is asked.
const lateCalls = 100

func everyWriteIsAnswered(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	want := func(id uint64, target error) {
		t.Helper()
		if e := r.await(1, ofChunk("prefill.WriteDone", room.ID(id), 0))[0]; !errors.Is(e.err, target) {
			t.Errorf("write %d ended in %v, want %v", id, e.err, target)
		}
	}
	r.write(77, 1, 0, 0, 1)
	want(1, transfer.ErrNoLink)
	c := r.up()
	r.prefill.Write(transfer.Write{Room: 2, Lease: lease(2), Conn: c, Blocks: []int32{1}, Sums: []uint64{1, 2}})
	want(2, transfer.ErrBadRequest)
	r.prefill.Write(transfer.Write{Room: 3, Lease: lease(3), Conn: c, Blocks: make([]int32, transfer.ChunkBlocksMax+1)})
	want(3, transfer.ErrBadRequest)
	r.prefill.Write(transfer.Write{Room: 4, Lease: room.Lease{Boot: 5, Seq: 4}, Conn: c, Blocks: []int32{0}})
	want(4, transfer.ErrNoLink) // the connection is of another boot
	if err := r.decode.Close(); err != nil {
		t.Fatal(err)
	}
	r.await(1, is("prefill.LinkEnd"))
	r.write(c, 5, 0, 0, 1)
	want(5, transfer.ErrNoLink)
	r.close()
	for id := uint64(6); id < 6+lateCalls; id++ {
		r.write(c, id, 0, 0, 1)
	}
	if err := r.prefill.Close(); err != nil {
		t.Fatal(err)
	}
	if n := r.count(is("prefill.WriteDone")); n != 5+lateCalls {
		t.Errorf("T8: %d WriteDone after a second Close, want all of %d", n, 5+lateCalls)
	}
	want(6, transfer.ErrClosed)
	if n := r.count(is("prefill.WriteDone")); n != 5+lateCalls {
		t.Errorf("T4: %d WriteDone for %d writes", n, 5+lateCalls)
	}
}

func wrongSum(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	c := r.up()
	w := transfer.Write{Room: 1, Lease: lease(1), Conn: c, Blocks: []int32{0, 1, 2}}
	for _, b := range w.Blocks {
		w.Sums = append(w.Sums, transfer.Sum(r.src.Block(b)))
	}
	w.Sums[1]++
	r.prefill.Write(w)
	r.write(c, 2, 0, 0, 3)
	r.await(1, ofChunk("decode.Placed", 2, 0)) // the link goes on
	off, refused, placed := r.count(ofChunk("decode.Off", 1, 0)), r.count(ofChunk("decode.Refused", 1, 0)), r.count(ofChunk("decode.Placed", 1, 0))
	if off != 1 || refused != 1 || placed != 0 {
		t.Errorf("T5: %d Off, %d Refused, %d Placed, want 1, 1, 0", off, refused, placed)
	}
	r.close()
}

// cancelRaces cancels while the last piece of a chunk lands, and takes the block away at once.
func cancelRaces(t *testing.T, f Factory) {
	r := newRig(t, f, plan{blocks: 3, blockBytes: 70_000})
	c := r.up()
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds = 300
	for i := uint64(1); i <= rounds; i++ {
		spin := rng.IntN(60)
		r.write(c, i, 0, 0, 3)
		r.await(1, ofChunk("decode.Arrived", room.ID(i), 0))
		for range spin * 1000 { // somewhere within the chunk: it takes about 50 µs
			_ = atomic.AddInt64(new(int64), 1)
		}
		r.decode.Cancel(c, room.Cancel{Room: room.ID(i), Lease: lease(i)})
		r.await(1, func(e event) bool {
			return (e.what == "decode.Placed" || e.what == "decode.Off") && e.chunk.Room == room.ID(i)
		})
	}
	placed, off := r.count(is("decode.Placed")), r.count(is("decode.Off"))
	if placed+off != rounds {
		t.Errorf("T1: %d Placed and %d Off for %d chunks", placed, off, rounds)
	}
	r.close()
}

// storm runs many rooms over two links with a pool that is always nearly used up, and cancels
// a third of them at any moment.
func storm(t *testing.T, f Factory) {
	rounds := 600
	if testing.Short() {
		rounds = 100
	}
	r := newRig(t, f, plan{blocks: 12, blockBytes: 20_000, bounds: transfer.Bounds{Window: 150_000}})
	c := r.up()
	rng := rand.New(rand.NewPCG(3, 4))
	var cancels sync.WaitGroup
	for i := uint64(1); i <= uint64(rounds); i++ {
		for chunk := range 1 + rng.IntN(3) {
			r.write(c, i, chunk, 4*chunk, 1+rng.IntN(4))
		}
		if i%3 == 0 {
			x := i - uint64(rng.IntN(3))
			cancels.Add(1)
			go func() {
				defer cancels.Done()
				r.decode.Cancel(c, room.Cancel{Room: room.ID(x), Lease: lease(x)})
			}()
		}
		if i%50 == 0 { // let the queue run dry now and then
			r.await(1, ofChunk("prefill.WriteDone", room.ID(i), 0))
		}
	}
	cancels.Wait()
	r.write(c, 1<<20, 99, 0, 1)
	r.await(1, ofChunk("decode.Arrived", 1<<20, 99))
	r.close()
	if ended, sent := r.count(is("prefill.WriteDone")), r.count(is("decode.Arrived")); ended < sent {
		t.Errorf("T4: %d chunks arrived, %d writes ended", sent, ended)
	}
}

func closeWaits(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	c := r.up()
	answer := make(chan struct{})
	r.mu.Lock()
	r.arrive = func(transfer.Chunk) { <-answer }
	r.mu.Unlock()
	r.write(c, 1, 0, 0, 4)
	r.await(1, is("decode.Arrived"))
	var closed atomic.Bool
	go func() {
		r.await(1, is("prefill.LinkEnd")) // decode's Close has cut the link
		if closed.Load() {
			t.Error("T8: Close returned while a handler was asked where a chunk goes")
		}
		close(answer)
	}()
	if err := r.decode.Close(); err != nil {
		t.Fatal(err)
	}
	closed.Store(true)
	r.close()
}

func closeUnderLoad(t *testing.T, f Factory) {
	for _, first := range []string{"decode", "prefill"} {
		r := newRig(t, f, plan{blocks: 8, blockBytes: 100_000})
		c := r.up()
		const n = 200
		for i := range uint64(n) {
			r.write(c, i+1, 0, 0, 8)
		}
		r.await(3, is("decode.Placed"))
		if first == "prefill" {
			if err := r.prefill.Close(); err != nil {
				t.Fatal(err)
			}
			r.await(1, is("decode.LinkEnd"))
		}
		r.close()
		if got := r.count(is("prefill.WriteDone")); got != n {
			t.Errorf("T4: %d WriteDone for %d writes", got, n)
		}
		last := r.events[len(r.events)-1].what
		if last != "prefill.LinkEnd" && last != "decode.LinkEnd" {
			t.Errorf("T2: the last event is %s, want a LinkEnd", last)
		}
	}
}

func callbacksCallMethods(t *testing.T, f Factory) {
	var r *rig
	ready := make(chan struct{})
	var depth atomic.Int32
	var id atomic.Uint64
	id.Store(1000)
	hook := func(string) {
		<-ready
		if depth.Add(1) > 60 {
			return
		}
		n := id.Add(1)
		r.decode.Prealloc(1, room.Prealloc{Room: room.ID(n), Lease: lease(n), Conn: 1, Tokens: 1})
		r.decode.Cancel(1, room.Cancel{Room: room.ID(n), Lease: lease(n)})
		r.prefill.Settle(room.Settled{Room: room.ID(n), Lease: lease(n), Outcome: room.Done(), Chunks: 1})
		r.write(1, n, 0, 0, 1)
		r.write(99, n, 1, 0, 1)
		r.decode.Dial(9, "127.0.0.1:0")
		_, _ = r.decode.Stats(), r.prefill.Stats()
	}
	r = newRig(t, f, plan{hook: hook})
	close(ready)
	c := r.up()
	r.write(c, 1, 0, 0, 4)
	r.await(1, ofChunk("decode.Placed", 1, 0))
	r.await(60, is("prefill.WriteDone"))
	r.close()
}

// methodsReturn: T7. Every handler waits, and every method comes back; a plane that called a
// handler from inside a method would wait for itself.
func methodsReturn(t *testing.T, f Factory) {
	var shut atomic.Bool
	gate := make(chan struct{})
	r := newRig(t, f, plan{hook: func(string) {
		if shut.Load() {
			<-gate
		}
	}})
	c := r.up()
	shut.Store(true)
	back := make(chan struct{})
	go func() {
		defer close(back)
		for i := uint64(1); i <= 10; i++ {
			r.write(c, i, 0, 0, 2)
			r.write(77, i, 1, 0, 1)
			r.prefill.Write(transfer.Write{Room: room.ID(i), Lease: lease(i), Conn: c, Chunk: 2, Blocks: []int32{1}, Sums: []uint64{1, 2}})
			r.decode.Prealloc(c, room.Prealloc{Room: room.ID(i), Lease: lease(i), Conn: c, Tokens: 1})
			r.decode.Cancel(c, room.Cancel{Room: room.ID(i), Lease: lease(i)})
			r.prefill.Settle(room.Settled{Room: room.ID(i), Lease: lease(i), Outcome: room.Done()})
			r.decode.Dial(9, "127.0.0.1:1")
			_, _ = r.decode.Stats(), r.prefill.Stats()
		}
	}()
	select {
	case <-back:
	case <-time.After(patience):
		t.Error("T7: a method waits for a handler")
	}
	close(gate)
	<-back
	r.await(30, is("prefill.WriteDone"))
	r.close()
}

// controlOverflow: a prefill end whose handler does not return reads no more words; decode must
// neither wait nor queue for ever.
func controlOverflow(t *testing.T, f Factory) {
	release := make(chan struct{})
	r := newRig(t, f, plan{bounds: transfer.Bounds{Buffer: 64 << 10}, hook: func(what string) {
		if what == "prefill.Prealloc" {
			<-release
		}
	}})
	c := r.up()
	ended := is("decode.LinkEnd")
	for i := uint64(1); r.count(ended) == 0; i++ {
		for range 1000 {
			r.decode.Prealloc(c, room.Prealloc{Room: room.ID(i), Lease: lease(i), Conn: c, Tokens: 1})
		}
	}
	if e := r.await(1, ended)[0]; !errors.Is(e.err, transfer.ErrOverflow) {
		t.Errorf("the link ended with %v, want %v", e.err, transfer.ErrOverflow)
	}
	if got := r.decode.Stats().QueueOverflows; got != 1 {
		t.Errorf("%d overflows counted, want 1", got)
	}
	close(release)
	r.close()
}

func everyDialIsAnswered(t *testing.T, f Factory) {
	r := newRig(t, f, plan{})
	for i := range 8 {
		r.decode.Dial(int32(i), "127.0.0.1:1") // nobody listens there
	}
	r.up()
	if err := r.decode.Close(); err != nil {
		t.Fatal(err)
	}
	for range lateCalls {
		r.decode.Dial(9, r.addr())
	}
	if err := r.decode.Close(); err != nil {
		t.Fatal(err)
	}
	if n := r.count(is("decode.LinkFailed")); n != 8+lateCalls {
		t.Errorf("T8: %d LinkFailed after a second Close, want all of %d", n, 8+lateCalls)
	}
	e := r.await(1, func(e event) bool { return e.what == "decode.LinkFailed" && e.peer == 9 })[0]
	if !errors.Is(e.err, transfer.ErrClosed) {
		t.Errorf("dial after Close failed with %v, want %v", e.err, transfer.ErrClosed)
	}
	r.close()
	if n := r.count(is("decode.LinkFailed")); n != 8+lateCalls {
		t.Errorf("T3: %d LinkFailed for %d dials that could not succeed", n, 8+lateCalls)
	}
}

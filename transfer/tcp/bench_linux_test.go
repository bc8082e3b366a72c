package tcp

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"baton/core/room"
	"baton/transfer"
)

// Anchors and planes are to be run together, as only ratios count on a shared machine:
//
//	go test -run xxx -bench . -benchtime 4000x ./transfer/tcp
//
// One operation moves 1 MiB. Pools are cold: twice 256 MiB, blocks in random order.
const (
	benchPool  = 256 << 20
	benchChunk = 1 << 20
)

type benchMemory struct {
	mem   []byte
	bytes int
}

func (m benchMemory) Block(i int32) []byte { return m.mem[int(i)*m.bytes : (int(i)+1)*m.bytes] }

func newBenchMemory(b *testing.B, blockBytes int) benchMemory {
	mem, err := unix.Mmap(-1, 0, benchPool, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		b.Fatal(err)
	}
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	for i := range mem {
		mem[i] = byte(i * i >> 8)
	}
	b.Cleanup(func() { _ = unix.Munmap(mem) })
	return benchMemory{mem, blockBytes}
}

func shuffled(n int, seed uint64) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i)
	}
	rand.New(rand.NewPCG(seed, 1)).Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// benchEnds answers both handlers in the shortest way.
type benchEnds struct {
	blocks  []int32 // where chunks go, in turn
	next    int
	up      chan room.Conn
	left    chan bool // a chunk was placed (true) or left
	settled chan struct{}
	settle  func(room.Prealloc)
	window  chan struct{} // writes that may be queued
}

func (e *benchEnds) Prealloc(p room.Prealloc) { e.settle(p) }
func (e *benchEnds) Cancel(room.Cancel)       {}
func (e *benchEnds) WriteDone(room.ID, room.Lease, int, error) {
	<-e.window
}

type benchPrefill struct{ *benchEnds }

func (benchPrefill) LinkUp(room.Boot, room.Conn)         {}
func (benchPrefill) LinkEnd(room.Boot, room.Conn, error) {}

type benchDecode struct{ *benchEnds }

func (e benchDecode) LinkUp(_ int32, _ room.Boot, c room.Conn) { e.up <- c }
func (e benchDecode) LinkFailed(_ int32, err error)            { panic(err) }
func (e benchDecode) LinkEnd(_ int32, _ room.Conn, err error) {
	if !errors.Is(err, transfer.ErrClosed) {
		panic(err)
	}
}
func (e benchDecode) Settled(int32, room.Settled) { e.settled <- struct{}{} }
func (e benchDecode) Arrived(c Chunk) ([]int32, bool) {
	if e.next+c.N > len(e.blocks) {
		e.next = 0
	}
	got := e.blocks[e.next : e.next+c.N]
	e.next += c.N
	return got, true
}
func (e benchDecode) Placed(Chunk, []byte) { e.left <- true }
func (e benchDecode) Off(Chunk)            { e.left <- false }
func (e benchDecode) Refused(Chunk)        {}

type benchLink struct {
	*benchEnds
	p        *Prefill
	d        *Decode
	c        room.Conn
	src, dst benchMemory
}

func newBenchLink(b *testing.B, blockBytes int) *benchLink {
	l := &benchLink{benchEnds: &benchEnds{up: make(chan room.Conn, 1), left: make(chan bool, 1<<16), settled: make(chan struct{}, 1), window: make(chan struct{}, 8)}}
	l.src, l.dst = newBenchMemory(b, blockBytes), newBenchMemory(b, blockBytes)
	l.blocks = shuffled(benchPool/blockBytes, 2)
	secret := []byte("sixteen bytes at the least")
	var err error
	if l.p, err = Listen("127.0.0.1:0", Identity{Boot: 1, Secret: secret}, l.src, benchPrefill{l.benchEnds}); err != nil {
		b.Fatal(err)
	}
	l.settle = func(p room.Prealloc) {
		l.p.Settle(room.Settled{Room: p.Room, Lease: p.Lease, Outcome: room.Done()})
	}
	l.d = NewDecode(Identity{Boot: 2, Secret: secret}, l.dst, benchDecode{l.benchEnds})
	l.d.Dial(0, l.p.Addr())
	l.c = <-l.up
	b.Cleanup(func() { _, _ = l.d.Close(), l.p.Close() })
	return l
}

func BenchmarkPlane(b *testing.B) {
	for _, c := range []struct {
		name       string
		blockBytes int
		sums       string
	}{
		{"64KiB/NoSums", 64 << 10, "none"}, {"64KiB/SumsVerified", 64 << 10, "kept"}, {"64KiB/SumsTakenAndVerified", 64 << 10, "taken"},
		{"64KiB/Hot", 64 << 10, "hot"}, {"4KiB/SumsVerified", 4 << 10, "kept"}, {"360KiB/SumsVerified", 360 << 10, "kept"},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := newBenchLink(b, c.blockBytes)
			l.d.blind = c.sums == "none" || c.sums == "hot"
			order, per := shuffled(benchPool/c.blockBytes, 1), benchChunk/c.blockBytes
			if c.sums == "hot" { // the same 1 MiB again and again, as iperf3 does
				order, l.blocks = order[:per], l.blocks[:per]
			}
			sums := make([]uint64, len(order))
			for i, blk := range order {
				sums[i] = transfer.Sum(l.src.Block(blk))
			}
			b.SetBytes(int64(per * c.blockBytes))
			start := cpu()
			b.ResetTimer()
			go func() {
				for i, at := 0, 0; i < b.N; i, at = i+1, at+per {
					if at+per > len(order) {
						at = 0
					}
					w := Write{Room: 1, Lease: room.Lease{Boot: 2, Seq: 1}, Conn: l.c, Chunk: i % transfer.ChunksMax, Blocks: order[at : at+per], Sums: sums[at : at+per]}
					if c.sums == "taken" {
						w.Sums = nil
					}
					l.window <- struct{}{}
					l.p.Write(w)
				}
			}()
			for range b.N {
				if !<-l.left {
					b.Fatal("a chunk was not placed")
				}
			}
			report(b, start, per*c.blockBytes)
		})
	}
}

// cpu is user and system time of this process: unlike the clock it hardly minds other work.
func cpu() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(unix.TimevalToNsec(r.Utime) + unix.TimevalToNsec(r.Stime))
}

func report(b *testing.B, start time.Duration, bytes int) {
	b.StopTimer()
	b.ReportMetric((cpu()-start).Seconds()/(float64(b.N)*float64(bytes)/1e9), "cpu-s/GB")
}

// BenchmarkPlainLoop is what Go's own Write and Read do with 64 KiB: one hot buffer, or the
// same cold pools as above.
func BenchmarkPlainLoop(b *testing.B) {
	for _, cold := range []bool{false, true} {
		b.Run(map[bool]string{false: "Hot", true: "Cold"}[cold], func(b *testing.B) {
			src, dst := newBenchMemory(b, 64<<10), newBenchMemory(b, 64<<10)
			from, to := shuffled(benchPool/src.bytes, 1), shuffled(benchPool/src.bytes, 2)
			if !cold {
				from, to = []int32{0}, []int32{0}
			}
			lc := net.ListenConfig{Control: tune(transfer.BufferDefault)}
			ln, err := lc.Listen(b.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer ln.Close()
			d := net.Dialer{Control: tune(transfer.BufferDefault)}
			c, err := d.Dial("tcp", ln.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			s, err := ln.Accept()
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(benchChunk)
			start := cpu()
			b.ResetTimer()
			n := b.N * benchChunk / src.bytes
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range n {
					if _, err := s.Write(src.Block(from[i%len(from)])); err != nil {
						b.Error(err)
						return
					}
				}
			})
			for i := range n {
				if _, err := io.ReadFull(c, dst.Block(to[i%len(to)])); err != nil {
					b.Fatal(err)
				}
			}
			wg.Wait()
			report(b, start, benchChunk)
			_, _ = c.Close(), s.Close()
		})
	}
}

// BenchmarkIperf3 is the field's anchor, where it is installed: one stream, 1 MiB writes, hot.
func BenchmarkIperf3(b *testing.B) {
	path, err := exec.LookPath("iperf3")
	if err != nil {
		b.Skip("iperf3 is not installed")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	_ = ln.Close()
	server := exec.Command(path, "-s", "-1", "-p", port, "--forceflush")
	out, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it says when it listens
		b.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	bytes := int64(b.N) * benchChunk
	got, err := exec.Command(path, "-c", "127.0.0.1", "-p", port, "-C", "cubic", "-l", "1M", "-n", strconv.FormatInt(bytes, 10), "-J").Output()
	if err != nil {
		_ = server.Process.Kill()
		b.Fatal(err)
	}
	_ = server.Wait()
	var r struct {
		End struct {
			Received struct {
				BPS     float64 `json:"bits_per_second"`
				Seconds float64 `json:"seconds"`
			} `json:"sum_received"`
			CPU struct {
				Host   float64 `json:"host_total"`
				Remote float64 `json:"remote_total"`
			} `json:"cpu_utilization_percent"`
		} `json:"end"`
	}
	if err := json.Unmarshal(got, &r); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(r.End.Received.BPS/8e6, "MB/s")
	b.ReportMetric((r.End.CPU.Host+r.End.CPU.Remote)/100*r.End.Received.Seconds/(float64(bytes)/1e9), "cpu-s/GB")
	b.ReportMetric(0, "ns/op") // the time of this function is that of two processes' start
}

// BenchmarkWordRoundTrip is Prealloc there and Settled back, handlers included.
func BenchmarkWordRoundTrip(b *testing.B) {
	l := newBenchLink(b, 64<<10)
	var took []time.Duration
	b.ResetTimer()
	for i := range b.N {
		at := time.Now()
		l.d.Prealloc(l.c, room.Prealloc{Room: room.ID(i + 1), Lease: room.Lease{Boot: 2, Seq: 1}, Conn: l.c, Tokens: 1})
		<-l.settled
		took = append(took, time.Since(at))
	}
	quantiles(b, took)
}

// BenchmarkPingPong is the anchor of the one above: 64 bytes there and back, Go's own calls.
func BenchmarkPingPong(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	s, err := ln.Accept()
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var buf [64]byte
		for {
			if _, err := io.ReadFull(s, buf[:]); err != nil {
				return
			}
			_, _ = s.Write(buf[:])
		}
	})
	var buf [64]byte
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		at := time.Now()
		_, _ = c.Write(buf[:])
		_, _ = io.ReadFull(c, buf[:])
		took = append(took, time.Since(at))
	}
	quantiles(b, took)
	_, _ = c.Close(), s.Close()
	wg.Wait()
}

// BenchmarkCancelToOff: chunks of 1 MiB stream without a pause; one of them is cancelled
// somewhere within, and the time counts until its receiver is off.
func BenchmarkCancelToOff(b *testing.B) {
	l := newBenchLink(b, 64<<10)
	order := shuffled(benchPool/l.src.bytes, 1)
	sums := make([]uint64, len(order))
	for i, blk := range order {
		sums[i] = transfer.Sum(l.src.Block(blk))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			at := 16 * (i % (len(order) / 16))
			select {
			case <-stop:
				return
			case l.window <- struct{}{}:
			}
			l.p.Write(Write{Room: 1, Lease: room.Lease{Boot: 2, Seq: 1}, Conn: l.c, Chunk: i % transfer.ChunksMax, Blocks: order[at : at+16], Sums: sums[at : at+16]})
		}
	})
	rng := rand.New(rand.NewPCG(5, 6))
	var took []time.Duration
	b.ResetTimer()
	for len(took) < b.N {
		<-l.left
		for until := time.Now().Add(time.Duration(rng.IntN(300)) * time.Microsecond); time.Now().Before(until); {
		}
		for len(l.left) > 0 {
			<-l.left
		}
		at := time.Now()
		l.d.Cancel(l.c, room.Cancel{Room: 1, Lease: room.Lease{Boot: 2, Seq: 1}})
		if !<-l.left {
			took = append(took, time.Since(at))
		}
	}
	quantiles(b, took)
	close(stop)
	wg.Wait()
}

func quantiles(b *testing.B, took []time.Duration) {
	b.StopTimer()
	slices.Sort(took)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50-us", 0.5}, {"p99-us", 0.99}} {
		b.ReportMetric(float64(took[int(q.at*float64(len(took)-1))].Nanoseconds())/1e3, q.name)
	}
}

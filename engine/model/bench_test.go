package model

import (
	"fmt"
	"strings"
	"testing"

	"baton/engine/kernel"
	"baton/proof/realmodel"
)

// benchAt reports tokens per second of one of Bench's tests at 1 and 2 threads.
func benchAt(b *testing.B, test string) {
	m := open(b, realmodel.SmolLM2(b), Options{})
	for threads := 1; threads <= 2; threads++ {
		b.Run(fmt.Sprintf("%s/threads=%d", test, threads), func(b *testing.B) {
			var best float64
			for range b.N {
				v, err := Bench(m, test, threads)
				if err != nil {
					b.Fatal(err)
				}
				best = max(best, v)
			}
			b.ReportMetric(best, "tokens/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkDecode(b *testing.B)  { benchAt(b, "tg64") }
func BenchmarkBatch8(b *testing.B)  { benchAt(b, "tg64x8") }
func BenchmarkPrefill(b *testing.B) { benchAt(b, "pp512") }

// BenchmarkDecodeStep is one step for eight sequences at every level: it must show 0 allocs/op.
func BenchmarkDecodeStep(b *testing.B) {
	before := kernel.Active()
	defer kernel.Use(before)
	s := shapes["q8_0"]
	f := s.build(b, 4, nil)
	for _, level := range kernel.Levels() {
		for _, kvType := range []DType{BF16, Q8_0} {
			b.Run(fmt.Sprintf("%s/kv=%s", level, kvType), func(b *testing.B) {
				if err := kernel.Use(level); err != nil {
					b.Fatal(err)
				}
				m := open(b, f, Options{Threads: 1, KV: kvType})
				r := m.NewRunner(pool(b, m, 8))
				items := make([]Item, 8)
				for i := range items {
					items[i] = Item{Tokens: []int32{int32(i)}, Table: table(i, 1), Want: true}
				}
				step := func() {
					if err := r.Step(items); err != nil {
						b.Fatal(err)
					}
				}
				step()
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}

// TestBenchNamesAreChecked: wrong names are refused with the allowed ones, right ones measure.
func TestBenchNamesAreChecked(t *testing.T) {
	m := open(t, odd.build(t, 1, nil), Options{Threads: 1})
	for _, test := range []string{"", "p", "pp", "tg0", "pp-1", "pp4x2", "tg4x", "tg4x0", "tg4x1000", "tg512", "xx4", "tg99999999999999999999"} {
		if v, err := Bench(m, test, 1); err == nil || !strings.Contains(err.Error(), "tg64x8") {
			t.Errorf("%q gave %v, %v", test, v, err)
		}
	}
	if _, err := Bench(m, "tg4", 0); err == nil {
		t.Error("no threads were accepted")
	}
	for _, test := range []string{"pp5", "tg3", "tg2x3"} {
		if v, err := Bench(m, test, 2); err != nil || !(v > 0) {
			t.Errorf("%s: %v, %v", test, v, err)
		}
	}
}

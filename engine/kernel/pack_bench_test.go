package kernel

import "testing"

// BenchmarkPack is the loading of weights: GB/s of one thread.
func BenchmarkPack(b *testing.B) {
	for _, f := range allFormats {
		b.Run(f.String(), func(b *testing.B) {
			const rows, cols = 2048, 2048
			r := newRand(1)
			src := make([][]byte, rows)
			for i := range src {
				src[i] = randRow(r, f, cols)
			}
			var m *Matrix
			area := Alloc(rows * f.RowBytes(cols))
			per := timed(b, func(int) {
				m, _ = Pack(f, rows, cols, func(r int) []byte { return src[r] }, func(n int) []byte { return area[:n] })
			})
			b.ReportMetric(float64(m.Bytes())/per/1e9, "GB/s")
		})
	}
}

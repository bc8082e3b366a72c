package kernel

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// archTables returns the vector levels that this processor has, lowest first.
func archTables() []*table {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA || !x.HasF16C {
		return nil
	}
	t := avx2Table()
	tables := []*table{t}
	if !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512VL || !x.HasAVX512DQ {
		return tables
	}
	tables = append(tables, avx512Table(*t))
	if x.HasAVX512VNNI {
		tables = append(tables, vnniTable(*tables[1]))
	}
	if x.HasAVX512VNNI && x.HasAVX512BF16 {
		tables = append(tables, pairsTable(*tables[2]))
	}
	if x.HasAVX512VNNI && x.HasAMXTile && x.HasAMXBF16 {
		if t, err := amxTable(*tables[2]); err != nil {
			notes = append(notes, "level amx is not used: "+err.Error())
		} else {
			tables = append(tables, t)
		}
	}
	return tables
}

func avx2Table() *table {
	return &table{
		level: AVX2,
		mm: [formats]func(mmCall, int){
			F32: func(c mmCall, n int) { c.inParts(&mmF32AVX2, n, 2, 64) }, BF16: func(c mmCall, n int) { c.inParts(&mmBF16AVX2, n, 2, 64) },
			Q8_0: func(c mmCall, n int) { c.inParts(&mmQ8AVX2, n, 1, q8TokenBytes) },
			Q4_0: func(c mmCall, n int) { c.inParts(&mmQ40AVX2, n, 1, q8TokenBytes) },
			Q4_1: func(c mmCall, n int) { c.inParts(&mmQ41AVX2, n, 1, q8TokenBytes) },
		},
		quantise: quantiseAVX2, roundPairs: roundPairsGo,
		rmsNorm: rmsNormVec, siluMul: siluMulVec,
		ropeHalf: ropeHalfVec, ropePairs: ropePairsVec, add: addVec, scale: scaleVec, maxOf: maxOfVec, dot: dotVec,
		expSum: func(dst, x []float32, peak float32) float32 {
			return expSumVec(expSumAVX2, dst, x, peak)
		},
		scores: [kvTypes]func(pageCall, int){
			func(c pageCall, n int) { c.scoresInParts(&scoresBF16AVX2, n) },
			func(c pageCall, n int) { c.scoresInParts(&scoresF32AVX2, n) },
			func(c pageCall, n int) { c.scoresQ8InParts(n) },
		},
		mix: [kvTypes]func(pageCall, int){
			func(c pageCall, n int) { c.mixInParts(&mixBF16AVX2, n) },
			func(c pageCall, n int) { c.mixInParts(&mixF32AVX2, n) },
			func(c pageCall, n int) { c.mixQ8InParts(n) },
		},
		softmaxPage: [kvTypes]func(*float32, int, int, int) float32{softmaxPageAVX2, softmaxPageAVX2, softmaxPageAVX2},
		storeKV:     storeKVAVX2,
		storeQ8:     storeQ8Vec,
		read:        readAVX2,
	}
}

// amxTable adds matrix tiles, if the system lets this process use them and they multiply as they should.
func amxTable(below table) (*table, error) {
	if err := tilePermission(); err != nil {
		return nil, err
	}
	t := tiles{product: tileProductAMX, round: roundPairsAVX512}
	t.widen[Q8_0], t.widen[Q4_0], t.widen[Q4_1] = widenQ8AVX512, widenQ40AVX512, widenQ41AVX512
	if err := checkTiles(&t); err != nil {
		return nil, err
	}
	return tileTable(below, t), nil
}

// avx512Table replaces what AVX-512 does better. Products with int8 stay: without VNNI they need 16-bit steps and
// gain little from the width.
func avx512Table(t table) *table {
	t.level = AVX512
	t.mm[F32] = func(c mmCall, n int) { mmF32AVX512[n](c.w, c.x, c.y, 2*c.kb, c.np, c.xs, c.ldy) }
	t.mm[BF16] = func(c mmCall, n int) { mmBF16AVX512[n](c.w, c.x, c.y, 2*c.kb, c.np, c.xs, c.ldy) }
	t.rmsNorm = func(dst, x, w []float32, eps float32) {
		if len(x)%16 != 0 {
			rmsNormGo(dst, x, w, eps)
			return
		}
		rmsNormAVX512(&dst[0], &x[0], &w[0], len(x), eps)
	}
	t.siluMul = func(dst, gate, up []float32) {
		n := len(dst) &^ 15
		if n > 0 {
			siluMulAVX512(&dst[0], &gate[0], &up[0], n)
		}
		if n < len(dst) {
			var g, u [16]float32
			copy(g[:], gate[n:])
			copy(u[:], up[n:])
			siluMulAVX512(&g[0], &g[0], &u[0], 16)
			copy(dst[n:], g[:])
		}
	}
	t.expSum = func(dst, x []float32, peak float32) float32 { return expSumVec(expSumAVX512, dst, x, peak) }
	t.scores = [kvTypes]func(pageCall, int){
		func(c pageCall, n int) { scoresBF16AVX512[n](c.base, c.table, c.size, c.pages, c.dims, c.x, c.y) },
		func(c pageCall, n int) { scoresF32AVX512[n](c.base, c.table, c.size, c.pages, c.dims, c.x, c.y) },
		t.scores[KVQ8_0],
	}
	t.mix = [kvTypes]func(pageCall, int){
		func(c pageCall, n int) { c.mix512(&mixBF16AVX512, &mixp4BF16AVX512, n) },
		func(c pageCall, n int) { c.mix512(&mixF32AVX512, &mixp4F32AVX512, n) },
		func(c pageCall, n int) { mixQ8AVX512[n](c.base, c.table, c.size, c.pages, c.dims, c.x, c.y, c.tmp) },
	}
	t.softmaxPage = [kvTypes]func(*float32, int, int, int) float32{softmaxPageAVX512, softmaxPageAVX512, softmaxPageAVX512}
	return &t
}

func vnniTable(t table) *table {
	t.level = VNNI
	t.scores[KVQ8_0] = func(c pageCall, n int) { scoresQ8VNNI[n](c.base, c.table, c.size, c.pages, c.dims, c.x, c.y) }
	t.mm[Q8_0] = func(c mmCall, n int) { mmQ8VNNI[n](c.w, c.x, c.y, c.kb, c.np, c.xs, c.ldy) }
	t.mm[Q4_0] = func(c mmCall, n int) { mmQ40VNNI[n](c.w, c.x, c.y, c.kb, c.np, c.xs, c.ldy) }
	t.mm[Q4_1] = func(c mmCall, n int) { mmQ41VNNI[n](c.w, c.x, c.y, c.kb, c.np, c.xs, c.ldy) }
	return &t
}

func pairsTable(t table) *table {
	t.level, t.pairs, t.roundPairs = Pairs, true, roundPairsAVX512
	t.mm[BF16] = func(c mmCall, n int) { mmBF16Pairs[n](c.w, c.x, c.y, c.kb, c.np, c.xs, c.ldy) }
	t.scores[KVBF16] = func(c pageCall, n int) { scoresPairsAVX512[n](c.base, c.table, c.size, c.pages, c.dims, c.x, c.y) }
	t.mix[KVBF16] = func(c pageCall, n int) { c.mix512(&mixPairsAVX512, &mixp4PairsAVX512, n) }
	t.softmaxPage[KVBF16], t.roundLines = softmaxPagePairs, roundLinesAVX512
	return &t
}

// fastPairs reports whether VDPBF16PS is worth its rounding: on AMD's processors.
func fastPairs() bool { return cpuVendor() == "Auth" } // the first letters of AuthenticAMD

// cpuVendor returns the first four letters of the maker's name.
func cpuVendor() string {
	v := vendorWord()
	return string([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)})
}

type mmKernels = [17]func(w, x unsafe.Pointer, y *float32, kb, np, xs, ldy int)

func rmsNormVec(dst, x, w []float32, eps float32) {
	if len(x)%16 != 0 {
		rmsNormGo(dst, x, w, eps)
		return
	}
	rmsNormAVX2(&dst[0], &x[0], &w[0], len(x), eps)
}

func siluMulVec(dst, gate, up []float32) {
	n := len(dst) &^ 15
	if n > 0 {
		siluMulAVX2(&dst[0], &gate[0], &up[0], n)
	}
	if n < len(dst) {
		var g, u [16]float32
		copy(g[:], gate[n:])
		copy(u[:], up[n:])
		siluMulAVX2(&g[0], &g[0], &u[0], 16)
		copy(dst[n:], g[:])
	}
}

// inParts serves n tokens with kernels for fewer. perBlock is how many of the kernel's blocks are 32 columns,
// tokenBytes the distance between tokens in a group.
func (c mmCall) inParts(k *mmKernels, n, perBlock, tokenBytes int) {
	for at, m := 0, 0; at < n; at += m {
		m = min(n-at, 6)
		for k[m] == nil {
			m--
		}
		y := (*float32)(unsafe.Add(unsafe.Pointer(c.y), at*c.ldy))
		k[m](c.w, unsafe.Add(c.x, at*tokenBytes), y, c.kb*perBlock, c.np, c.xs, c.ldy)
	}
}

type (
	pageKernels     = [17]func(base unsafe.Pointer, table *int32, size, pages, dims int, x, y *float32)
	partPageKernels = [17]func(base unsafe.Pointer, table *int32, size, pages, dims int, x, y *float32, xs int)
)

func (c pageCall) scoresInParts(k *partPageKernels, n int) {
	for at, m := 0, 0; at < n; at += m {
		m = min(n-at, 6)
		for k[m] == nil {
			m--
		}
		k[m](c.base, c.table, c.size, c.pages, c.dims, &line(c.x, at)[0], &line(c.y, at)[0], 64*n)
	}
}

func (c pageCall) scoresQ8InParts(n int) {
	for at, m := 0, 0; at < n; at += m {
		m = min(n-at, 4)
		for scoresQ8AVX2[m] == nil {
			m--
		}
		x := (*float32)(unsafe.Add(unsafe.Pointer(c.x), at*q8TokenBytes))
		scoresQ8AVX2[m](c.base, c.table, c.size, c.pages, c.dims, x, &line(c.y, at)[0], 64*n)
	}
}

func (c pageCall) mixQ8InParts(n int) {
	for at, m := 0, 0; at < n; at += m {
		m = min(n-at, 4)
		for mixQ8AVX2[m] == nil {
			m--
		}
		mixQ8AVX2[m](c.base, c.table, c.size, c.pages, c.dims, &line(c.x, at)[0], &line(c.y, at*c.dims)[0], 64*n, c.tmp)
	}
}

func (c pageCall) mixInParts(k *partPageKernels, n int) {
	for at, m := 0, 0; at < n; at += m {
		m = min(n-at, 6)
		for k[m] == nil {
			m--
		}
		k[m](c.base, c.table, c.size, c.pages, c.dims, &line(c.x, at)[0], &line(c.y, at*c.dims)[0], 64*n)
	}
}

// mix512 uses the kernels for 64 dimensions at once where they help. The kernels find the results of a column at the
// distance that dims says, so a call is for all dimensions or none.
func (c pageCall) mix512(one, four *pageKernels, n int) {
	if four[n] != nil && c.dims%4 == 0 {
		one = four
	}
	one[n](c.base, c.table, c.size, c.pages, c.dims, c.x, c.y)
}

// storeQ8Vec is storeQ8Go with the vector level's quantising, which has the same bits (K2).
func storeQ8Vec(page unsafe.Pointer, token int, k, v *float32, dims int) {
	var rec q8Record
	for b := range dims / 2 {
		at := unsafe.Pointer(&rec)
		quantiseAVX2(at, (*float32)(unsafe.Add(unsafe.Pointer(k), 128*b)), 1, q8TokenBytes)
		rec.storeKey(unsafe.Add(page, b*q8PageBlock), token)
		quantiseAVX2(at, (*float32)(unsafe.Add(unsafe.Pointer(v), 128*b)), 1, q8TokenBytes)
		rec.storeValue(unsafe.Add(page, (dims/2+b)*q8PageBlock), token)
	}
}

func ropeHalfVec(x, cos, sin []float32) {
	h := len(cos)
	if h%16 != 0 {
		ropeHalfGo(x, cos, sin)
		return
	}
	ropeHalfAVX2(&x[0], &cos[0], &sin[0], h)
}

func ropePairsVec(x, cos, sin []float32) {
	n := len(x) &^ 15
	if n > 0 {
		ropePairsAVX2(&x[0], &cos[0], &sin[0], n)
	}
	ropePairsGo(x[n:], cos[n/2:], sin[n/2:])
}

func addVec(dst, x []float32) {
	n := len(x) &^ 15
	if n > 0 {
		addAVX2(&dst[0], &x[0], n)
	}
	addGo(dst[n:], x[n:])
}

func scaleVec(x []float32, by float32) {
	n := len(x) &^ 15
	if n > 0 {
		scaleAVX2(&x[0], n, by)
	}
	scaleGo(x[n:], by)
}

func maxOfVec(x []float32) float32 {
	n := len(x) &^ 15
	if n == 0 {
		return maxOfGo(x)
	}
	return max(maxOfAVX2(&x[0], n), maxOfGo(x[n:]))
}

func dotVec(a, b []float32) float32 {
	n := len(a) &^ 15
	sum := dotGo(a[n:], b[n:])
	if n > 0 {
		sum += dotAVX2(&a[0], &b[0], n)
	}
	return sum
}

// expSumVec pads the last elements with minus infinity, whose exponential is zero.
func expSumVec(k func(dst, x *float32, n int, peak float32) float32, dst, x []float32, peak float32) float32 {
	n, sum := len(x)&^15, float32(0)
	if n > 0 {
		sum = k(&dst[0], &x[0], n, peak)
	}
	if n < len(x) {
		var tail [16]float32
		for i := range tail {
			tail[i] = float32(math.Inf(-1))
		}
		copy(tail[:], x[n:])
		sum += k(&tail[0], &tail[0], 16, peak)
		copy(dst[n:], tail[:])
	}
	return sum
}

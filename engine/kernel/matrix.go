package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// MaxDim bounds rows and columns of a matrix, so that sizes computed from a file's header cannot overflow.
// The largest vocabularies have about 2^18 rows; 2^24 leaves room for concatenated matrices.
const MaxDim = 1 << 24

// maxWeights bounds the elements of one matrix: twice the output layer of the largest models (2^18 rows of 2^14).
const maxWeights = 1 << 33

// Matrix is a weight matrix in packed form. It is immutable after Pack and may be read by any number of threads.
//
// Layout: panels of 16 rows, one after another; within a panel blocks of 32 columns:
//
//	F32    [32 col][16 row] float32                                        2048 bytes
//	BF16   [16 pair of cols][16 row][2] bfloat16                           1024
//	Q8_0   [16 row] f16 scale, [8 quad of cols][16 row][4] int8             544
//	Q4_0   [16 row] f16 scale, [4][16 row][4] bytes                         288
//	Q4_1   [16 row] f16 scale, [16 row] f16 minimum, [4][16 row][4] bytes   320
//
// In the nibble formats byte [g][r][i] holds column 4g+i in its lower half and column 16+4g+i in its upper half.
// A panel is as large as its 16 rows are in a GGUF file.
type Matrix struct {
	Rows, Cols int // as given to Pack, without padding
	Format     Format
	data       []byte
}

// Pack copies a matrix into packed form. row(r) returns row r in the byte order of GGUF (F32, BF16: little-endian
// elements; quantised: blocks of 32); it is called once for each row, in order. alloc provides the memory (Alloc, for
// huge pages); nil means Alloc. An error names the dimension or row that is wrong.
func Pack(f Format, rows, cols int, row func(r int) []byte, alloc func(n int) []byte) (*Matrix, error) {
	switch {
	case f >= formats:
		return nil, fmt.Errorf("kernel: weights of %s have no packed form", f)
	case rows < 1 || rows > MaxDim || cols < 1 || cols > MaxDim:
		return nil, fmt.Errorf("kernel: a matrix of %d rows and %d columns; both must be between 1 and %d", rows, cols, MaxDim)
	case int64(rows)*int64(cols) > maxWeights:
		return nil, fmt.Errorf("kernel: a matrix of %d rows and %d columns has more than %d weights", rows, cols, int64(maxWeights))
	case cols%BlockCols != 0:
		return nil, fmt.Errorf("kernel: a matrix of %d columns; the number of columns must be a multiple of %d", cols, BlockCols)
	}
	m := &Matrix{Rows: rows, Cols: cols, Format: f}
	if alloc == nil {
		alloc = Alloc
	}
	m.data = alloc(m.Bytes())
	if len(m.data) < m.Bytes() {
		return nil, fmt.Errorf("kernel: %d bytes of memory for a matrix that needs %d", len(m.data), m.Bytes())
	}
	m.data = m.data[:m.Bytes()]
	if rows%PanelRows != 0 {
		clear(m.data[(m.Panels()-1)*m.panelBytes():])
	}
	for r := range rows {
		src := row(r)
		if len(src) != f.RowBytes(cols) {
			return nil, fmt.Errorf("kernel: row %d has %d bytes; %d columns of %s have %d", r, len(src), cols, f, f.RowBytes(cols))
		}
		m.packRow(r, src)
	}
	return m, nil
}

// Panels returns the number of panels: Rows/16, rounded up.
func (m *Matrix) Panels() int { return (m.Rows + PanelRows - 1) / PanelRows }

// PaddedRows returns the number of results per token that MatMul writes for all panels: Rows rounded up to 16.
func (m *Matrix) PaddedRows() int { return m.Panels() * PanelRows }

// Bytes returns the size of the packed weights, padding included.
func (m *Matrix) Bytes() int { return m.Panels() * m.panelBytes() }

func (m *Matrix) panelBytes() int { return PanelRows * m.Format.RowBytes(m.Cols) }

// panel returns the memory from panel p on.
func (m *Matrix) panel(p int) unsafe.Pointer { return unsafe.Pointer(&m.data[p*m.panelBytes()]) }

// packRow scatters one row; the panel of a padded matrix was cleared before. Weights are moved in groups of four bytes,
// a line apart, by pointers: a file of gigabytes is packed while somebody waits.
func (m *Matrix) packRow(r int, src []byte) {
	size := rowBlockBytes[m.Format]
	panel := m.panel(r / PanelRows)
	half := r % PanelRows * 2 // scales are two bytes each
	for b := range m.Cols / BlockCols {
		s, d := unsafe.Pointer(&src[b*size]), unsafe.Add(panel, b*PanelRows*size+r%PanelRows*4)
		switch m.Format {
		case F32:
			scatter(d, s, 32)
		case BF16:
			scatter(d, s, 16)
		case Q8_0:
			*(*[2]byte)(unsafe.Add(d, -half)) = *(*[2]byte)(s)
			scatter(unsafe.Add(d, 32), unsafe.Add(s, 2), 8)
		case Q4_0:
			*(*[2]byte)(unsafe.Add(d, -half)) = *(*[2]byte)(s)
			scatter(unsafe.Add(d, 32), unsafe.Add(s, 2), 4)
		case Q4_1:
			*(*[2]byte)(unsafe.Add(d, -half)) = *(*[2]byte)(s)
			*(*[2]byte)(unsafe.Add(d, 32-half)) = *(*[2]byte)(unsafe.Add(s, 2))
			scatter(unsafe.Add(d, 64), unsafe.Add(s, 4), 4)
		}
	}
}

// scatter puts n groups of four bytes at the starts of lines of 64.
func scatter(d, s unsafe.Pointer, n int) {
	for i := range n {
		*(*[4]byte)(unsafe.Add(d, 64*i)) = *(*[4]byte)(unsafe.Add(s, 4*i))
	}
}

// Row writes row r as float32 into dst[:Cols]. It serves the lookup of embeddings that share their matrix with the
// output layer.
func (m *Matrix) Row(dst []float32, r int) {
	if r < 0 || r >= m.Rows {
		panic(fmt.Sprintf("kernel: row %d of a matrix of %d rows", r, m.Rows))
	}
	le := binary.LittleEndian
	dst = dst[:m.Cols]
	step := PanelRows * rowBlockBytes[m.Format]
	src := m.data[r/PanelRows*m.panelBytes():]
	rr := r % PanelRows
	for b := 0; b < m.Cols/BlockCols; b++ {
		s, d := src[b*step:][:step], dst[b*BlockCols:][:BlockCols]
		switch m.Format {
		case F32:
			for k := range d {
				d[k] = math.Float32frombits(le.Uint32(s[(k*PanelRows+rr)*4:]))
			}
		case BF16:
			for k := range d {
				d[k] = bf16ToFloat(le.Uint16(s[(k/2*PanelRows+rr)*4+k%2*2:]))
			}
		case Q8_0:
			scale := halfToFloat(le.Uint16(s[2*rr:]))
			for k := range d {
				d[k] = scale * float32(int8(s[32+k/4*64+4*rr+k%4]))
			}
		case Q4_0, Q4_1:
			scale, low, at := halfToFloat(le.Uint16(s[2*rr:])), float32(0), 32
			if m.Format == Q4_1 {
				low, at = halfToFloat(le.Uint16(s[32+2*rr:])), 64
			}
			for k := range d {
				q := int32(s[at+k%16/4*64+4*rr+k%4] >> (k / 16 * 4) & 15)
				if m.Format == Q4_0 {
					q -= 8
				}
				d[k] = float32(scale*float32(q)) + low
			}
		}
	}
}

package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// PageTokens is the number of tokens in a KV block: the rows of a panel.
const PageTokens = PanelRows

// KVType is the element type of the KV cache.
type KVType uint8

const (
	KVBF16  KVType = iota // bfloat16, the default
	KVF32                 // float32, the oracle's
	KVQ8_0                // int8 with a float16 scale per token, head and 32 dimensions: 17/32 of bfloat16's bytes
	kvTypes               // count
)

// kvTypeNames are in the order of the constants; they stand in layout manifests and on command lines.
var kvTypeNames = [kvTypes]string{"bf16", "f32", "q8_0"}

func (t KVType) String() string {
	if t < kvTypes {
		return kvTypeNames[t]
	}
	return fmt.Sprintf("kvtype(%d)", uint8(t))
}

// ParseKVType is the inverse of String.
func ParseKVType(s string) (KVType, error) {
	if i := slices.Index(kvTypeNames[:], s); i >= 0 {
		return KVType(i), nil
	}
	return 0, fmt.Errorf("kernel: %q is no type of a KV cache; allowed are %s", s, strings.Join(kvTypeNames[:], ", "))
}

// headBytes is the size of one token's keys, or values, of one head of dims dimensions.
func (t KVType) headBytes(dims int) int {
	switch t {
	case KVF32:
		return 4 * dims
	case KVQ8_0:
		return dims / BlockCols * rowBlockBytes[Q8_0]
	}
	return 2 * dims
}

// KVLayout describes a KV block: 16 tokens of all layers and heads, contiguous:
//
//	[Layers][KVHeads] { page of keys, page of values }
//
// A page of keys is a panel whose rows are the tokens and whose columns are the dimensions of the head: bf16
// [HeadDim/2][16 token][2], f32 [HeadDim][16 token]. A page of values is HeadDim/16 panels whose rows are
// dimensions and whose columns are the tokens: bf16 [HeadDim/16][8][16 dim][2], f32 [HeadDim/16][16 token][16 dim].
//
// In Q8_0 a token has a scale per 32 dimensions, for keys and for values: a page of keys is a panel in that format,
// [HeadDim/32] of { [16 token] f16 scale, [8][16 token][4] int8 }, a page of values is [HeadDim/32] of
// { [16 token] f16 scale, [2][16 token][16 dim] int8 }. HeadDim is then a multiple of 32.
type KVLayout struct {
	Layers, KVHeads, HeadDim int
	Type                     KVType
}

// Check returns an error if the engine cannot store this layout.
func (l KVLayout) Check() error {
	const most = 1 << 12
	switch {
	case l.Layers < 1 || l.Layers > most || l.KVHeads < 1 || l.KVHeads > most:
		return fmt.Errorf("kernel: a KV cache of %d layers and %d heads; both must be between 1 and %d", l.Layers, l.KVHeads, most)
	case l.HeadDim < 16 || l.HeadDim > headDimMax || l.HeadDim%16 != 0:
		return fmt.Errorf("kernel: KV heads of %d dimensions; allowed are multiples of 16 up to %d", l.HeadDim, headDimMax)
	case l.Type >= kvTypes:
		return fmt.Errorf("kernel: KV type %d; allowed are %s", l.Type, strings.Join(kvTypeNames[:], ", "))
	case l.Type == KVQ8_0 && l.HeadDim%BlockCols != 0:
		return fmt.Errorf("kernel: a KV cache in q8_0 with heads of %d dimensions; it needs multiples of %d, use bf16", l.HeadDim, BlockCols)
	}
	return nil
}

// headDimMax bounds the dimensions of a head; the largest in use is 256 (Gemma).
const headDimMax = 512

// pageBytes is the size of 16 keys, or of 16 values, of one head.
func (l KVLayout) pageBytes() int { return PageTokens * l.Type.headBytes(l.HeadDim) }

// RowBytes is the size of one token's keys, or values, of one layer.
func (l KVLayout) RowBytes() int { return l.KVHeads * l.Type.headBytes(l.HeadDim) }

// LayerBytes is the size of one layer within a block.
func (l KVLayout) LayerBytes() int { return 2 * l.KVHeads * l.pageBytes() }

// BlockBytes is the size of a block.
func (l KVLayout) BlockBytes() int { return l.Layers * l.LayerBytes() }

// StoreKV writes the keys and values of one token, each [KVHeads*HeadDim], into its place of a block. Storing token 0
// of a block clears the layer's other 15 places first, so that attention never reads what a former owner left. The
// tokens of one block are therefore stored in order, and, as neighbours share bytes, for one head by one thread.
func (l KVLayout) StoreKV(block []byte, layer, token int, k, v []float32) {
	l.StoreHeads(block, layer, token, 0, l.KVHeads, k, v)
}

// StoreHeads is StoreKV for KV heads [h0,h1) only; k and v still hold all heads.
func (l KVLayout) StoreHeads(block []byte, layer, token, h0, h1 int, k, v []float32) {
	if token < 0 || token >= PageTokens || layer < 0 || layer >= l.Layers || h0 < 0 || h1 > l.KVHeads {
		panic(fmt.Sprintf("kernel: KV place layer %d token %d heads [%d,%d) is outside the block", layer, token, h0, h1))
	}
	size := l.pageBytes()
	for h := h0; h < h1; h++ {
		at := layer*l.LayerBytes() + 2*h*size
		page := block[at:][:2*size]
		if token == 0 {
			clear(page)
		}
		hk, hv := k[h*l.HeadDim:][:l.HeadDim], v[h*l.HeadDim:][:l.HeadDim]
		switch l.Type {
		case KVF32:
			l.storeF32(page, token, hk, hv)
		case KVQ8_0:
			active.storeQ8(unsafe.Pointer(&page[0]), token, &hk[0], &hv[0], l.HeadDim/16)
		default:
			active.storeKV(unsafe.Pointer(&page[0]), token, &hk[0], &hv[0], l.HeadDim/16)
		}
	}
}

func (l KVLayout) storeF32(page []byte, token int, k, v []float32) {
	le := binary.LittleEndian
	size := l.pageBytes()
	for d := range k {
		le.PutUint32(page[(d*PageTokens+token)*4:], math.Float32bits(k[d]))
		le.PutUint32(page[size+(d/16*256+token*16+d%16)*4:], math.Float32bits(v[d]))
	}
}

// storeQ8Go writes one token into a page of keys and the page of values behind it, dims*16 elements each, quantised
// as an Input does it.
func storeQ8Go(page unsafe.Pointer, token int, k, v *float32, dims int) {
	var rec q8Record // not shared with the vector levels: through a table of functions it would escape
	for b := range dims / 2 {
		at := unsafe.Pointer(&rec)
		quantiseGo(at, (*float32)(unsafe.Add(unsafe.Pointer(k), 128*b)), 1, q8TokenBytes)
		rec.storeKey(unsafe.Add(page, b*q8PageBlock), token)
		quantiseGo(at, (*float32)(unsafe.Add(unsafe.Pointer(v), 128*b)), 1, q8TokenBytes)
		rec.storeValue(unsafe.Add(page, (dims/2+b)*q8PageBlock), token)
	}
}

func (rec *q8Record) storeKey(block unsafe.Pointer, token int) {
	(*[PageTokens]uint16)(block)[token] = floatToHalf(rec.scale)
	dst := (*[8][PageTokens][4]int8)(unsafe.Add(block, 32))
	for g, quad := range (*[8][4]int8)(unsafe.Pointer(&rec.q)) {
		dst[g][token] = quad
	}
}

func (rec *q8Record) storeValue(block unsafe.Pointer, token int) {
	(*[PageTokens]uint16)(block)[token] = floatToHalf(rec.scale)
	dst := (*[2][PageTokens][16]int8)(unsafe.Add(block, 32))
	dst[0][token], dst[1][token] = [16]int8(rec.q[:16]), [16]int8(rec.q[16:])
}

// q8PageBlock is the size of 32 dimensions of 16 tokens in Q8_0: the scales, then the integers.
const q8PageBlock = PageTokens * 34

// storeKVGo writes one token into a page of keys and the page of values behind it, dims*16 elements each.
func storeKVGo(page unsafe.Pointer, token int, k, v *float32, dims int) {
	ks, vs := unsafe.Slice(k, 16*dims), unsafe.Slice(v, 16*dims)
	for d := 0; d < len(ks); d += 2 {
		pair := uint32(floatToBF16(ks[d])) | uint32(floatToBF16(ks[d+1]))<<16
		*(*uint32)(unsafe.Add(page, (d/2*PageTokens+token)*4)) = pair
	}
	values := unsafe.Add(page, 512*dims)
	for d, x := range vs {
		*(*uint16)(unsafe.Add(values, d/16*512+(token/2*16+d%16)*4+token%2*2)) = floatToBF16(x)
	}
}

// LoadKV reads back what StoreKV wrote (rounded as the type rounds). For tests and tools.
func (l KVLayout) LoadKV(block []byte, layer, token int, k, v []float32) {
	le := binary.LittleEndian
	size := l.pageBytes()
	for h := range l.KVHeads {
		page := block[layer*l.LayerBytes()+2*h*size:][:2*size]
		for d := range l.HeadDim {
			i := h*l.HeadDim + d
			switch l.Type {
			case KVF32:
				k[i] = math.Float32frombits(le.Uint32(page[(d*PageTokens+token)*4:]))
				v[i] = math.Float32frombits(le.Uint32(page[size+(d/16*256+token*16+d%16)*4:]))
			case KVQ8_0:
				kb, vb := page[d/32*q8PageBlock:], page[size+d/32*q8PageBlock:]
				k[i] = halfToFloat(le.Uint16(kb[2*token:])) * float32(int8(kb[32+d%32/4*64+4*token+d%4]))
				v[i] = halfToFloat(le.Uint16(vb[2*token:])) * float32(int8(vb[32+d%32/16*256+16*token+d%16]))
			default:
				k[i] = bf16ToFloat(le.Uint16(page[(d/2*PageTokens+token)*4+d%2*2:]))
				v[i] = bf16ToFloat(le.Uint16(page[size+d/16*512+(token/2*16+d%16)*4+token%2*2:]))
			}
		}
	}
}

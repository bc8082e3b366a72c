package gguf

import "math"

// value is one metadata value. Scalars are kept as bits; an array of numbers or strings is kept
// as the offset of its first item in the file and decoded when somebody asks (G1).
type value struct {
	kind  kind
	bits  uint64 // a scalar: integer (sign-extended), bool or IEEE bits of a float64
	str   string // a string, shares no memory with the file
	item  kind   // an array: kind of the items
	count uint64 // an array: number of items
	at    int    // an array: offset of the first item in the file
}

// kind is the type of a metadata value; the numbers are those of the file format.
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
)

var kindNames = [...]string{"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"}

// kindBytes is the size of a scalar; 0 for string and array.
var kindBytes = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

func (k kind) integer() bool {
	switch k {
	case kindU8, kindI8, kindU16, kindI16, kindU32, kindI32, kindU64, kindI64:
		return true
	}
	return false
}

func (k kind) signed() bool {
	return k == kindI8 || k == kindI16 || k == kindI32 || k == kindI64
}

// Kind names what is stored under a key ("u32", "string", "array of f32"), or "" if the key is
// missing, so that a caller can say why a lookup failed.
func (f *File) Kind(key string) string {
	v, ok := f.values[key]
	if !ok {
		return ""
	}
	if v.kind == kindArray {
		return "array of " + kindNames[v.item]
	}
	return kindNames[v.kind]
}

// Uint returns an integer that is not negative. Any integer type is accepted.
func (f *File) Uint(key string) (uint64, bool) {
	v, ok := f.values[key]
	if !ok || !v.kind.integer() || v.kind.signed() && int64(v.bits) < 0 {
		return 0, false
	}
	return v.bits, true
}

// Float returns a float of either width, or an integer as a float.
func (f *File) Float(key string) (float64, bool) {
	v, ok := f.values[key]
	switch {
	case !ok:
		return 0, false
	case v.kind == kindF32 || v.kind == kindF64:
		return math.Float64frombits(v.bits), true
	case v.kind.signed():
		return float64(int64(v.bits)), true
	case v.kind.integer():
		return float64(v.bits), true
	}
	return 0, false
}

// Bool returns a bool.
func (f *File) Bool(key string) (value, ok bool) {
	v, ok := f.values[key]
	if !ok || v.kind != kindBool {
		return false, false
	}
	return v.bits != 0, true
}

// String returns a string.
func (f *File) String(key string) (string, bool) {
	v, ok := f.values[key]
	if !ok || v.kind != kindString {
		return "", false
	}
	return v.str, true
}

// Strings returns an array of strings; the strings share no memory with the file.
func (f *File) Strings(key string) ([]string, bool) {
	v, ok := f.values[key]
	if !ok || v.kind != kindArray || v.item != kindString {
		return nil, false
	}
	out := make([]string, v.count)
	at := v.at
	for i := range out {
		n := int(le.Uint64(f.bytes[at:]))
		out[i] = string(f.bytes[at+8 : at+8+n])
		at += 8 + n
	}
	return out, true
}

// Ints returns an array of integers of any width, or of bools. Values of an unsigned 64-bit
// array above the range of int64 wrap.
func (f *File) Ints(key string) ([]int64, bool) {
	v, ok := f.values[key]
	if !ok || v.kind != kindArray || !v.item.integer() && v.item != kindBool {
		return nil, false
	}
	out := make([]int64, v.count)
	n := kindBytes[v.item]
	for i := range out {
		out[i] = int64(scalar(v.item, f.bytes[v.at+i*n:]))
	}
	return out, true
}

// Floats returns an array of floats of either width, or of integers as floats.
func (f *File) Floats(key string) ([]float64, bool) {
	v, ok := f.values[key]
	if !ok || v.kind != kindArray {
		return nil, false
	}
	if v.item.integer() {
		ints, _ := f.Ints(key)
		out := make([]float64, len(ints))
		for i, n := range ints {
			out[i] = float64(n)
		}
		return out, true
	}
	if v.item != kindF32 && v.item != kindF64 {
		return nil, false
	}
	out := make([]float64, v.count)
	n := kindBytes[v.item]
	for i := range out {
		out[i] = math.Float64frombits(scalar(v.item, f.bytes[v.at+i*n:]))
	}
	return out, true
}

// scalar decodes one number: integers sign-extended to 64 bits, floats as bits of a float64.
func scalar(k kind, b []byte) uint64 {
	switch k {
	case kindU8, kindBool:
		return uint64(b[0])
	case kindI8:
		return uint64(int64(int8(b[0])))
	case kindU16:
		return uint64(le.Uint16(b))
	case kindI16:
		return uint64(int64(int16(le.Uint16(b))))
	case kindU32:
		return uint64(le.Uint32(b))
	case kindI32:
		return uint64(int64(int32(le.Uint32(b))))
	case kindF32:
		return math.Float64bits(float64(math.Float32frombits(le.Uint32(b))))
	default: // kindU64, kindI64, kindF64; strings and arrays never come here
		return le.Uint64(b)
	}
}

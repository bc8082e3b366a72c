package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Writer builds a model file (version 3) in memory, for tests and tiny models. Keys and tensors
// are written in the order in which they were added. The zero value is ready.
//
// It writes what it is told, also what Parse refuses (a key twice, an offset beyond the file
// cannot be made with it), and remembers the first call that made no sense for Bytes.
type Writer struct {
	Alignment uint64 // 0: the default, 32; another one also needs Set("general.alignment")

	keys    bytes.Buffer
	nkeys   uint64
	tensors []Tensor
	err     error
}

// Set adds a key. v is one of uint8…uint64, int8…int64, float32, float64, bool, string or a
// slice of one of them (uint8 and int8 alone have no slice).
func (w *Writer) Set(key string, v any) {
	k, item, payload, err := encodeValue(v)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("gguf: key %q: %w", key, err))
		return
	}
	w.nkeys++
	putText(&w.keys, key)
	putU32(&w.keys, uint32(k))
	if k == kindArray {
		putU32(&w.keys, uint32(item))
	}
	w.keys.Write(payload)
}

// Add adds a tensor; dims[0] is the row length, data the stored bytes.
func (w *Writer) Add(name string, t Type, dims []uint64, data []byte) {
	need := uint64(0)
	if numbers, size := t.Block(); numbers > 0 && len(dims) > 0 {
		need = dims[0] / uint64(numbers) * uint64(size)
		for _, d := range dims[1:] {
			need *= d
		}
	}
	if uint64(len(data)) != need {
		w.err = errors.Join(w.err, fmt.Errorf("gguf: tensor %q of type %s and dimensions %v has %d bytes, got %d", name, t, dims, need, len(data)))
		return
	}
	w.tensors = append(w.tensors, Tensor{Name: name, Type: t, Dims: slices.Clone(dims), Data: data})
}

// AddF32 adds a tensor of float32.
func (w *Writer) AddF32(name string, dims []uint64, numbers []float32) {
	data := make([]byte, 0, 4*len(numbers))
	for _, x := range numbers {
		data = le.AppendUint32(data, math.Float32bits(x))
	}
	w.Add(name, F32, dims, data)
}

// Bytes returns the file. The last tensor is followed by no padding.
func (w *Writer) Bytes() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	align := w.Alignment
	if align == 0 {
		align = alignmentDefault
	}
	var b bytes.Buffer
	b.WriteString("GGUF")
	putU32(&b, 3)
	putU64(&b, uint64(len(w.tensors)))
	putU64(&b, w.nkeys)
	b.Write(w.keys.Bytes())
	off := uint64(0)
	for _, t := range w.tensors {
		off = (off + align - 1) / align * align
		putText(&b, t.Name)
		putU32(&b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			putU64(&b, d)
		}
		putU32(&b, uint32(t.Type))
		putU64(&b, off)
		off += uint64(len(t.Data))
	}
	for _, t := range w.tensors {
		for uint64(b.Len())%align != 0 {
			b.WriteByte(0)
		}
		b.Write(t.Data)
	}
	return b.Bytes(), nil
}

func putU32(b *bytes.Buffer, n uint32) { b.Write(le.AppendUint32(nil, n)) }
func putU64(b *bytes.Buffer, n uint64) { b.Write(le.AppendUint64(nil, n)) }
func putText(b *bytes.Buffer, s string) {
	putU64(b, uint64(len(s)))
	b.WriteString(s)
}

// encodeValue returns the kind of v, the kind of its items if it is an array, and its bytes (an
// array's begin with the count).
func encodeValue(v any) (k, item kind, payload []byte, err error) {
	var b bytes.Buffer
	switch v := v.(type) {
	case string:
		putText(&b, v)
		return kindString, 0, b.Bytes(), nil
	case []string:
		putU64(&b, uint64(len(v)))
		for _, s := range v {
			putText(&b, s)
		}
		return kindArray, kindString, b.Bytes(), nil
	case []uint16:
		return encodeArray(v)
	case []int16:
		return encodeArray(v)
	case []uint32:
		return encodeArray(v)
	case []int32:
		return encodeArray(v)
	case []uint64:
		return encodeArray(v)
	case []int64:
		return encodeArray(v)
	case []float32:
		return encodeArray(v)
	case []float64:
		return encodeArray(v)
	case []bool:
		return encodeArray(v)
	}
	k, payload, err = encodeScalar(v)
	return k, 0, payload, err
}

func encodeArray[T any](v []T) (k, item kind, payload []byte, err error) {
	var zero T
	item, _, err = encodeScalar(zero)
	payload = le.AppendUint64(nil, uint64(len(v)))
	for _, x := range v {
		_, one, _ := encodeScalar(x)
		payload = append(payload, one...)
	}
	return kindArray, item, payload, err
}

func encodeScalar(v any) (kind, []byte, error) {
	switch v := v.(type) {
	case uint8:
		return kindU8, []byte{v}, nil
	case int8:
		return kindI8, []byte{byte(v)}, nil
	case uint16:
		return kindU16, le.AppendUint16(nil, v), nil
	case int16:
		return kindI16, le.AppendUint16(nil, uint16(v)), nil
	case uint32:
		return kindU32, le.AppendUint32(nil, v), nil
	case int32:
		return kindI32, le.AppendUint32(nil, uint32(v)), nil
	case float32:
		return kindF32, le.AppendUint32(nil, math.Float32bits(v)), nil
	case bool:
		if v {
			return kindBool, []byte{1}, nil
		}
		return kindBool, []byte{0}, nil
	case uint64:
		return kindU64, le.AppendUint64(nil, v), nil
	case int64:
		return kindI64, le.AppendUint64(nil, uint64(v)), nil
	case float64:
		return kindF64, le.AppendUint64(nil, math.Float64bits(v)), nil
	}
	return 0, nil, fmt.Errorf("a value of Go type %T has no type in the format", v)
}

package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"baton/engine/weights/mapped"
)

var le = binary.LittleEndian

// Limits of the format. None of them guards memory (that is G1, the comparison with the file's
// length); they refuse what no writer makes.
const (
	keyBytesMax        = 65535 // the format's own limit for keys
	tensorNameMax      = 256   // the format says 64; room for writers that are generous
	dimsMax            = 4     // GGML_MAX_DIMS
	alignmentDefault   = 32    // when general.alignment is missing
	alignmentMax       = 65536 // a page of the largest kind in use; anything above is a broken file
	arrayDepthMax      = 4     // arrays in arrays; no known key nests at all
	kvBytesMin         = 8 + 1 + 4 + 1
	tensorInfoBytesMin = 8 + 1 + 4 + 8 + 4 + 8
)

var errShort = errors.New("the file ends in the middle of it; it" + damaged)

// damaged is what can be done about a file whose parts contradict each other.
const damaged = " is incomplete or damaged, fetch it again"

// Parse reads a model file that is in memory; the File and its tensors point into b.
func Parse(b []byte) (*File, error) {
	f := newFile(&mapped.File{Bytes: b})
	if err := f.parse(); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

func (f *File) parse() error {
	r := reader{b: f.bytes}
	tensors, keys, err := f.parseHeader(&r)
	if err != nil {
		return err
	}
	for i := uint64(0); i < keys; i++ {
		if err := f.parseKey(&r, i, keys); err != nil {
			return err
		}
	}
	if err := f.checkGeneral(); err != nil {
		return err
	}
	offsets := []uint64{}
	for i := uint64(0); i < tensors; i++ {
		off, err := f.parseTensor(&r, i, tensors)
		if err != nil {
			return err
		}
		offsets = append(offsets, off)
	}
	return f.placeTensors(r.at, offsets)
}

// parseHeader reads magic, version and the two counts, and compares the counts with what could
// possibly fit into the rest of the file.
func (f *File) parseHeader(r *reader) (tensors, keys uint64, err error) {
	magic, err := r.take(4)
	if err != nil {
		return 0, 0, fmt.Errorf("%d bytes are too few for a header", len(f.bytes))
	}
	if string(magic) != "GGUF" {
		return 0, 0, fmt.Errorf("the file begins with %q, a model file begins with \"GGUF\"", magic)
	}
	version, err := r.u32()
	if err != nil {
		return 0, 0, fmt.Errorf("version: %w", err)
	}
	switch {
	case version == 2 || version == 3:
		f.Version = version
	case bits.ReverseBytes32(version) <= 3:
		return 0, 0, fmt.Errorf("version %d with its bytes reversed: the file is big-endian, only little-endian files are read", bits.ReverseBytes32(version))
	default:
		return 0, 0, fmt.Errorf("version %d, only 2 and 3 are read; convert the model again with a current converter", version)
	}
	tensors, err1 := r.u64()
	keys, err2 := r.u64()
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("header: %w", errShort)
	}
	if most := r.left() / kvBytesMin; keys > most {
		return 0, 0, fmt.Errorf("%d keys announced, the file has room for at most %d; it%s", keys, most, damaged)
	}
	if most := r.left() / tensorInfoBytesMin; tensors > most {
		return 0, 0, fmt.Errorf("%d tensors announced, the file has room for at most %d; it%s", tensors, most, damaged)
	}
	return tensors, keys, nil
}

func (f *File) parseKey(r *reader, i, of uint64) error {
	raw, err := r.text()
	if err != nil {
		return fmt.Errorf("name of key %d of %d: %w", i+1, of, err)
	}
	if len(raw) == 0 || len(raw) > keyBytesMax {
		return fmt.Errorf("name of key %d of %d has %d bytes, allowed are 1 to %d", i+1, of, len(raw), keyBytesMax)
	}
	key := string(raw)
	if _, twice := f.values[key]; twice {
		return fmt.Errorf("key %q occurs twice", key) // G3
	}
	v, err := r.value()
	if err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	f.values[key] = v
	f.keys = append(f.keys, key)
	return nil
}

// checkGeneral reads the keys that this package needs itself.
func (f *File) checkGeneral() error {
	f.Alignment = alignmentDefault
	if kind := f.Kind("general.alignment"); kind != "" {
		a, ok := f.Uint("general.alignment")
		if !ok || a == 0 || a > alignmentMax || a&(a-1) != 0 {
			return fmt.Errorf("key \"general.alignment\" is %d (%s), allowed is a power of two up to %d", a, kind, alignmentMax)
		}
		f.Alignment = a
	}
	if n, ok := f.Uint("split.count"); ok && n > 1 {
		no, _ := f.Uint("split.no")
		return fmt.Errorf("this is part %d of a model in %d parts; merge the parts into one file (llama-gguf-split --merge)", no+1, n)
	}
	return nil
}

// parseTensor reads one tensor info and checks its shape; the bytes are placed later, when the
// end of the infos is known.
func (f *File) parseTensor(r *reader, i, of uint64) (offset uint64, err error) {
	raw, err := r.text()
	if err != nil {
		return 0, fmt.Errorf("name of tensor %d of %d: %w", i+1, of, err)
	}
	if len(raw) == 0 || len(raw) > tensorNameMax {
		return 0, fmt.Errorf("name of tensor %d of %d has %d bytes, allowed are 1 to %d", i+1, of, len(raw), tensorNameMax)
	}
	t := Tensor{Name: string(raw)}
	if _, twice := f.byName[t.Name]; twice {
		return 0, fmt.Errorf("tensor %q occurs twice", t.Name) // G3
	}
	n, err := r.u32()
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if n == 0 || n > dimsMax {
		return 0, fmt.Errorf("tensor %q has %d dimensions, allowed are 1 to %d", t.Name, n, dimsMax)
	}
	t.Dims = make([]uint64, n)
	for d := range t.Dims {
		if t.Dims[d], err = r.u64(); err != nil {
			return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	id, err1 := r.u32()
	offset, err2 := r.u64()
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("tensor %q: %w", t.Name, errShort)
	}
	t.Type = Type(id)
	if err := f.checkShape(t); err != nil {
		return 0, err
	}
	f.byName[t.Name] = len(f.tensors)
	f.tensors = append(f.tensors, t)
	return offset, nil
}

// checkShape makes sure that the size of t can be computed and is no larger than the file.
func (f *File) checkShape(t Tensor) error {
	l, ok := layoutOf(t.Type)
	if !ok {
		return fmt.Errorf("tensor %q is of type %d, which is not known; known types that can be decoded: %s", t.Name, uint32(t.Type), decodableNames())
	}
	size := uint64(1)
	for i, d := range t.Dims {
		if d == 0 {
			return fmt.Errorf("tensor %q: dimension %d is 0", t.Name, i)
		}
		if i == 0 {
			if d%uint64(l.numbers) != 0 {
				return fmt.Errorf("tensor %q: row length %d is not a multiple of %d, the block of %s", t.Name, d, l.numbers, l.name)
			}
			d /= uint64(l.numbers)
		}
		hi, lo := bits.Mul64(size, d)
		if hi != 0 || lo > uint64(len(f.bytes)) {
			return fmt.Errorf("tensor %q: dimensions %v need more than the %d bytes of the file; it%s", t.Name, t.Dims, len(f.bytes), damaged)
		}
		size = lo
	}
	// size ≤ len(f.bytes) < 2^63 and a block has at most 210 bytes.
	if hi, lo := bits.Mul64(size, uint64(l.bytes)); hi != 0 || lo > uint64(len(f.bytes)) {
		return fmt.Errorf("tensor %q: dimensions %v as %s need more than the %d bytes of the file; it%s", t.Name, t.Dims, l.name, len(f.bytes), damaged)
	}
	return nil
}

// placeTensors gives every tensor its bytes (G2). infosEnd is where the tensor infos end.
func (f *File) placeTensors(infosEnd uint64, offsets []uint64) error {
	if len(offsets) == 0 {
		return nil // a file of keys alone (a vocabulary)
	}
	start := (infosEnd + f.Alignment - 1) &^ (f.Alignment - 1)
	size := uint64(len(f.bytes))
	if start > size {
		return fmt.Errorf("tensor data: %w", errShort)
	}
	order := make([]int, len(offsets))
	for i := range f.tensors {
		t := &f.tensors[i]
		order[i] = i
		off, need := offsets[i], uint64(t.Rows())*uint64(t.Type.RowBytes(t.Cols()))
		if off%f.Alignment != 0 {
			return fmt.Errorf("tensor %q: offset %d is not a multiple of the alignment %d", t.Name, off, f.Alignment)
		}
		if off > size-start || need > size-start-off {
			return fmt.Errorf("tensor %q: %d bytes at offset %d of the data reach beyond its end at %d; the file%s", t.Name, need, off, size-start, damaged)
		}
		t.Data = f.bytes[start+off : start+off+need : start+off+need]
	}
	slices.SortFunc(order, func(a, b int) int {
		if offsets[a] < offsets[b] {
			return -1
		}
		return 1
	})
	for i := 1; i < len(order); i++ {
		a, b := f.tensors[order[i-1]], f.tensors[order[i]]
		if offsets[order[i-1]]+uint64(len(a.Data)) > offsets[order[i]] {
			return fmt.Errorf("tensors %q and %q overlap", a.Name, b.Name)
		}
	}
	return nil
}

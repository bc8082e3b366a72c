package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"baton/engine/weights"
	"baton/engine/weights/gguf"
)

// Limits of the format and of ours (F1).
const (
	lengthBytes    = 8         // what a file begins with: the length of its header
	headerBytesMax = 100 << 20 // the format's own limit
	dimsMax        = 4         // no weight of a language model has more; as GGUF
	nameBytesMax   = 512       // names in use have about 60
)

// dtypes are those that the format knows: bytes of a number, and our type for what is read.
var dtypes = map[string]struct {
	bytes uint64
	typ   gguf.Type
	read  bool
}{
	"F32": {4, gguf.F32, true}, "F16": {2, gguf.F16, true}, "BF16": {2, gguf.BF16, true},
	"F64": {}, "I64": {}, "I32": {}, "I16": {}, "I8": {}, "U64": {}, "U32": {}, "U16": {}, "U8": {}, "BOOL": {},
	"F8_E4M3": {}, "F8_E5M2": {}, "F8_E8M0": {}, "F4": {}, "F6_E2M3": {}, "F6_E3M2": {},
}

// damaged is what can be done about a file whose parts contradict each other.
const damaged = "; the file is incomplete or damaged, fetch it again"

// entry is what a header says of one tensor.
type entry struct {
	Dtype   *string  `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// parse reads one file that is in memory. Its tensors point into b and come in the order of
// their bytes.
func parse(b []byte) ([]weights.Tensor, error) {
	if len(b) < lengthBytes {
		return nil, fmt.Errorf("%d bytes are no safetensors file%s", len(b), damaged)
	}
	n := binary.LittleEndian.Uint64(b)
	if n > headerBytesMax || n > uint64(len(b)-lengthBytes) {
		return nil, fmt.Errorf("a header of %d bytes, at most %d fit%s", n, min(headerBytesMax, len(b)-lengthBytes), damaged)
	}
	header, data := b[lengthBytes:lengthBytes+n], b[lengthBytes+n:]
	var all []placed
	err := object(header, func(name string, d *json.Decoder) error {
		if name == "__metadata__" {
			var m map[string]string
			return d.Decode(&m)
		}
		if len(name) == 0 || len(name) > nameBytesMax {
			return fmt.Errorf("a name of %d bytes, want 1 to %d", len(name), nameBytesMax)
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return err
		}
		p, err := e.place(name, uint64(len(data)))
		all = append(all, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return cover(all, data)
}

// placed is a tensor and where its bytes are.
type placed struct {
	weights.Tensor
	from, to uint64
}

// place checks an entry by itself.
func (e *entry) place(name string, size uint64) (placed, error) {
	if e.Dtype == nil || e.Shape == nil || len(e.Offsets) != 2 {
		return placed{}, errors.New("want dtype, shape and two data_offsets")
	}
	t, ok := dtypes[*e.Dtype]
	if !ok || !t.read {
		return placed{}, fmt.Errorf("dtype %.20q cannot be read, only F32, F16 and BF16: use the model as it was published, without quantisation", *e.Dtype)
	}
	if len(e.Shape) > dimsMax {
		return placed{}, fmt.Errorf("%d dimensions, at most %d", len(e.Shape), dimsMax)
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from > to || to > size {
		return placed{}, fmt.Errorf("bytes %d to %d of %d%s", from, to, size, damaged)
	}
	bytes := t.bytes
	for _, d := range e.Shape {
		if d < 1 || d > math.MaxInt32 || bytes > size/d {
			return placed{}, fmt.Errorf("shape %v of %s: every dimension is at least 1, and all %d bytes of the file are fewer", e.Shape, *e.Dtype, size)
		}
		bytes *= d
	}
	if bytes != to-from {
		return placed{}, fmt.Errorf("shape %v of %s has %d bytes, its place %d%s", e.Shape, *e.Dtype, bytes, to-from, damaged)
	}
	// Rows first in this format, last in ours; a scalar is a row of one.
	dims := slices.Clone(e.Shape)
	slices.Reverse(dims)
	if len(dims) == 0 {
		dims = []uint64{1}
	}
	return placed{weights.Tensor{Name: name, Type: t.typ, Dims: dims}, from, to}, nil
}

// cover holds F2 for all tensors of a file together.
func cover(all []placed, data []byte) ([]weights.Tensor, error) {
	slices.SortStableFunc(all, func(a, b placed) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	at := uint64(0)
	out := make([]weights.Tensor, len(all))
	for i, p := range all {
		if p.from != at {
			return nil, fmt.Errorf("tensor %q begins at byte %d, the one before it ends at %d: no gap and no overlap is allowed%s", p.Name, p.from, at, damaged)
		}
		p.Data = data[p.from:p.to:p.to]
		at, out[i] = p.to, p.Tensor
	}
	if at != uint64(len(data)) {
		return nil, fmt.Errorf("the tensors end at byte %d of %d%s", at, len(data), damaged)
	}
	return out, nil
}

// object walks over a JSON object and calls f for each key, which decodes the value. A key that
// occurs twice is an error (F3).
func object(b []byte, f func(key string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("begins with %.20q, want an object", fmt.Sprint(open))
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok || seen[key] {
			return fmt.Errorf("key %.80q occurs twice", fmt.Sprint(t))
		}
		seen[key] = true
		if err := f(key, d); err != nil {
			return fmt.Errorf("%.80q: %w", key, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	rest, err := io.ReadAll(io.MultiReader(d.Buffered(), bytes.NewReader(b[d.InputOffset():])))
	if err != nil || strings.Trim(string(rest), " \t\r\n") != "" {
		return errors.New("something follows the object")
	}
	return nil
}

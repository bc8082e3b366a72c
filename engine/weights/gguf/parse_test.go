package gguf

import (
	"bytes"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// small is a file with every kind of value and two tensors; nothing follows its last tensor.
func small(t testing.TB) []byte {
	var w Writer
	w.Set("general.architecture", "llama")
	w.Set("u8", uint8(200))
	w.Set("i8", int8(-7))
	w.Set("u16", uint16(60000))
	w.Set("i16", int16(-300))
	w.Set("u32", uint32(4_000_000_000))
	w.Set("i32", int32(-2))
	w.Set("f32", float32(1.5))
	w.Set("yes", true)
	w.Set("u64", uint64(math.MaxUint64))
	w.Set("i64", int64(math.MinInt64))
	w.Set("f64", 0.1)
	w.Set("words", []string{"a", "", "ä\x00"})
	w.Set("ints", []int32{1, -1})
	w.Set("floats", []float32{0.5, -0.25})
	w.Set("bools", []bool{true, false})
	w.Add("q", Q8_0, []uint64{32, 2}, bytes.Repeat([]byte{0, 0x3c, 1, 2}, 17))
	w.AddF32("norm", []uint64{3}, []float32{1, 2, 3})
	return mustBytes(t, &w)
}

func mustBytes(t testing.TB, w *Writer) []byte {
	t.Helper()
	b, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestValuesComeBack(t *testing.T) {
	f, err := Parse(small(t))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]uint64{"u8": 200, "u16": 60000, "u32": 4_000_000_000, "u64": math.MaxUint64} {
		if got, ok := f.Uint(key); !ok || got != want {
			t.Errorf("Uint(%q) is %d, %v", key, got, ok)
		}
	}
	for _, key := range []string{"i8", "i32", "i64", "f32", "yes", "words", "nothing"} {
		if got, ok := f.Uint(key); ok {
			t.Errorf("Uint(%q) is %d and should not be", key, got)
		}
	}
	for key, want := range map[string]float64{"f32": 1.5, "f64": 0.1, "i16": -300, "u8": 200, "i64": math.MinInt64, "u64": math.MaxUint64} {
		if got, ok := f.Float(key); !ok || got != want {
			t.Errorf("Float(%q) is %v, %v", key, got, ok)
		}
	}
	if got, ok := f.Bool("yes"); !got || !ok {
		t.Errorf("Bool is %v, %v", got, ok)
	}
	if got, ok := f.String("general.architecture"); got != "llama" || !ok {
		t.Errorf("String is %q, %v", got, ok)
	}
	if got, _ := f.Strings("words"); !reflect.DeepEqual(got, []string{"a", "", "ä\x00"}) {
		t.Errorf("Strings is %q", got)
	}
	if got, _ := f.Ints("ints"); !reflect.DeepEqual(got, []int64{1, -1}) {
		t.Errorf("Ints is %v", got)
	}
	if got, _ := f.Ints("bools"); !reflect.DeepEqual(got, []int64{1, 0}) {
		t.Errorf("Ints of bools is %v", got)
	}
	if got, _ := f.Floats("floats"); !reflect.DeepEqual(got, []float64{0.5, -0.25}) {
		t.Errorf("Floats is %v", got)
	}
	if got, _ := f.Floats("ints"); !reflect.DeepEqual(got, []float64{1, -1}) {
		t.Errorf("Floats of integers is %v", got)
	}
	for key, want := range map[string]string{"u8": "u8", "words": "array of string", "ints": "array of i32", "nothing": ""} {
		if got := f.Kind(key); got != want {
			t.Errorf("Kind(%q) is %q, want %q", key, got, want)
		}
	}
	if len(f.Keys()) != 16 || f.Keys()[0] != "general.architecture" {
		t.Errorf("keys %q", f.Keys())
	}
}

func TestTensorsLieInTheFile(t *testing.T) { // G2
	b := small(t)
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	q, ok := f.Tensor("q")
	if !ok || q.Cols() != 32 || q.Rows() != 2 || len(q.Data) != 68 || len(q.Row(1)) != 34 || &q.Row(1)[0] != &q.Data[34] {
		t.Errorf("tensor %v, %d bytes", q, len(q.Data))
	}
	n, ok := f.Tensor("norm")
	if !ok || n.Rows() != 1 || n.Cols() != 3 || &n.Data[11] != &b[len(b)-1] {
		t.Errorf("tensor %v does not end with the file", n)
	}
	if _, ok := f.Tensor("nothing"); ok {
		t.Error("a tensor that is not there")
	}
	if len(f.Tensors()) != 2 {
		t.Errorf("%d tensors", len(f.Tensors()))
	}
}

func TestEveryCutIsAnError(t *testing.T) { // G4
	b := small(t)
	for n := range b {
		f, err := Parse(b[:n:n])
		if err == nil {
			t.Fatalf("%d of %d bytes parse: %d keys, %d tensors", n, len(b), len(f.Keys()), len(f.Tensors()))
		}
		if !strings.HasPrefix(err.Error(), "gguf: ") {
			t.Fatalf("%d bytes: error %q has no package", n, err)
		}
	}
}

// raw builds a file by hand: what Writer would not write.
type raw struct{ bytes.Buffer }

func (r *raw) header(version uint32, tensors, keys uint64) *raw {
	r.WriteString("GGUF")
	putU32(&r.Buffer, version)
	putU64(&r.Buffer, tensors)
	putU64(&r.Buffer, keys)
	return r
}
func (r *raw) u32(n uint32) *raw  { putU32(&r.Buffer, n); return r }
func (r *raw) u64(n uint64) *raw  { putU64(&r.Buffer, n); return r }
func (r *raw) text(s string) *raw { putText(&r.Buffer, s); return r }
func (r *raw) byte(b byte) *raw   { r.WriteByte(b); return r }
func (r *raw) zeros(n int) *raw   { r.Write(make([]byte, n)); return r }
func (r *raw) tensor(name string, typ Type, off uint64, dims ...uint64) *raw {
	r.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(uint32(typ)).u64(off)
}

func TestBadFilesAreRefusedWithAReason(t *testing.T) {
	n := func() *raw { return new(raw) }
	rows := []struct {
		name string
		file *raw
		want string
	}{
		{"magic", n().text("no model file"), `the file begins with "\r\x00\x00\x00", a model file begins with "GGUF"`},
		{"version 1", n().header(1, 0, 0), "version 1, only 2 and 3 are read; convert the model again with a current converter"},
		{"version 4", n().header(4, 0, 0), "version 4, only 2 and 3 are read"},
		{"big-endian", n().header(0x03000000, 0, 0), "version 3 with its bytes reversed: the file is big-endian, only little-endian files are read"},
		{"many keys", n().header(3, 0, 1<<60), "1152921504606846976 keys announced, the file has room for at most 0"},
		{"many tensors", n().header(3, 1<<60, 0).zeros(100), "1152921504606846976 tensors announced, the file has room for at most 3; it is incomplete or damaged, fetch it again"},
		{"long key", n().header(3, 0, 1).u64(math.MaxUint64).zeros(20), "name of key 1 of 1: a string of 18446744073709551615 bytes, the file has 20 left"},
		{"empty key", n().header(3, 0, 1).text("").u32(4).u32(1), "name of key 1 of 1 has 0 bytes, allowed are 1 to 65535"},
		{"key twice", n().header(3, 0, 2).text("a").u32(4).u32(1).text("a").u32(4).u32(2), `key "a" occurs twice`},
		{"value type", n().header(3, 0, 1).text("a").u32(13).u32(1), `key "a": value type 13, allowed are 0 to 12`},
		{"bool", n().header(3, 0, 1).text("a").u32(uint32(kindBool)).byte(2), `key "a": a bool of 2, allowed are 0 and 1`},
		{"bool in array", n().header(3, 0, 1).text("a").u32(uint32(kindArray)).u32(uint32(kindBool)).u64(2).byte(2).byte(0), `key "a": item 0 of 2: a bool of 2, allowed are 0 and 1`},
		{"long string", n().header(3, 0, 1).text("a").u32(uint32(kindString)).u64(1 << 40), `key "a": a string of 1099511627776 bytes, the file has 0 left`},
		{"long array", n().header(3, 0, 1).text("a").u32(uint32(kindArray)).u32(uint32(kindU64)).u64(1 << 61).zeros(16), `key "a": an array of 2305843009213693952 items of u64, the file has room for at most 2`},
		{"long array of strings", n().header(3, 0, 1).text("a").u32(uint32(kindArray)).u32(uint32(kindString)).u64(3).zeros(16), `key "a": an array of 3 items of string, the file has room for at most 2`},
		{"string in array", n().header(3, 0, 1).text("a").u32(uint32(kindArray)).u32(uint32(kindString)).u64(2).u64(9).u64(9), `key "a": item 0 of 2: a string of 9 bytes, the file has 8 left`},
		{"deep arrays", nested(6), `key "a": item 0 of 1: item 0 of 1: item 0 of 1: item 0 of 1: arrays nested deeper than 4`},
		{"alignment 3", n().header(3, 0, 1).text("general.alignment").u32(4).u32(3), `key "general.alignment" is 3 (u32), allowed is a power of two up to 65536`},
		{"alignment 0", n().header(3, 0, 1).text("general.alignment").u32(4).u32(0), `key "general.alignment" is 0 (u32), allowed is a power of two up to 65536`},
		{"alignment text", n().header(3, 0, 1).text("general.alignment").u32(uint32(kindString)).text("32"), `key "general.alignment" is 0 (string), allowed is a power of two up to 65536`},
		{"tensor name", n().header(3, 1, 0).tensor("", F32, 0, 1).zeros(64), "name of tensor 1 of 1 has 0 bytes, allowed are 1 to 256"},
		{"tensor twice", n().header(3, 2, 0).tensor("a", F32, 0, 1).tensor("a", F32, 32, 1).zeros(99), `tensor "a" occurs twice`},
		{"no dimension", n().header(3, 1, 0).tensor("a", F32, 0).zeros(64), `tensor "a" has 0 dimensions, allowed are 1 to 4`},
		{"five dimensions", n().header(3, 1, 0).tensor("a", F32, 0, 1, 1, 1, 1, 1).zeros(64), `tensor "a" has 5 dimensions, allowed are 1 to 4`},
		{"zero dimension", n().header(3, 1, 0).tensor("a", F32, 0, 4, 0).zeros(64), `tensor "a": dimension 1 is 0`},
		{"unknown type", n().header(3, 1, 0).tensor("a", 99, 0, 4).zeros(64), `tensor "a" is of type 99, which is not known; known types that can be decoded: F32, F16, BF16,`},
		{"part of a block", n().header(3, 1, 0).tensor("a", Q4_K, 0, 320).zeros(999), `tensor "a": row length 320 is not a multiple of 256, the block of Q4_K`},
		{"product overflows", n().header(3, 1, 0).tensor("a", F32, 0, 1<<32, 1<<32, 1<<32, 1<<32).zeros(64), `tensor "a": dimensions [4294967296 4294967296 4294967296 4294967296] need more than the 145 bytes of the file`},
		{"product overflows to 0", n().header(3, 1, 0).tensor("a", F32, 0, 1, 1<<33, 1<<31, 1).zeros(64), `tensor "a": dimensions [1 8589934592 2147483648 1] need more than`},
		{"bytes overflow", n().header(3, 1, 0).tensor("a", F32, 0, 110).zeros(64), `tensor "a": dimensions [110] as F32 need more than the 121 bytes of the file; it is incomplete or damaged, fetch it again`},
		{"offset beyond", n().header(3, 1, 0).tensor("a", F32, 1<<40, 4).zeros(64), `tensor "a": 16 bytes at offset 1099511627776 of the data reach beyond its end at`},
		{"offset wraps", n().header(3, 1, 0).tensor("a", F32, math.MaxUint64-31, 4).zeros(64), `tensor "a": 16 bytes at offset 18446744073709551584 of the data reach beyond its end at`},
		{"offset not aligned", n().header(3, 1, 0).tensor("a", F32, 4, 1).zeros(64), `tensor "a": offset 4 is not a multiple of the alignment 32`},
		{"overlap", n().header(3, 2, 0).tensor("a", F32, 0, 16).tensor("b", F32, 32, 1).zeros(128), `tensors "a" and "b" overlap`},
	}
	for _, r := range rows {
		// A few bytes follow so that the counts of the header pass where they are not the subject.
		_, err := Parse(r.file.Bytes())
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: error %v\n   want %s", r.name, err, r.want)
		}
	}
}

func nested(depth int) *raw {
	r := new(raw).header(3, 0, 1).text("a").u32(uint32(kindArray))
	for i := 0; i < depth; i++ {
		r.u32(uint32(kindArray)).u64(1)
	}
	return r.u32(uint32(kindU8)).u64(1).zeros(1)
}

func TestPartsOfASplitModelAreRefused(t *testing.T) {
	var w Writer
	w.Set("split.no", uint16(1))
	w.Set("split.count", uint16(3))
	_, err := Parse(mustBytes(t, &w))
	if want := "gguf: this is part 2 of a model in 3 parts; merge the parts into one file (llama-gguf-split --merge)"; err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}

func TestVersion2IsReadLike3(t *testing.T) {
	b := small(t)
	b[4] = 2
	f, err := Parse(b)
	if err != nil || f.Version != 2 || len(f.Tensors()) != 2 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestAlignmentOfTheFileCounts(t *testing.T) {
	w := Writer{Alignment: 128}
	w.Set("general.alignment", uint32(128))
	w.AddF32("a", []uint64{1}, []float32{7})
	w.AddF32("b", []uint64{1}, []float32{8})
	f, err := Parse(mustBytes(t, &w))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := f.Tensor("b")
	if le.Uint32(b.Data) != math.Float32bits(8) {
		t.Errorf("b holds %v", b.Data)
	}
}

// TestForgedCountsAllocateNothing holds G1: a header that announces the world costs nothing.
func TestForgedCountsAllocateNothing(t *testing.T) {
	forged := new(raw).header(3, 0, 1).text("a").u32(uint32(kindArray)).u32(uint32(kindString)).u64(1 << 50).zeros(1 << 10).Bytes()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(forged)
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("it parses")
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
		t.Errorf("refusing it allocated %d bytes", got)
	}
}

func TestOpenGivesWhatParseGives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.gguf")
	b := small(t)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := Parse(b)
	if f.Digest() != p.Digest() || f.SHA256() != p.SHA256() || f.Size() != int64(len(b)) || len(f.SHA256()) != 64 {
		t.Errorf("digests %x %x, sums %s %s", f.Digest(), p.Digest(), f.SHA256(), p.SHA256())
	}
	q, _ := f.Tensor("q")
	pq, _ := p.Tensor("q")
	if !bytes.Equal(q.Data, pq.Data) {
		t.Error("the tensor differs")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestDigestSeesEveryByte(t *testing.T) {
	b := small(t)
	f, _ := Parse(b)
	c := bytes.Clone(b)
	c[len(c)-1] ^= 1
	g, err := Parse(c)
	if err != nil || f.Digest() == g.Digest() {
		t.Errorf("%v, %x", err, f.Digest())
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.gguf")
	if err := os.WriteFile(bad, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		empty:                      "is empty",
		dir:                        "is not a regular file",
		filepath.Join(dir, "none"): "none: no such file",
		bad:                        "bad.gguf: version: the file ends in the middle of it; it is incomplete or damaged, fetch it again",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}

func TestWriterRefusesNonsense(t *testing.T) {
	var w Writer
	w.Set("a", struct{}{})
	w.Add("t", Q8_0, []uint64{32, 2}, make([]byte, 34))
	_, err := w.Bytes()
	for _, want := range []string{`key "a": a value of Go type struct {} has no type`, `tensor "t" of type Q8_0 and dimensions [32 2] has 68 bytes, got 34`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// FuzzParse asks of every input: memory in proportion to it, and an error, or tensors that lie
// inside and decode.
func FuzzParse(f *testing.F) {
	f.Add(small(f))
	f.Add(small(f)[:100])
	f.Add(nested(3).Bytes())
	f.Add(new(raw).header(3, 2, 0).tensor("a", F32, 0, 16).tensor("b", Q4_K, 64, 256).zeros(300).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		if crc32.ChecksumIEEE(b)%8 == 0 { // measuring stops the world: not each time
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = Parse(b)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 64*uint64(len(b))+64<<10 {
				t.Fatalf("%d bytes of file took %d of memory", len(b), took) // G1
			}
		}
		if err != nil {
			return
		}
		for _, x := range file.Tensors() {
			if len(x.Data) != x.Rows()*x.Type.RowBytes(x.Cols()) || len(x.Data) > len(b) || len(x.Data) == 0 {
				t.Fatalf("tensor %v has %d bytes", x, len(x.Data)) // G2
			}
			if x.Type.Decodable() && x.Cols() <= 1<<16 {
				if err := Dequant(make([]float32, x.Cols()), x.Type, x.Row(x.Rows()-1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		seen := map[string]bool{}
		for _, k := range file.Keys() {
			if seen[k] {
				t.Fatalf("key %q twice", k) // G3
			}
			seen[k] = true
			file.Uint(k)
			file.Float(k)
			file.Bool(k)
			file.String(k)
			file.Strings(k)
			file.Ints(k)
			file.Floats(k)
		}
	})
}

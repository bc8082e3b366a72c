package safetensors

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/engine/weights/gguf"
)

// file puts a header before data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

const good = `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"s":{"dtype":"F16","shape":[],"data_offsets":[28,30]}}  `

// F2.
func TestTensorsAreWhereTheHeaderSays(t *testing.T) {
	got, err := parse(file(good, 30))
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, want := range []struct {
		name       string
		typ        gguf.Type
		rows, cols int
		first      byte
	}{{"a", gguf.BF16, 1, 2, 0}, {"b", gguf.F32, 2, 3, 4}, {"s", gguf.F16, 1, 1, 28}} {
		g := got[i]
		if g.Name != want.name || g.Type != want.typ || g.Rows() != want.rows || g.Cols() != want.cols || g.Data[0] != want.first {
			t.Errorf("tensor %d: %v from %d, want %+v", i, g, g.Data[0], want)
		}
	}
}

// TestDamagedHeadersAreRefused: what F1 bounds, F2 demands and F3 forbids, and files that are cut (F4).
func TestDamagedHeadersAreRefused(t *testing.T) {
	one := func(e string) []byte { return file(`{"a":`+e+`}`, 8) }
	for name, row := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":           {nil, "0 bytes are no safetensors file"},
		"long header":     {[]byte("\xff\xff\xff\xff\xff\xff\xff\xffxx"), "a header of 18446744073709551615 bytes, at most 2 fit"},
		"no object":       {file(`[]`, 0), "want an object"},
		"cut object":      {file(`{"a":`, 0), "EOF"},
		"follows":         {file(`{} {}`, 0), "something follows"},
		"twice":           {file(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}}`, 4), `"a" occurs twice`},
		"metadata":        {file(`{"__metadata__":{"a":1}}`, 0), "__metadata__"},
		"no dtype":        {one(`{"shape":[2],"data_offsets":[0,8]}`), "want dtype, shape and two data_offsets"},
		"fp8":             {one(`{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}`), `dtype "F8_E4M3" cannot be read, only F32, F16 and BF16`},
		"packed integers": {one(`{"dtype":"I32","shape":[2],"data_offsets":[0,8]}`), `dtype "I32" cannot be read`},
		"unknown":         {one(`{"dtype":"X","shape":[2],"data_offsets":[0,8]}`), `dtype "X" cannot be read`},
		"dims":            {one(`{"dtype":"F32","shape":[1,1,1,1,2],"data_offsets":[0,8]}`), "5 dimensions, at most 4"},
		"zero":            {one(`{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`), "at least 1"},
		"negative":        {one(`{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}`), "cannot unmarshal"},
		"overflow":        {one(`{"dtype":"F32","shape":[2147483647,2147483647,2147483647,4],"data_offsets":[0,8]}`), "shape"},
		"size":            {one(`{"dtype":"F32","shape":[1],"data_offsets":[0,8]}`), "has 4 bytes, its place 8"},
		"beyond":          {one(`{"dtype":"F32","shape":[2],"data_offsets":[4,12]}`), "bytes 4 to 12 of 8"},
		"backwards":       {one(`{"dtype":"F32","shape":[2],"data_offsets":[8,0]}`), "bytes 8 to 0"},
		"gap":             {one(`{"dtype":"F32","shape":[1],"data_offsets":[4,8]}`), "begins at byte 4, the one before it ends at 0"},
		"rest":            {one(`{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`), "the tensors end at byte 4 of 8"},
		"overlap":         {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, 6), "no gap and no overlap"},
		"no name":         {file(`{"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), "a name of 0 bytes"},
	} {
		if got, err := parse(row.b); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, error %v, want %q", name, got, err, row.want)
		}
	}
	whole := file(good, 30)
	for n := range whole {
		if _, err := parse(whole[:n]); err == nil {
			t.Errorf("a file cut at byte %d was read", n)
		}
	}
}

// FuzzParse: of whatever bytes, tensors lie in the file and have the bytes of their shape (F2).
func FuzzParse(f *testing.F) {
	f.Add(file(good, 30))
	f.Add(file(`{}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, 6))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xffxx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parse(b)
		if err != nil {
			return
		}
		n := 0
		for _, x := range got {
			if want := x.Rows() * x.Type.RowBytes(x.Cols()); len(x.Data) != want {
				t.Errorf("%v has %d bytes, want %d", x, len(x.Data), want)
			}
			n += len(x.Data)
		}
		if n > len(b) {
			t.Errorf("tensors of %d bytes in a file of %d", n, len(b))
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"model-00001-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../x.safetensors"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		place, err := parseIndex(b)
		for name, file := range place {
			if err == nil && (filepath.Base(file) != file || !strings.HasSuffix(file, ".safetensors")) {
				t.Errorf("tensor %q in file %q", name, file)
			}
		}
	})
}

// write makes a directory of these files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, s := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func shard(name string) string {
	return string(file(`{"`+name+`":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
}

const one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"

// sharded are the files of a directory with two shards.
func sharded() map[string]string {
	return map[string]string{
		"config.json": `{}`, one: shard("a"), two: shard("b"), "tokenizer.json": "x",
		"model.safetensors.index.json": `{"metadata":{"total_size":8},"weight_map":{"b":"` + two + `","a":"` + one + `"}}`,
	}
}

func TestShardsAreOneDirectory(t *testing.T) {
	files := sharded()
	d, err := Open(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if len(d.Tensors()) != 2 || d.Tensors()[1].Name != "b" || d.Size() != int64(len(files[one])+len(files[two])) || string(d.Config()) != "{}" {
		t.Errorf("%v, %d bytes, config %q", d.Tensors(), d.Size(), d.Config())
	}
	if b, err := d.File("tokenizer.json"); string(b) != "x" || err != nil {
		t.Errorf("tokenizer.json is %q, %v", b, err)
	}
	if b, err := d.File("none"); b != nil || err != nil {
		t.Errorf("a file that is not there is %q, %v", b, err)
	}
	if _, err := d.File("../x"); err == nil {
		t.Error("a path was taken for a name")
	}
	files["config.json"] = `{ }`
	o, err := Open(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if d.Digest() == o.Digest() {
		t.Error("another config.json has the same digest")
	}
	d.Release(d.Tensors()[0].Data)
	files["model.safetensors"] = shard("only")
	if d, err := Open(write(t, files)); err != nil || len(d.Tensors()) != 1 {
		t.Errorf("a single file beside an index: %v, %v", d, err)
	}
}

// TestDamagedDirectoriesAreRefused: limits (F1), and tensors in two places or the wrong one (F3).
func TestDamagedDirectoriesAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(map[string]string)
		want   string
	}{
		"no config":   {func(m map[string]string) { delete(m, "config.json") }, "config.json is missing"},
		"no weights":  {func(m map[string]string) { delete(m, "model.safetensors.index.json") }, "neither model.safetensors nor"},
		"no shard":    {func(m map[string]string) { delete(m, two) }, "no such file"},
		"empty shard": {func(m map[string]string) { m[two] = "" }, "is empty"},
		"same tensor": {func(m map[string]string) { m[two] = shard("a") }, `"a" occurs in another file too`},
		"other shard": {func(m map[string]string) { m[one], m[two] = m[two], m[one] }, "lies here, the index says"},
		"not in index": {func(m map[string]string) {
			m["model.safetensors.index.json"] = `{"weight_map":{"a":"` + one + `","c":"` + two + `"}}`
		}, `tensor "b" lies here, the index says ""`},
		"not in shards": {func(m map[string]string) {
			m["model.safetensors.index.json"] = `{"weight_map":{"a":"` + one + `","b":"` + two + `","c":"` + two + `"}}`
		}, `tensor "c" is missing`},
		"path": {func(m map[string]string) {
			m["model.safetensors.index.json"] = `{"weight_map":{"a":"../x.safetensors"}}`
		}, "want a name in this directory"},
		"empty map": {func(m map[string]string) { m["model.safetensors.index.json"] = `{}` }, "weight_map is missing or empty"},
		"no json":   {func(m map[string]string) { m["model.safetensors.index.json"] = `x` }, "invalid character"},
		"config":    {func(m map[string]string) { m["config.json"] = strings.Repeat(" ", configBytesMax+1) }, "config.json has more than 1048576 bytes"},
	} {
		m := sharded()
		row.change(m)
		if d, err := Open(write(t, m)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, error %v, want %q", name, d, err, row.want)
		}
	}
}

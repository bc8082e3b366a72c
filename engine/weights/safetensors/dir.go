package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"baton/engine/weights"
	"baton/engine/weights/mapped"

	"github.com/zeebo/xxh3"
)

// Names of the files of a directory.
const (
	ConfigName = "config.json"
	single     = "model.safetensors"
	index      = single + ".index.json"
)

// Limits (F1).
const (
	configBytesMax = 1 << 20  // configs in use have a few kB
	indexBytesMax  = 64 << 20 // 100 bytes per tensor
	fileBytesMax   = 64 << 20 // tokenizer.json of Gemma has 33 MB
	shardsMax      = 1024     // the largest models have about 200
)

// Dir is an opened model directory. It is safe for use by several goroutines, but for Close.
type Dir struct {
	path    string
	config  []byte
	shards  []*mapped.File // in the order of their names
	owner   map[string]int // tensor → shard
	tensors []weights.Tensor
	byName  map[string]int

	digestOnce sync.Once
	digest     uint64
}

// Open opens a directory that holds config.json and model.safetensors, or the index
// model.safetensors.index.json and its shards (the single file wins, as for transformers). The
// files must not be cut or overwritten while it is open. An error names the file and the tensor.
func Open(path string) (*Dir, error) {
	d := &Dir{path: path, owner: map[string]int{}, byName: map[string]int{}}
	if err := d.open(); err != nil {
		d.Close()
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	return d, nil
}

func (d *Dir) open() (err error) {
	if d.config, err = read(filepath.Join(d.path, ConfigName), configBytesMax); err != nil {
		return err
	}
	if d.config == nil {
		return errors.New("config.json is missing: this is not a model directory")
	}
	if _, err := os.Stat(filepath.Join(d.path, single)); err == nil {
		return d.add(single)
	}
	b, err := read(filepath.Join(d.path, index), indexBytesMax)
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("neither %s nor %s is there: weights in other formats (.bin, .pt) are not read", single, index)
	}
	place, err := parseIndex(b)
	if err != nil {
		return fmt.Errorf("%s: %w", index, err)
	}
	return d.addShards(place)
}

// parseIndex returns the file of each tensor.
func parseIndex(b []byte) (map[string]string, error) {
	place := map[string]string{}
	files := map[string]bool{}
	err := object(b, func(key string, dec *json.Decoder) error {
		if key != "weight_map" {
			var skip any
			return dec.Decode(&skip)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		return object(raw, func(name string, dec *json.Decoder) error {
			var file string
			if err := dec.Decode(&file); err != nil {
				return err
			}
			if filepath.Base(file) != file || strings.ContainsAny(file, `/\`) || !strings.HasSuffix(file, ".safetensors") {
				return fmt.Errorf("the file %.80q, want a name in this directory that ends in .safetensors", file)
			}
			if files[file] = true; len(files) > shardsMax {
				return fmt.Errorf("more than %d files", shardsMax)
			}
			place[name] = file
			return nil
		})
	})
	if err == nil && len(place) == 0 {
		err = errors.New("weight_map is missing or empty")
	}
	return place, err
}

// addShards opens every file of an index and compares what is in it with what should be (F3).
func (d *Dir) addShards(place map[string]string) error {
	var files []string
	for _, f := range place {
		files = append(files, f)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	for _, f := range files {
		if err := d.add(f); err != nil {
			return err
		}
	}
	for _, t := range d.tensors {
		if want := files[d.owner[t.Name]]; place[t.Name] != want {
			return fmt.Errorf("%s: tensor %q lies here, the index says %q", want, t.Name, place[t.Name])
		}
	}
	if len(place) != len(d.tensors) {
		for name, f := range place {
			if _, ok := d.byName[name]; !ok {
				return fmt.Errorf("%s: tensor %q is missing, the index says it is here%s", f, name, damaged)
			}
		}
	}
	return nil
}

// add opens one file.
func (d *Dir) add(name string) error {
	m, err := mapped.Open(filepath.Join(d.path, name))
	if err != nil {
		return err
	}
	d.shards = append(d.shards, m)
	tensors, err := parse(m.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range tensors {
		if _, ok := d.byName[t.Name]; ok {
			return fmt.Errorf("%s: tensor %q occurs in another file too", name, t.Name)
		}
		d.byName[t.Name], d.owner[t.Name] = len(d.tensors), len(d.shards)-1
		d.tensors = append(d.tensors, t)
	}
	return nil
}

// read returns a whole small file, nil if there is none.
func read(path string, most int64) ([]byte, error) {
	h, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer h.Close()
	b, err := io.ReadAll(io.LimitReader(h, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", filepath.Base(path), most)
	}
	return b, err
}

// Path returns the directory.
func (d *Dir) Path() string { return d.path }

// Config returns the bytes of config.json. They belong to the directory.
func (d *Dir) Config() []byte { return d.config }

// File returns the bytes of another small file of the directory, as tokenizer.json, or nil if
// there is none of that name.
func (d *Dir) File(name string) ([]byte, error) {
	if filepath.Base(name) != name {
		return nil, fmt.Errorf("safetensors: %q is no name of a file in a directory", name)
	}
	b, err := read(filepath.Join(d.path, name), fileBytesMax)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return b, nil
}

// Tensor returns the tensor of that name.
func (d *Dir) Tensor(name string) (weights.Tensor, bool) {
	i, ok := d.byName[name]
	if !ok {
		return weights.Tensor{}, false
	}
	return d.tensors[i], true
}

// Tensors returns all tensors, by file and place. The slice belongs to the directory.
func (d *Dir) Tensors() []weights.Tensor { return d.tensors }

// Size returns the bytes of all weight files.
func (d *Dir) Size() (n int64) {
	for _, s := range d.shards {
		n += int64(len(s.Bytes))
	}
	return n
}

// Digest returns the xxh3 sum of config.json and all weight files, each with its length in
// front. The first call reads all of them.
func (d *Dir) Digest() uint64 {
	d.digestOnce.Do(func() {
		h := xxh3.New()
		length := func(n int) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
		length(len(d.config))
		h.Write(d.config)
		for _, s := range d.shards {
			length(len(s.Bytes))
			s.Read(func(b []byte) { h.Write(b) })
		}
		d.digest = h.Sum64()
	})
	return d.digest
}

// Release gives the memory back that the mapped bytes b take in this process.
func (d *Dir) Release(b []byte) {
	if len(d.shards) > 0 {
		d.shards[0].Release(b) // any of them: they are all mapped, or none is
	}
}

// Close gives the mappings back. No Tensor of the directory may be used afterwards.
func (d *Dir) Close() (err error) {
	for _, s := range d.shards {
		err = errors.Join(err, s.Close())
	}
	return err
}

var _ weights.File = (*Dir)(nil)

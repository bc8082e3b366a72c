package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const repoSpec = "hf:acme/tiny"

// tensors is a safetensors file with a tensor of each name.
func tensors(names ...string) string {
	header, data := "{", strings.Repeat("\x01\x02\x03\x04", 1000*len(names))
	for i, n := range names {
		if i > 0 {
			header += ","
		}
		from, to := 4000*i, 4000*(i+1)
		header += `"` + n + `":{"dtype":"F32","shape":[10,100],"data_offsets":[` + strconv.Itoa(from) + `,` + strconv.Itoa(to) + `]}`
	}
	header += "}"
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + data
}

// repoHub is a hub with one repository, of which main moves on to the next revision whenever its
// first file was asked for there.
type repoHub struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string // by name
	asked []string          // revision and name
	cut   map[string]int    // by name: bytes after which the connection breaks, once
	moves int               // revisions that came after the first
	gone  string            // a revision that it has no more
	mute  bool              // it does not say which revision a file is of
	other string            // it sends this one whatever it is asked for
	heard func(name string) // called with each file that is asked for; may be nil
}

func revision(n int) string { return strings.Repeat("a", 39) + string(rune('0'+n)) }

func newRepoHub(t *testing.T, files map[string]string) *repoHub {
	h := &repoHub{files: files, cut: map[string]int{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	t.Setenv("HF_ENDPOINT", h.URL)
	t.Setenv("HF_TOKEN", "")
	t.Setenv("BATON_MODELS", t.TempDir())
	return h
}

func (h *repoHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest, ok := strings.CutPrefix(r.URL.Path, "/acme/tiny/resolve/")
	rev, name, _ := strings.Cut(rest, "/")
	if h.heard != nil {
		h.heard(name)
	}
	if r.Method != "HEAD" {
		h.asked = append(h.asked, rev+" "+name)
	}
	content, there := h.files[name]
	if !ok || !there || rev == h.gone {
		http.NotFound(w, r)
		return
	}
	if rev == "main" {
		rev = revision(h.moves)
		h.moves++
	}
	if h.other != "" && name != "config.json" {
		rev = h.other
	}
	if !h.mute {
		w.Header().Set("X-Repo-Commit", rev)
	}
	w.Header().Set("ETag", `"`+rev+name+`"`)
	if n := h.cut[name]; n > 0 {
		delete(h.cut, name)
		w = &cutter{ResponseWriter: w, left: n}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(content)))
}

func sharded() map[string]string {
	return map[string]string{
		"config.json": `{"model_type": "llama"}`, "tokenizer.json": "{}", "generation_config.json": "{}", "README.md": "not wanted",
		"model.safetensors.index.json":     `{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors", "c": "model-00001-of-00002.safetensors"}}`,
		"model-00001-of-00002.safetensors": tensors("a", "c"),
		"model-00002-of-00002.safetensors": tensors("b"),
	}
}

func listed(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestADirectoryIsPulledWhole(t *testing.T) {
	one := sharded()
	delete(one, "model.safetensors.index.json")
	one["model.safetensors"] = tensors("a", "b")
	one["chat_template.jinja"] = "x"
	for name, files := range map[string]map[string]string{"shards": sharded(), "one file": one} {
		t.Run(name, func(t *testing.T) {
			h := newRepoHub(t, files)
			if _, err := Resolve(repoSpec); err == nil || !strings.Contains(err.Error(), "fetch it with: baton pull hf:acme/tiny") {
				t.Errorf("before: %v", err)
			}
			path, err := Pull(t.Context(), repoSpec, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for n := range files {
				if n != "README.md" && (files["model.safetensors"] == "" || !strings.HasPrefix(n, "model-")) {
					want = append(want, n)
				}
			}
			slices.Sort(want)
			if got := listed(t, path); !slices.Equal(got, want) {
				t.Errorf("the directory has %q, want %q", got, want)
			}
			for _, n := range want {
				if b, err := os.ReadFile(filepath.Join(path, n)); err != nil || string(b) != files[n] {
					t.Errorf("%s: %v, %d bytes", n, err, len(b))
				}
			}
			if s, err := Resolve(repoSpec); err != nil || s.Path != path || !s.Dir {
				t.Errorf("resolved to %+v, %v", s, err)
			}
			asked := len(h.asked)
			if again, err := Pull(t.Context(), repoSpec, nil); err != nil || again != path || len(h.asked) != asked {
				t.Errorf("a second pull: %s, %v, %d questions more", again, err, len(h.asked)-asked)
			}
		})
	}
}

// TestAllFilesAreOfOneRevision, also where the hub gets a new one meanwhile.
func TestAllFilesAreOfOneRevision(t *testing.T) {
	h := newRepoHub(t, sharded())
	if _, err := Pull(t.Context(), repoSpec, nil); err != nil {
		t.Fatal(err)
	}
	for i, a := range h.asked {
		if rev, _, _ := strings.Cut(a, " "); i == 0 && rev != "main" || i > 0 && rev != revision(0) {
			t.Errorf("question %d: %s", i, a)
		}
	}
}

// TestAPullOfADirectoryGoesOn where the one before was stopped: what is there is not fetched again,
// and half a file is continued (S3).
func TestAPullOfADirectoryGoesOn(t *testing.T) {
	h := newRepoHub(t, sharded())
	const last = "model-00002-of-00002.safetensors"
	content := h.files[last]
	delete(h.files, last)
	if _, err := Pull(t.Context(), repoSpec, nil); err == nil || !strings.Contains(err.Error(), last+": the hub has no such file (404") {
		t.Fatalf("error %v", err)
	}
	if _, err := Resolve(repoSpec); err == nil {
		t.Error("half a model is there")
	}
	h.files[last], h.cut[last], h.asked = content, 2000, nil
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Pull(ctx, repoSpec, nil); err == nil {
		t.Error("a pull that was stopped before it began ended well")
	}
	if _, err := Pull(t.Context(), repoSpec, io.Discard); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for _, a := range h.asked {
		rev, name, _ := strings.Cut(a, " ")
		if rev != revision(0) {
			t.Errorf("another revision: %s", a)
		}
		if name == last {
			count++
		} else if h.files[name] != "" {
			t.Errorf("fetched again: %s", a)
		}
	}
	if count != 2 {
		t.Errorf("the file whose connection broke was asked for %d times", count)
	}
}

// TestARevisionThatCannotBeKeptIsAnError: files are never of two, whatever the hub says or does not.
func TestARevisionThatCannotBeKeptIsAnError(t *testing.T) { // S1
	half := func(t *testing.T) *repoHub { // config.json and tokenizer.json are there, of the first revision
		h := newRepoHub(t, sharded())
		h.cut["generation_config.json"] = 1
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		h.heard = func(name string) {
			if name == "generation_config.json" {
				stop()
			}
		}
		if _, err := Pull(ctx, repoSpec, nil); err == nil {
			t.Fatal("no error")
		}
		h.mu.Lock() // whoever stopped it may still be answering
		defer h.mu.Unlock()
		h.heard, h.asked = nil, nil
		return h
	}
	for name, r := range map[string]struct {
		hub  func(t *testing.T) *repoHub
		want string // "" if the pull succeeds
	}{
		"it says none":   {func(t *testing.T) *repoHub { h := newRepoHub(t, sharded()); h.mute = true; return h }, "config.json: the hub does not say of which revision it is (X-Repo-Commit)"},
		"it sends other": {func(t *testing.T) *repoHub { h := newRepoHub(t, sharded()); h.other = revision(7); return h }, "tokenizer.json: the hub was asked for revision " + revision(0) + " and sent " + revision(7)},
		"it is gone":     {func(t *testing.T) *repoHub { h := half(t); h.gone = revision(0); return h }, "the hub has the revision " + revision(0) + " no more"},
		"nobody knows which": {func(t *testing.T) *repoHub {
			h := half(t)
			path, _ := cachePath(repoSpec)
			if err := os.Remove(filepath.Join(path+".part", revisionName)); err != nil {
				t.Fatal(err)
			}
			return h
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := r.hub(t)
			path, err := Pull(t.Context(), repoSpec, nil)
			if r.want != "" {
				if err == nil || !strings.Contains(err.Error(), r.want) {
					t.Errorf("error %v, want %s", err, r.want)
				}
				if _, err := Resolve(repoSpec); err == nil {
					t.Error("it is there all the same")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.asked[0] != "main config.json" || slices.Contains(listed(t, path), revisionName) {
				t.Errorf("asked %q", h.asked)
			}
			for _, a := range h.asked[1:] {
				if !strings.HasPrefix(a, revision(1)) {
					t.Errorf("asked %s of another revision than the first file", a)
				}
			}
		})
	}
}

func TestBadDirectoriesAreRefused(t *testing.T) {
	const index = "model.safetensors.index.json"
	for name, r := range map[string]struct {
		change func(files map[string]string)
		want   string
	}{
		"no repository":  {func(f map[string]string) { clear(f) }, "/config.json), or there is no such repository"},
		"no tokenizer":   {func(f map[string]string) { delete(f, "tokenizer.json") }, "tokenizer.json: the hub has no such file"},
		"no weights":     {func(f map[string]string) { delete(f, index) }, "the hub has neither model.safetensors nor model.safetensors.index.json"},
		"no index":       {func(f map[string]string) { f[index] = "{" }, index + ": unexpected end of JSON input"},
		"an empty index": {func(f map[string]string) { f[index] = "{}" }, index + ": it names 0 files, needed are 1 to 1024"},
		"a way out":      {func(f map[string]string) { f[index] = `{"weight_map": {"a": "../../x.safetensors"}}` }, `the tensor "a" is said to be in "../../x.safetensors", which is no name of a .safetensors file`},
		"another format": {func(f map[string]string) { f[index] = `{"weight_map": {"a": "x.bin"}}` }, `which is no name of a .safetensors file`},
		"no tensors":     {func(f map[string]string) { f["model-00002-of-00002.safetensors"] = "12345678" }, "what came is no model that can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRepoHub(t, sharded())
			r.change(h.files)
			if _, err := Pull(t.Context(), repoSpec, nil); err == nil || !strings.Contains(err.Error(), r.want) {
				t.Errorf("error %v, want %s", err, r.want)
			}
			if _, err := Resolve(repoSpec); err == nil {
				t.Error("it is there all the same")
			}
		})
	}
}

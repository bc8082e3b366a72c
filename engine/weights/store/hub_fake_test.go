package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine/weights/gguf"
)

const (
	spec     = "hf:acme/tiny-GGUF/tiny.Q8_0.gguf"
	hubPath  = "/acme/tiny-GGUF/resolve/main/tiny.Q8_0.gguf"
	dataPath = "/storage/tiny"
)

// tinyModel is a model file of about 200 kB.
func tinyModel(t *testing.T, seed byte) []byte {
	t.Helper()
	data := make([]byte, 200_000)
	for i := range data {
		data[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	var w gguf.Writer
	w.Set("general.architecture", "llama")
	w.Add("t", gguf.F16, []uint64{1000, 100}, data)
	b, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fakeHub behaves like a model hub: the file's address redirects to a storage, the redirect
// carries the checksum, the storage knows ranges. Its faults are fields.
type fakeHub struct {
	*httptest.Server
	mu      sync.Mutex
	content []byte
	sum     string // X-Linked-Etag; "" for none
	cut     []int  // of the first answers: bytes after which the connection breaks
	stall   int    // after so many bytes nothing comes any more, once; 0 for never
	status  []int  // of the first answers of the hub: these statuses
	noRange bool   // the storage ignores ranges
	wrong   bool   // the storage answers ranges with other bytes
	whole   bool   // the answer has no length
	ranges  []string
	arrived chan struct{} // a value when a stalled answer has begun
}

func newHub(t *testing.T) *fakeHub {
	h := &fakeHub{content: tinyModel(t, 0), arrived: make(chan struct{}, 1)}
	s := sha256.Sum256(h.content)
	h.sum = hex.EncodeToString(s[:])
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	t.Setenv("HF_ENDPOINT", h.URL)
	t.Setenv("HF_TOKEN", "")
	t.Setenv("BATON_MODELS", t.TempDir())
	return h
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r.URL.Path {
	case hubPath:
		if len(h.status) > 0 {
			s := h.status[0]
			h.status = h.status[1:]
			w.WriteHeader(s)
			return
		}
		if h.sum != "" {
			w.Header().Set("X-Linked-Etag", strconv.Quote(h.sum))
		}
		http.Redirect(w, r, dataPath, http.StatusFound)
	case dataPath:
		h.serveData(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (h *fakeHub) serveData(w http.ResponseWriter, r *http.Request) {
	h.ranges = append(h.ranges, r.Header.Get("Range"))
	s := sha256.Sum256(h.content)
	w.Header().Set("ETag", strconv.Quote(hex.EncodeToString(s[:8])))
	if h.noRange {
		r.Header.Del("Range")
	}
	if h.wrong && r.Header.Get("Range") != "" {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 5-9/%d", len(h.content)))
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, "12345")
		return
	}
	if h.whole {
		w.(http.Flusher).Flush()
		w.Write(h.content)
		return
	}
	out := io.Writer(w)
	if len(h.cut) > 0 {
		out = &cutter{ResponseWriter: w, left: h.cut[0]}
		h.cut = h.cut[1:]
	} else if h.stall > 0 {
		c := &cutter{ResponseWriter: w, left: h.stall, stall: func() {
			h.arrived <- struct{}{}
			<-r.Context().Done()
		}}
		h.stall = 0
		out = c
	}
	rw, ok := out.(http.ResponseWriter)
	if !ok {
		rw = w
	}
	http.ServeContent(rw, r, "", time.Time{}, bytes.NewReader(h.content))
}

// cutter breaks the connection, or stalls, after some bytes.
type cutter struct {
	http.ResponseWriter
	left  int
	stall func()
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) <= c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	c.ResponseWriter.Write(b[:c.left])
	c.ResponseWriter.(http.Flusher).Flush()
	if c.stall != nil {
		c.stall()
	}
	panic(http.ErrAbortHandler)
}

// pull is Pull without the pauses between tries.
func pull(ctx context.Context, t *testing.T, w io.Writer, change func(*download)) (string, error) {
	t.Helper()
	path, err := cachePath(spec)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := hubParts(strings.TrimPrefix(spec, hub))
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDownload(parts, "main")
	if err != nil {
		t.Fatal(err)
	}
	d.pause = 0
	if change != nil {
		change(d)
	}
	return path, place(ctx, path, w, func(part string) error { return d.fetch(ctx, part, w) })
}

func (h *fakeHub) wantFile(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, h.content) {
		t.Errorf("%d bytes, %v; want the %d of the hub", len(b), err, len(h.content))
	}
	for _, end := range []string{".part", ".part.etag"} {
		if _, err := os.Stat(path + end); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", end)
		}
	}
}

func wantNoFile(t *testing.T, path string) { // S1
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

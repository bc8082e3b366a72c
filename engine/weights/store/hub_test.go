package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPullBringsAFileOnce(t *testing.T) {
	h := newHub(t)
	var out bytes.Buffer
	path, err := Pull(t.Context(), spec, &out)
	if err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
	if want := "fetching 100 % 200.1 kB of 200.1 kB"; !strings.Contains(out.String(), want) {
		t.Errorf("progress %q, want %q", out.String(), want)
	}
	again, err := Pull(t.Context(), spec, nil)
	if err != nil || again != path || len(h.ranges) != 1 {
		t.Errorf("the second pull: %s, %v, %d requests", again, err, len(h.ranges))
	}
	s, err := Resolve(spec)
	if err != nil || s.Path != path {
		t.Errorf("Resolve: %v, %v", s, err)
	}
	f, err := s.Open()
	if err != nil || len(f.Tensors()) != 1 {
		t.Fatalf("Open: %v", err)
	}
	f.Close()
}

func TestPullGoesOnAfterBrokenConnections(t *testing.T) { // S3
	h := newHub(t)
	h.cut = []int{70_000, 10_000, 1}
	path, err := pull(t.Context(), t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
	want := []string{"", "bytes=70000-", "bytes=80000-", "bytes=80001-"}
	if fmt.Sprint(h.ranges) != fmt.Sprint(want) {
		t.Errorf("ranges %q, want %q", h.ranges, want)
	}
}

func TestPullGoesOnInTheNextProcess(t *testing.T) { // S3
	h := newHub(t)
	h.cut = []int{50_000, 0, 0, 0, 0, 0}
	path, err := pull(t.Context(), t, nil, nil)
	if err == nil {
		t.Fatal("no error")
	}
	wantNoFile(t, path)
	if part, err := os.ReadFile(path + ".part"); err != nil || !bytes.Equal(part, h.content[:50_000]) {
		t.Fatalf("the part has %d bytes, %v", len(part), err)
	}
	h.cut, h.ranges = nil, nil
	if _, err := pull(t.Context(), t, nil, nil); err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
	if fmt.Sprint(h.ranges) != "[bytes=50000-]" {
		t.Errorf("ranges %q", h.ranges)
	}
}

func TestPullStartsAgainWhereItMust(t *testing.T) {
	rows := map[string]struct {
		change func(h *fakeHub)
		ranges string
	}{
		"the server ignores ranges":         {func(h *fakeHub) { h.noRange = true }, "[ bytes=50000-]"},
		"the server answers another range":  {func(h *fakeHub) { h.wrong = true }, "[ bytes=50000- ]"},
		"the file is another one meanwhile": {func(h *fakeHub) {}, "[ bytes=50000-]"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.cut = []int{50_000}
			r.change(h)
			if strings.HasPrefix(name, "the file") {
				h.cut = []int{50_000, 0, 0, 0, 0, 0}
				if _, err := pull(t.Context(), t, nil, nil); err == nil {
					t.Fatal("no error")
				}
				h.cut, h.content, h.ranges = nil, tinyModel(t, 99), []string{""}
				s := sha256.Sum256(h.content)
				h.sum = hex.EncodeToString(s[:])
			}
			path, err := pull(t.Context(), t, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			h.wantFile(t, path)
			if fmt.Sprint(h.ranges) != r.ranges {
				t.Errorf("ranges %q, want %s", h.ranges, r.ranges)
			}
		})
	}
}

func TestACompletePartIsNotFetchedAgain(t *testing.T) {
	h := newHub(t)
	path, _ := cachePath(spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".part", h.content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), t, nil, nil); err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".part", append(h.content, "more"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), t, nil, nil); err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
}

func TestAWrongChecksumIsNeverAccepted(t *testing.T) { // S1
	h := newHub(t)
	h.sum = strings.Repeat("ab", 32)
	path, err := pull(t.Context(), t, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "the hub says "+h.sum+"; it was removed, pull it again") {
		t.Errorf("error %v", err)
	}
	wantNoFile(t, path)
	wantNoFile(t, path+".part")
}

func TestWithoutAChecksumTheFileMustParse(t *testing.T) {
	h := newHub(t)
	h.sum = "not-a-sha256"
	path, err := pull(t.Context(), t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
	os.Remove(path)
	h.content = []byte("<html>please sign in</html>")
	if _, err = pull(t.Context(), t, nil, nil); err == nil || !strings.Contains(err.Error(), "what came is no model file and was removed") {
		t.Errorf("error %v", err)
	}
	wantNoFile(t, path)
	wantNoFile(t, path+".part")
}

func TestAnAnswerWithoutLengthIsTaken(t *testing.T) {
	h := newHub(t)
	h.whole = true
	path, err := pull(t.Context(), t, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
}

func TestStatusesOfTheHub(t *testing.T) {
	rows := []struct {
		status []int
		want   string // "" if the pull succeeds in the end
		left   int    // statuses that are not asked for any more
	}{
		{[]int{404, 404}, "the hub has no such file (404 at ", 1},
		{[]int{401, 401}, "the hub refuses access (401 Unauthorized at ", 1},
		{[]int{403, 403}, "for a gated model set HF_TOKEN", 1},
		{[]int{410, 410}, "the hub answers 410 Gone at ", 1},
		{[]int{429, 503}, "", 0},
		{[]int{500, 500, 500, 500, 500, 500}, "the hub answers 500 Internal Server Error at ", 1},
	}
	for _, r := range rows {
		t.Run(fmt.Sprint(r.status[0]), func(t *testing.T) {
			h := newHub(t)
			h.status = r.status
			path, err := pull(t.Context(), t, nil, nil)
			if r.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				h.wantFile(t, path)
			} else {
				if err == nil || !strings.Contains(err.Error(), r.want) {
					t.Errorf("error %v, want %s", err, r.want)
				}
				wantNoFile(t, path)
			}
			if len(h.status) != r.left {
				t.Errorf("%d answers are left, want %d", len(h.status), r.left)
			}
		})
	}
}

func TestTheTokenGoesToTheHubAlone(t *testing.T) {
	newHub(t)
	var atHub, atStorage string
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		atStorage = r.Header.Get("Authorization")
		w.Write(tinyModel(t, 0))
	}))
	defer storage.Close()
	address := strings.Replace(storage.URL, "127.0.0.1", "localhost", 1) // another host by name
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		atHub = r.Header.Get("Authorization")
		http.Redirect(w, r, address, http.StatusFound)
	}))
	defer front.Close()
	t.Setenv("HF_ENDPOINT", front.URL+"/")
	t.Setenv("HF_TOKEN", "hf_secret")
	if _, err := pull(t.Context(), t, nil, nil); err != nil {
		t.Fatal(err)
	}
	if atHub != "Bearer hf_secret" || atStorage != "" {
		t.Errorf("the hub got %q, the storage %q", atHub, atStorage)
	}
}

func TestACancelledPullKeepsWhatCame(t *testing.T) {
	h := newHub(t)
	h.stall = 60_000
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-h.arrived
		cancel(why)
	}()
	path, err := pull(ctx, t, nil, nil)
	if !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	wantNoFile(t, path)
	if part, err := os.ReadFile(path + ".part"); err != nil || !bytes.HasPrefix(h.content, part) {
		t.Errorf("the part has %d bytes, %v", len(part), err)
	}
	if _, err := pull(t.Context(), t, nil, nil); err != nil {
		t.Fatal(err)
	}
	h.wantFile(t, path)
}

func TestASilentServerIsLeft(t *testing.T) {
	h := newHub(t)
	h.stall = 60_000
	path, err := pull(t.Context(), t, nil, func(d *download) { d.silent = 20 * time.Millisecond })
	if err != nil {
		t.Fatal(err) // the second answer does not stall
	}
	h.wantFile(t, path)
	if len(h.ranges) < 2 {
		t.Errorf("ranges %q: nothing was cut", h.ranges)
	}
}

func TestManyPullsFetchOnce(t *testing.T) { // S2
	h := newHub(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if path, err := pull(t.Context(), t, nil, nil); err != nil {
				t.Error(err)
			} else {
				h.wantFile(t, path)
			}
		})
	}
	all.Wait()
	if len(h.ranges) != 1 {
		t.Errorf("%d fetches", len(h.ranges))
	}
}

func TestBadAddressesAreRefused(t *testing.T) {
	newHub(t) // whatever is not refused must not reach a real one
	for _, s := range []string{"hf:", "hf:a", "hf:a/..", "hf:a/b/", "hf:a/b/c.bin", "hf:a/../c.gguf", "hf:../../../etc/x.gguf", "hf:a/b/.c.gguf", "hf:a//c.gguf", "hf:a/b/c d.gguf", "hf:a/b/c?x.gguf", "hf:a\\b/c/d.gguf", "hf:a/b/1/2/3/4/5/6/7.gguf"} {
		for what, f := range map[string]func() error{
			"Pull":    func() error { _, err := Pull(t.Context(), s, nil); return err },
			"Resolve": func() error { _, err := Resolve(s); return err },
		} {
			if err := f(); err == nil || !strings.Contains(err.Error(), "want hf:OWNER/REPO/FILE.gguf, each of letters") {
				t.Errorf("%s of %s: error %v", what, s, err)
			}
		}
	}
	for _, e := range []string{"ftp://x", "x.y", "http://", ":"} {
		t.Setenv("HF_ENDPOINT", e)
		if _, err := Pull(t.Context(), spec, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("store: HF_ENDPOINT is %q, needed is an http or https address", e)) {
			t.Errorf("endpoint %q: error %v", e, err)
		}
	}
}

func TestContentRange(t *testing.T) {
	for s, want := range map[string]string{
		"bytes 5-9/10": "5 10", "bytes */10": "0 10", "bytes 0-0/1": "0 1",
		"": "", "bytes 5-9": "", "bytes 5-9/*": "", "bytes x-9/10": "", "bytes 11-12/10": "", "bytes -5-9/10": "", "bytes 1-2/-3": "",
	} {
		from, total, err := contentRange(s)
		got := fmt.Sprint(from, total)
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// A hub that no name server knows is tried once more, and the error says how to choose another.
func TestAHubThatIsNotThereIsLeftSoon(t *testing.T) {
	for name, r := range map[string]struct {
		err   *net.DNSError
		tries int
	}{
		"no such host":  {&net.DNSError{Err: "no such host", Name: "hub.invalid", IsNotFound: true}, 2},
		"no nameserver": {&net.DNSError{Err: "server misbehaving", Name: "hub.invalid", IsTemporary: true}, triesMost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HF_ENDPOINT", "http://hub.invalid")
			d, err := newDownload([]string{"acme", "tiny", "config.json"}, "main")
			if err != nil {
				t.Fatal(err)
			}
			d.pause = time.Microsecond
			tries := 0
			d.client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				tries++
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: r.err}
			}}
			err = d.fetch(t.Context(), filepath.Join(t.TempDir(), "part"), io.Discard)
			want := "the hub is not reachable (lookup hub.invalid: " + r.err.Err + "); HF_ENDPOINT chooses another"
			if err == nil || err.Error() != want || tries != r.tries {
				t.Errorf("after %d tries, want %d: %v", tries, r.tries, err)
			}
		})
	}
}

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	endpointDefault = "https://huggingface.co"
	// hubBytesMax bounds what a download may write when the server does not say how much comes:
	// larger than any single file that a hub takes (50 GB).
	hubBytesMax = 64 << 30
	// triesMost is how often a download goes on without a single new byte before it gives up.
	triesMost = 5
)

// segment is a part of a hub path: no separator, no "." or "..", nothing a shell or a file
// system reads otherwise.
var segment = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// hubParts splits OWNER/REPO/FILE, where FILE may have folders, and OWNER/REPO.
func hubParts(spec string) ([]string, error) {
	parts := strings.Split(spec, "/")
	ok := len(parts) == 2 || len(parts) >= 3 && len(parts) <= 8 && strings.HasSuffix(spec, ".gguf")
	for _, p := range parts {
		ok = ok && segment.MatchString(p)
	}
	if !ok {
		return nil, fmt.Errorf("store: %q: want hf:OWNER/REPO/FILE.gguf, each of letters, digits, dots, dashes and underscores; FILE may have folders; or hf:OWNER/REPO for a directory of safetensors", hub+spec)
	}
	return parts, nil
}

// download is one file of a hub.
type download struct {
	url    string
	client *http.Client
	pause  time.Duration // before the second try; doubles
	silent time.Duration // a body that gives nothing for so long is cut
	token  string        // $HF_TOKEN, "" for none
	what   string        // for the meter

	etag   string // of what .part holds; kept beside it for the next run
	sha256 string // X-Linked-Etag, "" if the server gave none
	total  int64  // bytes in all, -1 if not known
	commit string // X-Repo-Commit: the revision that the file is of, "" if the server gave none
}

// newDownload prepares the download of a file, by owner, repository and path, of a revision.
func newDownload(parts []string, revision string) (*download, error) {
	endpoint := os.Getenv("HF_ENDPOINT")
	if endpoint == "" {
		endpoint = endpointDefault
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("store: HF_ENDPOINT is %q, needed is an http or https address", endpoint)
	}
	d := &download{
		url:    strings.TrimSuffix(endpoint, "/") + "/" + parts[0] + "/" + parts[1] + "/resolve/" + revision + "/" + strings.Join(parts[2:], "/"),
		pause:  time.Second,
		silent: time.Minute,
		token:  os.Getenv("HF_TOKEN"),
		what:   "fetching",
		total:  -1,
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	t.DisableCompression = true // ranges and lengths count bytes of the file
	d.client = &http.Client{Transport: t, CheckRedirect: d.redirected}
	return d, nil
}

// redirected reads what a hub says on its way to the storage: the checksum stands on the
// redirect, not on the storage's answer.
func (d *download) redirected(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirects")
	}
	d.learn(next.Response)
	return nil
}

func (d *download) learn(r *http.Response) {
	if sum := strings.Trim(strings.TrimPrefix(r.Header.Get("X-Linked-Etag"), "W/"), `"`); len(sum) == 64 {
		if _, err := hex.DecodeString(sum); err == nil {
			d.sha256 = strings.ToLower(sum)
		}
	}
	if c := r.Header.Get("X-Repo-Commit"); isCommit(c) {
		d.commit = c
	}
}

// errNoFile: a hub lacks a file.
var errNoFile = errors.New("the hub has no such file")

// permanent is an error that another try cannot help.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// fetch leaves the complete file at part; after an error, part holds what came (S3).
func (d *download) fetch(ctx context.Context, part string, w io.Writer) error {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if b, err := os.ReadFile(part + ".etag"); err == nil {
		d.etag = strings.TrimSpace(string(b))
	}
	defer d.client.CloseIdleConnections()
	for try, pause := 0, d.pause; ; try++ {
		before, _ := f.Seek(0, io.SeekEnd)
		err := d.once(ctx, f, w)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if after, _ := f.Seek(0, io.SeekEnd); after > before {
			try, pause = 0, d.pause
		}
		var p permanent
		most := triesMost
		var lookup *net.DNSError
		unknown := errors.As(err, &lookup)
		if unknown && lookup.IsNotFound {
			most = 2 // a name that is not there comes up where a machine wakes, and hardly elsewhere
		}
		if last := errors.As(err, &p) || try+1 >= most; last && unknown {
			return fmt.Errorf("the hub is not reachable (%w); HF_ENDPOINT chooses another", lookup)
		} else if last {
			return err
		}
		if w != nil {
			fmt.Fprintf(w, "%v; trying again in %s\n", err, pause)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause *= 2
	}
	if err := d.verify(f, part); err != nil {
		return err
	}
	os.Remove(part + ".etag")
	return f.Sync()
}

// once asks for what is missing and appends what comes. nil means that the file is complete.
func (d *download) once(ctx context.Context, f *os.File, w io.Writer) error {
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return permanent{err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, "GET", d.url, nil)
	if err != nil {
		return permanent{err}
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if d.etag != "" {
			req.Header.Set("If-Range", d.etag)
		}
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d.learn(resp)
	have, done, err := d.begin(resp, f, have)
	if done || err != nil {
		return err
	}
	silence := time.AfterFunc(d.silent, func() { cancel(fmt.Errorf("the server sent nothing for %s", d.silent)) })
	defer silence.Stop()
	body := &watched{resp.Body, silence, d.silent}
	n, err := copyMetered(ctx, f, io.LimitReader(body, d.room(have)+1), NewMeter(w, d.what, have, max(d.total, 0)))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("the connection broke after %s: %w", size(have+n), err)
	}
	switch {
	case n > d.room(have):
		return permanent{errors.Join(fmt.Errorf("the server sent more than the %d bytes it announced", d.total), f.Truncate(0))}
	case d.total >= 0 && have+n < d.total:
		return fmt.Errorf("the connection ended after %d of %d bytes", have+n, d.total)
	}
	return nil
}

// room returns how many bytes may still come.
func (d *download) room(have int64) int64 {
	if d.total >= 0 {
		return d.total - have
	}
	return hubBytesMax - have
}

// exists asks whether the hub has the file.
func (d *download) exists(ctx context.Context) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, "HEAD", d.url, nil)
	if err != nil {
		return false, err
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	defer d.client.CloseIdleConnections()
	resp, err := d.client.Do(req)
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		return false, fmt.Errorf("the hub answers %s at %s", resp.Status, d.url)
	}
	return resp.StatusCode == http.StatusOK, nil
}

// begin reads status and headers, brings f to the place where the body goes, and returns that
// place; done if nothing is missing.
func (d *download) begin(resp *http.Response, f *os.File, have int64) (at int64, done bool, err error) {
	switch resp.StatusCode {
	case http.StatusPartialContent:
		from, total, err := contentRange(resp.Header.Get("Content-Range"))
		if err != nil || from != have {
			return 0, false, errors.Join(fmt.Errorf("asked for bytes from %d, the answer is %q", have, resp.Header.Get("Content-Range")), f.Truncate(0))
		}
		d.total = total
	case http.StatusOK: // the beginning, or a server that ignores ranges, or another file now
		if err := f.Truncate(0); err != nil {
			return 0, false, permanent{err}
		}
		have = 0
		d.total = resp.ContentLength
		d.keepEtag(resp, f)
	case http.StatusRequestedRangeNotSatisfiable:
		if _, total, err := contentRange(resp.Header.Get("Content-Range")); err == nil && total == have {
			return have, true, nil
		}
		return 0, false, errors.Join(errors.New("what was fetched before is not part of this file; starting again"), f.Truncate(0))
	case http.StatusNotFound:
		return 0, false, permanent{fmt.Errorf("%w (404 at %s)", errNoFile, d.url)}
	case http.StatusUnauthorized, http.StatusForbidden:
		return 0, false, permanent{fmt.Errorf("the hub refuses access (%s at %s); for a gated model set HF_TOKEN", resp.Status, d.url)}
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return 0, false, fmt.Errorf("the hub answers %s", resp.Status)
	default:
		err := fmt.Errorf("the hub answers %s at %s", resp.Status, d.url)
		if resp.StatusCode < 500 {
			err = permanent{err}
		}
		return 0, false, err
	}
	if d.total > hubBytesMax {
		return 0, false, permanent{fmt.Errorf("the file has %d bytes, allowed are %d", d.total, int64(hubBytesMax))}
	}
	_, err = f.Seek(have, io.SeekStart)
	return have, false, err
}

// keepEtag notes which version of the file .part holds, for If-Range. Without a strong etag the
// next run cannot ask for the same version; then checksum and parser find a mixture.
func (d *download) keepEtag(resp *http.Response, f *os.File) {
	d.etag = resp.Header.Get("ETag")
	if strings.HasPrefix(d.etag, "W/") {
		d.etag = ""
	}
	name := f.Name() + ".etag"
	if d.etag == "" || os.WriteFile(name, []byte(d.etag), 0o644) != nil {
		os.Remove(name)
	}
}

// contentRange parses "bytes FROM-TO/TOTAL" and "bytes */TOTAL".
func contentRange(s string) (from, total int64, err error) {
	span, of, ok := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	if !ok {
		return 0, 0, fmt.Errorf("content range %q", s)
	}
	if total, err = strconv.ParseInt(of, 10, 64); err != nil || total < 0 {
		return 0, 0, fmt.Errorf("content range %q", s)
	}
	if span == "*" {
		return 0, total, nil
	}
	first, _, _ := strings.Cut(span, "-")
	from, err = strconv.ParseInt(first, 10, 64)
	if err != nil || from < 0 || from > total {
		return 0, 0, fmt.Errorf("content range %q", s)
	}
	return from, total, nil
}

// verify compares the checksum, if the hub gave one.
func (d *download) verify(f *os.File, part string) error {
	if d.sha256 == "" {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.sha256 {
		os.Remove(part)
		os.Remove(part + ".etag")
		return fmt.Errorf("the file has sha256 %s, the hub says %s; it was removed, pull it again", got, d.sha256)
	}
	return nil
}

// watched puts off the silence timer whenever something comes.
type watched struct {
	io.Reader
	timer *time.Timer
	after time.Duration
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.timer.Reset(w.after)
	}
	return n, err
}

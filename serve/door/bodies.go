package door

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Bounds of bodies.
const (
	// smallBytes of each body count apart, so that a few large bodies do not turn away the many
	// small ones: a chat of some ten thousand words.
	smallBytes = 64 << 10
	// BytesMax bounds the bytes of all bodies under way, twice: the first smallBytes of each,
	// and what is behind these. Eight of the longest, or a thousand of smallBytes.
	BytesMax = 64 << 20
	// bodyAfter is what a body may take beyond the time that RateMin gives it.
	bodyAfter = 10 * time.Second
	// RateMin is the slowest that a body may come, in bytes per second: a line of one megabit.
	RateMin = 128 << 10
)

// Errors of Read, beside those of the connection and *http.MaxBytesError.
var (
	ErrFull = errors.New("door: too many bytes of request bodies are under way")
	ErrSlow = errors.New("door: the request body comes too slowly")
)

// Bodies bounds the bodies that are being read, or were read and are not given back. The zero
// value takes bodies up to BytesMax.
type Bodies struct{ small, large atomic.Int64 }

// Body is a body that was read to its end.
type Body struct {
	Bytes        []byte
	of           *Bodies
	small, large int64 // counted
}

// Release gives the bytes' place back; Bytes is nil behind it. A second call does nothing.
func (b *Body) Release() {
	b.of.small.Add(-b.small)
	b.of.large.Add(-b.large)
	b.small, b.large, b.Bytes = 0, 0, nil
}

// add counts n more bytes and says whether they may stay.
func (b *Body) add(n int64) bool {
	small := min(n, smallBytes-b.small)
	b.small += small
	b.large += n - small
	return b.of.small.Add(small) <= BytesMax && b.of.large.Add(n-small) <= BytesMax
}

// Read reads the body of r to its end, of at most max bytes (D3). After an error nothing is
// counted, and the connection is closed behind the answer (D4).
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, max int64) (*Body, error) {
	if r.ContentLength > max {
		return nil, &http.MaxBytesError{Limit: max}
	}
	body := &Body{of: b}
	if err := body.read(w, r, max); err != nil {
		body.Release()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = ErrSlow
		}
		return nil, err
	}
	return body, nil
}

func (b *Body) read(w http.ResponseWriter, r *http.Request, max int64) error {
	const spare = 512 // so that the end is seen without growing
	control, from, began := http.NewResponseController(w), http.MaxBytesReader(w, r.Body, max), time.Now()
	size := smallBytes / 16
	if r.ContentLength > 0 {
		size = int(min(r.ContentLength, smallBytes)) + spare
	}
	all := make([]byte, 0, size)
	for {
		if len(all) == cap(all) {
			size := 2 * cap(all)
			if r.ContentLength > 0 {
				size = min(size, int(r.ContentLength)+spare)
			}
			all = append(make([]byte, 0, size), all...)
		}
		control.SetReadDeadline(began.Add(bodyAfter + time.Duration(len(all))*time.Second/RateMin))
		n, err := from.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		if !b.add(int64(n)) {
			return ErrFull
		}
		if err == io.EOF {
			b.Bytes = all
			wasRead(w, control)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Held is how many bytes count now.
func (b *Bodies) Held() int64 { return b.small.Load() + b.large.Load() }

package leg

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrNoEnd is what a Reader returns when the stream is over before its end came (L3).
var ErrNoEnd = errors.New("leg: the stream ended without an end")

// Reader reads the lines of an answer.
type Reader struct {
	r        *bufio.Reader
	long     []byte // a line longer than the buffer
	accepted bool
	ended    bool
}

// readerBuffer holds the usual line (one token, some text) many times over.
const readerBuffer = 4096

// NewReader returns a reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, readerBuffer)} }

// Next returns the next line, io.EOF after the end, ErrNoEnd when there was none. The order is
// checked: accepted once and first, nothing behind the end.
func (r *Reader) Next() (Line, error) {
	if r.ended {
		return Line{}, io.EOF
	}
	b, err := r.line()
	if err != nil {
		return Line{}, err
	}
	l, err := ParseLine(b)
	if err != nil {
		return Line{}, err
	}
	if l.Accepted == r.accepted {
		return Line{}, errors.New("leg: the line accepted must come once and first")
	}
	r.accepted = true
	r.ended = l.End != nil
	return l, nil
}

func (r *Reader) line() ([]byte, error) {
	r.long = r.long[:0]
	for {
		b, err := r.r.ReadSlice('\n')
		if err == nil && len(r.long) == 0 {
			return b[:len(b)-1], nil
		}
		if len(r.long)+len(b) > LineBytesMax {
			return nil, fmt.Errorf("leg: a line of more than %d bytes", LineBytesMax)
		}
		r.long = append(r.long, b...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(r.long, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, ErrNoEnd // also in the middle of a line
		default:
			return nil, fmt.Errorf("leg: reading a line: %w", err)
		}
	}
}

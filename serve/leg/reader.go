package leg

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"baton/core/room"
)

// ErrNoEnd is what a Reader returns when the stream is over before its end came (L3).
var ErrNoEnd = errors.New("leg: the stream ended without an end")

// Reader reads the lines of an answer.
type Reader struct {
	r        *bufio.Reader
	long     []byte // a line longer than the buffer
	accepted bool
	ended    bool
	finished []Choice // by choice, of those that said how they ended; as long as needed
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
	return l, r.finishes(&l)
}

// finishes holds L5.
func (r *Reader) finishes(l *Line) error {
	if l.End != nil {
		return r.account(l.End)
	}
	if l.Choice < len(r.finished) && r.finished[l.Choice].Finish != "" && !l.Waits {
		return fmt.Errorf("leg: a piece of choice %d behind its finish", l.Choice)
	}
	if l.Finish == "" {
		return nil
	}
	for len(r.finished) <= l.Choice { // below ChoicesMax
		r.finished = append(r.finished, Choice{})
	}
	r.finished[l.Choice] = Choice{Finish: l.Finish, Matched: l.Matched}
	return nil
}

func (r *Reader) account(e *End) error {
	for i, f := range r.finished {
		if f.Finish == "" || e.Outcome != room.Success {
			continue
		}
		if i >= len(e.Choices) || e.Choices[i].Finish != f.Finish || e.Choices[i].Matched != f.Matched {
			return fmt.Errorf("leg: choice %d finished with %q, and the end says otherwise", i, f.Finish)
		}
	}
	return nil
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

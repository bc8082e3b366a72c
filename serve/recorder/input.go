package recorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// input reads the JSON that forms write: objects, arrays, strings, whole numbers, true and false.
type input struct {
	b    []byte
	at   int
	left int // numbers that lists may still unfold to
}

func (in *input) errorf(format string, a ...any) error {
	return fmt.Errorf("at byte %d: "+format, append([]any{in.at + 1}, a...)...)
}

// next is the first byte of what follows, 0 at the end.
func (in *input) next() byte {
	for ; in.at < len(in.b); in.at++ {
		switch in.b[in.at] {
		case ' ', '\t', '\r', '\n':
		default:
			return in.b[in.at]
		}
	}
	return 0
}

func (in *input) want(c byte) error {
	if got := in.next(); got != c {
		if got == 0 {
			return in.errorf("it ends where %q should be", c)
		}
		return in.errorf("%q where %q should be", got, c)
	}
	in.at++
	return nil
}

func (in *input) end() error {
	if c := in.next(); c != 0 || in.at < len(in.b) {
		return in.errorf("%q behind the end", c)
	}
	return nil
}

// object calls value for each key; it reads what belongs to it.
func (in *input) object(value func(key string) error) error {
	if err := in.want('{'); err != nil {
		return err
	}
	if in.next() == '}' {
		in.at++
		return nil
	}
	for {
		key, err := in.text()
		if err == nil {
			err = in.want(':')
		}
		if err == nil {
			err = value(key)
		}
		if err != nil {
			return err
		}
		if in.next() == ',' {
			in.at++
			continue
		}
		return in.want('}')
	}
}

// array calls value for each element; it reads it.
func (in *input) array(value func() error) error {
	if err := in.want('['); err != nil {
		return err
	}
	if in.next() == ']' {
		in.at++
		return nil
	}
	for {
		if in.left--; in.left < 0 {
			return in.errorf("lists of more than %d elements", elementsMax)
		}
		if err := value(); err != nil {
			return err
		}
		if in.next() == ',' {
			in.at++
			continue
		}
		return in.want(']')
	}
}

// text reads a string.
func (in *input) text() (string, error) {
	if err := in.want('"'); err != nil {
		return "", err
	}
	from := in.at
	for ; in.at < len(in.b); in.at++ {
		switch c := in.b[in.at]; {
		case c == '"':
			in.at++
			return string(in.b[from : in.at-1]), nil
		case c == '\\':
			return in.escaped(from)
		case c < ' ':
			return "", in.errorf("byte %#x inside a string", c)
		}
	}
	return "", in.errorf("it ends inside a string")
}

// escaped reads the string that began at from and has a backslash in it: only a rid does.
func (in *input) escaped(from int) (s string, err error) {
	for ; in.at < len(in.b) && in.b[in.at] != '"'; in.at++ {
		if in.b[in.at] == '\\' {
			in.at++
		}
	}
	if in.at >= len(in.b) {
		in.at = len(in.b)
		return "", in.errorf("it ends inside a string")
	}
	in.at++
	if err := json.Unmarshal(in.b[from-1:in.at], &s); err != nil {
		return "", in.errorf("a string that is none: %v", err)
	}
	return s, nil
}

// digits is the whole number that follows.
func (in *input) digits() string {
	in.next()
	from := in.at
	for in.at < len(in.b) && (in.b[in.at] == '-' || in.b[in.at] >= '0' && in.b[in.at] <= '9') {
		in.at++
	}
	return string(in.b[from:in.at])
}

func (in *input) number() (int64, error) {
	s := in.digits()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, in.errorf("%q where a whole number should be", s)
	}
	return n, nil
}

func (in *input) count() (uint64, error) {
	s := in.digits()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, in.errorf("%q where a whole number from 0 should be", s)
	}
	return n, nil
}

func (in *input) boolean() (bool, error) {
	in.next()
	for _, b := range []bool{true, false} {
		if s := strconv.FormatBool(b); bytes.HasPrefix(in.b[in.at:], []byte(s)) {
			in.at += len(s)
			return b, nil
		}
	}
	return false, in.errorf("neither true nor false")
}

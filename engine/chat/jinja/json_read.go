package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// FromJSON reads a value that a client brought: order of keys kept, whole numbers whole, every
// string, number and bracket marked as the client's (J1).
func FromJSON(raw []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the JSON value at byte %d", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > depthMax/2 {
		return nil, fmt.Errorf("the JSON is nested more than %d deep", depthMax/2)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return none{}, nil
	case bool:
		return boolean{t, true}, nil
	case string:
		return Client(t), nil
	case json.Number:
		return readNumber(string(t)), nil
	case json.Delim:
		if t == '[' {
			l := &List{client: true}
			for d.More() {
				v, err := readJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.items = append(l.items, v)
			}
			_, err := d.Token()
			return l, err
		}
		o := &Dict{client: true}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.put(Client(k.(string)), v)
		}
		_, err := d.Token()
		return o, err
	}
	return nil, fmt.Errorf("unexpected %v", t)
}

func readNumber(s string) Value {
	if !strings.ContainsAny(s, ".eE") {
		v, err := strconv.ParseInt(s, 10, 64)
		if err == nil {
			return integer{v: v, client: true}
		}
		return integer{big: s, client: true}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		f = math.Inf(1)
		if s[0] == '-' {
			f = math.Inf(-1)
		}
	}
	return float{f, true}
}

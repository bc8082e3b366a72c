package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

func absolute(_ *run, v Value, _ arguments) (Value, error) {
	switch v := v.(type) {
	case integer:
		if v.v < 0 && v.v != math.MinInt64 {
			v.v = -v.v
		}
		v.big = strings.TrimPrefix(v.big, "-")
		return v, nil
	case float:
		return float{math.Abs(v.v), v.client}, nil
	}
	if n, ok := whole(v); ok {
		return integer{v: n, client: fromClient(v)}, nil
	}
	return nil, fmt.Errorf("bad operand type for abs(): '%s'", typeName(v))
}

func toInt(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("int", "default", "base")
	if err != nil {
		return nil, err
	}
	var missing Value = integer{}
	if p[0] != nil {
		missing = p[0]
	}
	base, err := natural(p[1], 10)
	if err != nil || base > 36 {
		return missing, err
	}
	switch v := v.(type) {
	case integer:
		return v, nil
	case float:
		if math.Abs(v.v) < 1<<63 {
			return integer{v: int64(v.v), client: v.client}, nil
		}
	case Text:
		s := strings.ReplaceAll(trimLeft(trimRight(v.s)), "_", "")
		if prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; prefix != "" && strings.HasPrefix(strings.ToLower(strings.TrimLeft(s, "+-")), prefix) {
			base = 0 // ParseInt then goes by the prefix
		}
		if n, err := strconv.ParseInt(s, base, 64); err == nil {
			return integer{v: n, client: v.fromClient()}, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<63 && base == 10 {
			return integer{v: int64(f), client: v.fromClient()}, nil
		}
	case boolean:
		n, _ := whole(v)
		return integer{v: n, client: v.client}, nil
	}
	return missing, nil
}

func toFloat(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("float", "default")
	if err != nil {
		return nil, err
	}
	if f, ok := asNumber(v); ok {
		return float{f, fromClient(v)}, nil
	}
	if t, ok := v.(Text); ok {
		if f, err := strconv.ParseFloat(trimLeft(trimRight(t.s)), 64); err == nil {
			return float{f, t.fromClient()}, nil
		}
	}
	if p[0] != nil {
		return p[0], nil
	}
	return float{}, nil
}

func rounded(r *run, v Value, a arguments) (Value, error) {
	p, err := a.named("round", "precision", "method")
	if err != nil {
		return nil, err
	}
	x, ok := asNumber(v)
	if !ok {
		return nil, fmt.Errorf("type %s doesn't define __round__ method", typeName(v))
	}
	digits, err := natural(p[0], 0)
	if err != nil || digits > 300 {
		return nil, errors.New("round takes a precision of 0 to 300")
	}
	by := math.Pow(10, float64(digits))
	how := "common"
	if t, ok := p[1].(Text); ok {
		how = t.s
	}
	client := fromClient(v)
	switch how {
	case "common":
		if _, ok := whole(v); ok {
			return v, nil
		}
		f, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64) // half to even, as Python
		return float{f, client}, err
	case "ceil":
		return float{math.Ceil(x*by) / by, client}, nil
	case "floor":
		return float{math.Floor(x*by) / by, client}, nil
	}
	return nil, errors.New("method must be common, ceil or floor")
}

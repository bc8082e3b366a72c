package gguf

import "fmt"

// reader walks over the file. at never passes len(b), so left cannot wrap.
type reader struct {
	b  []byte
	at uint64
}

func (r *reader) left() uint64 { return uint64(len(r.b)) - r.at }

// take returns the next n bytes without copying them.
func (r *reader) take(n uint64) ([]byte, error) {
	if n > r.left() {
		return nil, errShort
	}
	b := r.b[r.at : r.at+n]
	r.at += n
	return b, nil
}

func (r *reader) u32() (uint32, error) {
	b, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return le.Uint32(b), nil
}

func (r *reader) u64() (uint64, error) {
	b, err := r.take(8)
	if err != nil {
		return 0, err
	}
	return le.Uint64(b), nil
}

// text returns a length-prefixed string without copying it.
func (r *reader) text() ([]byte, error) {
	n, err := r.u64()
	if err != nil {
		return nil, err
	}
	if n > r.left() {
		return nil, fmt.Errorf("a string of %d bytes, the file has %d left; it%s", n, r.left(), damaged)
	}
	return r.take(n)
}

func (r *reader) kind() (kind, error) {
	n, err := r.u32()
	if err != nil {
		return 0, err
	}
	if n >= uint32(len(kindNames)) {
		return 0, fmt.Errorf("value type %d, allowed are 0 to %d", n, len(kindNames)-1)
	}
	return kind(n), nil
}

// value reads a typed value. Arrays are checked to their end, and only their place is kept.
func (r *reader) value() (value, error) {
	k, err := r.kind()
	if err != nil {
		return value{}, err
	}
	v := value{kind: k}
	switch k {
	case kindString:
		b, err := r.text()
		if err != nil {
			return value{}, err
		}
		v.str = string(b)
	case kindArray:
		v.item, v.count, v.at, err = r.array(1)
	default:
		v.bits, err = r.number(k)
	}
	return v, err
}

func (r *reader) number(k kind) (uint64, error) {
	b, err := r.take(uint64(kindBytes[k]))
	if err != nil {
		return 0, err
	}
	if k == kindBool && b[0] > 1 {
		return 0, fmt.Errorf("a bool of %d, allowed are 0 and 1", b[0])
	}
	return scalar(k, b), nil
}

// array walks over an array and returns the kind of its items, their number and the offset of
// the first.
func (r *reader) array(depth int) (item kind, count uint64, at int, err error) {
	if depth > arrayDepthMax {
		return 0, 0, 0, fmt.Errorf("arrays nested deeper than %d", arrayDepthMax)
	}
	if item, err = r.kind(); err != nil {
		return 0, 0, 0, err
	}
	if count, err = r.u64(); err != nil {
		return 0, 0, 0, err
	}
	least := uint64(kindBytes[item]) // bytes of the smallest item
	switch item {
	case kindString:
		least = 8
	case kindArray:
		least = 4 + 8
	}
	if count > r.left()/least {
		return 0, 0, 0, fmt.Errorf("an array of %d items of %s, the file has room for at most %d; it%s", count, kindNames[item], r.left()/least, damaged)
	}
	at = int(r.at)
	if item != kindString && item != kindArray && item != kindBool {
		_, err = r.take(count * least)
		return item, count, at, err
	}
	for i := uint64(0); i < count && err == nil; i++ {
		switch item {
		case kindString:
			_, err = r.text()
		case kindArray:
			_, _, _, err = r.array(depth + 1)
		default:
			_, err = r.number(item)
		}
		if err != nil {
			err = fmt.Errorf("item %d of %d: %w", i, count, err)
		}
	}
	return item, count, at, err
}

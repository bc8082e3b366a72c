package recorder

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Form writes and reads values of one type, field by field. It is made by reflection, so that a
// field that a core gets tomorrow is recorded without a line here, and one that could not be is
// noticed at once.
type Form[T any] struct{ c *codec }

// NewForm makes the form of a type made of booleans, whole numbers, words (numbers of 8 bits with
// a String), identities (numbers of 64 bits with a String), and structs, arrays and slices of
// those. It panics for any other: that is a mistake in the type.
func NewForm[T any]() Form[T] {
	return Form[T]{newCodec(reflect.TypeFor[T]())}
}

// Append writes v. Equal values make equal bytes.
func (f Form[T]) Append(b []byte, v *T) []byte { return f.c.write(b, reflect.ValueOf(v).Elem()) }

// Parse reads what Append wrote, and JSON that says the same.
func (f Form[T]) Parse(b []byte) (v T, err error) {
	in := &input{b: b, left: elementsMax}
	if err = f.read(in, &v); err == nil {
		err = in.end()
	}
	return v, err
}

func (f Form[T]) read(in *input, v *T) error { return f.c.read(in, reflect.ValueOf(v).Elem()) }

// codec is how the values of one type are written.
type codec struct {
	zero  func(v reflect.Value) bool
	write func(b []byte, v reflect.Value) []byte
	read  func(in *input, v reflect.Value) error
}

// named is a number with a text of its own.
var named = reflect.TypeFor[fmt.Stringer]()

var durations, runs = reflect.TypeFor[time.Duration](), reflect.TypeFor[[]int32]()

// made are the codecs by type: to find the words of one takes a while.
var made sync.Map

func newCodec(t reflect.Type) *codec {
	if c, ok := made.Load(t); ok {
		return c.(*codec)
	}
	c := &codec{zero: reflect.Value.IsZero}
	switch {
	case t == runs:
		c.zero, c.write, c.read = empty, writeRuns, readRuns
	case t.Kind() == reflect.Uint8 && t.Implements(named):
		words(c, t)
	case t.Kind() == reflect.Uint64 && t.Implements(named):
		c.write = func(b []byte, v reflect.Value) []byte { return fmt.Appendf(b, `"%016x"`, v.Uint()) }
		c.read = readIdentity
	case t.Kind() == reflect.Bool:
		c.write = func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
		c.read = readBool
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		c.write = func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
		c.read = readInt
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		c.write = func(b []byte, v reflect.Value) []byte { return strconv.AppendUint(b, v.Uint(), 10) }
		c.read = readUint
	case t.Kind() == reflect.Struct:
		fields(c, t)
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		list(c, t)
	default:
		panic("recorder: no form for " + t.String())
	}
	made.Store(t, c)
	return c
}

func empty(v reflect.Value) bool { return v.Len() == 0 }

// words gives a number of 8 bits the words of its String. A value without one of its own is
// written as a number.
func words(c *codec, t reflect.Type) {
	var texts [math.MaxUint8 + 1]string
	known := map[string]uint64{}
	for i := range texts {
		w := word(t, uint64(i))
		if _, twice := known[w]; w == "" || twice {
			w = strconv.Itoa(i)
		}
		texts[i], known[w] = strconv.Quote(w), uint64(i)
	}
	c.write = func(b []byte, v reflect.Value) []byte { return append(b, texts[v.Uint()]...) }
	c.read = func(in *input, v reflect.Value) error {
		s, err := in.text()
		if err != nil {
			return err
		}
		n, ok := known[s]
		if !ok {
			return in.errorf("%q is no %s that this build knows", s, t)
		}
		v.SetUint(n)
		return nil
	}
}

// word is the text of a value, "" for one that is not in the type's table.
func word(t reflect.Type, n uint64) (w string) {
	defer func() {
		if recover() != nil {
			w = ""
		}
	}()
	v := reflect.New(t).Elem()
	v.SetUint(n)
	return v.Interface().(fmt.Stringer).String()
}

// field is one field of a struct.
type field struct {
	*codec
	name  string // as it is written, with quotes and colon
	index int
	must  bool // written also when it is zero
}

func fields(c *codec, t reflect.Type) {
	all := make([]field, t.NumField())
	byName := map[string]*field{}
	for i := range all {
		f := t.Field(i)
		if !f.IsExported() {
			panic(fmt.Sprintf("recorder: no form for %s.%s, which only its package sees", t, f.Name))
		}
		name := snake(f.Name)
		if f.Type == durations {
			name += "_ns"
		}
		all[i] = field{newCodec(f.Type), strconv.Quote(name) + ":", i, f.Name == "Kind"}
		byName[name] = &all[i]
	}
	c.zero = func(v reflect.Value) bool {
		for i := range all {
			if !all[i].zero(v.Field(i)) {
				return false
			}
		}
		return true
	}
	c.write = func(b []byte, v reflect.Value) []byte {
		b = append(b, '{')
		first := true
		for i := range all {
			f := &all[i]
			x := v.Field(f.index)
			if !f.must && f.zero(x) {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = f.write(append(b, f.name...), x)
		}
		return append(b, '}')
	}
	c.read = func(in *input, v reflect.Value) error {
		return in.object(func(key string) error {
			f := byName[key]
			if f == nil {
				return in.errorf("%s has no field %q in this build", t, key)
			}
			return f.read(in, v.Field(f.index))
		})
	}
}

// snake is a Go name as JSON has it: FirstBlock is first_block, OK is ok.
func snake(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// list writes bytes as hexadecimal digits, anything else as an array.
func list(c *codec, t reflect.Type) {
	if t.Kind() == reflect.Slice {
		c.zero = empty
	}
	if t.Elem().Kind() == reflect.Uint8 && !t.Elem().Implements(named) {
		c.write = func(b []byte, v reflect.Value) []byte {
			b = append(b, '"')
			for i := range v.Len() {
				b = hex.AppendEncode(b, []byte{byte(v.Index(i).Uint())})
			}
			return append(b, '"')
		}
		c.read = func(in *input, v reflect.Value) error { return readBytes(in, v) }
		return
	}
	e := newCodec(t.Elem())
	c.write = func(b []byte, v reflect.Value) []byte {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.write(b, v.Index(i))
		}
		return append(b, ']')
	}
	c.read = func(in *input, v reflect.Value) error {
		n := 0
		err := in.array(func() error {
			if v.Kind() == reflect.Slice {
				v.Grow(1)
				v.SetLen(n + 1)
				v.Index(n).SetZero()
			} else if n == v.Len() {
				return in.errorf("more than %d of %s", v.Len(), t)
			}
			n++
			return e.read(in, v.Index(n-1))
		})
		if err == nil && v.Kind() == reflect.Array && n != v.Len() {
			err = in.errorf("%d of %s, want %d", n, t, v.Len())
		}
		return err
	}
}

func readBytes(in *input, v reflect.Value) error {
	s, err := in.text()
	if err != nil {
		return err
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return in.errorf("%q are not hexadecimal digits", s)
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(b), len(b)))
	} else if len(b) != v.Len() {
		return in.errorf("%d bytes, want %d", len(b), v.Len())
	}
	for i := range b {
		v.Index(i).SetUint(uint64(b[i]))
	}
	return nil
}

func readIdentity(in *input, v reflect.Value) error {
	s, err := in.text()
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return in.errorf("%q are not 16 hexadecimal digits", s)
	}
	v.SetUint(n)
	return nil
}

func readBool(in *input, v reflect.Value) error {
	b, err := in.boolean()
	v.SetBool(b)
	return err
}

func readInt(in *input, v reflect.Value) error {
	n, err := in.number()
	if err == nil && (v.OverflowInt(n) || v.Kind() == reflect.Int && n != int64(int32(n))) {
		return in.errorf("%d is more than we count to", n)
	}
	v.SetInt(n)
	return err
}

func readUint(in *input, v reflect.Value) error {
	n, err := in.count()
	if err == nil && v.OverflowUint(n) {
		return in.errorf("%d is more than we count to", n)
	}
	v.SetUint(n)
	return err
}

// writeRuns writes numbers that mostly follow each other, as blocks do.
func writeRuns(b []byte, v reflect.Value) []byte {
	all := v.Interface().([]int32)
	b = append(b, '"')
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last] != math.MaxInt32 && all[last+1] == all[last]+1 {
			last++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(all[i]), 10)
		if last > i {
			b = strconv.AppendInt(append(b, ".."...), int64(all[last]), 10)
		}
		i = last + 1
	}
	return append(b, '"')
}

func readRuns(in *input, v reflect.Value) error {
	s, err := in.text()
	if err != nil || s == "" {
		return err
	}
	all := []int32{}
	for run := range strings.SplitSeq(s, ",") {
		from, to, two := strings.Cut(run, "..")
		a, err := strconv.ParseInt(from, 10, 32)
		b := a
		if err == nil && two {
			b, err = strconv.ParseInt(to, 10, 32)
		}
		if err != nil || b < a {
			return in.errorf("%q is no run of numbers", run)
		}
		if in.left -= int(b - a + 1); in.left < 0 {
			return in.errorf("lists of more than %d numbers", elementsMax)
		}
		for n := a; n <= b; n++ {
			all = append(all, int32(n))
		}
	}
	v.Set(reflect.ValueOf(all))
	return nil
}

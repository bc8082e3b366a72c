package recorder

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"baton/core/decode"
	"baton/core/prefill"
	"baton/core/relay"
	"baton/core/room"
)

// kinds counts the kinds of a type: those that its String knows.
func kinds(t reflect.Type) (n int) {
	for ; n < 256 && word(t, uint64(n)) != ""; n++ {
	}
	return n
}

// fill gives every field of v a value that is not zero, the same for the same chance. A number
// with words gets one of them.
func fill(t *testing.T, v reflect.Value, r *rand.Rand) {
	switch k := v.Kind(); {
	case k == reflect.Bool:
		v.SetBool(true)
	case k == reflect.Uint8 && v.Type().Implements(named):
		v.SetUint(1 + r.Uint64N(uint64(max(kinds(v.Type())-1, 1))))
	case v.Type() == durations:
		v.SetInt(1 + r.Int64())
	case k == reflect.Int, k == reflect.Int32:
		v.SetInt(1 + int64(r.Int32N(1<<31-1)))
	case k == reflect.Int64:
		v.SetInt(-1 - r.Int64())
	case k == reflect.Uint64, k == reflect.Uint32, k == reflect.Uint16, k == reflect.Uint8:
		v.SetUint(r.Uint64()>>(64-v.Type().Bits()) | 1)
	case k == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), r)
		}
	case k == reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), r)
		}
	case k == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(5), 5))
		for i := range v.Len() {
			fill(t, v.Index(i), r)
		}
	default:
		t.Fatalf("%s: how is it filled?", v.Type())
	}
}

// faithful wants that T is read as it was written: full, with each field alone, and empty.
func faithful[T any](t *testing.T) {
	f := NewForm[T]()
	same := func(v *T) {
		t.Helper()
		b := f.Append(nil, v)
		back, err := f.Parse(b)
		if err != nil || !reflect.DeepEqual(*v, back) {
			t.Errorf("%T: wrote %+v\nas %s\nread %+v: %v", *v, *v, b, back, err)
		}
	}
	r := rand.New(rand.NewPCG(4, 10))
	for range 100 {
		var v T
		fill(t, reflect.ValueOf(&v).Elem(), r)
		same(&v)
		full := reflect.ValueOf(v)
		for i := range full.NumField() {
			var one T
			reflect.ValueOf(&one).Elem().Field(i).Set(full.Field(i))
			same(&one)
			if b := f.Append(nil, &one); !strings.Contains(string(b), `"`+snake(full.Type().Field(i).Name)) {
				t.Errorf("%s of %T is not written: %s", full.Type().Field(i).Name, one, b)
			}
		}
	}
	var none T
	same(&none)
}

// TestWhatIsReadIsWhatWasWritten holds V2 for all that cores take and give, whatever fields and
// kinds they have by now.
func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	t.Run("prefill event", faithful[prefill.Event])
	t.Run("prefill effect", faithful[prefill.Effect])
	t.Run("prefill config", faithful[prefill.Config])
	t.Run("decode event", faithful[decode.Event])
	t.Run("decode effect", faithful[decode.Effect])
	t.Run("decode config", faithful[decode.Config])
	t.Run("relay event", faithful[relay.Event])
	t.Run("relay effect", faithful[relay.Effect])
	t.Run("relay limits", faithful[relay.Limits])
}

// table is how many values a type has: String panics behind the last.
func table(t reflect.Type) (n int) {
	defer func() { recover() }()
	for v := reflect.New(t).Elem(); n < 256; n++ {
		v.SetUint(uint64(n))
		_ = v.Interface().(fmt.Stringer).String()
	}
	return n
}

// TestEveryKindHasAWord: a trace is read by people, who do not count constants. A kind that was
// added to a list and not to its words has an empty one.
func TestEveryKindHasAWord(t *testing.T) {
	for _, k := range []any{prefill.NoEvent, prefill.NoEffect, decode.NoEvent, decode.NoEffect, relay.Arrive, relay.Place,
		room.Open, room.NoCause, room.NoTimer, relay.Prefill, relay.QueueTimer} {
		typ := reflect.TypeOf(k)
		n := table(typ)
		if n < 2 || n == 256 {
			t.Errorf("%s has %d values: is the end of its list not known any more?", typ, n)
		}
		seen := map[string]bool{}
		for i := range n {
			w := word(typ, uint64(i))
			if typ == reflect.TypeOf(room.NoCause) && i == 0 { // it is absent wherever it would stand
				continue
			}
			if w == "" || seen[w] || strings.ToLower(w) != w || strings.ContainsAny(w, " \"") {
				t.Errorf("%s %d is called %q, which is no word of its own", typ, i, w)
			}
			seen[w] = true
		}
	}
}

// TestNumbersBeyondTheWordsAreReadToo: a value that the build has no word for is written as its number.
func TestNumbersBeyondTheWordsAreReadToo(t *testing.T) {
	f := NewForm[prefill.Event]()
	ev := prefill.Event{Kind: prefill.Drain + 40, Room: 1<<64 - 1, Cause: 200}
	b := f.Append(nil, &ev)
	if back, err := f.Parse(b); err != nil || !reflect.DeepEqual(ev, back) {
		t.Errorf("%s is read as %+v: %v", b, back, err)
	}
}

func TestRunsAreShortAndExact(t *testing.T) {
	type table struct{ Blocks []int32 }
	f := NewForm[table]()
	for _, c := range []struct {
		blocks []int32
		want   string
	}{
		{[]int32{0}, "0"}, {[]int32{0, 1, 2, 3, 9, 8, 7, 8}, "0..3,9,8,7..8"}, {[]int32{-1, 0, 5}, "-1..0,5"},
		{[]int32{1<<31 - 2, 1<<31 - 1, -1 << 31}, "2147483646..2147483647,-2147483648"},
	} {
		b := f.Append(nil, &table{c.blocks})
		if want := `{"blocks":"` + c.want + `"}`; string(b) != want {
			t.Errorf("%v: %s, want %s", c.blocks, b, want)
		}
		if back, err := f.Parse(b); err != nil || !reflect.DeepEqual(back.Blocks, c.blocks) {
			t.Errorf("%s: %v, %v", b, back.Blocks, err)
		}
	}
}

func TestNonsenseIsRefusedByNameAndPlace(t *testing.T) {
	f := NewForm[prefill.Effect]()
	for in, want := range map[string]string{
		``:                                       "at byte 1: it ends where '{' should be",
		`{"kind":"write"`:                        "it ends where '}' should be",
		`{"kind":"write"} x`:                     "'x' behind the end",
		`{"kind":"flight"}`:                      `"flight" is no prefill.EffectKind that this build knows`,
		`{"kind":"write","wings":2}`:             `prefill.Effect has no field "wings" in this build`,
		`{"kind":"write","room":"12"}`:           `"12" are not 16 hexadecimal digits`,
		`{"kind":"write","chunk":3000000000}`:    "3000000000 is more than we count to",
		`{"kind":"write","chunk":1.5}`:           `'.' where '}' should be`,
		`{"kind":"write","chunk":-}`:             `"-" where a whole number should be`,
		`{"kind":"write","last":1}`:              "neither true nor false",
		`{"kind":"write","blocks":"3..1"}`:       `"3..1" is no run of numbers`,
		`{"kind":"write","blocks":"0..5000000"}`: "lists of more than 4194304 numbers",
		`{"kind":"wri`:                           "it ends inside a string",
		`{"kind":"wri\`:                          "it ends inside a string",
		"{\"kind\":\"wri\n\"}":                   "byte 0xa inside a string",
		`{"kind":"step","items":[{]}`:            "']' where '\"' should be",
	} {
		if _, err := f.Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := f.Parse([]byte(` { "kind" : "write" , "last" : true } `)); err != nil {
		t.Errorf("spaces: %v", err)
	}
}

func TestATypeWithoutAFormIsNoticedAtOnce(t *testing.T) {
	wants := func(what string, f func()) {
		defer func() {
			if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), what) {
				t.Errorf("%v, want a panic about %s", p, what)
			}
		}()
		f()
	}
	wants("map", func() { NewForm[struct{ M map[int]int }]() })
	wants("only its package sees", func() { NewForm[struct{ hidden int }]() })
	wants("float64", func() { NewForm[struct{ F float64 }]() })
	wants("*int", func() { NewForm[struct{ P *int }]() })
	NewForm[struct {
		D time.Duration
		K [16]byte
		L [][16]byte
	}]()
}

package replay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"baton/core/relay"
	"baton/core/room"
)

// mentions are the rooms and requests that a value names, wherever in it.
type mentions struct {
	rooms []room.ID
	reqs  []uint64
}

func (m *mentions) of(x any) { m.walk(reflect.ValueOf(x).Elem(), "") }

var identity = reflect.TypeFor[room.ID]()

func (m *mentions) walk(v reflect.Value, name string) {
	switch {
	case v.Type() == identity:
		if id := room.ID(v.Uint()); id != 0 {
			m.rooms = append(m.rooms, id)
		}
	case name == "Req":
		if v.Uint() != 0 { // the gateway counts from 1
			m.reqs = append(m.reqs, v.Uint())
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			m.walk(v.Field(i), v.Type().Field(i).Name)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			m.walk(v.Index(i), "")
		}
	}
}

// keysOf are the keys of the core that a value names, in order.
func keysOf(x any) (keys []uint64) {
	var m mentions
	m.of(x)
	switch x.(type) {
	case *relay.Event, *relay.Effect:
		return m.reqs
	}
	for _, id := range m.rooms {
		keys = append(keys, uint64(id))
	}
	return keys
}

func unique(keys []uint64) (all []uint64) {
	for _, k := range keys {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// about writes what a value says of one room or request: its kind, then what is not zero. Of a
// list it takes the parts that name the key.
func about(x any, key uint64) string {
	t := teller{key: key, kind: kindOf(x)}
	switch x.(type) {
	case *relay.Event:
		t.relayed = true
	case *relay.Effect:
		t.relayed, t.follows = true, t.kind != "place"
	}
	words := []string{t.kind}
	t.tell(&words, reflect.ValueOf(x).Elem())
	return strings.Join(words, " ")
}

// zeros says that a field means something in this kind also when it is zero: the prefill leg, and
// the first worker of a gateway.
func (t *teller) zeros(name string) bool {
	switch name {
	case "leg":
		return t.kind == "open" || t.kind == "close" || strings.HasPrefix(t.kind, "leg_")
	case "worker":
		return t.kind == "open" || t.kind == "release" || t.kind == "blame" || t.kind == "roster"
	case "prefill", "decode":
		return t.relayed && t.kind == "pair"
	}
	return false
}

func kindOf(x any) string {
	return fmt.Sprint(reflect.ValueOf(x).Elem().FieldByName("Kind").Interface())
}

type teller struct {
	key     uint64
	relayed bool
	follows bool // an effect of a gateway, which is about the attempt that the event named
	kind    string
}

func (t *teller) tell(words *[]string, v reflect.Value) {
	say := func(format string, a ...any) { *words = append(*words, fmt.Sprintf(format, a...)) }
	for i := range v.NumField() {
		f, name := v.Field(i), strings.ToLower(v.Type().Field(i).Name)
		if f.IsZero() && !t.zeros(name) || name == "kind" || name == "req" || t.follows && (name == "attempt" || name == "room") {
			continue
		}
		switch x := f.Interface().(type) {
		case room.ID:
			if t.relayed {
				say("room=%s", x)
			}
		case room.Lease:
			say("lease=%d", x.Seq)
		case room.Boot:
			say("%s=%.8s", name, x)
		case room.Timer:
			say("%s", x.Kind)
		case relay.Timer:
			say("%s", x.Name)
		case relay.Budgets:
			say("total=%s", seconds(x.Total))
		case room.Outcome:
			say("%s", x)
		case time.Duration:
			say("%s=%s", name, seconds(x))
		case bool:
			say("%s", name)
		case []int32:
			say("%s=%d", name, len(x))
		case fmt.Stringer:
			say("%s", x)
		default:
			t.rest(words, f, name)
		}
	}
}

func (t *teller) rest(words *[]string, f reflect.Value, name string) {
	switch {
	case f.Kind() == reflect.Struct:
		t.tell(words, f)
	case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
		for i := range f.Len() {
			var m mentions
			m.walk(f.Index(i), "")
			if slices.Contains(m.rooms, room.ID(t.key)) {
				t.tell(words, f.Index(i))
			}
		}
	case f.Kind() == reflect.Slice || f.Kind() == reflect.Array:
		*words = append(*words, fmt.Sprintf("%s=%d", name, f.Len()))
	default:
		*words = append(*words, fmt.Sprintf("%s=%v", name, f.Interface()))
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

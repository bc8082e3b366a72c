package recorder

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Version is the format of the file. Fields and kinds of cores may come and go without a new one.
const Version = 1

// Header is the first line of a file: all that a fresh core needs, and whose it was.
type Header struct {
	Version int             `json:"baton_trace"`
	Core    string          `json:"core"` // CorePrefill, CoreDecode or CoreRelay
	Role    string          `json:"role"` // prefill, decode, unified or gateway
	Name    string          `json:"name"` // of the worker, as logs have it
	Boot    string          `json:"boot"` // this life of the process, 16 hexadecimal digits
	Build   string          `json:"build"`
	Started time.Time       `json:"started"` // when the core's clock was 0
	Config  json.RawMessage `json:"config"`  // of the core, by its form
}

// The cores that are recorded.
const (
	CorePrefill = "prefill"
	CoreDecode  = "decode"
	CoreRelay   = "relay"
)

// ParseHeader reads the first line of a file.
func ParseHeader(b []byte) (Header, error) {
	var h Header
	if err := json.Unmarshal(b, &h); err != nil || h.Version == 0 {
		return h, fmt.Errorf("recorder: the first line is not the head of a trace; one is written by --record")
	}
	if h.Version != Version {
		return h, fmt.Errorf("recorder: a trace of format %d, this build reads %d: replay it with the build that wrote it, %s", h.Version, Version, Printable(h.Build))
	}
	return h, nil
}

// Printable is a text from a file as it may go to a terminal: in quotes, with what cannot be
// printed written out, if there is any such thing in it.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// End says why a file ends where it does.
type End string

const (
	EndClosed  End = "closed"  // the loop ended
	EndFull    End = "full"    // FileMax or LineMax; what came after is not here
	EndOverrun End = "overrun" // events came faster than they could be written; what came after is not here
	EndPanic   End = "panic"   // the step of the last event did not return
	// EndUnwritten: the file could not be written to any more (a full disk); what came after is not here.
	EndUnwritten End = "unwritten"
	EndUnknown   End = "" // the process was killed, or writes it still, or could not write so much as an end
)

// ends are those that a line can say.
var ends = []End{EndClosed, EndFull, EndOverrun, EndPanic, EndUnwritten}

// Line is one line behind the header: a step, or the end.
type Line[E, X any] struct {
	Now     time.Duration
	RID     string
	Event   E
	Effects []X
	Wrote   []byte // Effects as they stand in the file
	End     End    // with EndPanic, Event is the step's; with any other there is none
	Events  int    // End: how many steps are in the file
}

// Lines writes and reads lines of one core.
type Lines[E, X any] struct {
	event  Form[E]
	effect Form[X]
}

// NewLines makes Lines, or panics as NewForm does.
func NewLines[E, X any]() Lines[E, X] { return Lines[E, X]{NewForm[E](), NewForm[X]()} }

// appendStep writes a step's line.
func (l Lines[E, X]) appendStep(b []byte, now time.Duration, rid string, ev *E, effects []X) []byte {
	b = l.appendEvent(b, now, rid, ev)
	if len(effects) > 0 {
		b = l.AppendEffects(append(b, `,"effects":`...), effects)
	}
	return append(b, '}', '\n')
}

func (l Lines[E, X]) appendEvent(b []byte, now time.Duration, rid string, ev *E) []byte {
	b = strconv.AppendInt(append(b, `{"now_ns":`...), int64(now), 10)
	if rid != "" {
		quoted, _ := json.Marshal(rid) // a string always can be
		b = append(append(b, `,"rid":`...), quoted...)
	}
	return l.event.Append(append(b, `,"event":`...), ev)
}

// AppendEvent writes an event alone.
func (l Lines[E, X]) AppendEvent(b []byte, ev *E) []byte { return l.event.Append(b, ev) }

// AppendEffect writes an effect alone.
func (l Lines[E, X]) AppendEffect(b []byte, x *X) []byte { return l.effect.Append(b, x) }

// AppendEffects writes effects as a step's line has them.
func (l Lines[E, X]) AppendEffects(b []byte, effects []X) []byte {
	b = append(b, '[')
	for i := range effects {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.effect.Append(b, &effects[i])
	}
	return append(b, ']')
}

func appendEnd(b []byte, e End, events int) []byte {
	return fmt.Appendf(b, "{\"end\":%q,\"events\":%d}\n", e, events)
}

// Parse reads a line.
func (l Lines[E, X]) Parse(b []byte) (Line[E, X], error) {
	var x Line[E, X]
	in := &input{b: b, left: elementsMax}
	stepped := false
	err := in.object(func(key string) (err error) {
		switch key {
		case "now_ns":
			var n int64
			n, err = in.number()
			x.Now = time.Duration(n)
		case "rid":
			x.RID, err = in.text()
		case "event":
			stepped = true
			err = l.event.read(in, &x.Event)
		case "effects":
			in.next()
			from := in.at
			err = in.array(func() error {
				var e X
				err := l.effect.read(in, &e)
				x.Effects = append(x.Effects, e)
				return err
			})
			x.Wrote = b[from:in.at]
		case "end":
			var s string
			s, err = in.text()
			if x.End = End(s); err == nil && !slices.Contains(ends, x.End) {
				err = in.errorf("an end %q, which is none of %q", s, ends)
			}
		case "events":
			var n int64
			n, err = in.number()
			x.Events = int(n)
		default:
			err = in.errorf("a step has no %q in this build", key)
		}
		return err
	})
	if err == nil {
		err = in.end()
	}
	if err == nil && stepped == (x.End != EndUnknown && x.End != EndPanic) {
		err = fmt.Errorf("neither a step nor an end")
	}
	return x, err
}

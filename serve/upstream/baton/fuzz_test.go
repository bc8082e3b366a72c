package baton

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"unicode/utf8"

	"baton/core/room"
	"baton/serve/leg"
)

// FuzzAnswer is a worker that answers a leg with arbitrary bytes, as a stream and as a refusal:
// the leg always ends with an outcome, succeeds only by the worker's own word, hands out
// nothing before it was accepted, and carries a message that can be printed.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"{\"accepted\":true}\n{\"text\":\"x\",\"ids\":[1]}\n{\"end\":{\"outcome\":\"success\",\"finish\":\"stop\"}}\n",
		"{\"accepted\":true}\n{\"end\":{\"outcome\":\"failed\",\"cause\":\"overload\",\"message\":\"m\"}}\n",
		"{\"end\":{\"outcome\":\"success\"}}\n", "{\"accepted\":true}\n{\"accepted\":true}\n", "{\"accepted\":true}\n{\"end\":{}}\n",
		`{"outcome":"failed","cause":"deadline"}`, `{"outcome":"success"}`, `{"message":"leaves"}`, "<html>502 Bad Gateway</html>",
	} {
		f.Add([]byte(s), uint16(503))
	}
	f.Fuzz(func(t *testing.T, b []byte, status uint16) {
		lines, text := 0, 0
		r := read(leg.NewReader(bytes.NewReader(b)), leg.ChoicesMax, func(l leg.Line) {
			if lines++; l.Accepted != (lines == 1) || l.End != nil {
				t.Fatalf("line %d is %+v", lines, l)
			}
			text += len(l.Text)
		})
		judge(t, r)
		if text > len(b) || r.Said && lines == 0 {
			t.Fatalf("%d lines, %d bytes of text of %d bytes", lines, text, len(b))
		}
		r = refused(&http.Response{StatusCode: int(status), Body: io.NopCloser(bytes.NewReader(b))})
		if judge(t, r); r.End.Outcome == room.Success {
			t.Fatalf("a refusal succeeds: %+v", r)
		}
	})
}

func judge(t *testing.T, r Result) {
	if !r.End.Result().Ended() || !r.Said && r.End.Outcome == room.Success || len(r.End.Message) > leg.MessageBytesMax || !utf8.ValidString(r.End.Message) {
		t.Fatalf("%+v", r)
	}
}

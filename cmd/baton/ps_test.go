package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/serve/gateway"
	"baton/serve/observe"
)

const inspection = `{"requests":[{"rid":"r2","room":"","phase":"placing","age_ms":10,"prefill":"","decode":"","tokens":0,"waits_for":"a decode worker"},
{"rid":"r1","room":"000000000000000a","phase":"streaming","age_ms":61000,"prefill":"prefill-0","decode":"decode-0","tokens":12}],
"rooms":[{"room":"000000000000000a","rid":"r1","role":"decode","queue":"running","phase":"generating","poll":"Success","age_ms":1500,"waits_for":"decode: engine","worker":"decode-0"}],
"workers":[{"worker":"prefill-0","role":"prefill","boot":"b","pid":7,"queues":{"waiting":{"len":2,"oldest_ms":61000},"inflight":{"len":0,"oldest_ms":0}},"blocks":{"total":9,"free":5,"cached":3,"held":1,"quarantined":0,"pinned":2},"up":true,"legs":1},
{"worker":"decode-0","role":"decode","boot":"c","pid":0,"up":false,"legs":1,"error":"no route"}]}`

func TestPsShowsRequestsRoomsAndWorkers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/requests" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		io.WriteString(w, inspection)
	}))
	defer s.Close()
	var table, raw bytes.Buffer
	if err := (psFlags{url: s.URL + "/"}).run(t.Context(), &table); err != nil {
		t.Fatal(err)
	}
	want := `2 requests: 1 placing, 1 streaming
1 room: 1 decode generating

WORKER     ROLE     UP   PID  LEGS  QUEUES                        BLOCKS (16 tokens each) free+cached+held+quarantined/total
prefill-0  prefill  yes  7    1     inflight 0, waiting 2 (1m1s)  5+3+1+0/9 (2 pinned)
decode-0   decode   no   -    1     no answer                     -

REQUEST  ROOM              PHASE      AGE   PREFILL    DECODE    TOKENS  WAITS FOR
r1       000000000000000a  streaming  1m1s  prefill-0  decode-0  12      -
r2       -                 placing    0.0s  -          -         0       a decode worker

ROOM              REQUEST  WORKER    QUEUE    PHASE       POLL     AGE   WAITS FOR
000000000000000a  r1       decode-0  running  generating  Success  1.5s  decode: engine
`
	if table.String() != want {
		t.Errorf("got\n%s\nwant\n%s", table.String(), want)
	}
	if err := (psFlags{url: s.URL, json: true}).run(t.Context(), &raw); err != nil || raw.String() != inspection {
		t.Errorf("%v: %s", err, raw.String())
	}
}

// What hangs is old: the oldest rows are shown, and how many are not.
func TestPsCutsLongTablesBehindTheOldest(t *testing.T) {
	var in gateway.Inspection
	for i := range 100 {
		phase := "streaming"
		if i >= 70 {
			phase = "queued"
		}
		in.Requests = append(in.Requests, observe.Request{RID: fmt.Sprintf("r%02d", i), Phase: phase, AgeMS: int64(1000 * i)})
		in.Rooms = append(in.Rooms, observe.Room{Room: fmt.Sprintf("o%02d", i), Role: "decode", Phase: "ready", AgeMS: int64(1000 * i)})
	}
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for all, want := range map[bool]int{false: rowsMost, true: 100} {
		var out bytes.Buffer
		if err := (psFlags{all: all}).show(&out, body); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if n := strings.Count(got, "\nr"); n != want {
			t.Errorf("all %v: %d requests are shown, want %d", all, n, want)
		}
		if n := strings.Count(got, "\no"); n != want {
			t.Errorf("all %v: %d rooms are shown, want %d", all, n, want)
		}
		if !strings.HasPrefix(got, "100 requests: 70 streaming, 30 queued\n100 rooms: 100 decode ready\n\nno workers\n") {
			t.Errorf("all %v begins\n%s", all, got[:200])
		}
		if n := strings.Count(got, "… and 60 more (--all)\n"); n != map[bool]int{false: 2}[all] {
			t.Errorf("all %v: says %d times that there are more", all, n)
		}
		if !strings.Contains(got, "\nr99 ") || !all && strings.Contains(got, "\nr00 ") {
			t.Errorf("all %v: not the oldest are shown", all)
		}
	}
}

func TestPsSaysThatNothingIsThere(t *testing.T) {
	var out bytes.Buffer
	if err := (psFlags{}).show(&out, []byte(`{"requests":[],"rooms":[],"workers":[{"worker":"w","role":"unified","pid":1,"up":true}]}`)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "no requests\nno rooms\n\nWORKER") || strings.Contains(got, "REQUEST") || strings.Contains(got, "ROOM") {
		t.Errorf("shows\n%s", got)
	}
}

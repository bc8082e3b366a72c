package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"baton/core/relay"
	"baton/core/room"
	"baton/engine/sample"
	"baton/serve/gateway"
)

// Given a hundred requests at once without an id, with an empty one, with one that says None or
// null, and with one that all share, when they run, then each has a room of its own and an answer.
// Ray Serve: PR #63741, PR #64067.
func TestF64RoomsComeFromChanceAlone(t *testing.T) {
	r := newFront(t, 2, nil)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			var id []string
			switch i % 5 {
			case 1:
				id = []string{"X-Request-Id", ""}
			case 2:
				id = []string{"X-Request-Id", "None"}
			case 3:
				id = []string{"X-Request-Id", "null"}
			case 4:
				id = []string{"X-Request-Id", "same"}
			}
			if a := r.chat("", id...); a.text() != "hello" {
				t.Errorf("%v: %d %s", id, a.status, a.body)
			}
		})
	}
	all.Wait()
	given := map[room.ID]bool{}
	for _, d := range r.decodes {
		for _, l := range d.legs() {
			given[l.Room] = true
		}
	}
	if len(given) != 100 {
		t.Errorf("%d rooms for 100 requests", len(given))
	}
	r.quiet()
}

// Given a request that its client leaves, when another one under the same id comes before that,
// behind it, and between two live ones, then only the first ends, and the other has its answer.
// vLLM: PR #24382, PR #27987, issue #10583; SGLang: PR #19035.
func TestF70ALateAbortHitsItsOwnRequest(t *testing.T) {
	for _, leaveFirst := range []bool{false, true} {
		r := newFront(t, 1, nil)
		r.decodes[0].play(silent)
		ctx, leave := context.WithCancel(context.Background())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := r.send(ctx, "/v1/chat/completions", hello+"}", "X-Request-Id", "X"); err == nil {
				resp.Body.Close()
			}
		}()
		r.decodes[0].await(func() bool { return r.decodes[0].open == 1 })
		goOn := make(chan struct{})
		r.decodes[0].play(func(l *fakeLeg) { l.accept(); <-goOn; l.piece("hello"); l.done(5) })
		if leaveFirst {
			leave()
		}
		second := make(chan answer, 1)
		go func() { second <- r.chat("", "X-Request-Id", "X") }()
		r.decodes[0].await(func() bool { return len(r.decodes[0].seen) == 2 })
		leave()
		<-gone
		r.decodes[0].await(func() bool { return r.decodes[0].open == 1 })
		close(goOn)
		if a := <-second; a.text() != "hello" {
			t.Errorf("left first %v: the second gets %d %s", leaveFirst, a.status, a.body)
		}
		r.quiet()
	}
}

// Given client ids that are long, look like numbers of parts, like addresses or like each other,
// when requests run under them, then both legs of each have one room, made once by the gateway,
// and no two have the same.
// vLLM: PR #34747, issue #34277, PR #38816; vllm-ascend: PR #6051, PR #6325.
func TestF71TheTransfersKeyIsMadeOnce(t *testing.T) {
	r := newFront(t, 1, nil)
	ids := []string{strings.Repeat("x", 128), "a-0", "a-0-0", "a:0", "a#0", "10.0.0.1:8000", "[::1]:80", "a", "a", "0000000000000001"}
	for _, id := range ids {
		if a := r.chat("", "X-Request-Id", id); a.text() != "hello" || a.header.Get("X-Request-Id") != id {
			t.Errorf("%q: %d %s", id, a.status, a.body)
		}
	}
	r.quiet()
	p, d := r.prefills[0].legs(), r.decodes[0].legs()
	given := map[room.ID]string{}
	for _, l := range p {
		if _, again := given[l.Room]; again {
			t.Errorf("room %v twice", l.Room)
		}
		given[l.Room] = l.RID
	}
	for _, l := range d {
		if given[l.Room] != l.RID || l.Room == 1 {
			t.Errorf("decode has %q under the room of %q", l.RID, given[l.Room])
		}
	}
	if len(given) != len(ids) || len(d) != len(ids) {
		t.Errorf("%d rooms, %d legs for %d requests", len(given), len(d), len(ids))
	}
}

// Given live requests whose ids are prefixes of each other, when each client leaves in turn, then
// exactly that one ends.
// AIBrix: PR #2746; SGLang: PR #30912.
func TestF73NobodyIsAbortedByPrefix(t *testing.T) {
	r := newFront(t, 1, nil)
	r.decodes[0].play(silent)
	ids := []string{"a", "aa", "a-1", "a-10"}
	leave := map[string]context.CancelFunc{}
	var all sync.WaitGroup
	for _, id := range ids {
		ctx, cancel := context.WithCancel(context.Background())
		leave[id] = cancel
		all.Go(func() {
			if resp, err := r.send(ctx, "/v1/chat/completions", hello+"}", "X-Request-Id", id); err == nil {
				resp.Body.Close()
			}
		})
	}
	f := r.decodes[0]
	f.await(func() bool { return f.open == 4 })
	for n, id := range ids {
		leave[id]()
		f.await(func() bool { return f.open == 3-n })
		until(t, "the gateway has closed it", func() bool { return r.health().Running == 3-n })
		live := r.get("/debug/requests")
		for k, other := range ids {
			if here := strings.Contains(live, `"rid":"`+other+`"`); here != (k > n) {
				t.Errorf("behind the end of %q: %q is live %v", id, other, here)
			}
		}
	}
	all.Wait()
	r.quiet()
}

// Given a client that sends every field which passes between a gateway and its workers, when it
// is served, then none of it reached a worker, and the attempt is counted.
// SGLang: issue #36855.
func TestF74InternalFieldsOfAClientAreStripped(t *testing.T) {
	r := newFront(t, 1, nil)
	for _, v := range []string{`"2.2.2.2"`, `0`, `-1`, `9223372036854775807`, `null`, `{"x":1}`, `[]`} {
		more := ""
		for _, name := range []string{"bootstrap_host", "bootstrap_port", "bootstrap_room", "kv_transfer_params", "rid", "room", "link", "left_ms", "tokens", "params", "attempt", "data_parallel_rank"} {
			more += `,"` + name + `":` + v
		}
		if a := r.chat(more); a.text() != "hello" {
			t.Errorf("%s: %d %s", v, a.status, a.body)
		}
	}
	for _, l := range r.decodes[0].legs() {
		if l.Link != "127.0.0.1:9" || len(l.RID) != 24 || len(l.Tokens) != len("hi there") || l.Room < 1000 {
			t.Errorf("a client's field came through: %+v", l)
		}
	}
	if m := r.get("/metrics"); !strings.Contains(m, "baton_gateway_stripped_total 7\n") {
		t.Error("stripped requests are not counted")
	}
	r.quiet()
}

// Given clients that keep their connections, when the gateway is told to stop, then what runs
// ends, and the next request on an old connection gets a 503 that closes it; none is accepted
// and lost.
// Dynamo: PR #3481.
func TestF97AStoppingGatewayClosesKeptConnections(t *testing.T) {
	r := newFront(t, 1, nil)
	if a := r.chat(""); a.header.Get("Connection") == "close" { // the connection is kept from here on
		t.Error("a serving gateway closes connections")
	}
	goOn := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); <-goOn; l.piece("hello"); l.done(5) })
	live, drained := make(chan answer, 1), make(chan error, 1)
	go func() { live <- r.chat(`,"stream":true`) }()
	r.decodes[0].await(func() bool { return len(r.decodes[0].seen) == 2 })
	go func() { drained <- r.g.Drain(context.Background()) }()
	until(t, "it drains", func() bool { return r.health().Draining })
	for range 10 {
		resp, err := r.send(context.Background(), "/v1/chat/completions", hello+"}")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 503 || !resp.Close || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%d, closes %v", resp.StatusCode, resp.Close)
		}
		resp.Body.Close()
	}
	close(goOn)
	if a := <-live; a.text() != "hello" {
		t.Errorf("the running one: %d %q", a.status, a.events)
	}
	if err := <-drained; err != nil || len(r.decodes[0].legs()) != 2 {
		t.Errorf("%v, %d legs", err, len(r.decodes[0].legs()))
	}
	r.quiet()
}

// Given a gateway that may run four and queue four, when forty requests come, then eight are
// served, and thirty-two get a 429 with a hint at once, while the eight still run.
// SGLang: issue #33858.
func TestF114TheAnswerQueueFullArrives(t *testing.T) {
	r := newFront(t, 1, func(c *gateway.Config) { c.Limits = relay.Limits{MaxRunning: 4, MaxQueued: 4} })
	goOn := make(chan struct{})
	r.decodes[0].play(func(l *fakeLeg) { l.accept(); <-goOn; goodTail(l) })
	answers := make(chan answer)
	for range 40 {
		go func() { answers <- r.chat("") }()
	}
	for range 32 {
		if a := <-answers; a.status != 429 || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	close(goOn)
	for range 8 {
		if a := <-answers; a.text() != "hello" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	r.quiet()
}

func goodTail(l *fakeLeg) { l.piece("hello"); l.done(5) }

// Given every reason to refuse or fail a request, when it comes, then the client sees its own
// code, status and hint, the same for a stream as for one body, and the books say the same word.
// Dynamo: PR #12966, issue #9755.
func TestF119EveryRefusalHasItsOwnFace(t *testing.T) {
	leave := func(s script) func(*front) { return func(r *front) { r.decodes[0].play(s) } }
	for _, row := range []struct {
		name, code string
		status     int
		hint       bool
		counted    string
		set        func(*front)
		more       string
	}{
		{"prefill is full", "overload", 429, true, "overload", func(r *front) { r.prefills[0].play(func(l *fakeLeg) { l.refuse(room.Overload) }); leave(silent)(r) }, ""},
		{"decode is full", "overload", 429, true, "overload", leave(func(l *fakeLeg) { l.refuse(room.Overload) }), ""},
		{"deadline", "deadline", 504, false, "deadline", leave(func(l *fakeLeg) { l.accept(); l.fail(room.Deadline) }), ""},
		{"a worker is lost", "worker_lost", 502, true, "worker_lost", leave(func(l *fakeLeg) { l.cut() }), ""},
		{"transfer", "transfer_failed", 502, true, "transfer_failed", leave(func(l *fakeLeg) { l.accept(); l.fail(room.TransferFailed) }), ""},
		{"internal", "internal", 500, false, "internal", leave(func(l *fakeLeg) { l.accept(); l.fail(room.Internal) }), ""},
		{"a worker's refusal", "client_error", 400, false, "client_error", leave(func(l *fakeLeg) { l.refuse(room.ClientError) }), ""},
		{"no worker", "unavailable", 503, true, "", func(r *front) { r.says(r.decodes[0], false) }, ""},
		{"too long", "context_length_exceeded", 400, false, "", func(*front) {}, `,"max_completion_tokens":5000`},
		{"draining", "unavailable", 503, true, "", func(r *front) { r.g.Drain(context.Background()) }, ""},
	} {
		for _, stream := range []bool{false, true} {
			r := newFront(t, 1, once)
			row.set(r)
			a := r.chat(row.more + fmt.Sprintf(`,"stream":%v`, stream))
			n, code := a.terminal()
			if a.status != row.status || n != 1 || code != row.code || (a.header.Get("Retry-After") != "") != row.hint {
				t.Errorf("%s, stream %v: %d, hint %q, %s", row.name, stream, a.status, a.header.Get("Retry-After"), a.body)
			}
			if m := r.get("/metrics"); row.counted != "" && !strings.Contains(m, `baton_gateway_requests_total{cause="`+row.counted+`",outcome="failed"} 1`) {
				t.Errorf("%s is not counted as %s", row.name, row.counted)
			}
			r.quiet()
		}
	}
}

// Given a place whose worker leaves and comes back a hundred times under traffic, when it is
// over, then the gateway shows one worker for each place, and as many series as before.
// Dynamo: issue #10729; production-stack issue #707.
func TestF112WorkersThatCameAndWentLeaveNothing(t *testing.T) {
	r := newFront(t, 1, nil)
	series := func() int { return strings.Count(r.get("/metrics"), "\nbaton_") }
	if a := r.chat(""); a.status != 200 {
		t.Fatal(a.body)
	}
	before := series()
	d := r.decodes[0]
	for i := range 100 {
		r.g.Leave(context.Background(), d.id)
		d.id = r.enlist(gateway.Worker{Name: "decode2", Role: gateway.RoleDecode, HTTP: strings.TrimPrefix(d.server.URL, "http://"), Boot: fmt.Sprint(i), ContextTokens: 1000})
		if a := r.chat(""); a.text() != "hello" {
			t.Errorf("life %d: %d %s", i, a.status, a.body)
		}
	}
	var in gateway.Inspection
	if err := json.Unmarshal([]byte(r.get("/debug/requests")), &in); err != nil || len(in.Workers) != 2 {
		t.Errorf("%d workers are shown, %v", len(in.Workers), err)
	}
	if after := series(); after != before {
		t.Errorf("%d series before, %d behind a hundred lives", before, after)
	}
	r.quiet()
}

// Given a request with every option at a value of its own, when it is dispatched, then both legs
// got all of them.
// Dynamo: PR #13442.
func TestF129EveryOptionReachesBothLegs(t *testing.T) {
	r := newFront(t, 1, nil)
	a := r.chat(`,"temperature":0.5,"top_p":0.9,"min_p":0.1,"top_k":5,"seed":77,"stop":["END"],"stop_token_ids":[3],"ignore_eos":true,"logprobs":true,"top_logprobs":4,
		"presence_penalty":0.5,"frequency_penalty":-0.5,"repetition_penalty":1.5,"logit_bias":{"7":1.5},"allowed_token_ids":[3,7,9],"bad_words":["bad"],"min_tokens":2,"max_tokens":3,
		"include_stop_str_in_output":true,"skip_special_tokens":false,"response_format":{"type":"json_object"}`)
	if a.status != 200 {
		t.Fatal(a.body)
	}
	r.quiet()
	p, d := r.prefills[0].legs()[0].Params, r.decodes[0].legs()[0].Params
	if !reflect.DeepEqual(p, d) {
		t.Errorf("prefill got %+v, decode %+v", p, d)
	}
	got, none := reflect.ValueOf(p), reflect.ValueOf(sample.Default())
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		if reflect.DeepEqual(got.Field(i).Interface(), none.Field(i).Interface()) && name != "Choice" { // there is one choice per prompt
			t.Errorf("%s is %v, its default, on the legs: the test does not set it, or it was dropped", name, got.Field(i))
		}
	}
	if r.prefills[0].legs()[0].Left() <= 0 {
		t.Error("no time is left on the leg")
	}
}

// Given one request that is served, one that is tried twice, and one whose client leaves before a
// token, when the first-token times are counted, then the first two are there once each, from
// their arrival at the gateway, and the third is not.
// SGLang: issue #9585; inference-sim issue #930; vLLM: issue #29474.
func TestF133AFirstTokenIsCountedOnce(t *testing.T) {
	r := newFront(t, 2, nil)
	count := func(n int) {
		t.Helper()
		if m := r.get("/metrics"); !strings.Contains(m, fmt.Sprintf("baton_gateway_time_to_first_token_seconds_count %d\n", n)) {
			t.Errorf("want %d first tokens", n)
		}
	}
	r.chat("")
	count(1)
	var tries atomic.Int32
	for _, d := range r.decodes {
		d.play(func(l *fakeLeg) {
			if tries.Add(1) == 1 {
				l.cut()
			}
			goodDecode(l)
		})
	}
	if a := r.chat(""); a.text() != "hello" || tries.Load() != 2 {
		t.Errorf("%d %s, %d tries", a.status, a.body, tries.Load())
	}
	count(2)
	for _, d := range r.decodes {
		d.play(silent)
	}
	ctx, leave := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r.send(ctx, "/v1/chat/completions", hello+"}")
	}()
	until(t, "it is there", func() bool { return r.health().Running == 1 })
	leave()
	<-gone
	r.quiet()
	count(2)
	if m := r.get("/metrics"); !strings.Contains(m, fmt.Sprintf("baton_gateway_requests_total{cause=%q,outcome=%q} 1", "cancelled", "aborted")) {
		t.Error("the one whose client left is not in its own series")
	}
}

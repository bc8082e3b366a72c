package observe

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/transfer"
)

func scrape(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestBlocksThatDoNotAddUpAreNamed(t *testing.T) {
	b := Blocks{Total: 10, Free: 4, Cached: 3, Held: 2, Quarantined: 1}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
	b.Held--
	if b.Check() == nil {
		t.Error("a block is missing and nobody says so")
	}
}

// O3: what could not be asked is absent, never zero.
func TestGaugesOfAnUnansweredSnapshotAreAbsent(t *testing.T) {
	answers := true
	m := NewMetrics("decode", Sources{
		Snapshot: func() (Snapshot, bool) {
			return Snapshot{Worker: Worker{Draining: true, Queues: map[string]Queue{"running": {Len: 2, OldestMS: 1500}}, Blocks: Blocks{Total: 3, Free: 1, Held: 2}},
				Rooms: make([]Room, 2)}, answers
		},
		Grammars: func() (Grammars, bool) { return Grammars{Entries: 2, Bytes: 4096, Hits: 5, Misses: 3}, true },
		Transfer: func() transfer.Stats { return transfer.Stats{PlacedBytes: 77} },
	})
	m.Step(Step{Work: WorkDecode, Rows: 3, Tokens: 3, Took: 3 * time.Millisecond, WeightBytes: 900, KVBytes: 300})
	m.RoomsEnded.WithLabelValues("failed", "deadline").Inc()
	for _, want := range []string{
		`baton_rooms_live{role="decode"} 2`, `baton_queue_length{queue="running",role="decode"} 2`,
		`baton_queue_oldest_seconds{queue="running",role="decode"} 1.5`, `baton_blocks{role="decode",state="held"} 2`,
		`baton_draining{role="decode"} 1`, `baton_transfer_bytes_total{role="decode",what="placed"} 77`,
		`baton_step_seconds_count{role="decode",work="decode"} 1`, `baton_step_rows_sum{role="decode",work="decode"} 3`,
		`baton_step_tokens_total{role="decode",work="decode"} 3`, `baton_step_tokens_per_second{role="decode",work="decode"} 1000`,
		`baton_step_read_bytes_total{role="decode",what="weights"} 900`, `baton_step_read_bytes_total{role="decode",what="kv"} 300`,
		`baton_step_read_bytes_per_second{role="decode"} 400000`,
		`baton_grammar_cache_entries{role="decode"} 2`, `baton_grammar_cache_bytes{role="decode"} 4096`,
		`baton_grammar_cache_lookups_total{result="hit",role="decode"} 5`, `baton_grammar_cache_lookups_total{result="miss",role="decode"} 3`,
		`baton_steps_total{role="decode"} 1`, `baton_rooms_ended_total{cause="deadline",outcome="failed",role="decode"} 1`,
	} {
		if !strings.Contains(scrape(m), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	answers = false
	if s := scrape(m); strings.Contains(s, "baton_rooms_live") || !strings.Contains(s, "baton_steps_total") {
		t.Error("without a snapshot the gauges must be absent and the counters must stay")
	}
}

// Rates are per second of engine time and follow what was last: an idle worker keeps its own, and
// after some seconds of work the old ones count no more.
func TestRatesFollowTheLastSteps(t *testing.T) {
	var r recent
	if got := r.add(5, 0); got != 0 {
		t.Errorf("a step of no time makes a rate of %v", got)
	}
	r = recent{}
	for range 1000 {
		r.add(1, 10*time.Millisecond)
	}
	got := 0.0
	for range 100 {
		got = r.add(100, 100*time.Millisecond)
	}
	if got < 850 || got > 1000 {
		t.Errorf("after ten seconds at 1000 per second, and 100 before, the rate is %v", got)
	}
}

func TestCountingAStepAllocatesNothing(t *testing.T) {
	m := NewMetrics("decode", Sources{Snapshot: func() (Snapshot, bool) { return Snapshot{}, false }})
	s := Step{Work: WorkMixed, Rows: 1, Tokens: 40, Took: time.Millisecond, WeightBytes: 1, KVBytes: 1}
	if n := testing.AllocsPerRun(100, func() { m.Step(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleBlocks_Check() {
	fmt.Println(Blocks{Total: 4, Free: 1, Held: 2}.Check())
	// Output: observe: 1 blocks free, 0 cached, 2 held and 0 quarantined are not 4 in total
}

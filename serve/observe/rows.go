package observe

import "fmt"

// Room is one row of `ps`: a room that is live on a worker.
type Room struct {
	Room     string `json:"room"`
	RID      string `json:"rid"`
	Role     string `json:"role"`
	Queue    string `json:"queue"`
	Phase    string `json:"phase"`
	Poll     string `json:"poll"`
	AgeMS    int64  `json:"age_ms"` // since the request reached this worker
	WaitsFor string `json:"waits_for"`
	Worker   string `json:"worker"`
}

// Request is one row of a gateway's ledger.
type Request struct {
	RID      string `json:"rid"`
	Room     string `json:"room"`
	Phase    string `json:"phase"`
	AgeMS    int64  `json:"age_ms"`
	Prefill  string `json:"prefill"`
	Decode   string `json:"decode"`
	Tokens   int    `json:"tokens"` // already sent to the client
	WaitsFor string `json:"waits_for"`
}

// Queue says how many rooms stand in a queue and how long the oldest has been there.
type Queue struct {
	Len      int   `json:"len"`
	OldestMS int64 `json:"oldest_ms"`
}

// Blocks counts a worker's KV blocks by state.
type Blocks struct {
	Total       int `json:"total"`
	Free        int `json:"free"`
	Cached      int `json:"cached"`
	Held        int `json:"held"`
	Quarantined int `json:"quarantined"`
	Pinned      int `json:"pinned,omitempty"` // of those cached or held: evicted last
}

// Check returns an error when the sum is not the total (O1).
func (b Blocks) Check() error {
	if sum := b.Free + b.Cached + b.Held + b.Quarantined; sum != b.Total {
		return fmt.Errorf("observe: %d blocks free, %d cached, %d held and %d quarantined are not %d in total",
			b.Free, b.Cached, b.Held, b.Quarantined, b.Total)
	}
	if b.Pinned < 0 || b.Pinned > b.Cached+b.Held {
		return fmt.Errorf("observe: %d blocks pinned, %d are cached or held", b.Pinned, b.Cached+b.Held)
	}
	return nil
}

// Worker is the head of a worker's snapshot.
type Worker struct {
	Name     string           `json:"worker"`
	Role     string           `json:"role"`
	Boot     string           `json:"boot"`
	PID      int              `json:"pid"`
	HTTP     string           `json:"http"`           // address of its own /metrics, /health and /debug/rooms
	Link     string           `json:"link,omitempty"` // address where decode workers dial, prefill only
	Draining bool             `json:"draining"`
	UptimeMS int64            `json:"uptime_ms"`
	Queues   map[string]Queue `json:"queues"`
	Blocks   Blocks           `json:"blocks"`
}

// Snapshot is the answer of a worker's GET /debug/rooms.
type Snapshot struct {
	Worker Worker `json:"worker"`
	Rooms  []Room `json:"rooms"`
}

// Health is the answer of GET /health.
type Health struct {
	OK       bool   `json:"ok"`
	Reason   string `json:"reason,omitempty"` // why not
	Draining bool   `json:"draining"`
	Live     int    `json:"live"`        // rooms that have not ended
	Progress int64  `json:"progress_ms"` // age of the last progress
	Step     int64  `json:"step_ms"`     // how long the engine's step in flight has been running, 0 without one
	Bound    int64  `json:"bound_ms"`    // the age from which a worker with work is not healthy
}

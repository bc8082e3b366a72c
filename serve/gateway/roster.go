package gateway

import (
	"slices"
	"time"

	"baton/core/relay"
	"baton/core/room"
	"baton/serve/openai"
)

// Roles of workers.
const (
	RolePrefill = "prefill"
	RoleDecode  = "decode"
	RoleUnified = "unified"
)

// Worker is what the gateway is told about one life of a worker process.
type Worker struct {
	Name          string // of its place in the fleet: prefill-0
	Role          string
	HTTP          string // host:port of its legs
	Link          string // host:port where decode workers dial; prefill only
	Boot          string
	PID           int
	ContextTokens int    // the longest prompt and answer together
	KVTokens      int    // that its memory holds, of all rooms together; 0 if it was not said
	Choices       int    // of one prompt, that it makes at most; 0 if it was not said
	Manifest      string // digest of model, tokenizer and KV layout; "" if it was not said
}

// member is one life of a worker on the roster. When it is over it stays until its last leg is
// released, and its row until another life takes its place: an operator sees that it is missing.
type member struct {
	Worker
	id       int32
	load     int           // legs opened and not released
	down     bool          // its health says so
	suspect  bool          // blamed for being lost; cleared by a good health that was asked for since
	blamed   time.Duration // when it was last, on the loop's clock
	retired  bool          // it leaves: nothing is placed on it, and its successor may come beside it
	gone     bool
	followed bool   // by another life in the same place
	used     uint64 // when it was last chosen, in choices: round robin among equals
}

func (m *member) usable() bool { return !m.down && !m.suspect && !m.retired && !m.gone }

// roster is every worker that the gateway knows. The loop owns it.
type roster struct {
	members []*member // in order of their ids
	nextID  int32
	choices uint64
}

// join puts a life on the roster. False says that the place is taken by one that stays.
func (r *roster) join(w Worker) (id int32, ok bool) {
	for _, m := range r.members {
		if m.Name == w.Name && !m.gone && !m.retired {
			return 0, false
		}
	}
	for _, m := range r.members {
		m.followed = m.followed || m.Name == w.Name
	}
	r.sweep()
	id = r.nextID
	r.nextID++
	r.members = append(r.members, &member{Worker: w, id: id})
	return id, true
}

// leave says that a life is over. Its process is gone, and its number may be somebody else's.
func (r *roster) leave(m *member) {
	m.gone, m.PID = true, 0
	r.sweep()
}

func (r *roster) find(id int32) *member {
	i, ok := slices.BinarySearchFunc(r.members, id, func(m *member, id int32) int { return int(m.id) - int(id) })
	if !ok {
		return nil
	}
	return r.members[i]
}

// sweep forgets lives that are over and followed.
func (r *roster) sweep() {
	r.members = slices.DeleteFunc(r.members, func(m *member) bool { return m.followed && m.gone && m.load == 0 })
}

// places calls yield for the newest life in every place.
func (r *roster) places(yield func(*member) bool) {
	for _, m := range r.members {
		if !m.followed && !yield(m) {
			return
		}
	}
}

// lives calls yield for every life that an operator wants to see: the newest in every place, and
// those that are leaving it.
func (r *roster) lives(yield func(*member) bool) {
	for _, m := range r.members {
		if (!m.followed || !m.gone) && !yield(m) {
			return
		}
	}
}

// legs is the load of all lives in a place.
func (r *roster) legs(name string) (n int) {
	for _, m := range r.members {
		if m.Name == name {
			n += m.load
		}
	}
	return n
}

// pair chooses workers for an attempt: a prefill and a decode worker, or a unified one
// (prefill nil).
func (r *roster) pair(exclude, innocent []int32) (prefill, decode *member) {
	decode = r.choose(RoleDecode, exclude, innocent)
	if decode != nil {
		if prefill = r.choose(RolePrefill, exclude, innocent); prefill != nil {
			return prefill, decode
		}
	}
	return nil, r.choose(RoleUnified, exclude, innocent)
}

// choose takes the usable worker of a role with the least load, the longest unused among
// equals. A worker that was tried and never blamed may serve again if there is no other.
func (r *roster) choose(role string, exclude, innocent []int32) *member {
	best := r.least(role, func(m *member) bool { return !slices.Contains(exclude, m.id) })
	if best == nil {
		best = r.least(role, func(m *member) bool { return slices.Contains(innocent, m.id) })
	}
	if best != nil {
		r.choices++
		best.used = r.choices
	}
	return best
}

func (r *roster) least(role string, allowed func(*member) bool) *member {
	var best *member
	for _, m := range r.members {
		if m.Role != role || !m.usable() || !allowed(m) {
			continue
		}
		if best == nil || m.load < best.load || m.load == best.load && m.used < best.used {
			best = m
		}
	}
	return best
}

// missing says what is not there for a new request, "" if one could be placed.
func (r *roster) missing() string {
	some := func(role string) bool { return r.least(role, func(*member) bool { return true }) != nil }
	what := "worker" // nobody knows yet of which roles this fleet is
	switch prefill, decode := some(RolePrefill), some(RoleDecode); {
	case some(RoleUnified), prefill && decode:
		return ""
	case decode:
		what = "prefill worker"
	case prefill:
		what = "decode worker"
	case slices.ContainsFunc(r.members, func(m *member) bool { return m.Role == RoleUnified }):
		what = "unified worker"
	case len(r.members) > 0:
		what = "prefill and no decode worker"
	}
	return "no " + what + " is ready to take requests"
}

// serving says whether a new request could be placed.
func (r *roster) serving() bool { return r.missing() == "" }

// capacity is what every worker can take, zero where nobody said: every worker of a fleet serves
// the same model, but memory for it may differ. The answer is decode's to hold.
// rights are the gateway's own, of which each choice takes one.
func (r *roster) capacity(rights int) (c openai.Capacity) {
	least := func(n *int, of int) {
		if of > 0 && (*n == 0 || of < *n) {
			*n = of
		}
	}
	least(&c.Choices, rights)
	for _, m := range r.members {
		if m.followed {
			continue
		}
		least(&c.Context, m.ContextTokens)
		if m.Role != RolePrefill {
			least(&c.Pool, m.KVTokens)
			least(&c.Choices, m.Choices)
		}
	}
	return c
}

// manifest is what the workers of the fleet serve: the digest of the first one's, of those that
// are there if any is. Workers that differ in it refuse to be paired.
func (r *roster) manifest() (digest string) {
	for _, m := range r.members {
		switch {
		case m.Manifest == "" || m.followed:
		case !m.gone:
			return m.Manifest
		case digest == "":
			digest = m.Manifest
		}
	}
	return digest
}

func (r *roster) name(id int32) string {
	if id == relay.NoWorker {
		return ""
	}
	if m := r.find(id); m != nil {
		return m.Name
	}
	return "gone"
}

// blame takes a worker that was lost out until its health is heard again; other causes are
// counted and leave it in, for the attempt that follows excludes it anyway.
func (r *roster) blame(id int32, c room.Cause, now time.Duration) {
	if m := r.find(id); m != nil && c == room.WorkerLost {
		m.suspect, m.blamed = true, now
	}
}

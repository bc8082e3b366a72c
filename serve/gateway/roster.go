package gateway

import (
	"slices"

	"baton/core/relay"
	"baton/core/room"
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
	ContextTokens int // the longest prompt and answer together
}

// member is a worker on the roster. A life that is over stays until its last leg is released.
type member struct {
	Worker
	id      int32
	load    int  // legs opened and not released
	down    bool // its health says so
	suspect bool // blamed for being lost; cleared by its next good health
	gone    bool
	used    uint64 // when it was last chosen, in choices: round robin among equals
}

func (m *member) usable() bool { return !m.down && !m.suspect && !m.gone }

// roster is every worker that the gateway knows. The loop owns it.
type roster struct {
	members []*member // in order of their ids
	nextID  int32
	choices uint64
}

func (r *roster) join(w Worker) int32 {
	id := r.nextID
	r.nextID++
	r.members = append(r.members, &member{Worker: w, id: id})
	return id
}

func (r *roster) find(id int32) *member {
	i, ok := slices.BinarySearchFunc(r.members, id, func(m *member, id int32) int { return int(m.id) - int(id) })
	if !ok {
		return nil
	}
	return r.members[i]
}

// sweep forgets lives that are over.
func (r *roster) sweep() {
	r.members = slices.DeleteFunc(r.members, func(m *member) bool { return m.gone && m.load == 0 })
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

// serving says whether a new request could be placed.
func (r *roster) serving() bool {
	some := func(role string) bool { return r.least(role, func(*member) bool { return true }) != nil }
	return some(RoleUnified) || some(RolePrefill) && some(RoleDecode)
}

// contextTokens is the shortest context among the workers, 0 without one: every worker of a
// fleet serves the same model, but blocks for it may differ.
func (r *roster) contextTokens() int {
	n := 0
	for _, m := range r.members {
		if !m.gone && m.ContextTokens > 0 && (n == 0 || m.ContextTokens < n) {
			n = m.ContextTokens
		}
	}
	return n
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
func (r *roster) blame(id int32, c room.Cause) {
	if m := r.find(id); m != nil && c == room.WorkerLost {
		m.suspect = true
	}
}

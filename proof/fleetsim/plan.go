package fleetsim

import (
	"fmt"
	"time"

	"baton/core/relay"
	"baton/core/room"
)

// Sizes is how large the fleet is. Unified workers come on top, and one more place for each role
// of workers, where the successor of one that leaves starts beside it.
type Sizes struct {
	Gateways, Prefills, Decodes, Unified int
	Hard                                 bool // larger storms, smaller pools, more that goes wrong
}

// DefaultSizes is the smallest fleet in which every part has a neighbour to be confused with.
func DefaultSizes() Sizes { return Sizes{Gateways: 2, Prefills: 3, Decodes: 5, Unified: 1} }

// NodesMax bounds each role: faults are drawn per pair of nodes, and above a dozen of each a
// seed no longer meets the same pair twice.
const NodesMax = 16

// Check says what is wrong with sizes.
func (s Sizes) Check() error {
	for _, x := range []struct {
		name     string
		n, least int
	}{{"gateways", s.Gateways, 1}, {"prefill workers", s.Prefills, 1}, {"decode workers", s.Decodes, 1}, {"unified workers", s.Unified, 0}} {
		if x.n < x.least || x.n > NodesMax {
			return fmt.Errorf("fleetsim: %d %s, want %d to %d", x.n, x.name, x.least, NodesMax)
		}
	}
	return nil
}

// first is the number of a role's first node, and places how many nodes it has, the spare one of
// workers, the last, included.
func (s Sizes) first(r role) int {
	n := 0
	for x := range r {
		n += s.places(x)
	}
	return n
}

func (s Sizes) places(r role) int {
	switch n := [roles]int{s.Gateways, s.Prefills, s.Decodes, s.Unified}[r]; {
	case r == gatewayRole || n == 0:
		return n
	default:
		return n + 1
	}
}

// spare says that nobody starts in a place before one that leaves has a successor there.
func (s Sizes) spare(r role, at int) bool { return r != gatewayRole && at == s.places(r)-1 }

// Times of a run. Faults and arrivals are spread over them; everything that is longer comes from
// the budgets of the requests and the bounds of the links.
const (
	faultsUntil   = 20 * time.Second
	arrivalsUntil = 32 * time.Second
	never         = time.Duration(1) << 60
)

// weather is what kind of trouble a seed has.
type weather uint8

const (
	calm     weather = iota // nothing breaks
	crowd                   // nothing breaks, and many come at once
	noticed                 // what breaks is noticed or heals: PROMPT must hold
	rough                   // everything may break
	parted                  // the same, and some links never heal
	tempest                 // the same, small pools, storms, short deadlines
	weathers = iota
)

var weatherNames = [weathers]string{"calm", "crowd", "noticed", "rough", "parted", "tempest"}

func (x weather) String() string { return weatherNames[x] }

// prompt says that no timer of a core may be needed.
func (x weather) prompt() bool { return x <= noticed }

// turns is how often each weather comes; rough ones find more.
var turns = [...]weather{calm, rough, noticed, parted, tempest, crowd, rough, noticed, parted, tempest}

// plan is everything that is decided about a run before it begins.
type plan struct {
	seed    uint64
	sizes   Sizes
	weather weather
	blocks  [2]int // of every prefill, decode pool
	queued  int    // rooms that may wait at a worker
	slots   int    // of every decode worker
	ahead   int    // tokens of output that decode has blocks for ahead; 0: all of them
	keyless bool   // prompts have no keys: nothing is found in a prefix cache
	budgets relay.Budgets
	limits  relay.Limits
	unified bool // unified workers run from the start; else they never do
	only    bool // nobody else does
	choices []choice
	steady  bool // shrinking found that neither jitter nor drift is needed
}

// choice is one thing that is done to the fleet. A plan without some of its choices is a plan.
type choice struct {
	kind  choiceKind
	at    time.Duration
	req   int           // arrive, leave, stall: number of the request, from 1
	a, b  int           // nodes; arrive: b is 1 for a client that leaves at the first failure
	lasts time.Duration // of a fault; never: for ever
	size  int           // factor, tokens
	more  int           // arrive: longest output
	whole bool          // arrive: the answer is not streamed, so that an attempt may be taken back
	kin   int           // arrive: prompts of one kin begin alike; 0: of none
	alike int           // arrive: for so many tokens
	total time.Duration // arrive: the client's deadline

	outputs int // arrive: of the prompt; 0: one
	turn    int // arrive: the request whose conversation goes on; 0: none
}

// turnTokens bounds what a turn of a conversation adds to what came before, a block and a half of
// tokens, so that most fit into the pools.
const turnTokens = room.BlockTokens * 3 / 2

type choiceKind uint8

const (
	arrive      choiceKind = iota
	leave                  // the client of req goes
	stall                  // the client of req stops reading for lasts
	crash                  // node a; back after lasts
	freeze                 // node a stands still for lasts
	slow                   // node a is size times as slow for lasts
	deaden                 // nothing gets from a to b for lasts
	lag                    // what goes from a to b takes up to 2 s longer for lasts
	cut                    // the link of decode a with prefill b ends
	corrupt                // chunks from prefill b to decode a are damaged for lasts
	stepFail               // the next engine step of a fails
	drain                  // node a is told to drain; it restarts when it is idle, at the latest after lasts
	replace                // the same, and a worker has its successor beside it
	garble                 // messages from worker a to its peers are lost, repeated, overtaken for lasts
	writeFail              // the next write of prefill a fails, and its link lives on
	mute                   // what gateway a hangs up, worker b does not see for lasts: a proxy keeps it open
	choiceKinds = iota
)

var choiceNames = [choiceKinds]string{"arrive", "leave", "stall", "crash", "freeze", "slow", "deaden", "lag", "cut", "corrupt", "step_fail", "drain", "replace", "garble", "write_fail", "mute"}

func (k choiceKind) String() string { return choiceNames[k] }

// rng is splitmix64: one word of state, the same everywhere.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return mix(uint64(*r))
}

// n draws from 0 to n-1.
func (r *rng) n(n int) int { return int(r.next() >> 33 % uint64(n)) }

// span draws a duration from lo to hi, shorter ones more often.
func (r *rng) span(lo, hi time.Duration) time.Duration {
	x := time.Duration(r.next() >> 44) // 20 bits
	return lo + (hi-lo)*(x*x>>20)>>20
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// newPlan draws a plan from a seed.
func newPlan(seed uint64, s Sizes) *plan {
	r := rng(mix(seed ^ 0xba70))
	p := &plan{seed: seed, sizes: s, weather: turns[seed%uint64(len(turns))], blocks: [2]int{24, 40}, queued: 16, slots: 4,
		budgets: relay.Budgets{Queue: time.Second, Place: 2 * time.Second, Connect: time.Second, FirstToken: 4 * time.Second, Gap: 3 * time.Second}}
	// Limits of gateways are small, so that storms pass them.
	p.limits = relay.Limits{MaxRunning: 8, MaxQueued: 6, MaxTries: 3, RetryBurst: 2 + r.n(7)}
	p.unified = s.Unified > 0 && r.n(2) == 0
	p.only = p.unified && r.n(8) == 0
	if p.weather == tempest || p.weather >= rough && (s.Hard || r.n(3) == 0) {
		p.blocks, p.queued = [2]int{8, 10}, 4
	}
	if r.n(3) == 0 {
		p.slots = 1
	}
	longest := 32
	switch r.n(3) {
	case 0:
		p.ahead = 1 + r.n(20)
	case 1: // long answers that begin small: rooms have to yield
		p.ahead, p.slots, p.blocks[1], longest = 1+r.n(2), 2+r.n(3), 12, 96
	}
	p.keyless = r.n(4) == 0
	if r.n(3) == 0 { // as in production, where the bounds of links are shorter
		p.budgets.FirstToken, p.budgets.Gap = time.Minute, time.Minute
	}
	p.requests(&r, longest)
	if p.weather >= noticed {
		p.faults(&r)
	}
	return p
}

// requests draws who comes, and how they behave.
func (p *plan) requests(r *rng, longest int) {
	n := 24 + r.n(40)
	if p.weather == crowd || p.weather == tempest {
		n += 40
	}
	if p.sizes.Hard {
		n *= 3
	}
	var storm time.Duration
	also := rng(mix(p.seed ^ 0x0075)) // of its own: what else a seed draws is what it was
	for i := range n {
		c := choice{kind: arrive, req: i + 1, a: r.n(p.sizes.Gateways), size: 1 + r.n(90), more: 1 + r.n(longest), b: r.n(2), whole: r.n(3) == 0, total: 12 * time.Second}
		c.at = r.span(0, arrivalsUntil)
		switch {
		case p.weather == crowd && i >= 8, p.weather == tempest && i%2 == 0:
			if i%16 == 8 || storm == 0 {
				storm = r.span(0, faultsUntil)
			}
			c.at = storm + r.span(0, 2*time.Millisecond)
		}
		if r.n(3) > 0 {
			c.kin = 1 + i/8
			if r.n(4) == 0 { // the same prompt again, and again
				c.size = room.BlockTokens * (1 + r.n(3))
			}
			c.alike = c.size * (1 + r.n(4)) / 4
		}
		if r.n(24) == 0 {
			c.size = room.BlockTokens*max(p.blocks[0], p.blocks[1]) + r.n(100) // more than any pool holds
		}
		if p.weather >= rough && r.n(6) == 0 {
			c.total = r.span(time.Millisecond, time.Second)
		}
		if also.n(4) == 0 {
			c.outputs = 2 + also.n(outputsMax-1)
		}
		if i > 0 && also.n(4) == 0 {
			c.turn = 1 + also.n(i)
		}
		p.choices = append(p.choices, c)
		switch r.n(8) {
		case 0:
			p.choices = append(p.choices, choice{kind: leave, req: c.req, at: c.at + r.span(0, time.Duration(longest)*4*time.Millisecond)})
		case 1:
			if c.at == storm { // storms of cancellations, too
				p.choices = append(p.choices, choice{kind: leave, req: c.req, at: storm + r.span(0, 30*time.Millisecond)})
			}
		case 2:
			p.choices = append(p.choices, choice{kind: stall, req: c.req, at: c.at + r.span(0, 80*time.Millisecond), lasts: r.span(0, time.Second)})
		}
	}
}

// faults draws what is done to the fleet. What strikes an idle fleet finds nothing, so that most
// faults strike shortly after somebody came.
func (p *plan) faults(r *rng) {
	g, d := p.sizes.Gateways, p.sizes.first(decodeRole)
	nodes := p.sizes.first(roles)
	someP := func() int { return g + r.n(p.sizes.places(prefillRole)) }
	someD := func() int { return d + r.n(p.sizes.places(decodeRole)) }
	someW := func() int { return g + r.n(nodes-g) }
	if r.n(8) == 0 { // a role comes late, as in a bad deployment
		p.outage(r, choice{kind: crash, lasts: r.span(time.Millisecond, 8*time.Second)})
	}
	came := len(p.choices)
	forever, n := 0, 6+r.n(20)
	if p.sizes.Hard {
		n *= 3
	}
	for range n {
		c := choice{kind: crash + choiceKind(r.n(int(writeFail-crash)+1)), at: r.span(0, faultsUntil), a: r.n(nodes), lasts: r.span(time.Millisecond, 6*time.Second)}
		if near := p.choices[r.n(came)]; near.at < faultsUntil && r.n(4) > 0 {
			c.at = near.at + r.span(0, 60*time.Millisecond)
		}
		switch c.kind {
		case freeze:
			switch r.n(3) {
			case 0:
				c.lasts = 8*time.Second + r.span(0, 8*time.Second) // around the links' bound on silence
			case 1:
				c.a, c.lasts = someD(), 4*time.Second+r.span(0, time.Second) // beyond the budget between tokens
			}
		case slow:
			c.size = 2 + r.n(30)
		case deaden, lag:
			if c.b = r.n(nodes); c.b == c.a {
				c.b = (c.a + 1) % nodes
			}
			if c.kind == deaden && r.n(3) == 0 {
				c.lasts = 8*time.Second + r.span(0, 8*time.Second)
			}
			if c.kind == deaden && p.weather == parted && forever < 3 {
				c.lasts = never
				forever++
			}
		case garble:
			if c.a = someW(); p.weather < rough {
				continue // what is lost silently, a timer finds
			}
		case cut, corrupt:
			c.a, c.b = someD(), someP()
		case crash:
			if r.n(8) == 0 { // a whole role goes down, as in a bad deployment
				p.outage(r, c)
				continue
			}
		case drain, replace:
			if r.n(2) == 0 {
				c.lasts = r.span(0, 30*time.Millisecond) // hardly any time
			}
		case stepFail:
			c.a = someW()
		case writeFail:
			c.a = someP()
		}
		p.choices = append(p.choices, c)
	}
	if r.n(3) == 0 { // bad memory in one machine
		a := someP()
		for range 4 {
			near := p.choices[r.n(came)]
			p.choices = append(p.choices, choice{kind: stepFail, at: near.at + r.span(0, 5*time.Millisecond), a: a})
		}
	}
	if also := rng(mix(p.seed ^ 0x0bad)); also.n(3) == 0 { // or in one that generates
		a := d + also.n(nodes-d)
		for range 4 {
			near := p.choices[also.n(came)]
			p.choices = append(p.choices, choice{kind: stepFail, at: near.at + also.span(0, 8*time.Millisecond), a: a})
		}
	}
	if p.weather >= rough && r.n(3) == 0 { // PROMPT cannot hold then: a leg may wait for its deadline
		for range 3 {
			p.choices = append(p.choices, choice{kind: mute, at: r.span(0, faultsUntil), a: r.n(g), b: someW(), lasts: never})
		}
	}
}

// outage crashes every node of a role within some milliseconds.
func (p *plan) outage(r *rng, c choice) {
	x := prefillRole + role(r.n(2))
	lo := p.sizes.first(x)
	for i := range p.sizes.places(x) {
		one := c
		one.a, one.at = lo+i, c.at+r.span(0, 20*time.Millisecond)
		one.lasts += r.span(0, 4*time.Second)
		p.choices = append(p.choices, one)
	}
}

package blocks

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// keysOf gives the chain of keys of a prompt, a letter for the tokens of a block.
func keysOf(prompt string) []Key {
	var keys []Key
	for n := range len(prompt) {
		keys = append(keys, keyOf(prompt[:n+1]))
	}
	return keys
}

func keyOf(prefix string) Key {
	sum := sha256.Sum256([]byte(prefix))
	return Key(sum[:])
}

// user is a room of the test: blocks from done on are still to be filled.
type user struct {
	prompt string
	table  []int32
	done   int
}

// model says the same as a Pool without a list, a counter or an index: everything is looked up
// in the tables of those who hold blocks, and in the order of what happened.
type model struct {
	total  int
	users  []user
	bytes  map[int32]string // what was computed into a block, and said
	found  map[string]int32
	cache  []int32   // in order of use
	apart  [][]int32 // tables that are quarantined
	barred map[int32]bool
	pinned map[int32]int // until when
	gaps   bool          // a block was quarantined: what is pinned may stand behind one that is not
}

// pinsMost is how many blocks are pinned at a time.
const pinsMost = 3

// order is that in which the cache is evicted.
func (m *model) order() (cache []int32) {
	for _, pinned := range []bool{false, true} {
		for _, b := range m.cache {
			if m.pinned[b] > 0 == pinned {
				cache = append(cache, b)
			}
		}
	}
	return cache
}

// pin expects that the beginning of a table is pinned, as far as it is found and the bound lets it;
// of a second copy the first is, or it is the first itself.
func (m *model) pin(table []int32, until int) {
	var all []int32
	left := pinsMost - len(m.pinned)
	for _, b := range table {
		prefix, said := m.bytes[b]
		first, ok := m.found[prefix]
		if !ok {
			first = b
		}
		if !said || !ok && m.barred[b] || m.pinned[first] == 0 && left == 0 {
			break
		}
		if all = append(all, first); m.pinned[first] == 0 {
			left--
		}
	}
	for _, b := range slices.Backward(all) {
		m.found[m.bytes[b]] = b
		m.pinned[b] = max(m.pinned[b], until)
		if i := slices.Index(m.cache, b); i >= 0 {
			m.cache = append(slices.Delete(m.cache, i, i+1), b)
		}
	}
}

// expire expects that pins which are over are none, and that what they kept was used last.
func (m *model) expire(now int) {
	var kept, over []int32
	for _, b := range m.cache {
		if until := m.pinned[b]; until > 0 && until <= now {
			over = append(over, b)
		} else {
			kept = append(kept, b)
		}
	}
	m.cache = append(kept, over...)
	maps.DeleteFunc(m.pinned, func(_ int32, until int) bool { return until <= now })
}

func (m *model) refs(b int32) (n int) {
	for _, u := range m.users {
		for _, x := range u.table {
			if x == b {
				n++
			}
		}
	}
	return n
}

func (m *model) isApart(b int32) bool {
	return slices.ContainsFunc(m.apart, func(table []int32) bool { return slices.Contains(table, b) })
}

func (m *model) count() Count {
	c := Count{Total: m.total, Cached: len(m.cache)}
	for b := range int32(m.total) {
		switch {
		case m.refs(b) > 0:
			c.Held++
		case m.isApart(b):
			c.Quarantined++
		}
	}
	c.Free = c.Total - c.Cached - c.Held - c.Quarantined
	return c
}

// chain is what can be matched of a prompt.
func (m *model) chain(prompt string) (table []int32) {
	for n := range len(prompt) {
		b, ok := m.found[prompt[:n+1]]
		if !ok {
			break
		}
		table = append(table, b)
	}
	return table
}

// evicted expects that the n least recently used blocks of the cache were taken.
func (m *model) evict(t *rapid.T, n int) {
	for range n {
		b := m.order()[0]
		m.cache = slices.DeleteFunc(m.cache, func(x int32) bool { return x == b })
		delete(m.pinned, b)
		prefix := m.bytes[b]
		for _, x := range m.cache {
			if longer := m.bytes[x]; strings.HasPrefix(longer, prefix) && !m.gaps {
				t.Fatalf("%q is evicted before %q (B6)", prefix, longer)
			}
		}
		delete(m.found, prefix)
		delete(m.bytes, b)
	}
}

// release expects what a pool does when u, who is in m.users no more, has released its table.
func (m *model) release(u user) (freed []int32) {
	for _, b := range slices.Backward(u.table) {
		prefix, said := m.bytes[b]
		first, ok := m.found[prefix]
		if i := slices.Index(m.cache, first); said && ok && first != b && i >= 0 {
			m.cache = append(slices.Delete(m.cache, i, i+1), first)
		}
		switch {
		case m.refs(b) > 0:
		case said && (!ok || first == b) && !m.barred[b]:
			m.found[prefix] = b
			m.cache = append(m.cache, b)
		default:
			delete(m.bytes, b)
			delete(m.pinned, b)
			if !m.isApart(b) {
				freed = append(freed, b)
			}
		}
	}
	return freed
}

// TestThePoolIsAsTheModelSays: whatever rooms do with a pool, what they get, what becomes free,
// what can be found and what goes first is what the model says (B1 to B6).
func TestThePoolIsAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { // 100 times, a tenth of a second for 2,000: -rapid.checks
		m := &model{total: rapid.IntRange(1, 8).Draw(t, "blocks"), bytes: map[int32]string{}, found: map[string]int32{}, barred: map[int32]bool{}, pinned: map[int32]int{}}
		p := New(m.total)
		pick := func(t *rapid.T, n int) int {
			if n == 0 {
				t.Skip("nothing to choose from")
			}
			return rapid.IntRange(0, n-1).Draw(t, "which")
		}
		leave := func(t *rapid.T) user {
			i := pick(t, len(m.users))
			u := m.users[i]
			m.users = slices.Delete(m.users, i, i+1)
			return u
		}
		same := func(t *rapid.T, what string, got, want []int32) {
			slices.Sort(want)
			got = slices.Sorted(slices.Values(got))
			if !slices.Equal(got, want) {
				t.Fatalf("%s are free, the model says %v: %v", what, want, got)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"room comes": func(t *rapid.T) {
				prompt := rapid.SampledFrom([]string{"a", "aa", "aaa", "ab", "aab", "b"}).Draw(t, "prompt")
				keys, want := keysOf(prompt), m.chain(prompt)
				n, cached := p.Find(keys)
				if rest := len(keys) - n; rest > p.Available()-cached {
					t.Skip("it does not fit")
				}
				var kept []int32
				for _, b := range m.cache {
					if !slices.Contains(want, b) {
						kept = append(kept, b)
					}
				}
				if n != len(want) || cached != len(m.cache)-len(kept) {
					t.Fatalf("finds %d blocks, %d of them cached; the model says %v", n, cached, want)
				}
				table := p.Match(keys)
				if !slices.Equal(table, want) {
					t.Fatalf("matches %v, the model says %v", table, want)
				}
				m.cache = kept
				free := p.Count().Free
				fresh := p.Take(len(keys) - n)
				m.evict(t, max(0, len(fresh)-free))
				for _, b := range fresh {
					if m.refs(b) > 0 || m.isApart(b) || slices.Contains(m.cache, b) {
						t.Fatalf("block %d is given to a second one (B4)", b)
					}
				}
				p.Own(fresh)
				for _, b := range fresh {
					m.barred[b] = false
				}
				m.users = append(m.users, user{prompt, append(table, fresh...), n})
			},
			"block is filled": func(t *rapid.T) {
				u := &m.users[pick(t, len(m.users))]
				if u.done == len(u.table) {
					t.Skip("all of its blocks are")
				}
				b, prefix := u.table[u.done], u.prompt[:u.done+1]
				p.Own(u.table[u.done:])
				p.Publish(u.table[u.done:u.done+1], keysOf(u.prompt)[u.done:u.done+1])
				m.bytes[b] = prefix
				if _, ok := m.found[prefix]; !ok {
					m.found[prefix] = b
				}
				u.done++
			},
			"room goes": func(t *rapid.T) {
				u := leave(t)
				same(t, "released blocks", p.Release(u.table), m.release(u))
			},
			"room pins": func(t *rapid.T) {
				u := &m.users[pick(t, len(m.users))]
				until := rapid.IntRange(1, 5).Draw(t, "until")
				p.Pin(u.table, time.Duration(until), pinsMost)
				m.pin(u.table, until)
			},
			"pins expire": func(t *rapid.T) {
				now := rapid.IntRange(0, 5).Draw(t, "now")
				want := len(m.pinned)
				for _, until := range m.pinned {
					if until <= now {
						want--
					}
				}
				if got := p.PinnedAt(time.Duration(now)); got != want {
					t.Fatalf("%d blocks are still pinned at %d, the model says %d of %v", got, now, want, m.pinned)
				}
				p.Expire(time.Duration(now))
				m.expire(now)
			},
			"room is quarantined": func(t *rapid.T) {
				u := leave(t)
				m.gaps = true
				p.Quarantine(u.table)
				m.apart = append(m.apart, u.table)
				for _, b := range u.table {
					m.barred[b] = true
					delete(m.pinned, b)
					maps.DeleteFunc(m.found, func(_ string, x int32) bool { return x == b })
				}
				m.release(u)
			},
			"quarantine is cleared": func(t *rapid.T) {
				i := pick(t, len(m.apart))
				table := m.apart[i]
				m.apart = slices.Delete(m.apart, i, i+1)
				var want []int32
				for _, b := range table {
					if m.refs(b) == 0 && !m.isApart(b) {
						want = append(want, b)
					}
				}
				same(t, "cleared blocks", p.Clear(table), want)
			},
			"pool is copied": func(t *rapid.T) {
				var c Pool
				p.CopyTo(&c)
				for _, u := range m.users {
					p.Release(u.table) // of the one that is thrown away
				}
				p = c
			},
			"": func(t *rapid.T) {
				for b := range int32(m.total) {
					if int(p.blocks[b].until) != m.pinned[b] {
						t.Fatalf("block %d is pinned until %d, the model says %v (B9)", b, p.blocks[b].until, m.pinned)
					}
				}
				if p.Pinned() != len(m.pinned) {
					t.Fatalf("%d blocks are pinned, the model says %v (B9)", p.Pinned(), m.pinned)
				}
				if got, want := p.Count(), m.count(); got != want {
					t.Fatalf("counts %+v, the model says %+v (B1)", got, want)
				}
				for prefix, b := range m.found {
					if x := p.index.find(keyOf(prefix)); x != b || m.bytes[b] != prefix {
						t.Fatalf("%q finds block %d, the model says %d with %q (B7)", prefix, x, b, m.bytes[b])
					}
				}
				var cache []int32
				for _, first := range []int32{p.plain.oldest, p.pinned.oldest} {
					for b := first; b != none; b = p.blocks[b].next {
						cache = append(cache, b)
					}
				}
				if !slices.Equal(cache, m.order()) {
					t.Fatalf("the cache is %v, the model says %v (B5, B6)", cache, m.cache)
				}
				found := 0
				for i := range p.blocks {
					if p.blocks[i].found {
						found++
					}
				}
				if found != len(m.found) {
					t.Fatalf("%d blocks can be found, the model says %v", found, m.found)
				}
			},
		})
	})
}

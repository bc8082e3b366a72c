package explore

// pages is a list that grows without moving what is in it: a slice of gigabytes would be there
// twice whenever it grows.
type pages[T any] struct {
	list [][]T
	n    int
}

// A page is large enough to be found by few pages, and small enough that a scope of a thousand
// states does not pay for it.
const (
	pageBits = 12
	pageMask = 1<<pageBits - 1
)

func (p *pages[T]) add(v T) {
	if p.n>>pageBits == len(p.list) {
		p.list = append(p.list, make([]T, 1<<pageBits))
	}
	p.list[p.n>>pageBits][p.n&pageMask] = v
	p.n++
}

func (p *pages[T]) at(i int) T { return p.list[i>>pageBits][i&pageMask] }

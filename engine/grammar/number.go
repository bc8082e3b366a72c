package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// Bounds of the numbers that are written. Without them a model could write digits for ever.
const (
	// wholeMost is how many digits stand before the point: 20 hold every 64-bit integer.
	wholeMost = 20
	// fractionMost is how many digits stand after it: a float64 needs 17 digits in all.
	fractionMost = 20
	// exponentMost is how many digits an exponent has: with two no float64 overflows.
	exponentMost = 2
)

// numberMost is beyond every number that is written without an exponent: 10^wholeMost.
var numberMost = power(wholeMost)

// power is 10^n.
func power(n int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
}

// digits returns a node that takes least to most digits.
func (b *builder) digits(least, most int, to int32) int32 {
	at := to
	for i := most - 1; i >= 0; i-- {
		d := b.bytes(edge{'0', '9', at})
		if at = d; i >= least {
			at = b.split(to, d)
		}
	}
	return at
}

// plainNumber returns the start of a number without bounds, with at most places digits after the
// point (-1: no bound, and exponents are allowed).
func (b *builder) plainNumber(places int, whole bool) int32 {
	to := end
	if places < 0 {
		digits := b.digits(1, exponentMost, end)
		to = b.split(end, b.bytes(edge{'E', 'E', b.split(digits, b.bytes(edge{'+', '+', digits}, edge{'-', '-', digits}))},
			edge{'e', 'e', b.split(digits, b.bytes(edge{'+', '+', digits}, edge{'-', '-', digits}))}))
		places = fractionMost
	}
	if !whole && places > 0 {
		to = b.split(to, b.byte('.', b.digits(1, places, to)))
	}
	abs := b.bytes(edge{'0', '0', to}, edge{'1', '9', b.digits(0, wholeMost-1, to)})
	return b.split(abs, b.byte('-', abs))
}

// integers returns the start of the integers between two bounds.
func (b *builder) integers(low, high *bound) int32 {
	one := big.NewInt(1)
	most := new(big.Int).Sub(numberMost.Num(), one)
	lo, hi := ceil(low.value), floor(high.value)
	if low.strict && low.value.IsInt() {
		lo.Add(lo, one)
	}
	if high.strict && high.value.IsInt() {
		hi.Sub(hi, one)
	}
	lo, hi = larger(lo, new(big.Int).Neg(most)), smaller(hi, most)
	var starts []int32
	if hi.Sign() >= 0 && lo.Cmp(hi) <= 0 {
		starts = append(starts, b.between(larger(lo, new(big.Int)), hi))
	}
	if lo.Sign() < 0 && lo.Cmp(hi) <= 0 {
		starts = append(starts, b.byte('-', b.between(larger(new(big.Int).Neg(hi), one), new(big.Int).Neg(lo))))
	}
	if len(starts) == 0 {
		return b.bytes()
	}
	return b.split(starts...)
}

// between returns the start of the integers lo to hi, 0 <= lo <= hi, without leading zeros.
func (b *builder) between(lo, hi *big.Int) int32 {
	var starts []int32
	for n := len(lo.String()); n <= len(hi.String()); n++ {
		from := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n-1)), nil)
		to := new(big.Int).Sub(new(big.Int).Mul(from, big.NewInt(10)), big.NewInt(1))
		if n == 1 {
			from.SetInt64(0)
		}
		d := digitRange{builder: b, lo: larger(from, lo).String(), hi: smaller(to, hi).String(), memo: map[digitPlace]int32{}}
		starts = append(starts, d.node(digitPlace{0, true, true}))
	}
	return b.split(starts...)
}

// digitRange builds the numbers between two of the same length.
type digitRange struct {
	*builder
	lo, hi string
	memo   map[digitPlace]int32
}

// digitPlace is a place in a number, and whether all before it was as in lo, as in hi.
type digitPlace struct {
	i            int
	asLow, asHig bool
}

func (d *digitRange) node(p digitPlace) int32 {
	if p.i == len(d.lo) {
		return end
	}
	if n, ok := d.memo[p]; ok {
		return n
	}
	lo, hi := byte('0'), byte('9')
	if p.asLow {
		lo = d.lo[p.i]
	}
	if p.asHig {
		hi = d.hi[p.i]
	}
	n := d.bytes(d.step(lo, hi, p.asLow, p.asHig, func(asLow, asHigh bool) int32 { return d.node(digitPlace{p.i + 1, asLow, asHigh}) })...)
	d.memo[p] = n
	return n
}

// step returns the edges of the digits lo to hi, of which the first and the last may stay as
// the bounds are.
func (b *builder) step(lo, hi byte, asLow, asHigh bool, to func(asLow, asHigh bool) int32) []edge {
	if lo > hi {
		return nil
	}
	if lo == hi {
		return []edge{{lo, hi, to(asLow, asHigh)}}
	}
	var edges []edge
	if asLow {
		edges = append(edges, edge{lo, lo, to(true, false)})
		lo++
	}
	if asHigh {
		edges = append(edges, edge{hi, hi, to(false, true)})
		hi--
	}
	if lo <= hi {
		edges = append(edges, edge{lo, hi, to(false, false)})
	}
	return edges
}

// decimals returns the start of the numbers between two bounds, written without exponent.
func (b *builder) decimals(low, high *bound, places int) int32 {
	if places < 0 {
		places = fractionMost
	}
	zero := &bound{value: new(big.Rat)}
	var starts []int32
	if high.value.Sign() > 0 || high.value.Sign() == 0 && !high.strict {
		from := low
		if low.value.Sign() < 0 {
			from = zero
		}
		starts = append(starts, b.positives(from, high, places)...)
	}
	if low.value.Sign() < 0 || low.value.Sign() == 0 && !low.strict {
		from := &bound{value: new(big.Rat).Neg(high.value), strict: high.strict}
		if high.value.Sign() > 0 {
			from = zero
		}
		to := &bound{value: new(big.Rat).Neg(low.value), strict: low.strict}
		for _, s := range b.positives(from, to, places) {
			starts = append(starts, b.byte('-', s))
		}
	}
	if len(starts) == 0 {
		return b.bytes()
	}
	return b.split(starts...)
}

// positives returns the starts of the numbers between two bounds that are not negative.
func (b *builder) positives(low, high *bound, places int) []int32 {
	if high.value.Cmp(numberMost) >= 0 {
		high = &bound{value: numberMost, strict: true}
	}
	if low.value.Cmp(high.value) > 0 || low.value.Cmp(high.value) == 0 && (low.strict || high.strict) {
		return nil
	}
	lo, hi := floor(low.value), floor(high.value)
	f := fraction{builder: b, lo: fractionOf(low.value), hi: fractionOf(high.value), strictLow: low.strict, strictHigh: high.strict, places: places, memo: map[digitPlace]int32{}}
	if lo.Cmp(hi) == 0 {
		return []int32{b.net.text(lo.String(), f.node(digitPlace{-1, true, true}))}
	}
	starts := []int32{b.net.text(lo.String(), f.node(digitPlace{-1, true, false}))}
	if high.value.Cmp(numberMost) < 0 {
		starts = append(starts, b.net.text(hi.String(), f.node(digitPlace{-1, false, true})))
	}
	from, to := new(big.Int).Add(lo, big.NewInt(1)), new(big.Int).Sub(hi, big.NewInt(1))
	if from.Cmp(to) <= 0 {
		whole := b.ruleOf("a whole number", b.between(from, to))
		starts = append(starts, b.call(whole, f.node(digitPlace{-1, false, false})))
	}
	return starts
}

// fraction builds what follows a whole number so that the fraction is between two others.
type fraction struct {
	*builder
	lo, hi                string // digits after the point, without zeros at the end
	strictLow, strictHigh bool
	places                int
	memo                  map[digitPlace]int32
}

// node returns the node before digit p.i after the point; -1 is before the point itself.
func (f *fraction) node(p digitPlace) int32 {
	if n, ok := f.memo[p]; ok {
		return n
	}
	at := max(p.i, 0)
	var starts []int32
	if p.i != 0 && f.mayEnd(at, p.asLow, p.asHig) {
		starts = append(starts, end)
	}
	switch {
	case p.i < 0 && f.places > 0:
		starts = append(starts, f.byte('.', f.node(digitPlace{0, p.asLow, p.asHig})))
	case p.i >= 0 && p.i < f.places:
		lo, hi := byte('0'), byte('9')
		if p.asLow {
			lo = digitAt(f.lo, p.i)
		}
		if p.asHig {
			hi = digitAt(f.hi, p.i)
		}
		edges := f.step(lo, hi, p.asLow, p.asHig, func(asLow, asHigh bool) int32 { return f.node(digitPlace{p.i + 1, asLow, asHigh}) })
		starts = append(starts, f.bytes(edges...))
	}
	if len(starts) == 0 {
		starts = append(starts, f.bytes())
	}
	n := f.split(starts...)
	f.memo[p] = n
	return n
}

// mayEnd says whether the number may end before digit i: what follows counts as zeros.
func (f *fraction) mayEnd(i int, asLow, asHigh bool) bool {
	if asLow && (len(f.lo) > i || f.strictLow) {
		return false // below the bound, or the bound itself
	}
	return !asHigh || !f.strictHigh || len(f.hi) > i
}

func digitAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return '0'
}

// fractionOf returns the digits of r after the point, without zeros at the end; r >= 0.
func fractionOf(r *big.Rat) string {
	_, digits, _ := strings.Cut(r.FloatString(fractionMost), ".")
	return strings.TrimRight(digits, "0")
}

// fewPlaces says whether r has at most fractionMost digits after the point.
func fewPlaces(r *big.Rat) bool {
	return new(big.Rat).Mul(r, numberMost).IsInt() // fractionMost and wholeMost are the same
}

func floor(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: towards minus infinity, as Denom is positive
}

func ceil(r *big.Rat) *big.Int {
	n := floor(new(big.Rat).Neg(r))
	return n.Neg(n)
}

func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func (b *builder) numberOf(f *facts) (int32, error) {
	whole := f.types&typeNumber == 0 || f.places == 0
	places := f.places
	if whole {
		places = 0
	}
	if f.low == nil && f.high == nil {
		b.spend(8)
		return b.plainNumber(places, whole), nil
	}
	if !b.spend(4 * numberWork) {
		return 0, b.err
	}
	low, high := f.low, f.high
	if low == nil {
		low = &bound{value: new(big.Rat).Neg(numberMost), strict: true}
	}
	if high == nil {
		high = &bound{value: numberMost, strict: true}
	}
	for _, x := range []*bound{low, high} {
		if x == low && x.value.Cmp(numberMost) >= 0 || x == high && x.value.Cmp(new(big.Rat).Neg(numberMost)) <= 0 {
			return 0, fmt.Errorf("%s is beyond the numbers that are written: they have at most %d digits before the point", quote(x.at.at()), wholeMost)
		}
		if !whole && !fewPlaces(x.value) {
			return 0, fmt.Errorf("%s has more than %d digits after the point", quote(x.at.at()), fractionMost)
		}
	}
	if whole {
		return b.integers(low, high), nil
	}
	return b.decimals(low, high, places), nil
}

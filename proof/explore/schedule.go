package explore

// Schedule goes the way that a fuzzer chooses: each byte picks one of the events that are
// possible, then nothing breaks any more and everything has to end, as in Walk. A fuzzer that
// sees which bytes reach new code so learns to be a bad day.
//
// Three quarters of all bytes choose among what goes on by itself, as Walk does; 0 takes the
// first of that, so that an input that is cut short, or filled with zeros, is a quiet one.
func Schedule[S any, E comparable](sys Path[S, E], ask Question, choices []byte) Report {
	w := newWalker(sys, ask)
	return w.report(len(choices), func(n int, possible []E) E {
		b := int(choices[n])
		if b < 192 {
			possible = w.steady(possible)
		} else {
			b -= 192
		}
		return possible[b%len(possible)]
	}, "")
}

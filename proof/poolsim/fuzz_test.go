package poolsim

import (
	flags "flag"
	"slices"
	"testing"

	"baton/proof/corpus"
	"baton/proof/explore"
)

var rewrite = flags.Bool("rewrite", false, "look for new seeds of FuzzSchedule")

// world is what all worlds here are to a fuzzer.
type world[S any, E comparable] interface {
	explore.System[S, E]
	explore.Witness[S]
	explore.Drawer[S]
}

// watched says what a world shows.
type watched[S any, E comparable] struct {
	world[S, E]
	saw func(string)
}

func (x watched[S, E]) Apply(w *S, e E) error {
	err := x.world.Apply(w, e)
	seen := x.Shows(w)
	for i, name := range x.Witnesses() {
		if seen>>i&1 == 1 {
			x.saw(name)
		}
	}
	return err
}

// choicesMax keeps one input short.
const choicesMax = 300

func way[S any, E comparable](sys world[S, E], ask explore.Question, choices []byte, saw func(string)) error {
	r := explore.Schedule(watched[S, E]{sys, saw}, ask, choices[:min(len(choices), choicesMax)])
	return r.Err()
}

// plays are the worlds that a fuzzer may schedule: more rooms than there are blocks for, whose
// prompts begin alike.
var plays = []func(choices []byte, saw func(string)) error{
	func(choices []byte, saw func(string)) error {
		return way(NewPrefills(PrefillScope{Prompts: []string{"ab", "ab", "ac", "abc", "x"}, Tail: 1, Blocks: 6, Running: 3, Chunk: 1, Abort: true, StepFails: true, WriteFails: true, AnyOrder: true}), explore.PROMPT, choices, saw)
	},
	func(choices []byte, saw func(string)) error {
		return way(NewPrefills(PrefillScope{Prompts: []string{"ab", "ab", "ac", "abc", "x"}, Blocks: 4, Running: 3, Chunk: 2, Abort: true, StepFails: true, WriteFails: true, AnyOrder: true, Lose: true}), explore.TERM, choices, saw)
	},
	func(choices []byte, saw func(string)) error {
		return way(NewLocals(LocalScope{Prompts: []string{"a", "ab", "x", "ab"}, Tail: 15, Output: 3, Blocks: 6, Running: 4, Chunk: 1, Ahead: 1, Abort: true, StepFails: true}), explore.PROMPT, choices, saw)
	},
	func(choices []byte, saw func(string)) error {
		return way(NewPairs(PairScope{Source: 6, Slots: 3, Other: []string{"zb", "abc", "x", "ab"}, LocalScope: LocalScope{Prompts: []string{"ab", "abc", "x", "ab"}, Tail: 1, Output: 2, Blocks: 7, Running: 3, Chunk: 1, Abort: true, StepFails: true}}), explore.PROMPT, choices, saw)
	},
	func(choices []byte, saw func(string)) error {
		return way(NewLocals(LocalScope{Prompts: []string{"a", "ap", "x", "a"}, Says: []string{"p", "q", "y", "p"}, Outputs: [][]int{{2, 3}, {3}, {3, 1}, {4}}, Tail: 15, Blocks: 8, Running: 4, Chunk: 1, Ahead: 1, Abort: true, StepFails: true}), explore.PROMPT, choices, saw)
	},
	func(choices []byte, saw func(string)) error {
		return way(NewHolders(HolderScope{Prompts: []string{"ab", "abc", "x", "ac"}, Lives: 2, Blocks: 6, Quarantine: true}), explore.PROMPT, choices, saw)
	},
	func(choices []byte, saw func(string)) error {
		return way(NewHolders(HolderScope{Prompts: []string{"ab", "abc", "x", "ac"}, Lives: 3, Blocks: 5, Pins: 3}), explore.PROMPT, choices, saw)
	},
}

func play(scope uint8, choices []byte, saw func(string)) error {
	return plays[int(scope)%len(plays)](choices, saw)
}

// FuzzSchedule lets the fuzzer be everybody around a block pool with shared prefixes.
func FuzzSchedule(f *testing.F) {
	corpus.Fuzz(f, play)
}

// TestSeedsShowAllThatMayHappen: the committed seeds lead to everything that has a name, so that
// the fuzzer begins where it is interesting.
func TestSeedsShowAllThatMayHappen(t *testing.T) {
	corpus.Seeds{Dir: "testdata/fuzz/FuzzSchedule", Scopes: len(plays), Wanted: slices.Clone(sights[:]), Play: play}.Check(t, *rewrite)
}

// Package corpus keeps the seeds of fuzzed schedules: files of testdata/fuzz in the form that
// "go test -fuzz" reads, each of which leads a simulated world to something worth seeing.
//
// What a seed reaches depends on the order of events in a world, so a change of the world may
// leave seeds that reach nothing. Seeds.Check demands that all of them together still show all
// that there is a name for, and with rewrite looks for new ones. It never decides what is right
// in a world: the world's own invariants do. Only tests of worlds may import it.
package corpus

// Package transcript plays the transcripts of the cores: files in testdata that hold one event a
// line, the effects that the core answered with, and where asked what an operator sees. It also
// keeps pages that repeat what a core says of itself equal to it.
//
// It never decides what is right: the files do, and -rewrite writes into them what the core does
// now, for a human to read as a difference. Only tests may import it (house_test.go), those of
// the cores above all; it knows package room and no core.
package transcript

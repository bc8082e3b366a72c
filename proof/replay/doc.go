// Package replay tells fresh cores what recorded ones were told (serve/recorder), and wants of
// each step the effects that stand in the file. The cores are their own specification: a real
// run in which they did something else is a core that is not pure, a driver that stepped one
// behind its recorder, a file that was changed, or another build.
//
// It never judges whether the effects were right: the worlds of the other packages of proof do.
// What it adds is that they and production are the same. It also draws the life of one room out
// of the files of all that had a part in it. cmd and tests import it.
//
// Of several files it also holds that what their processes heard of each other is what they said
// (Post): that is of the drivers and links, which cores do not see.
//
// Clocks count there too: within a file none falls, and no deadline grows on its way.
//
//	Y1  a file is read whole or the error says where and why it is not; a last line that was
//	    cut, as a killed process leaves it, is no error and is reported
//	Y2  nothing in a file makes replay crash or take memory without bound: files come from
//	    elsewhere. A core that panics is caught and shown as what it did
package replay

// Package gate lists every scope of every world that has to hold before a change goes in, and
// its tests explore them. proof/mutants runs single ones by name, with broken cores.
//
// It decides nothing about the worlds: a scope belongs to proof/sim or proof/relaysim.
package gate

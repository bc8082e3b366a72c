// Package relaysim is the world around core/relay: clients, placement, and workers whose legs
// answer, stream, end, fail or fall silent in any order. The explorer visits all of it.
//
// A leg is modelled by what the gateway can see of it. What it posts stands in a line, in
// order; a Close ends the leg but does not take back what stands in the line. So everything
// that can cross, crosses. The two cores of a pair are explored in proof/sim.
//
// Workers die, fall ill and come back where a scope says so; placement then looks first and
// answers later, so that its answer may be old.
//
// The world checks at every step what core/relay promises (G1 to G10), from outside: it keeps
// its own count of ends, loads and open legs, and believes nothing that the core says of itself.
// STREAM: a client gets the pieces of one attempt as they came, without gap or repeat, and behind
// its one end nothing. CAUSE: a request ends by the first thing that its attempt was heard to fail by.
package relaysim

// Package life draws the life of a room and of a request: between which phases the production
// cores were seen to move them, and by which events. The worlds of the explorer take a Log along;
// ARCHITECTURE.md holds what it drew, and a test fails when the page says anything but what was
// seen in the worlds that it watches. A move that they do not lead to is not drawn.
//
// It never decides what is right, and it changes no step. Worlds and tests may import it.
package life

package room

import "fmt"

// Assert panics when what a core believes about itself is not so. It is on in production: an
// impossible state that is skipped is how a room gets forgotten. It is never for input.
func Assert(ok bool, core string, id ID, phase fmt.Stringer, what string) {
	if !ok {
		panic(fmt.Sprintf("%s: impossible in room %s, phase %s: %s", core, id, phase, what))
	}
}

package sim

import (
	"flag"
	"regexp"
	"testing"
)

var night = flag.String("night", "", "also explore the large scopes whose name matches; minutes and gigabytes")

// TestEveryRoomEnds explores every scope of the gate: safety, and the question in its name.
func TestEveryRoomEnds(t *testing.T) {
	for _, sc := range Scopes() {
		if !sc.Gate && (*night == "" || !regexp.MustCompile(*night).MatchString(sc.Name)) {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			r := sc.Run()
			t.Log(r.String())
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

package sim

import "testing"

// TestEveryRoomEnds explores every scope of the gate.
func TestEveryRoomEnds(t *testing.T) {
	for _, sc := range Scopes() {
		if !sc.Gate {
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

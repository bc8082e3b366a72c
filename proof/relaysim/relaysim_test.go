package relaysim

import "testing"

// TestEveryRequestEnds explores every scope of the gateway's request machine.
func TestEveryRequestEnds(t *testing.T) {
	for _, sc := range Scopes() {
		t.Run(sc.Name, func(t *testing.T) {
			r := sc.Run()
			t.Log(r.String())
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

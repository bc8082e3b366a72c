package chaos

import (
	"testing"
)

// slack is by how many descriptors and goroutines two quiet moments may differ: connections that
// one side keeps open for the next request, and the scrape itself.
const slack = 8

// level is what must not grow (X6).
type level struct{ descriptors, goroutines int }

// processLevel reads the level of one process, which serves its metrics at url.
func processLevel(t *testing.T, url string, pid int) level {
	t.Helper()
	g, ok := Metric(t.Context(), url, "go_goroutines")
	if !ok {
		t.Fatalf("%s does not show go_goroutines", url)
	}
	return level{Descriptors(pid), int(g)}
}

// clusterLevels reads the gateway's and every worker's level, by role and boot.
func clusterLevels(t *testing.T, c *Cluster) map[string]level {
	t.Helper()
	levels := map[string]level{"gateway": processLevel(t, c.URL, c.PID())}
	state, err := c.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range state.Workers {
		levels[w.Role+" "+w.Boot] = processLevel(t, "http://"+w.HTTP, w.PID)
	}
	return levels
}

func (before level) requireNoGrowth(t *testing.T, who string, after level) {
	t.Helper()
	if after.descriptors > before.descriptors+slack || after.goroutines > before.goroutines+slack {
		t.Errorf("%s grew (X6): %+v before, %+v after", who, before, after)
	}
}

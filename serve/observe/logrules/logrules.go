package logrules

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"baton/core/room"
)

// Keys is the list in the documentation of serve/observe.
var Keys = []string{"room", "rid", "lease", "worker", "peer", "phase", "event", "outcome", "cause", "after", "detail"}

type rules struct{ t testing.TB }

// New returns a log whose lines fail the test if they break a rule.
func New(t testing.TB) *slog.Logger { return slog.New(rules{t}) }

func (r rules) Enabled(context.Context, slog.Level) bool { return true }
func (r rules) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r rules) WithGroup(string) slog.Handler            { return r }

func (r rules) Handle(_ context.Context, line slog.Record) error {
	line.Attrs(func(a slog.Attr) bool {
		if a.Equal(slog.Attr{}) { // handlers leave it out
			return true
		}
		text := a.Value.String()
		switch {
		case !slices.Contains(Keys, a.Key):
			r.t.Errorf("%q: key %q", line.Message, a.Key)
		case text == "":
			r.t.Errorf("%q: %s has no value", line.Message, a.Key)
		case a.Key == "outcome" && !slices.Contains([]string{"success", "failed", "aborted"}, text):
			r.t.Errorf("%q: outcome %q", line.Message, text)
		case a.Key == "cause" && !slices.ContainsFunc(room.Causes(), func(c room.Cause) bool { return c.String() == text }):
			r.t.Errorf("%q: cause %q is not a cause's name", line.Message, text)
		}
		return true
	})
	return nil
}

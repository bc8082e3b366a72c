package observe

import "log/slog"

// Known is a key of a log line with its value, and nothing at all without one: a line says only
// what there is to say.
func Known(key, value string) slog.Attr {
	if value == "" {
		return slog.Attr{} // which handlers leave out
	}
	return slog.String(key, value)
}

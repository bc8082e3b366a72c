// Package prefill decides everything that a prefill worker does with its rooms.
package prefill

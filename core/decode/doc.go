// Package decode decides everything that a decode worker does with its rooms.
package decode

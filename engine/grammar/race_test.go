//go:build race

package grammar

// raceDetector says that memory is counted with what the race detector takes beside it.
const raceDetector = true

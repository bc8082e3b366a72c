// Package realmodel opens the real models that tests of the engine compare with, where a machine
// has them. It never fetches one: `baton pull` does. Only tests may import it (house_test.go); it
// knows engine/weights and nothing above.
package realmodel

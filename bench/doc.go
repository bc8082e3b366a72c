// Package bench measures, and says how it measured.
//
// So far it measures the engine alone: tokens per second of prompts and of generation, without
// workers or network, as `baton bench engine` prints them.
//
// It never judges a figure and never decides what is fast enough. It starts no server, opens no
// port and writes no file. It reads no flags, but its messages call what is wrong by the names
// that they have at `baton bench engine`.
//
// cmd may import it; nothing that serves and nothing that proves may. It imports engine.
//
//	B1  every figure is the median of its runs, after one run to warm up that does not count
//	B2  a plan that is wrong is refused whole, before anything is loaded or measured
//	B3  a plan that is stopped returns the figures that are complete, and no others
package bench

// Command llamacpp measures the engine and llama.cpp side by side, on the same files and processors, in turns, and says
// for each line of the goals whether it is met. See README.md.
//
// It fetches llama.cpp's prebuilt libraries with npm and builds a small C program (anchor/anchor.c) against them, makes model
// files of well-known shapes with random weights, and never judges on one measurement: rounds alternate, and the median of
// their ratios counts.
//
// Nobody imports it. It imports bench, engine and the standard library.
package main

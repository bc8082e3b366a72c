// Package store finds models, files and directories, by name and brings them onto this machine.
//
// It never opens a network connection except in Pull, never leaves a half-written file under a
// final name and never accepts a file whose known checksum differs. cmd and serve may import
// it; it imports gguf, safetensors and recall.
//
// Invariants, cited by code and tests:
//
//	S1  a file under its final name is complete: it was renamed there after its length and, where
//	    one is known, its checksum were found right; so is a directory, with files of one revision
//	S2  one pull of a file at a time on a machine: a lock file beside it
//	S3  a pull that is cut leaves a .part file, and the next pull goes on from there
package store

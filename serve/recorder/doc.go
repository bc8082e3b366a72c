// Package recorder is a flight recorder: it writes what a core was told and what it wanted done,
// step by step, into a file from which a fresh core can be told the same again (proof/replay,
// "baton replay"). Cores are pure, so any difference is a core that was not, a driver that
// stepped it behind the recorder's back, or another build.
//
// It never decides, never blocks the loop that it records, and holds no tokens and no text:
// cores see none. What they do see are the keys of blocks, digests of the beginnings of prompts
// under a secret salt of the process, which is not in the file: nobody finds a prompt by trying,
// but whoever reads a file sees which of its prompts begin alike, and how far.
// Drivers write with it, proof/replay reads with it, cmd names the directory.
//
// # The file
//
// JSON, one value a line, in a file that only its owner may read:
//
//	{"baton_trace":1,"core":"prefill","role":"prefill","name":"prefill-0","boot":"…","build":"…","started":"…","config":{…}}
//	{"now_ns":81250417,"rid":"…","event":{"kind":"request","room":"…","tokens":417,"deadline_ns":…},"effects":[{"kind":"accept","room":"…"}]}
//	…
//	{"end":"closed","events":5210}
//
// A field that is absent is zero (for a leg that is "prefill", the first in its list). Names are
// those of the Go fields, kinds and causes are words, rooms and boots 16 hexadecimal digits,
// lists of blocks runs as in "0..11,17". Times count from the start of the core's clock, which
// was at "started" on the wall. The rid stands beside the event that brings a request and is for
// readers alone.
//
// # Invariants
//
//	V1  the file is a prefix of what happened, in order and without a gap. What cannot be kept
//	    ends it, with a last line that says why (End). A file without one ends where its process
//	    was killed, or still grows, or could not even be ended; its last line may be cut
//	V2  what is read is what was written, for every field of every kind (form.go): a type that
//	    cannot be written fails when a recorder is made, a kind without a word fails a test
//	V3  the loop only copies: an event and its effects go into a bounded queue, another goroutine
//	    makes lines of them. A queue that is full ends the file (EndOverrun), never the loop
//	V4  bounded: a file by FileMax, a line by LineMax, the queue by QueueMax, a directory by
//	    FilesMax and DirMax
//	V5  a step that does not return is in the file as its last event, without effects: an
//	    assertion that fails in production can be looked at anywhere
//
// A file that is full stays as it is, and nothing follows it. The core's past is part of what it
// answers: tombstones, lease floors, the order of its free blocks, what is cached. A core without
// a room is not a fresh core, so a second file could be read only behind the first, and to keep
// the newest of them alone would keep what nobody can check.
//
// Slices of events and effects are kept, not copied: nobody writes to them again.
package recorder

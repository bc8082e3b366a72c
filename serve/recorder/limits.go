package recorder

import "time"

const (
	// FileMax bounds a file, so that packed it can be sent. How long it lasts is the load's: a
	// storm of short lives made 300 KB/s at a gateway, some 270 bytes an event, and fills it in a
	// quarter of an hour. A decode worker's step names every room that it computes, and its blocks:
	// with 24 streams of prompts of 16 tokens 8.3 KB a step and 1.4 MB/s, which is 3 minutes; more
	// rooms and longer tables shorten that. Prompts cost 35 bytes in each request for every block
	// that may be found in a cache.
	FileMax = 256 << 20

	// LineMax bounds a line: a step of 4,096 rooms, with block tables of 4 KB each.
	LineMax = 16 << 20

	// QueueMax bounds the events and effects that wait to be written: about a second of the
	// fastest gateway that was measured (5,000 requests a second, ten events each), which is a
	// disk that stalls, at some ten megabytes.
	QueueMax = 1 << 16

	// gatherAfter is how long events are gathered before they are written: as much as a killed
	// process may lose of its last words, and 20 writes a second at most.
	gatherAfter = 50 * time.Millisecond

	// gatherMax is how many wait at most before they are written all the same.
	gatherMax = QueueMax / 8

	// FilesMax and DirMax bound a directory of traces, whose lives nobody watches: a worker that
	// crashes whenever it starts makes one file in 5 s, short ones.
	FilesMax = 1024
	DirMax   = 4 << 30

	// closeMax is how long a process that ends waits for its last words to be written. A full
	// queue takes a third of a second; what takes longer is a disk that nobody should wait for.
	closeMax = 2 * time.Second

	// elementsMax bounds the numbers that the lists of one line may unfold to, because a run is
	// short to write: a step of 4,096 rooms with tables of 1,024 blocks.
	elementsMax = 1 << 22
)

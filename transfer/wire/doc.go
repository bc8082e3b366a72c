// Package wire is the language of a link: control frames and the header of a chunk, as bytes.
//
// A control frame is
//
//	u32 length of what follows the checksum | u32 crc32c of it | u8 kind | body
//
// and a chunk on the data connection is
//
//	header (HeaderBytes) | one u64 sum per block | side bytes | the blocks
//
// all little-endian. Decoders take any bytes and never panic (fuzzed). They bound every length
// before anything is allocated and every number before anybody sees it (T9 of package
// transfer). Encoders assert that what they are given would be decoded: a worker that breaks
// its own limits must not learn it from its peer.
//
// The package does no I/O of its own except ReadFrame, keeps no state, and decides nothing.
package wire

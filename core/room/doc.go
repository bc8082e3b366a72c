// Package room holds the words that every part of Baton shares: the room, its lease, its
// outcome, the three control messages of the room protocol, the names that operators see,
// limits, named timers, and the small tables in which the cores keep their rooms.
//
// It decides nothing and never reads a clock, starts a goroutine or does I/O. Everybody may
// import it; it imports the standard library only.
//
// Words (DESIGN §3): a request is what a client asked; an attempt is one try to serve it on
// one pair of workers; a room is the identity of an attempt; a lease is one reservation of
// destination blocks for one room; a leg is the part of an attempt at one worker; to settle
// is to say the final word on a lease; to revoke is to make sure that nothing can touch
// memory any more.
package room

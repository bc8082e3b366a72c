package tcp_test

import (
	"fmt"

	"baton/core/room"
	"baton/transfer"
	"baton/transfer/tcp"
)

// memory is a pool of sixteen blocks of 1 KiB.
type memory [16][1024]byte

func (m *memory) Block(i int32) []byte { return m[i][:] }

type prefill struct{ preallocs chan room.Prealloc }

func (prefill) LinkUp(room.Boot, room.Conn)               {}
func (prefill) LinkEnd(room.Boot, room.Conn, error)       {}
func (p prefill) Prealloc(x room.Prealloc)                { p.preallocs <- x }
func (prefill) Cancel(room.Cancel)                        {}
func (prefill) WriteDone(room.ID, room.Lease, int, error) {}

type decode struct {
	up     chan room.Conn
	placed chan string
}

func (d decode) LinkUp(_ int32, _ room.Boot, c room.Conn) { d.up <- c }
func (decode) LinkFailed(_ int32, err error)              { fmt.Println(err) }
func (decode) LinkEnd(int32, room.Conn, error)            {}
func (decode) Settled(int32, room.Settled)                {}
func (decode) Arrived(transfer.Chunk) ([]int32, bool)     { return []int32{7}, true }
func (d decode) Placed(c transfer.Chunk, side []byte)     { d.placed <- string(side) }
func (decode) Off(transfer.Chunk)                         {}
func (decode) Refused(transfer.Chunk)                     {}

// One block goes from block 3 of a prefill worker to block 7 of a decode worker.
func Example() {
	var src, dst memory
	copy(src.Block(3), "keys and values")
	secret := []byte("shared by the whole fleet")

	p := prefill{make(chan room.Prealloc, 1)}
	from, err := tcp.Listen("127.0.0.1:0", tcp.Identity{Boot: 1, Secret: secret}, &src, p)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer from.Close()

	d := decode{make(chan room.Conn, 1), make(chan string, 1)}
	to := tcp.NewDecode(tcp.Identity{Boot: 2, Secret: secret}, &dst, d)
	defer to.Close()
	to.Dial(0, from.Addr())
	conn := <-d.up

	to.Prealloc(conn, room.Prealloc{Room: 5, Lease: room.Lease{Boot: 2, Seq: 1}, Conn: conn, Tokens: 16})
	ask := <-p.preallocs
	from.Write(tcp.Write{Room: ask.Room, Lease: ask.Lease, Conn: ask.Conn, Blocks: []int32{3}, Last: true, Side: []byte("first token")})
	fmt.Println(<-d.placed)
	fmt.Printf("%s\n", dst.Block(7)[:15])
	// Output:
	// first token
	// keys and values
}

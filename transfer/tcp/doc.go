// Package tcp is the framed plane: a decode worker dials a prefill worker and gets one control
// and one data connection, which live and die together (a link).
//
// It keeps T1 to T9 of package transfer. No address of a destination is ever on the wire: a
// chunk names its room, lease and number, and the receiver asks the handler where it goes.
// What nobody wants is read into a scratch buffer and counted.
//
// It proves that both ends know the secret; it does not encrypt, and it does not protect
// against somebody who can change packets on the way.
package tcp

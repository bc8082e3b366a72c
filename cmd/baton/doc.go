// Command baton serves large language models with prefill and decode on separate workers, and
// shows where every request is.
//
// A file per command. It parses flags, wires packages and prints; it decides nothing.
package main

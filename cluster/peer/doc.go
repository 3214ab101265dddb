// Package peer moves frames between the members of a cluster over TCP.
//
// A Peers listens, and dials each member that it sends to. A connection carries
// frames one way: whoever dialled it writes, whoever accepted it reads, apart
// from one word with which it welcomes the other. It is TLS 1.3 with certificates
// on both sides; the key of each is made at start, lives in memory alone, and is
// known by the fingerprint in its Endpoint. Nobody but admitted members gets
// past the handshake.
//
// Frames of one connection arrive in order and once. Send never writes a frame
// again: after a failure it says so, and the next Send dials anew.
//
// # Errors
//
// Errors of Send match cluster.ErrUnreachable; a frame that no transport takes
// matches wire.ErrFrame instead. When a connection fails after Send has returned,
// frames may be lost, and the next Send to that member, unless Admit comes
// first, returns the error. A receiver that gets bytes that are no frame closes
// the connection and logs one line.
//
// # Goroutines
//
// A Peers runs one goroutine that accepts, and one for each connection; Close
// ends them and waits for them. The handler is called from the goroutine of its
// sender's connection, so a handler that waits fills the buffers of the
// connection and then holds Send up, for Options.Stall at most.
//
// # Source
//
// TLS 1.3 is RFC 8446, Ed25519 certificates RFC 8410.
package peer

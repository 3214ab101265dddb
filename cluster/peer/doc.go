// Package peer moves frames between the members of a cluster over TCP, and over
// Unix sockets between those on one host.
//
// A Peers listens, and dials each member that it sends to. A connection carries
// frames one way: the side that dialled writes, the side that accepted reads, apart
// from one word with which it welcomes the other. Over TCP it is TLS 1.3 with
// certificates on both sides; the key of each is made at start, lives in memory
// alone, and is known by the fingerprint in its Endpoint. Only admitted
// members get past the handshake.
//
// Frames of one connection arrive in order and once. Send never writes a frame
// again: after a failure it says so, and the next Send dials anew.
//
// # Shapes and units
//
// A frame is a header of 64 bytes and a payload of at most cluster.MaxFrameBytes;
// numbers are little-endian.
//
// # Members on one host
//
// With Options.Local a member listens on a Unix socket too, in a directory that
// only its user enters; Endpoint.Local names the socket by the boot of the host,
// the path, and the device and inode of the file. A sender that finds this very
// socket at the path, owned by its own user, dials it. All others use TCP, as do
// those that cannot connect to it because the file is gone or has no listener.
// That is settled before identities are proved: a member that then fails to prove
// its own is refused, and not tried by TCP. Peers.Ways, and one line in the log for each
// member, say which way is used.
//
// The kernel carries what is written to a Unix socket and shows it to no other
// process, so messages are not encrypted. Both sides check that the other runs as the
// same user, and both sign fresh nonces with the keys whose fingerprints are
// admitted. Frames are the same but for the checksum, which is of the header
// alone: memory does not change on its way through the kernel, and with payloads
// summed up a reduction takes about a third longer.
//
// # Errors
//
// Errors of Send match cluster.ErrUnreachable; a frame that no transport takes
// matches wire.ErrFrame instead. When a connection fails after Send has returned,
// frames may be lost, and the next Send to that member, unless Admit comes
// first, returns the error. A receiver that gets bytes that are not a frame closes
// the connection and logs one line.
//
// # Goroutines
//
// A Peers runs one goroutine for each listener, and one for each connection; Close
// ends them and waits for them. The handler is called from the goroutine of its
// sender's connection, so a handler that waits fills the buffers of the
// connection and then holds Send up, for Options.Stall at most.
//
// # Source
//
// TLS 1.3 is RFC 8446, Ed25519 RFC 8032, its keys in certificates RFC 8410. Unix
// sockets and SO_PEERCRED are as in unix(7) of Linux.
package peer

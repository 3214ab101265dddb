// Package natsbus is the cluster's bus over a NATS server with JetStream, and
// that server embedded.
//
// Everything durable is a stream. Buckets are streams with one message per key, in
// the layout of NATS key-value buckets; revisions are sequence numbers of the
// stream, so they grow over deletion, expiry and restarts. Jobs wait in a
// work-queue stream and stay in it until they are done; a bucket
// says who works on one, because the server may forget that in a crash. Blobs are cut into
// chunks, each confirmed by the server, and exist once their manifest does.
//
// Every call is tried again until its context ends, over lost connections and
// restarts of the server. A write bears an identifier of its own, by which a
// second try of a write whose answer was lost is known.
//
// Replies come to a subject prefix that only the owner of a key may listen to,
// so that the permissions of a Seat can be narrow.
//
// # Shapes and units
//
// Sizes are in bytes, chunks of blobs at most 1 MiB less 1 KiB. The CRC-32C of a
// chunk is in its header in eight hexadecimal digits.
//
// # Errors
//
// Errors match those of package cluster, and ErrDenied where the server's
// permissions forbid something. Their text is one line and free of secrets.
//
// # Goroutines
//
// A Bus is safe for concurrent use. It has one goroutine that stores events in
// order, one for each Listen, and those of a Put or Get while it runs. A Next
// that is given up may leave one for two seconds, which hands back a job that
// came too late. A Broker has those of its server.
//
// # Source
//
// NATS architecture decision records ADR-8 (key-value buckets), ADR-13 (pull
// requests), ADR-31 (direct get) and ADR-4 (headers).
package natsbus

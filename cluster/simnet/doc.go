// Package simnet is a network in memory on which the protocol of package cluster
// is tested: a broker and any number of hosts, with the faults that real ones
// have, from a seed. Inside a bubble of testing/synctest its time is virtual, so
// that minutes of a schedule take milliseconds.
//
// A Network is a broker, which has the name Broker, and hosts, each a process on
// a machine of its own. Messages, and the requests and replies of buckets, jobs,
// blobs and events, go through the broker and are lost, doubled and delayed as
// Faults say. Frames go from host to host over connections that keep the order,
// hold senders up, and may break. Hosts crash, links are cut, the broker stops.
//
// A Toy takes the place of a model: flows and parameters are hashes, which come out
// wrong if one shard is missing, or is counted twice, or met other parameters.
// Reference computes the same in one place.
//
// # Shapes and units
//
// Sizes are bytes, probabilities those of one way over one link. State and flows
// of a Toy stand as its Layout says.
//
// # Errors
//
// Calls give the errors that cluster.Bus and cluster.Peers promise. Settings
// that make no sense change nothing: a probability that is NaN is 0.
//
// # Goroutines
//
// All may be called from any goroutine. The network has no goroutine while
// nothing is handed over; what it calls back runs in goroutines that end with
// the call. Random numbers are drawn for each link by itself, in the order in
// which it is used, so that a seed repeats a schedule as far as goroutines are
// scheduled alike.
//
// # Source
//
// The kinds of faults are those of Jepsen's tests of distributed systems.
package simnet

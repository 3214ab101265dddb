// Package cluster trains and evaluates on many machines with the bits of one.
//
// A coordinator holds the lead of the cluster and hands shards of rows to
// workers. Workers add the flows of their shards up as integers, so neither the
// number of workers nor who computed what shows in the result. At the end of a
// step each worker owns a part of the parameters: it gets the others' flows for
// its part, moves the part, and sends it to all. A step is done when every
// worker has all parts; before that nothing of it counts.
//
// Whatever goes wrong ends in a new term: the members that are left say which
// shards they hold and which version of the parameters, and only what is missing
// is done again.
//
// # Shapes and units
//
// Log-likelihoods are in nats, summed over the rows of a shard in order. Flows
// are integers in units of engine.Engine.Grid. The sum of a step over any number
// of workers has the error of its shards alone: half a unit of the grid each.
//
// # Errors
//
// ErrCluster is the class of all: ErrLost, ErrJob, ErrDeposed and ErrDead say more.
//
// # Goroutines
//
// A Coordinator and a Worker each own their state in one goroutine; their
// methods may be called from any. What a Bus or Peers calls back must not block
// for long.
//
// # Source
//
// Leases and fencing tokens follow Gray and Cheriton, "Leases: An Efficient
// Fault-Tolerant Mechanism for Distributed File Cache Consistency", SOSP 1989.
package cluster

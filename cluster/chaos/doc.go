// Package chaos holds a test that trains on a cluster of real processes on
// several hosts, which are network namespaces of this machine, while they are
// killed, cut off from each other and run out of disk space at random moments.
// Every run must end with the model that plain training gives, bit by bit, and
// each shard must count once in each step.
//
//	go test ./cluster/chaos -runs 30 -seed 1 -timeout 60m -v
//
// A run is given by its seed: which disturbances there are, when, where and for
// how long. What the machine makes of that differs from time to time. Only
// disturbances that hit a living process while the run was in progress count; a
// run without any is drawn again, with earlier ones.
//
// The test needs Linux, root and the program ip of iproute2; without them it is
// skipped, or fails where PCE_REQUIRE_NETNS is 1.
//
// # Shapes and units
//
// Hosts have addresses in 10.77.0.0/24 of a switch of their own, so that several
// tests at a time do not meet.
//
// # Errors
//
// The package exports nothing.
//
// # Goroutines
//
// Each process has a goroutine that starts it again when it ends. All children
// are started from one thread, because the system kills them when that ends.
//
// # Source
//
// Faults are injected from outside, as in Kingsbury's Jepsen tests, and checked
// against a result that is known.
package chaos

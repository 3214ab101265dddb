package cluster

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers may test for with errors.Is; all match ErrCluster.
var (
	ErrCluster = errors.New("cluster")
	// ErrLost means that no worker has the parameters any more: continue from the
	// last checkpoint.
	ErrLost = fmt.Errorf("%w: parameters lost", ErrCluster)
	// ErrJob means that a job cannot be run as it is.
	ErrJob = fmt.Errorf("%w: bad job", ErrCluster)
	// ErrDeposed means that another coordinator has the lead.
	ErrDeposed = fmt.Errorf("%w: deposed", ErrCluster)
	// ErrDead means that a shard failed on every worker that tried it.
	ErrDead = fmt.Errorf("%w: dead shard", ErrCluster)
	// ErrNoRecord means that a bucket has no such record.
	ErrNoRecord = fmt.Errorf("%w: no record", ErrCluster)
	// ErrConflict means that a record was written by another since it was read.
	ErrConflict = fmt.Errorf("%w: conflict", ErrCluster)
	// ErrUnreachable means that the broker, or a peer, cannot be reached now.
	ErrUnreachable = fmt.Errorf("%w: unreachable", ErrCluster)
)

// badJob is what a worker says that no worker can do.
func badJob(why string) error {
	return fmt.Errorf("%w: %s", ErrJob, strings.TrimPrefix(why, ErrJob.Error()+": "))
}

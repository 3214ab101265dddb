package scale

import (
	"errors"
	"fmt"
	"math"

	"github.com/pce-engine/pce/layers"
)

// ErrSetting means that a setting cannot be simulated.
var ErrSetting = errors.New("scale: bad setting")

// Model is what is trained.
type Model struct {
	Name   string
	Owners []layers.Owner
	Row    float64 // seconds that a worker computes a row
}

// size returns the flows and the parameters of owners.
func size(owners []layers.Owner) (flows, params int64) {
	for i := range owners {
		for _, r := range owners[i].Flows {
			flows += r.Len()
		}
		for _, r := range owners[i].Params {
			params += r.Len()
		}
	}
	return flows, params
}

// Bytes is how long all flows and all parameters are together.
func (m *Model) Bytes() int64 {
	flows, params := size(m.Owners)
	return 8*flows + 4*params
}

// Largest is the share of the bytes that the largest owner has.
func (m *Model) Largest() float64 {
	most := int64(0)
	for i := range m.Owners {
		flows, params := size(m.Owners[i : i+1])
		most = max(most, 8*flows+4*params)
	}
	return float64(most) / float64(m.Bytes())
}

// Transport is how flows and parameters travel.
type Transport string

// The transports.
const (
	TCP  Transport = "tcp"  // between the workers directly
	NATS Transport = "nats" // through the broker
)

// Network is what is between the hosts.
type Network struct {
	Transport Transport
	Bandwidth float64 // bytes of payload a second, of each host and of the broker's, each way
	Latency   float64 // seconds from one host to another
}

// Costs are what moving and coordinating costs beside the network.
type Costs struct {
	Cores       int     // of a host: half of them send, half receive
	BrokerCores int     // of the broker, for what passes through
	Wire        float64 // seconds per byte for a sender, a receiver and the broker each
	Fold        float64 // seconds per byte of flows that an owner checks and adds
	Copy        float64 // seconds per byte that is copied, cleared or summed up
	Apply       float64 // seconds a parameter that moves

	Message float64 // seconds to make or take a message
	Byte    float64 // seconds per byte of a message
	Look    float64 // seconds for each worker looked at when a shard is assigned
	Control float64 // seconds that a message is on its way, beside the latency
}

// Job is the work.
type Job struct {
	Rows  int // of an epoch
	Batch int // rows of a step
	Shard int // rows of a shard
}

// Setting is what is simulated: each worker is a host of its own, and broker and
// coordinator share one more.
type Setting struct {
	Model   Model
	Workers int
	Network Network
	Costs   Costs
	Job     Job
	Noise   float64 // standard deviation of the logarithm of a shard's time
	Spread  float64 // and of a worker's speed
	Seed    uint64
}

// Bounds of a simulation.
const (
	maxWorkers = 1024
	maxShards  = 1 << 15 // as in package cluster
)

func (s *Setting) check() error {
	switch {
	case s.Workers < 1 || s.Workers > maxWorkers:
		return fmt.Errorf("%w: %d workers; want 1 to %d", ErrSetting, s.Workers, maxWorkers)
	case len(s.Model.Owners) == 0:
		return fmt.Errorf("%w: model %q has no owners", ErrSetting, s.Model.Name)
	case s.Network.Transport != TCP && s.Network.Transport != NATS:
		return fmt.Errorf("%w: transport %q; want tcp or nats", ErrSetting, s.Network.Transport)
	case !(s.Network.Bandwidth > 0) || !(s.Model.Row > 0):
		return fmt.Errorf("%w: bandwidth %v and seconds per row %v must be above 0", ErrSetting, s.Network.Bandwidth, s.Model.Row)
	case s.Costs.Cores < 1 || s.Costs.BrokerCores < 1:
		return fmt.Errorf("%w: %d cores and %d of the broker; want 1 or more", ErrSetting, s.Costs.Cores, s.Costs.BrokerCores)
	case s.Job.Shard < 1 || s.Job.Batch < 1 || s.Job.Rows < s.Job.Batch:
		return fmt.Errorf("%w: %d rows in steps of %d in shards of %d", ErrSetting, s.Job.Rows, s.Job.Batch, s.Job.Shard)
	case (s.Job.Batch-1)/s.Job.Shard >= maxShards:
		return fmt.Errorf("%w: a step of more than %d shards; raise the rows of a shard", ErrSetting, maxShards)
	}
	c := &s.Costs
	for _, x := range []float64{s.Model.Row, s.Network.Bandwidth, s.Network.Latency, c.Wire, c.Fold, c.Copy, c.Apply, c.Message, c.Byte, c.Look, c.Control, s.Noise, s.Spread} {
		if !(x >= 0) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: %v is not a cost, speed or deviation", ErrSetting, x)
		}
	}
	return nil
}

// Result is what a step takes once speeds are known.
type Result struct {
	Step     float64 // seconds
	Epoch    float64 // seconds: all steps of one
	Compute  float64 // of Step: until the coordinator knows that all shards are done
	Exchange float64 // of Step: from the order to move until all have moved
	Ideal    float64 // seconds of computing if nothing were lost: rows by the sum of speeds
	Limit    string  // what takes most of the rest: see the constants
	Events   int
}

// What limits a step.
const (
	ByCompute     = "compute"     // nothing: the rest is less than a tenth of the step
	ByShards      = "shards"      // workers wait for the last shards
	ByLink        = "link"        // of a worker
	ByWire        = "wire"        // a worker's cores, with encryption and copies of the transport, or sums of flows
	ByOwner       = "owner"       // one of these, but of the worker with the largest part, far above the others
	ByMemory      = "memory"      // copies, clearing and checksums of a worker, and its move
	ByBrokerLink  = "broker link" // of the broker's host
	ByBroker      = "broker"      // its cores
	ByCoordinator = "coordinator" // its messages
	ByLatency     = "latency"     // messages under way
)

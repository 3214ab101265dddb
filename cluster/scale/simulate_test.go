package scale

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/layers"
)

// owners returns owners of so many parameters each, with a flow for each.
func owners(sizes ...int64) []layers.Owner {
	var list []layers.Owner
	at := int64(0)
	for _, n := range sizes {
		r := []layers.Range{{Lo: at, Hi: at + n}}
		list = append(list, layers.Owner{Params: r, Flows: r})
		at += n
	}
	return list
}

func even(n int, each int64) []layers.Owner {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = each
	}
	return owners(sizes...)
}

// plain is a setting without costs: 64 shards of 10 rows, 1 ms a row.
func plain(workers int, transport Transport, list []layers.Owner) Setting {
	return Setting{
		Model: Model{"plain", list, 1e-3}, Workers: workers,
		Network: Network{Transport: transport, Bandwidth: 1e9},
		Costs:   Costs{Cores: 2, BrokerCores: 1},
		Job:     Job{Rows: 640, Batch: 640, Shard: 10},
	}
}

func simulate(t *testing.T, s Setting) Result {
	t.Helper()
	r, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*want) {
		t.Errorf("%s: %v, want %v within %v of it", what, got, want, tolerance)
	}
}

func TestOneWorker(t *testing.T) {
	s := plain(1, TCP, even(4, 1000))
	near(t, "step", simulate(t, s).Step, 0.640, 1e-9)
	s.Job.Rows = 1280
	near(t, "epoch of two steps", simulate(t, s).Epoch, 1.280, 1e-9)
	s.Costs.Apply = 1e-6
	near(t, "step with a move", simulate(t, s).Step, 0.640+4000e-6, 1e-9)
	s.Network.Latency = 1e-3
	// Work, the last shard, the order and the answer are under way one after
	// another: four times the latency. There is always a shard in hand.
	near(t, "step with latency", simulate(t, s).Step, 0.640+4000e-6+4e-3, 1e-9)
}

func TestTwoWorkers(t *testing.T) {
	list := even(4, 1_000_000)
	s := plain(2, TCP, list)
	r := simulate(t, s)
	near(t, "compute", r.Compute, 0.320, 1e-9)
	// Each sends half of the flows, then half of the parameters: 16 MB and 8 MB
	// at 1 GB/s. The last of 62 pieces passes a second link alone.
	near(t, "exchange", r.Exchange, 0.024, 0.02)
	s.Network.Bandwidth = math.MaxFloat64
	s.Costs.Fold = 1e-9 // its own flows and the other's, one after the other
	near(t, "adding", simulate(t, s).Exchange, 0.032, 0.02)
	s.Costs.Fold, s.Costs.Copy = 0, 1e-9
	// Before: the part, 24 MB; reading the other's half, 16 MB; the move, 24 MB;
	// what comes, 8 MB; the sum over all, 16 MB.
	near(t, "copying", simulate(t, s).Exchange, 0.088, 0.02)
}

// TestBalanced: flows cost (W-1)/W of their bytes by the bandwidth, and so do parameters.
func TestBalanced(t *testing.T) {
	for _, workers := range []int{2, 4, 16, 64} {
		r := simulate(t, plain(workers, TCP, even(64, 100_000)))
		want := (8 + 4) * 6.4e6 * float64(workers-1) / float64(workers) / 1e9
		near(t, "exchange", r.Exchange, want, 0.05)
		near(t, "compute", r.Compute, 0.640/float64(workers), 1e-9)
	}
}

// TestWholeOwners: all flows of the large owner come in by one link, and its
// parameters leave by the same one, however many workers there are.
func TestWholeOwners(t *testing.T) {
	for _, workers := range []int{2, 4, 8} {
		r := simulate(t, plain(workers, TCP, owners(10_000_000, 1)))
		near(t, "exchange", r.Exchange, (8+4)*1e7*float64(workers-1)/1e9, 0.05)
		if workers > 2 && r.Limit != ByOwner {
			t.Errorf("limit %q", r.Limit)
		}
	}
}

// TestBroker: all bytes pass one link, and one core where that is slower.
func TestBroker(t *testing.T) {
	s := plain(8, NATS, even(64, 100_000))
	s.Network.Bandwidth = 0.5e9
	want := (8 + 4) * 6.4e6 * 7.0 / 0.5e9
	near(t, "exchange", simulate(t, s).Exchange, want, 0.05)
	s.Network.Bandwidth, s.Costs.Wire = 1e12, 4e-9
	r := simulate(t, s)
	near(t, "exchange by the core", r.Exchange, want*2, 0.05)
	if r.Limit != ByBroker {
		t.Errorf("limit %q", r.Limit)
	}
	s.Costs.BrokerCores = 4
	near(t, "four cores", simulate(t, s).Exchange, want/2, 0.05)
}

func TestCoordinator(t *testing.T) {
	s := plain(4, TCP, even(4, 1))
	s.Costs.Message = 0.02 // 64 results alone take twice as long as the shards
	r := simulate(t, s)
	if !(r.Step >= 64*0.02) || r.Limit != ByCoordinator {
		t.Errorf("%+v", r)
	}
}

func TestShards(t *testing.T) {
	s := plain(64, TCP, even(64, 1))
	s.Job.Shard = 160 // four shards for 64 workers
	r := simulate(t, s)
	near(t, "step", r.Step, 0.160, 1e-3)
	if r.Limit != ByShards {
		t.Errorf("limit %q", r.Limit)
	}
}

// TestSpread: fast workers get more shards, so that the step takes what all
// speeds together take, and little more than the slowest takes for the two shards
// in its hands.
func TestSpread(t *testing.T) {
	s := plain(4, TCP, even(4, 1))
	s.Spread, s.Noise, s.Seed = 0.5, 0.05, 7
	r := simulate(t, s)
	if !(r.Step > r.Ideal && r.Step < r.Ideal+0.05) {
		t.Errorf("%+v", r)
	}
	if again := simulate(t, s); again != r {
		t.Errorf("%+v and %+v", r, again)
	}
}

func TestBadSettings(t *testing.T) {
	for name, change := range map[string]func(*Setting){
		"workers":   func(s *Setting) { s.Workers = 0 },
		"owners":    func(s *Setting) { s.Model.Owners = nil },
		"transport": func(s *Setting) { s.Network.Transport = "pigeon" },
		"bandwidth": func(s *Setting) { s.Network.Bandwidth = math.NaN() },
		"cost":      func(s *Setting) { s.Costs.Fold = math.NaN() },
		"cores":     func(s *Setting) { s.Costs.Cores = 0 },
		"batch":     func(s *Setting) { s.Job.Batch = 641 },
		"shards":    func(s *Setting) { s.Job = Job{1 << 20, 1 << 20, 1} },
	} {
		s := plain(2, TCP, even(2, 10))
		change(&s)
		if _, err := Simulate(s); !errors.Is(err, ErrSetting) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

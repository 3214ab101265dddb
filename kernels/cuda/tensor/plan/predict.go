package plan

import (
	"github.com/pce-engine/pce/layers"
)

// Cost is what the launches of one kernel take in a training step.
type Cost struct {
	Kernel       string  `json:"kernel"`
	Launches     int     `json:"launches"`
	Flop         float64 `json:"flop"`         // of sums: multiplications and additions that a step cannot do without
	Work         float64 `json:"tensor_flop"`  // as the kernel does them on tensor cores
	Bytes        float64 `json:"bytes"`        // from and to memory, each array once
	Cache        float64 `json:"cache_bytes"`  // from the second-level cache, as its blocks read
	Shared       float64 `json:"shared_bytes"` // from and to shared memory, of products by matrix instructions
	Text         float64 `json:"ptx_instructions"`
	Instructions float64 `json:"instructions"` // of warps, as the card issues them
	Floor        float64 `json:"floor_seconds"`
	Terms        Terms   `json:"terms"`
	Expected     float64 `json:"expected_seconds"`
	Bound        string  `json:"bound"` // the largest of the terms

	again float64 // of Bytes: read before in the step
}

// Terms are what the expected time of launches is made of, in seconds. A launch takes the
// longest of Issue, Tensor, Memory, Cache and Shared, which overlap, and Latency
// and Gaps, in which the card does nothing else.
type Terms struct {
	Issue   float64 `json:"issue_seconds"`   // to issue the instructions
	Tensor  float64 `json:"tensor_seconds"`  // to multiply
	Memory  float64 `json:"memory_seconds"`  // for bytes from and to memory
	Cache   float64 `json:"cache_seconds"`   // for those from the second-level cache
	Shared  float64 `json:"shared_seconds"`  // for those from and to shared memory
	Latency float64 `json:"latency_seconds"` // for loads that wait for each other
	Gaps    float64 `json:"gap_seconds"`     // between launches
	Host    float64 `json:"host_seconds"`    // of a step: until the host starts the next one
}

func (t *Terms) add(o Terms) {
	t.Issue += o.Issue
	t.Tensor += o.Tensor
	t.Memory += o.Memory
	t.Cache += o.Cache
	t.Shared += o.Shared
	t.Latency += o.Latency
	t.Gaps += o.Gaps
	t.Host += o.Host
}

// expected is the time of one launch.
func (t *Terms) expected() float64 {
	return max(t.Issue, t.Tensor, t.Memory, t.Cache, t.Shared) + t.Latency + t.Gaps + t.Host
}

// bound names the largest term.
func (t *Terms) bound() string {
	bound, most := "", -1.0
	for _, part := range []struct {
		name string
		time float64
	}{
		{"issue", t.Issue}, {"tensor", t.Tensor}, {"memory", t.Memory}, {"cache", t.Cache}, {"shared", t.Shared},
		{"latency", t.Latency}, {"launch", t.Gaps}, {"host", t.Host},
	} {
		if part.time > most {
			bound, most = part.name, part.time
		}
	}
	return bound
}

// Predict estimates a training step of one shard of rows rows, kernel by kernel in
// the order of their first launch, and the sum of all, with what the host adds.
func Predict(m layers.Module, rows int, r Rates) (costs []Cost, step Cost, err error) {
	t, err := NewTables(m)
	if err != nil {
		return nil, Cost{}, err
	}
	t.Processors = r.Processors
	s := NewSchedule(t, true)
	place := map[string]int{}
	read := reads{}
	card := newOccupancy(Variant(m, 9, 0))
	for _, part := range [][]Work{s.Forward, s.Backward, s.Move} {
		for _, w := range part {
			i, ok := place[w.Kernel]
			if !ok {
				i = len(costs)
				place[w.Kernel] = i
				costs = append(costs, Cost{Kernel: w.Kernel})
			}
			costs[i].add(s.cost(w, rows, r, card, read))
		}
	}
	step.Kernel = "step"
	for i := range costs {
		costs[i].Bound = costs[i].Terms.bound()
		step.add(costs[i])
	}
	step.Terms.Host = hostSeconds(r)
	step.Expected += step.Terms.Host
	step.Bound = step.Terms.bound()
	return costs, step, nil
}

func (c *Cost) add(o Cost) {
	c.Launches += o.Launches
	c.Flop += o.Flop
	c.Work += o.Work
	c.Bytes += o.Bytes
	c.Cache += o.Cache
	c.Shared += o.Shared
	c.Text += o.Text
	c.Instructions += o.Instructions
	c.Floor += o.Floor
	c.Terms.add(o.Terms)
	c.Expected += o.Expected
	c.again += o.again
}

// cost is what one launch takes.
func (s *Schedule) cost(w Work, rows int, r Rates, card occupancy, read reads) Cost {
	t := s.Tables
	c := t.traffic(w, s.Lists, float64(rows), read)
	all, most := t.trips(w, s.Lists, rows)
	text := weightsOf(w.Kernel, t.Size, t.Mixed)
	products, others := text.of(all)
	c.Text, c.Instructions = products+others, sass(c.Work > 0 && t.Size >= 16, products, others)
	products, others = text.of(most)
	longest := sass(c.Work > 0 && t.Size >= 16, products, others)
	g := card.grid(w, int(all.blocks), r.Processors)
	c.Terms = Terms{
		Issue:   dragOf(w.Kernel) * issueSeconds(g, c.Instructions, longest, r),
		Tensor:  tensorSeconds(g, c.Work, r),
		Memory:  memorySeconds(c.Bytes, r),
		Cache:   cacheSeconds(g, c.Cache, r),
		Shared:  sharedSeconds(g, c.Shared, r),
		Latency: latencySeconds(g, w.Kernel, r),
		Gaps:    r.Launch,
	}
	c.Floor = max((c.Bytes-c.again)/r.Memory, c.Flop/r.F16)
	c.Expected = c.Terms.expected()
	return c
}

package em

import (
	"context"
	"math"

	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/layers"
)

// DiscriminativeCounts is how many times the counts of its rows the counts of a discriminative step may be.
const DiscriminativeCounts = 2

const (
	// inertia is how many times what a discriminative step changes in a unit, in rows, the unit's present distribution is
	// added to its counts: it moves by no more than about a share of 1/inertia.
	inertia = 2
	// restShare of the rows that a unit accounts for are added too, so that units that hardly change stay where they are.
	restShare = 0.01
	// nearly is how much of the spread that EM gives a unit a step has to leave it: all but what the share takes away.
	nearly = 0.99
)

// contrast makes the counts that a discriminative step moves parameters by. With F the expected counts of a unit of rows,
// G those of the rows without their class (impossible rows are in neither), s the share and θ the unit's distribution as it is,
//
//	C = F - s·G + D·θ,  D = s·(inertia·Σ|F-G| + restShare·ΣG)
//
// scaled to (1-s)·ΣF + s·ΣG counts, those of leaves of the class to ΣF: p(x) does not depend on these, so that G has none of
// them. Adding enough of θ makes counts of what the class alone is missing, F - s·G, whose direction is the
// gradient's: the growth transformation of Gopalakrishnan et al., "An inequality for rational functions with applications to
// some statistical estimation problems", 1991, known as extended Baum-Welch. There D is a multiple of ΣG, by which a unit moves
// the less the fewer rows are classified wrongly; what changes decides here, so that a step is as long as its step
// size says. A count must not fall below 0: where F - s·G does, it is D·θ·exp((F - s·G)/(D·θ)), of which C is the first two
// terms. Statistics of leaves without codes get D times those that θ expects, with D doubled
// until the unit has means of statistics that rows can have, or no farther from these than before, and half of its spread or, where that is
// less, what F alone leaves it: else a unit that is far wider than its rows would come to them the more slowly the smaller the share is.
// A unit so far from all rows that flows do not hold what it expects gets F. Without a share all of this is EM.
type contrast struct {
	eng           *engine.Engine
	prog          *layers.Program
	share         float64
	owners        []layers.Owner
	first         []int32 // by edge block: the first unit of its sum that it has weights of
	ofClass       []bool  // by input: it has parameters that leaves of the class read
	with, without []int64
	params        []float32
	part          []int64 // zeros, of a transfer
}

// ContrastBytes is what discriminative training of a program takes on the host.
func ContrastBytes(p *layers.Program) int64 { return 16*p.FlowLen() + 4*p.NumParams }

func newContrast(eng *engine.Engine, d Discriminative) *contrast {
	p := eng.Program()
	c := &contrast{eng: eng, prog: p, share: d.Share, owners: p.Owners(), first: make([]int32, p.ParamBlocks), ofClass: make([]bool, len(p.Inputs))}
	for i := range p.Inputs {
		if in := &p.Inputs[i]; int(p.Columns[in.Column].Var) == d.Class {
			c.ofClass[in.Owner] = true
		}
	}
	sums := make([]int32, p.NodeBlocks) // the first block of the vector of each
	for i := range p.Vectors {
		v := &p.Vectors[i]
		for b := range v.Count {
			sums[v.First+b] = v.First
		}
	}
	for i := range p.Layers {
		for j := range p.Layers[i].Sums {
			part := &p.Layers[i].Sums[j]
			for k, block := range part.ParamIDs {
				node := part.NodeIDs[k/part.MaxChildren]
				c.first[block] = (node - sums[node]) * int32(p.BlockSize)
			}
		}
	}
	n := p.FlowLen()
	c.with, c.without, c.params = make([]int64, n), make([]int64, n), make([]float32, p.NumParams)
	c.part = make([]int64, min(n, chunkFloats))
	return c
}

// contrasts reports whether a unit of a family that is given what it expects stays as it is, as D·θ supposes. A discretised
// logistic leaf does not: moments that it is fitted to leave out what lies beyond its ends.
func contrasts(f layers.Family) bool {
	if f.Codes() == 0 {
		return expectations(f) != nil
	}
	return f.Name() != "discretised-logistic"
}

// take moves the flows of the engine to sum, or adds them.
func (c *contrast) take(ctx context.Context, sum []int64, add bool) error {
	part := make([]int64, len(c.part))
	for at := 0; at < len(sum); at += len(part) {
		to := sum[at:min(at+len(part), len(sum))]
		from := to
		if add {
			from = part[:len(to)]
		}
		if err := c.eng.ReadFlows(ctx, int64(at), from); err != nil {
			return err
		}
		if add {
			for i, x := range from {
				to[i] += x
			}
		}
		if err := c.eng.WriteFlows(ctx, int64(at), c.part[:len(to)]); err != nil {
			return err
		}
	}
	return nil
}

// put makes the flows of the engine the counts of the step. Threads take owner by owner.
func (c *contrast) put(ctx context.Context) error {
	for at := 0; at < len(c.params); at += chunkFloats {
		if err := c.eng.ReadParams(ctx, int64(at), c.params[at:min(at+chunkFloats, len(c.params))]); err != nil {
			return err
		}
	}
	err := parallel.Each(len(c.owners), func() func(i int) error {
		var scratch []float64
		return func(i int) error { return c.owner(&c.owners[i], &scratch) }
	})
	if err != nil {
		return err
	}
	for at := 0; at < len(c.with); at += chunkFloats {
		if err := c.eng.WriteFlows(ctx, int64(at), c.with[at:min(at+chunkFloats, len(c.with))]); err != nil {
			return err
		}
	}
	return nil
}

// owner writes the counts of an owner of parameters.
func (c *contrast) owner(o *layers.Owner, scratch *[]float64) error {
	params := c.params[o.Params[0].Lo:o.Params[0].Hi]
	if o.Sum >= 0 {
		c.counts(o, params, c.blocks(o), scratch)
		return nil
	}
	in := &c.prog.Inputs[o.Input]
	if in.Codes == 0 {
		c.statistics(in, o, params)
		return nil
	}
	if in.Exps >= 0 {
		for k, e := range c.params[in.Exps:][:len(params)] {
			params[k] = float32(math.Ldexp(float64(params[k]), int(e)))
		}
	}
	width := int(o.Flows[1].Len())
	c.counts(o, params, func(do func(at, n, unit, next int)) {
		for at := 0; at < len(params); at += width {
			do(at, width, 0, 1)
		}
	}, scratch)
	return nil
}

// blocks returns the runs of the weights of a sum: each is of one unit.
func (c *contrast) blocks(o *layers.Owner) runs {
	first, size, n := int(c.prog.Sums[o.Sum].Param), c.prog.BlockSize, int(o.Params[0].Len())
	return func(do func(at, n, unit, next int)) {
		for at := 0; at < n; at += size {
			do(at, size, int(c.first[first+at/(size*size)])+at/size%size, 0)
		}
	}
}

// runs calls do for runs of places of an owner: n from place at on, the first of which is unit's, and each the next
// units' after it.
type runs func(do func(at, n, unit, next int))

// counts writes the counts of a sum or an input with codes.
func (c *contrast) counts(o *layers.Owner, params []float32, each runs, scratch *[]float64) {
	flows, norms := o.Flows[0], o.Flows[1]
	f, g := c.with[flows.Lo:flows.Hi], c.without[flows.Lo:flows.Hi]
	with, without := c.with[norms.Lo:norms.Hi], c.without[norms.Lo:norms.Hi]
	if need := len(f) + 2*len(with); cap(*scratch) < need {
		*scratch = make([]float64, need)
	}
	count, inert, sum := (*scratch)[:len(f)], (*scratch)[len(f):][:len(with)], (*scratch)[len(f)+len(with):][:len(with)]
	clear(inert)
	clear(sum)
	each(func(at, n, unit, next int) {
		for k := at; k < at+n; k++ {
			inert[unit] += math.Abs(float64(f[k] - g[k]))
			unit += next
		}
	})
	for u := range inert {
		inert[u] = c.inert(inert[u], without[u])
	}
	each(func(at, n, unit, next int) {
		for k := at; k < at+n; k++ {
			x := inert[unit] * float64(params[k])
			if f[k] != 0 || g[k] != 0 {
				x = positive(float64(f[k])-c.share*float64(g[k]), x)
			}
			count[k] = x
			sum[unit] += x
			unit += next
		}
	})
	rest := without // whose number decides
	if o.Sum < 0 && c.ofClass[o.Input] {
		rest = with
	}
	for u := range sum {
		sum[u] = c.scale(with[u], rest[u], sum[u])
	}
	clear(with)
	each(func(at, n, unit, next int) {
		for k := at; k < at+n; k++ {
			f[k] = int64(math.RoundToEven(count[k] * sum[unit]))
			with[unit] += f[k]
			unit += next
		}
	})
}

// inert returns D of a unit, given Σ|F-G| and ΣG.
func (c *contrast) inert(change float64, without int64) float64 {
	return c.share * (inertia*change + restShare*float64(without))
}

// scale returns what brings counts of a unit that add up to sum to the number that it shall have.
func (c *contrast) scale(with, without int64, sum float64) float64 {
	if !(sum > 0) {
		return 0
	}
	return ((1-c.share)*float64(with) + c.share*float64(without)) / sum
}

// positive adds a change to what was there before, of which more than all may not be taken away.
func positive(change, prior float64) float64 {
	switch {
	case change >= 0:
		return prior + change
	case prior > 0:
		return prior * math.Exp(change/prior)
	}
	return 0
}

// statistics writes the counts of an input without codes.
func (c *contrast) statistics(in *layers.Input, o *layers.Owner, params []float32) {
	flows, norms := o.Flows[0], o.Flows[1]
	width := norms.Len()
	p, next := make([]float64, in.Family.NumParams()), make([]float64, in.Family.NumParams())
	n := in.Family.NumStats()
	change, expected, sum, scales, most := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for k := range scales {
		scales[k] = c.eng.StatScale(o.Input, k)
	}
	expect := expectations(in.Family)
	for u := range int64(c.prog.Vectors[in.Vector].Units) { // the others are padding
		for k := range p {
			p[k] = float64(params[int64(k)*width+u])
		}
		with, without := &c.with[norms.Lo+u], c.without[norms.Lo+u]
		at := func(k int) int64 { return flows.Lo + int64(k)*width + u }
		for k := range change {
			change[k] = float64(c.with[at(k)]-c.without[at(k)]) * scales[k]
		}
		prior := c.inert(expect(p, float64(*with-without), change, expected), without)
		for k, e := range expected { // a unit that is outside itself may come nearer
			most[k] = max(scales[k], math.Abs(e))
		}
		for k := range sum {
			sum[k] = float64(c.with[at(k)]) * scales[k]
		}
		copy(next, p)
		in.Family.MStep(next, sum, float64(*with), 0, 1)
		least := min(p[len(p)-1]/2, nearly*next[len(p)-1])
		weight := 0.0
		for range 64 {
			weight = float64(*with) - c.share*float64(without) + prior
			for k := range sum {
				sum[k] = (float64(c.with[at(k)])-c.share*float64(c.without[at(k)]))*scales[k] + prior*expected[k]
			}
			copy(next, p)
			in.Family.MStep(next, sum, weight, 0, 1)
			if next[len(p)-1] >= least && sum[n-1] >= 0 && within(sum, most, weight) || prior == 0 { // the last one is a square or a count
				break
			}
			prior *= 2
		}
		scale, held := c.scale(*with, without, weight), true
		for k := range sum {
			sum[k] *= scale / scales[k]
			held = held && math.Abs(sum[k]) < 1<<62
		}
		if !held {
			continue
		}
		*with = int64(math.RoundToEven(weight * scale))
		for k, s := range sum {
			c.with[at(k)] = int64(math.RoundToEven(s))
		}
	}
}

// within reports whether statistics, divided by a number of rows, are at most some.
func within(sum, most []float64, rows float64) bool {
	for k, s := range sum {
		if !(math.Abs(s) <= most[k]*rows) {
			return false
		}
	}
	return true
}

// expectations returns a function that writes what a unit of a family without codes expects of its statistics, given its
// parameters, and returns how much a change of its counts and statistics is, in rows: that of the counts, and of each
// statistic, centred, in standard deviations. nil where that is not known.
func expectations(f layers.Family) func(p []float64, count float64, change, expected []float64) float64 {
	switch f.Name() {
	case "gaussian", "log-normal": // statistics of x, or of its logarithm, and of its square
		return func(p []float64, n float64, t, expected []float64) float64 {
			mean, sd := p[0], p[1]
			expected[0], expected[1] = mean, mean*mean+sd*sd
			return math.Abs(n) + math.Abs(t[0]-mean*n)/sd + math.Abs(t[1]-2*mean*t[0]+mean*mean*n)/(sd*sd)
		}
	case "poisson":
		return func(p []float64, n float64, t, expected []float64) float64 {
			expected[0] = p[0]
			return math.Abs(n) + math.Abs(t[0]-p[0]*n)/math.Sqrt(p[0])
		}
	}
	return nil
}

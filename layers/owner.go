package layers

// Range is a run of places in a buffer: Lo to Hi-1.
type Range struct{ Lo, Hi int64 }

// Len is the number of places.
func (r Range) Len() int64 { return r.Hi - r.Lo }

// Owner is a sum or an input whose parameters move by its own flows: the unit
// that parameters are divided by. No two owners share a place, and an update
// writes nowhere else.
type Owner struct {
	Sum, Input int32   // which one: an index in Sums or in Inputs, the other is -1
	Params     []Range // in the parameter buffer, ascending
	Flows      []Range // in the flows: the same places where they take flows, then the normalisers
	Averages   []Range // in the averages of Anemone, residues included
	Sharers    int     // sums or inputs that have these parameters, itself included
	// Statistics says that the flows before the normalisers are statistics of a
	// function leaf, which may be negative and add up to anything. Others are
	// counts, as many as the normalisers count.
	Statistics bool
}

// Owners returns the owning sums, then the owning inputs that have parameters,
// in order of index.
func (p *Program) Owners() []Owner {
	var list []Owner
	sharers := make([]int, max(len(p.Sums), len(p.Inputs)))
	for i := range p.Sums {
		sharers[p.Sums[i].Owner]++
	}
	for i := range p.Sums {
		s := &p.Sums[i]
		if s.Owner != int32(i) {
			continue
		}
		weights := Range{p.ParamOffset(s.Param), p.ParamOffset(s.Param + s.NumBlocks)}
		norms := Range{p.SumNorm(int32(i)), p.SumNorm(int32(i)) + int64(p.Width(s.Vector))}
		list = append(list, Owner{
			Sum: int32(i), Input: -1, Sharers: sharers[i],
			Params: []Range{weights}, Flows: []Range{weights, norms}, Averages: []Range{weights, norms},
		})
	}
	clear(sharers)
	for i := range p.Inputs {
		sharers[p.Inputs[i].Owner]++
	}
	residue := p.FlowLen()
	for i := range p.Inputs {
		residues := p.Residues(int32(i))
		if in := &p.Inputs[i]; in.Owner == int32(i) && in.Family.NumParams() > 0 {
			list = append(list, p.inputOwner(int32(i), sharers[i], Range{residue, residue + residues}))
		}
		residue += residues
	}
	return list
}

// inputOwner describes an owning input. The row of a table for missing cells
// stays 1 and belongs to no owner.
func (p *Program) inputOwner(i int32, sharers int, residues Range) Owner {
	in := &p.Inputs[i]
	width := int64(p.Width(in.Vector))
	norms := Range{p.InputNorm(i), p.InputNorm(i) + width}
	o := Owner{Sum: -1, Input: i, Sharers: sharers, Statistics: in.Codes == 0}
	if in.Codes == 0 {
		o.Params = []Range{{in.Params, in.Params + int64(in.Family.NumParams())*width}}
		o.Flows = []Range{{in.Params, in.Params + int64(in.Family.NumStats())*width}, norms}
		o.Averages = []Range{o.Flows[0], norms, residues}
		return o
	}
	table := Range{in.Table, in.Table + int64(in.Codes)*width}
	o.Params = []Range{table}
	if in.Params >= 0 {
		o.Params = append(o.Params, Range{in.Params, in.Params + int64(in.Family.NumParams())*width})
	}
	if in.Exps >= 0 {
		o.Params = append(o.Params, Range{in.Exps, in.Exps + int64(in.Codes)*width})
	}
	o.Flows, o.Averages = []Range{table, norms}, []Range{table, norms}
	return o
}

// bytes is what a step moves of an owner: flows one way, parameters the other.
func (o *Owner) bytes() int64 {
	n := int64(0)
	for _, r := range o.Flows {
		n += 8 * r.Len()
	}
	for _, r := range o.Params {
		n += 4 * r.Len()
	}
	return n
}

// SplitOwners cuts owners into n runs whose bytes are as even as possible: the
// largest run is as small as can be, and each cut is as near as that allows to
// an even share of what is left. Run k holds the owners bounds[k] to
// bounds[k+1]-1; runs are empty where owners are few. An n below 1 counts as 1.
func SplitOwners(owners []Owner, n int) (bounds []int) {
	n = max(n, 1)
	before := make([]int64, len(owners)+1) // bytes of the owners before each
	low := int64(0)                        // a run that is too small, or just large enough
	for i := range owners {
		b := owners[i].bytes()
		before[i+1] = before[i] + b
		low = max(low, b)
	}
	all := before[len(owners)]
	// The least size of runs that n of them hold all of.
	for high := max(low, all); low < high; {
		if mid := low + (high-low)/2; runsFrom(before, mid)[0] <= n {
			high = mid
		} else {
			low = mid + 1
		}
	}
	need := runsFrom(before, low)
	bounds = make([]int, n+1)
	for k := range n - 1 {
		lo, left := bounds[k], n-k-1
		even := (all - before[lo]) / int64(left+1)
		best := -1
		for i := lo; i <= len(owners) && before[i]-before[lo] <= low; i++ {
			if need[i] > left {
				continue
			}
			if best < 0 || distance(before[i]-before[lo], even) < distance(before[best]-before[lo], even) {
				best = i
			}
		}
		bounds[k+1] = best
	}
	bounds[n] = len(owners)
	return bounds
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// runsFrom returns, for each owner, how many runs of size bytes at most hold it
// and those behind it.
func runsFrom(before []int64, size int64) []int {
	last := len(before) - 1
	need := make([]int, last+1)
	end := last // of the run that starts at i
	for i := last - 1; i >= 0; i-- {
		for before[end]-before[i] > size {
			end--
		}
		need[i] = need[end] + 1
	}
	return need
}

package tensor

import (
	"cmp"
	"slices"

	"github.com/pce-engine/pce/layers"
)

// task is the work on one vector: what a thread does at a time.
type task struct {
	vec    int32
	kind   layers.VectorKind
	width  int
	units  int
	elems  []elem // operands of a sum, or the one product of a stored vector
	cols   int    // width of all operands
	sum    *sumPlan
	input  int32 // function inputs and shared inputs
	cost   float64
	reads  []int32 // vectors with tasks that this one reads, no duplicates
	shared bool    // an input whose statistics wait for all of its users
}

// elem is one operand: a product of factors.
type elem struct {
	id      int32 // element of the program
	col     int   // first column in the rows of all operands
	width   int
	units   int
	factors []factor
	wide    bool // multiplied with an exponent for each element
	kept    int  // offset in the kept flows [rows, width], -1 if they are not needed later
}

// factor is one vector that a product reads.
type factor struct {
	vec   int32
	input int32 // tabulated input, -1 otherwise
	// What happens to the flow that goes down this factor.
	first bool // its flows start here: they are copied, not added
	local bool // an input whose statistics are gathered by this task
	alone bool // an input that Posteriors mixes in this task
}

// sumPlan are the weights of a sum as runs of whole panels.
type sumPlan struct {
	index   int32
	owner   int32
	dense   bool
	forward []rowRun // for each row block, in order, its runs of columns
	back    []colRun // for each column block, in order, its runs of rows
	first   bool     // first or only of the sums that share the weights
	last    bool
	group   int // place of the shared gradient, -1 for sums that share with none
}

// rowRun is a run of columns that a row block reads, at most maxRun long.
type rowRun struct {
	row   int // first unit of the row block
	col   int // first column
	n     int // columns
	at    int // first row in the transposed weights
	tiles []int32
	head  bool // first run of its row block
	tail  bool // last run of its row block
}

// colRun is a run of rows whose weights for one column block are in one panel.
type colRun struct {
	col   int
	row   int
	n     int
	param int32 // first edge block
	head  bool
	tail  bool
}

// maxRun bounds the rows of a panel that one product reads, so that they stay in
// the level-2 cache.
const maxRun = 512

// span is the part of a list from begin on and below end.
type span struct{ begin, end int }

// cut cuts n blocks of size units into runs of at most maxRun units, or of one block;
// follows says whether block k continues the run that the one before is in. Without
// blocks there is one run of none.
func cut(n, size int, follows func(k int) bool) (runs []span) {
	begin := 0
	for k := 1; k < n; k++ {
		if (k-begin)*size >= maxRun || !follows(k) {
			runs = append(runs, span{begin, k})
			begin = k
		}
	}
	return append(runs, span{begin, n})
}

// present returns the blocks before the first one that does not exist, whose number is 0.
func present(ids []int32) []int32 {
	for i, id := range ids {
		if id <= 0 {
			return ids[:i]
		}
	}
	return ids
}

// plan lowers the index tensors of a program to tasks.
func (x *executor) plan() {
	p := x.prog
	size := p.BlockSize
	x.taskOf = make([]int32, len(p.Vectors))
	x.keptAt = make([]int, len(p.Elements))
	x.wide, x.spread = p.Wide(bareFactors)
	x.members = make([][]int32, len(p.Sums))
	x.inputMembers = make([][]int32, len(p.Inputs))
	users := make([]int32, len(p.Vectors)) // elements that read each vector
	for i := range p.Elements {
		for _, f := range p.ElementFactors(int32(i)) {
			users[f]++
		}
	}
	for i := range p.Sums {
		o := p.Sums[i].Owner
		x.members[o] = append(x.members[o], p.Sums[i].Vector)
	}
	tiedInput := make([]bool, len(p.Inputs))
	for i := range p.Inputs {
		o := p.Inputs[i].Owner
		x.inputMembers[o] = append(x.inputMembers[o], p.Inputs[i].Vector)
		if o != int32(i) {
			tiedInput[i], tiedInput[o] = true, true
		}
	}
	inputsOf := make([]int32, len(p.Columns))
	for i := range p.Inputs {
		inputsOf[p.Inputs[i].Column]++
	}
	x.alone = make([]bool, len(p.Vectors))
	for i := range p.Inputs {
		in := &p.Inputs[i]
		x.alone[in.Vector] = users[in.Vector] == 1 && inputsOf[in.Column] == 1
	}
	local := func(f int32) bool { return users[f] == 1 && !tiedInput[p.Vectors[f].Def] }
	plans := x.sumPlans()
	kept, single := 0, hasSingles(p)
	makeElem := func(id int32, col int) elem {
		pe := &p.Elements[id]
		e := elem{id: id, col: col, width: int(pe.Count) * size, kept: -1, wide: x.wide[id]}
		keep := false
		for _, f := range p.ElementFactors(id) {
			v := &p.Vectors[f]
			e.units = int(v.Units)
			fc := factor{vec: f, input: -1}
			if v.Kind == layers.InputVector {
				fc.local, fc.alone = local(f), x.alone[f]
				keep = keep || x.train && !single && !fc.local || x.queries && !fc.alone
				if p.Inputs[v.Def].Codes > 0 {
					fc.input = v.Def
				}
			}
			e.factors = append(e.factors, fc)
		}
		if keep {
			e.kept = kept
			x.keptAt[id] = kept
			kept += x.rowsMax * e.width
		}
		return e
	}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		t := task{vec: int32(i), kind: v.Kind, width: p.Width(int32(i)), units: int(v.Units), input: -1}
		x.taskOf[i] = -1
		switch v.Kind {
		case layers.InputVector:
			t.input = v.Def
			t.shared = !local(int32(i))
			t.cost = float64(t.width)
			if in := &p.Inputs[v.Def]; in.Codes == 0 {
				t.cost *= functionCost(in.Family)
			} else if !t.shared {
				continue // read from its table, statistics gathered by its user
			}
		case layers.SumVector:
			s := &p.Sums[v.Def]
			t.sum = plans[v.Def]
			for e := s.ElemLo; e < s.ElemHi; e++ {
				t.elems = append(t.elems, makeElem(e, t.cols))
				t.cols += t.elems[len(t.elems)-1].width
			}
			t.cost = float64(s.NumBlocks)*float64(size*size) + 16*float64(t.cols)
		case layers.StoredVector:
			t.elems = []elem{makeElem(p.Stored[v.Def].Element, 0)}
			t.cols = t.width
			t.cost = float64(t.cols) * float64(4*len(t.elems[0].factors))
		}
		x.taskOf[i] = int32(len(x.tasks))
		for _, e := range t.elems {
			for _, f := range e.factors {
				if d := x.taskOf[f.vec]; d >= 0 {
					t.reads = append(t.reads, d)
				}
				t.cost += float64(e.width)
			}
		}
		slices.Sort(t.reads)
		t.reads = slices.Compact(t.reads)
		x.tasks = append(x.tasks, t)
	}
	x.keptLen = kept
	x.users = users
}

// sumPlans reads the weights of every sum from the partitions of the layers.
func (x *executor) sumPlans() []*sumPlan {
	p := x.prog
	size := p.BlockSize
	plans := make([]*sumPlan, len(p.Sums))
	blockOf := make([]int32, p.NodeBlocks)   // node block → sum
	elemOf := make([]int32, p.ElementBlocks) // element block → sum
	members := make([]int, len(p.Sums))
	for i := range p.Sums {
		s := &p.Sums[i]
		plans[i] = &sumPlan{index: int32(i), owner: s.Owner, group: -1}
		members[s.Owner]++
		v := &p.Vectors[s.Vector]
		for b := range v.Count {
			blockOf[v.First+b] = int32(i)
		}
		for e := s.ElemLo; e < s.ElemHi; e++ {
			for b := range p.Elements[e].Count {
				elemOf[p.Elements[e].First+b] = int32(i)
			}
		}
	}
	groups := make(map[int32]int)
	seen := make([]int, len(p.Sums))
	for i := len(p.Sums) - 1; i >= 0; i-- { // backward runs from the root down
		sp := plans[i]
		o := sp.owner
		seen[o]++
		sp.first, sp.last = seen[o] == 1, seen[o] == members[o]
		if members[o] > 1 {
			if _, ok := groups[o]; !ok {
				groups[o] = len(groups)
				x.groupParams = append(x.groupParams, int(p.Sums[o].NumBlocks)*size*size)
			}
			sp.group = groups[o]
		}
	}
	for l := range p.Layers {
		for _, q := range p.Layers[l].Sums {
			for i, n := range q.NodeIDs {
				sp := plans[blockOf[n]]
				s := &p.Sums[sp.index]
				first := p.Vectors[s.Vector].First
				elem0 := p.Elements[s.ElemLo].First
				lo := i * q.MaxChildren
				ids := present(q.ChildIDs[lo : lo+q.MaxChildren])
				for _, c := range cut(len(ids), size, func(k int) bool { return ids[k] == ids[k-1]+1 }) {
					r := rowRun{row: int(n-first) * size, n: (c.end - c.begin) * size, head: c.begin == 0, tail: c.end == len(ids)}
					if r.n > 0 {
						r.col, r.tiles = int(ids[c.begin]-elem0)*size, q.ParamIDs[lo+c.begin:lo+c.end]
					}
					sp.forward = append(sp.forward, r)
				}
			}
		}
		for _, q := range p.Layers[l].Elements {
			for i, e := range q.ElementIDs {
				sp := plans[elemOf[e]]
				s := &p.Sums[sp.index]
				first := p.Vectors[s.Vector].First
				elem0 := p.Elements[s.ElemLo].First
				lo := i * q.MaxParents
				ids, params := present(q.ParentIDs[lo:lo+q.MaxParents]), q.ParentParamIDs[lo:]
				for _, c := range cut(len(ids), size, func(k int) bool { return ids[k] == ids[k-1]+1 && params[k] == params[k-1]+1 }) {
					r := colRun{col: int(e-elem0) * size, n: (c.end - c.begin) * size, head: c.begin == 0, tail: c.end == len(ids)}
					if r.n > 0 {
						r.row, r.param = int(ids[c.begin]-first)*size, params[c.begin]
					}
					sp.back = append(sp.back, r)
				}
			}
		}
	}
	for i, sp := range plans {
		s := &p.Sums[i]
		slices.SortStableFunc(sp.forward, func(a, b rowRun) int { return cmp.Compare(a.row, b.row) })
		slices.SortStableFunc(sp.back, func(a, b colRun) int { return cmp.Compare(a.col, b.col) })
		at := 0
		for k := range sp.forward {
			sp.forward[k].at = at
			at += sp.forward[k].n
		}
		last := p.Elements[s.ElemHi-1]
		cols := last.First + last.Count - p.Elements[s.ElemLo].First
		sp.dense = s.NumBlocks == cols*p.Vectors[s.Vector].Count
	}
	return plans
}

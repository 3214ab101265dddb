package compile

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// ParamMap says where the parameters of each graph node lie in a program's
// parameter buffer. Saving and loading go through it, one owner at a time.
type ParamMap struct {
	graph   *circuit.Graph
	prog    *layers.Program
	entries []entry
	blks    [][]edgeBlock
}

type entry struct {
	node circuit.NodeID // owns the parameters in the graph
	kind circuit.Kind
	def  int32 // index of the owning sum or input in the program
}

// Len is the number of owners of parameters.
func (m *ParamMap) Len() int { return len(m.entries) }

// Node returns the graph node of owner i.
func (m *ParamMap) Node(i int) circuit.NodeID { return m.entries[i].node }

// Region returns where owner i's parameters lie in the parameter buffer.
func (m *ParamMap) Region(i int) (offset int64, length int) {
	e := m.entries[i]
	if e.kind == circuit.Sum {
		s := &m.prog.Sums[e.def]
		return m.prog.ParamOffset(s.Param), int(s.NumBlocks) * m.prog.BlockSize * m.prog.BlockSize
	}
	in := &m.prog.Inputs[e.def]
	width := m.prog.Width(in.Vector)
	offset, length = in.Table, 0
	if in.Table >= 0 {
		length = int(m.prog.TableRows(in)) * width
	}
	if in.Params >= 0 {
		if in.Table < 0 {
			offset = in.Params
		}
		length += in.Family.NumParams() * width
	}
	if in.Exps >= 0 {
		length += int(m.prog.TableRows(in)) * width
	}
	return offset, length
}

// Pack writes owner i's canonical parameters to its region, padding included.
func (m *ParamMap) Pack(i int, canonical, region []float32) error {
	e := m.entries[i]
	if want := m.graph.NumParams(e.node); len(canonical) != want {
		return fmt.Errorf("%w: node %d has %d parameters, want %d", circuit.ErrGraph, e.node, len(canonical), want)
	}
	clear(region)
	if e.kind == circuit.Sum {
		m.eachRun(e, func(from, to, n int) { copy(region[to:to+n], canonical[from:from+n]) })
		return nil
	}
	in := &m.prog.Inputs[e.def]
	units, width, np := int(m.prog.Vectors[in.Vector].Units), m.prog.Width(in.Vector), in.Family.NumParams()
	codes := int(in.Codes)
	if in.Params < 0 {
		for u := range units {
			for c := range codes {
				region[c*width+u] = canonical[u*np+c]
			}
		}
	} else {
		params := region
		if in.Table >= 0 {
			params = region[int(m.prog.TableRows(in))*width:]
		}
		for u := range units {
			for k := range np {
				params[k*width+u] = canonical[u*np+k]
			}
		}
		if in.Table >= 0 {
			var exps []float32
			if in.Exps >= 0 {
				exps = region[in.Exps-in.Table:]
			}
			layers.Tabulate(in.Family, params, width, 0, units, region, exps)
		}
	}
	if in.Table >= 0 {
		missing := region[codes*width : codes*width+units]
		for u := range missing {
			missing[u] = 1
		}
	}
	return nil
}

// Unpack reads owner i's canonical parameters from its region.
func (m *ParamMap) Unpack(i int, region, canonical []float32) error {
	e := m.entries[i]
	if want := m.graph.NumParams(e.node); len(canonical) != want {
		return fmt.Errorf("%w: node %d has %d parameters, want %d", circuit.ErrGraph, e.node, len(canonical), want)
	}
	if e.kind == circuit.Sum {
		clear(canonical)
		m.eachRun(e, func(from, to, n int) { copy(canonical[from:from+n], region[to:to+n]) })
		return nil
	}
	in := &m.prog.Inputs[e.def]
	units, width, np := int(m.prog.Vectors[in.Vector].Units), m.prog.Width(in.Vector), in.Family.NumParams()
	if in.Params >= 0 && in.Table >= 0 {
		region = region[int(m.prog.TableRows(in))*width:]
	}
	for u := range units {
		for k := range np {
			canonical[u*np+k] = region[k*width+u]
		}
	}
	return nil
}

// eachRun calls do for every run of weights that lie side by side both in
// canonical order and in the region.
func (m *ParamMap) eachRun(e entry, do func(from, to, n int)) {
	p, size := m.prog, m.prog.BlockSize
	sum := &p.Sums[e.def]
	id := e.node
	cols := columnsOf(m.graph, p, id, sum)
	rowBlocks := p.Vectors[sum.Vector].Count
	ed := m.graph.Nodes[id].Edges
	if ed == nil {
		for i := range m.graph.Nodes[id].Units {
			for j := 0; j < cols.units; {
				cb, off, run := cols.at(j, size)
				blk := int(cb)*int(rowBlocks) + i/size
				do(i*cols.units+j, blk*size*size+i%size*size+off, run)
				j += run
			}
		}
		return
	}
	blks := m.blks[e.def]
	find := func(cb, rb int32) int {
		lo, hi := 0, len(blks)
		for lo < hi {
			mid := (lo + hi) / 2
			if b := blks[mid]; b.col < cb || b.col == cb && b.row < rb {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo
	}
	per := ed.Rows * ed.Cols
	for b, pr := range ed.Pairs {
		for r := range ed.Rows {
			i := int(pr[0])*ed.Rows + r
			base := b*per + r*ed.Cols
			for j, end := int(pr[1])*ed.Cols, int(pr[1]+1)*ed.Cols; j < end; {
				cb, off, run := cols.at(j, size)
				run = min(run, end-j)
				blk := find(cb, int32(i/size))
				do(base+j-int(pr[1])*ed.Cols, blk*size*size+i%size*size+off, run)
				j += run
			}
		}
	}
}

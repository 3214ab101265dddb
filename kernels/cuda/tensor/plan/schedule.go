package plan

import (
	"cmp"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// Work is one launch of a kernel on entries of a list.
type Work struct {
	Kernel string
	List   int // first word in the lists
	Blocks int // along x
	Rows   int // rows that a block does: along y, or along x where Blocks is 0; 0: all
	Shared int // bytes of dynamic shared memory
}

// Schedule is what each entry point launches, in order. Kernels of one level do
// not depend on each other.
type Schedule struct {
	// Tables are those that the schedule was made from, extended by what its launches
	// read as well: wide groups, wide columns, patches with their members, and places
	// for the products that are kept.
	Tables  *Tables
	Lists   []uint32
	Vectors int // entries of the list of the kernels in log space

	Forward  []Work
	Sample   []Work // after Forward
	Backward []Work // flows of all vectors
	// After Backward: the posteriors of all columns that are chosen.
	Posteriors []Work
	Bound      []Work // a forward pass with modes for missing cells
	Maximise   []Work // and by largest terms
	Choose     []Work // after Maximise
	Visits     []Work
	Move       []Work // after Backward: the parameters move
	Count      []Work // after Backward: the counts are added to the flows
	Update     []Work
	Anemone    []Work

	before      []entries // by owner of the program, and for the end
	train       bool
	operandsLen int64     // floats that KernelFit writes at most
	formedLen   int64     // floats of products that are kept, behind val
	card        occupancy // of the kernels, once a choice needs it
}

// entries are how many entries of the lists of Update and Anemone are there.
type entries struct{ owners, tiles, groups, inputs int }

// LogBlocks is the number of blocks of threads that share the rows in log space.
const LogBlocks = 256

// NewSchedule orders the work of a program by levels. It leaves the tables, which
// NewTables returned, as they are: the schedule has its own.
func NewSchedule(tables *Tables, train bool) *Schedule {
	t := new(Tables)
	*t = *tables
	t.Groups, t.Columns, t.Members = slices.Clip(t.Groups), slices.Clip(t.Columns), slices.Clip(t.Members)
	t.Elements = slices.Clone(t.Elements)
	s := &Schedule{Tables: t, train: train}
	p := t.Program
	depth := func(v int32) int { return int(p.Vectors[v].Depth) }
	top := 0
	for v := range p.Vectors {
		top = max(top, depth(int32(v)))
	}
	stored, resident, other := make([][]uint32, top+1), make([][]int, top+1), make([][]int, top+1)
	sums, gathers := make([][]int, top+1), make([][]uint32, top+1)
	for i := range t.Sums {
		v := t.vector(i)
		d := depth(v)
		if i >= len(p.Sums) {
			stored[d] = append(stored[d], uint32(i))
		}
		if t.resident(i) {
			resident[d] = append(resident[d], i)
		} else {
			other[d] = append(other[d], i)
		}
		sums[d] = append(sums[d], i)
		if t.gathered(v) {
			gathers[d] = append(gathers[d], uint32(i))
		}
	}
	var functions, order []uint32
	for v := range p.Vectors {
		def := uint32(p.Vectors[v].Def)
		switch kind := p.Vectors[v].Kind; {
		case p.Tabulated(int32(v)):
			continue
		case kind == layers.InputVector:
			functions = append(functions, def)
			order = append(order, uint32(kind), def)
		case kind == layers.StoredVector:
			order = append(order, uint32(kind), def+uint32(len(p.Sums)))
		default:
			order = append(order, uint32(kind), def)
		}
	}
	inOrder := s.list(order)
	s.Vectors = len(order) / 2
	logWork := func(kernel string) Work { return Work{Kernel: kernel, List: inOrder, Blocks: LogBlocks} }

	s.Forward = s.each(s.Forward, tensor.KernelLeaf, functions, 1, tensor.LeafRows)
	for d := range top + 1 {
		s.Forward = s.each(s.Forward, tensor.KernelStored, stored[d], 1, tensor.RowTile)
		s.addForward(other[d])
		s.addResident(resident[d])
	}
	root := uint32(p.Vectors[p.Root].Def)
	if p.Vectors[p.Root].Kind == layers.StoredVector {
		root += uint32(len(p.Sums))
	}
	last := []Work{{Kernel: tensor.KernelBadRows, Blocks: 1}, logWork(tensor.KernelLogForward), {Kernel: tensor.KernelRoot, List: s.list([]uint32{root}), Rows: 256}}
	s.Forward = append(s.Forward, last...)
	s.sample()
	if s.flows() {
		for d := top; d >= 0; d-- {
			s.Backward = s.each(s.Backward, tensor.KernelGather, gathers[d], 1, tensor.RowTile)
			s.addBackward(sums[d])
		}
		s.Backward = append(s.Backward, logWork(tensor.KernelLogBackward))
	}
	if t.Queries {
		s.posteriors(root)
		s.maxima(functions, stored, sums, last)
	}
	if train {
		s.ends()
	}
	return s
}

// flows reports whether rows go backward.
func (s *Schedule) flows() bool { return s.train || s.Tables.Queries }

// ends orders what becomes of the flows.
func (s *Schedule) ends() {
	t := s.Tables
	var owners, leaves, inputs, tiles, groups []uint32 // inputs: leaves that have parameters
	var parts, shares []uint32                         // of large tables; all inputs, these in parts
	mark := func() {
		s.before = append(s.before, entries{len(owners) / 2, len(tiles), len(groups), len(inputs) / 2})
	}
	for i := range t.Owners {
		mark()
		for r := range (t.Owners[i].Width + 31) / 32 {
			owners = append(owners, uint32(i), r)
		}
		sum := &t.Sums[t.OwnerSums[t.Owners[i].Member]]
		for g := range sum.Groups {
			groups = append(groups, sum.Group+g)
		}
		for range t.OwnerTiles[i] {
			tiles = append(tiles, uint32(len(tiles)))
		}
	}
	shift := t.partShift()
	for i := range t.Inputs {
		in := &t.Program.Inputs[i]
		if in.Owner != int32(i) {
			continue
		}
		if in.Family.NumParams() > 0 {
			mark()
		}
		for r := range (t.Inputs[i].Units + 31) / 32 {
			leaves = append(leaves, uint32(i), r)
			if in.Family.NumParams() == 0 {
				continue
			}
			inputs = append(inputs, uint32(i), r)
			if shift == 0 || !t.parted(i) {
				shares = append(shares, uint32(i), r)
				continue
			}
			for part := range uint32(1) << shift {
				parts = append(parts, uint32(i), tensor.LeafPart(r, part, shift))
			}
		}
	}
	mark()
	shares = append(shares, parts...)
	// Tiles with the most members first, so that the last ones are short.
	shared := slices.Clone(tiles)
	slices.SortStableFunc(shared, func(a, b uint32) int { return cmp.Compare(t.Tiles[b].Members, t.Tiles[a].Members) })
	narrow, wide := s.makePatches()
	units := (int(t.Program.VisitLen()) + 255) / 256
	coefficients := func(kernel string) Work { return Work{Kernel: kernel, Blocks: units} }

	s.Visits = s.each(s.Visits, tensor.KernelVisits, owners, 2, 0)
	s.Visits = s.each(s.Visits, tensor.KernelLeafVisits, leaves, 2, 0)

	s.Move = s.each(s.Move, tensor.KernelNorms, owners, 2, 0)
	s.Move = append(s.Move, coefficients(tensor.KernelCoefficients))
	s.Move = s.addFlows(s.Move, tensor.KernelMove, tensor.KernelMoveWide, shared, narrow, wide)
	s.Move = s.each(s.Move, tensor.KernelNormalise, groups, 1, 0)
	s.Move = s.each(s.Move, tensor.KernelLeafGather, parts, 2, 0)
	s.Move = s.each(s.Move, tensor.KernelLeafMove, shares, 2, 0)

	s.Count = s.each(s.Count, tensor.KernelNormsCount, owners, 2, 0)
	s.Count = s.addFlows(s.Count, tensor.KernelCount, tensor.KernelCountWide, shared, narrow, wide)
	s.Count = s.each(s.Count, tensor.KernelLeafGather, parts, 2, 0)
	s.Count = s.each(s.Count, tensor.KernelLeafCount, shares, 2, 0)

	s.Update = s.each(s.Update, tensor.KernelNormsUpdate, owners, 2, 0)
	s.Update = append(s.Update, coefficients(tensor.KernelCoefficients))
	s.Update = s.each(s.Update, tensor.KernelUpdate, tiles, 1, 0)
	s.Update = s.each(s.Update, tensor.KernelNormalise, groups, 1, 0)
	s.Update = s.each(s.Update, tensor.KernelLeafUpdate, inputs, 2, 0)

	s.Anemone = s.each(s.Anemone, tensor.KernelNormsAverages, owners, 2, 0)
	s.Anemone = append(s.Anemone, coefficients(tensor.KernelCoefficientsVisits))
	s.Anemone = s.each(s.Anemone, tensor.KernelUpdateAverages, tiles, 1, 0)
	s.Anemone = s.each(s.Anemone, tensor.KernelNormalise, groups, 1, 0)
	s.Anemone = s.each(s.Anemone, tensor.KernelLeafUpdateAverages, inputs, 2, 0)
}

// parted reports whether several blocks of threads share the codes of an input, if
// they are shared.
func (t *Tables) parted(input int) bool {
	in := &t.Inputs[input]
	return in.Family == tensor.FamilyMass && in.Codes > tensor.PartedCodes && t.Program.Inputs[input].Owner == int32(input)
}

// partShift is the logarithm of the number of parts of the codes of large tables: as many
// as make enough blocks of threads, since each reads the flows of all rows. The bits
// depend on it, so it does not depend on the card.
func (t *Tables) partShift() (shift uint32) {
	runs := 0
	for i := range t.Inputs {
		if t.parted(i) {
			runs += int(t.Inputs[i].Units+31) / 32
		}
	}
	for runs > 0 && runs<<shift < spread && 1<<shift < tensor.LeafParts {
		shift++
	}
	return shift
}

// addFlows adds the launches that add up the flows of all tiles, or of all patches.
func (s *Schedule) addFlows(to []Work, kernel, wideKernel string, tiles, narrow, wide []uint32) []Work {
	patches := s.Tables.Patches
	if len(patches) == 0 {
		return s.each(to, kernel, tiles, 1, 0)
	}
	add := func(kernel string, list []uint32, edge int) {
		n := len(to)
		to = s.each(to, kernel, list, 1, 0)
		if len(to) > n && patches[list[0]].Members > 1 {
			to[n].Shared = tensor.PatchTotals(edge)
		}
	}
	add(wideKernel, wide, tensor.WidePatch)
	add(kernel, narrow, tensor.NarrowPatch)
	return to
}

// Part returns what is launched of Update or Anemone for the owners lo to hi-1
// of the program: the lists have their entries in the order of owners.
func (s *Schedule) Part(work []Work, lo, hi int) []Work {
	a, b := s.before[lo], s.before[hi]
	var part []Work
	each := func(w Work, first, end, words int) {
		if first < end {
			w.List += first * words
			w.Blocks = end - first
			part = append(part, w)
		}
	}
	for _, w := range work {
		switch w.Kernel {
		case tensor.KernelNormsUpdate, tensor.KernelNormsAverages:
			each(w, a.owners, b.owners, 2)
		case tensor.KernelUpdate, tensor.KernelUpdateAverages:
			each(w, a.tiles, b.tiles, 1)
		case tensor.KernelNormalise:
			each(w, a.groups, b.groups, 1)
		case tensor.KernelLeafUpdate, tensor.KernelLeafUpdateAverages:
			each(w, a.inputs, b.inputs, 2)
		default: // the coefficients, which all units have and sums alone use
			if a.owners < b.owners {
				part = append(part, w)
			}
		}
	}
	return part
}

// Tiles returns the tiles of the owners lo to hi-1 of the program.
func (s *Schedule) Tiles(lo, hi int) (first, end int) { return s.before[lo].tiles, s.before[hi].tiles }

// vector is the vector of a record of a sum.
func (t *Tables) vector(sum int) int32 {
	if n := len(t.Program.Sums); sum >= n {
		return t.Program.Stored[sum-n].Vector
	}
	return t.Program.Sums[sum].Vector
}

// list adds entries to the lists, at an even place: some are read in pairs.
func (s *Schedule) list(entries []uint32) int {
	if len(s.Lists)%2 > 0 {
		s.Lists = append(s.Lists, 0)
	}
	at := len(s.Lists)
	s.Lists = append(s.Lists, entries...)
	return at
}

// each adds the launch of a kernel on entries of words words, if there are any.
func (s *Schedule) each(to []Work, kernel string, entries []uint32, words, rows int) []Work {
	if len(entries) == 0 {
		return to
	}
	return append(to, Work{Kernel: kernel, List: s.list(entries), Blocks: len(entries) / words, Rows: rows})
}

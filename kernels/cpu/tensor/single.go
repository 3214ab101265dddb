package tensor

import (
	"encoding/binary"

	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// singles evaluate and train programs in which every vector is one unit: with rows for
// lanes, through the whole circuit a few rows at a time. Sums that read the same operands
// share these. Threads take rows, and what they count is added in the order of the rows.
//
// Queries and samples, which need the values of all rows side by side, run as tasks.
type singles struct {
	set    *micro.SingleSet
	tape   []int32
	starts []int32 // groups in the tape, and its end

	vectors  int     // that have values
	place    []int   // vector → place in values, -1 for leaves that the tape reads from tables
	operands int     // of the largest group
	weights  []int32 // weight → its parameter, -1 for a 0 that the program does not list
	edge     []int   // element → its weight, that of the element's only unit
	tables   []int32 // table → input
	tableAt  []int   // input → its place in the tables, -1 for none
	counted  []int   // input → its first count
	wide     []int32 // inputs without tables here: functions, and those of many codes
	wideAt   []int   // input → its number among these
	// Counts are those of the leaves with tables and then those of the weights.
	leafCounts int
	far        bool // exponents may come near the ends of their range

	tableBits, weightBits []uint32    // of the running call's parameters
	parts                 [][]float32 // counts of each part of the rows
	flows                 []float32   // [wide][rowsMax]: into the leaves without tables here
	rootFlow              []float32   // [rowsMax]: 1, or 0 where a row is impossible
	stale                 bool        // the tasks' values are not those of the last forward pass
}

// singleWorker is the scratch memory of one thread.
type singleWorker struct {
	values, codes, scratch []uint32
	flows, row             []float32
	args                   micro.SingleArgs
}

// singleParts is the most parts that the rows of a call are divided into. It enters the order
// of sums, so it does not depend on threads.
const singleParts = 16

// maxSingles bounds the vectors of a tape, whose places are int32.
const maxSingles = 1 << 23

// hasSingles reports whether a program's vectors all have one unit.
func hasSingles(p *layers.Program) bool {
	if p.Vectors[p.Root].Kind == layers.InputVector || len(p.Vectors)+len(p.Factors) > maxSingles {
		return false
	}
	for i := range p.Vectors {
		if p.Vectors[i].Units != 1 {
			return false
		}
	}
	return p.BlockSize == 1 && len(p.Sums) > 0
}

// newSingles lowers a program to a tape. It needs the executor's plan.
func newSingles(x *executor) *singles {
	p := x.prog
	s := &singles{set: x.set.Single}
	s.place, s.edge = filled(len(p.Vectors), -1), filled(len(p.Elements), -1)
	s.placeInputs(p)
	done := make([]bool, len(p.Vectors))
	groups := s.groups(p)
	for i := range p.Vectors {
		v := &p.Vectors[i]
		if v.Kind == layers.InputVector || done[i] {
			continue
		}
		members := []int32{int32(i)}
		if v.Kind == layers.SumVector {
			members = groups[s.key(p, int32(i))]
		}
		for _, m := range members {
			done[m] = true
		}
		s.group(x, members)
	}
	s.starts = append(s.starts, int32(len(s.tape)))
	return s
}

func filled(n, with int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = with
	}
	return list
}

// placeInputs decides which leaves the tape reads from tables: those of few codes.
func (s *singles) placeInputs(p *layers.Program) {
	s.tableAt, s.counted, s.wideAt = filled(len(p.Inputs), -1), make([]int, len(p.Inputs)), filled(len(p.Inputs), -1)
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if in.Codes > 0 && in.Exps < 0 && p.TableRows(in) <= micro.SingleCodes {
			s.tableAt[i], s.counted[i] = 2*micro.SingleCodes*len(s.tables), s.leafCounts
			if in.Family.NumParams() > 0 {
				s.leafCounts += int(in.Codes)
			}
			s.tables = append(s.tables, int32(i))
			continue
		}
		// A float32 is 2^-149 or more, and maxSingles of them are above 2^Lost.
		s.far = s.far || in.Codes == 0 || in.Exps >= 0
		s.place[in.Vector] = s.newPlace()
		s.wideAt[i] = len(s.wide)
		s.wide = append(s.wide, int32(i))
	}
}

func (s *singles) newPlace() int {
	s.vectors++
	return 2 * s.set.Rows * (s.vectors - 1)
}

// key is the same for sums that read the same operands in the same order.
func (s *singles) key(p *layers.Program, v int32) string {
	var b []byte
	sum := &p.Sums[p.Vectors[v].Def]
	for e := sum.ElemLo; e < sum.ElemHi; e++ {
		b = append(b, '/')
		for _, f := range p.ElementFactors(e) {
			b = binary.LittleEndian.AppendUint32(b, uint32(f))
		}
	}
	return string(b)
}

// groups returns the sums by key.
func (s *singles) groups(p *layers.Program) map[string][]int32 {
	m := map[string][]int32{}
	for i := range p.Sums {
		k := s.key(p, p.Sums[i].Vector)
		m[k] = append(m[k], p.Sums[i].Vector)
	}
	return m
}

// group appends the group of some sums with the same operands, or of a stored product.
func (s *singles) group(x *executor, members []int32) {
	lo, hi := s.elements(x.prog, members[0])
	operands := make([][]factorOf, 0, hi-lo)
	for e := lo; e < hi; e++ {
		operands = append(operands, s.shorten(x.prog, s.factors(x.prog, e)))
	}
	s.begin(x.prog, operands, len(members))
	for _, m := range members {
		at, sum := len(s.weights), x.tasks[x.taskOf[m]].sum
		from, _ := s.elements(x.prog, m)
		for j := range operands {
			s.edge[int(from)+j] = at + j
			s.weights = append(s.weights, noWeight)
		}
		if sum == nil {
			s.weights[at] = oneWeight
		} else {
			for _, run := range sum.back {
				if run.n > 0 {
					s.weights[at+run.col] = run.param
				}
			}
		}
		s.place[m] = s.newPlace()
		s.end(s.place[m], at)
	}
}

// elements returns the range of the elements of a sum or of a stored product.
func (s *singles) elements(p *layers.Program, v int32) (lo, hi int32) {
	def := p.Vectors[v].Def
	if p.Vectors[v].Kind == layers.StoredVector {
		return p.Stored[def].Element, p.Stored[def].Element + 1
	}
	return p.Sums[def].ElemLo, p.Sums[def].ElemHi
}

// begin appends the head of a group to the tape: its operands.
func (s *singles) begin(p *layers.Program, operands [][]factorOf, sums int) {
	s.starts = append(s.starts, int32(len(s.tape)))
	s.operands = max(s.operands, len(operands))
	s.tape = append(s.tape, int32(len(operands)), int32(sums))
	for _, list := range operands {
		leaves := 0
		for leaves < len(list) && list[leaves].input >= 0 {
			leaves++
		}
		s.tape = append(s.tape, int32(leaves), int32(len(list)-leaves))
		for _, f := range list {
			if f.input < 0 {
				s.tape = append(s.tape, int32(f.place))
				continue
			}
			in, codes := &p.Inputs[f.input], 0
			if in.Family.NumParams() > 0 {
				codes = int(in.Codes)
			}
			s.tape = append(s.tape, int32(f.place), p.Columns[in.Column].Slot*int32(s.set.Rows), int32(codes), int32(s.counted[f.input]))
		}
	}
}

// end appends a sum, or a stored product, whose weights begin at one of their places.
func (s *singles) end(place, weight int) {
	s.tape = append(s.tape, int32(place), int32(2*weight), int32(s.leafCounts+weight))
}

// Weights that are not parameters: one that the program does not list, which is 0, and that of
// a stored product's operand, which is 1.
const (
	noWeight  = -1
	oneWeight = -2
)

// factorOf is a leaf with a table, at a place in the tables, or with input -1 a vector, at a
// place in the values.
type factorOf struct{ input, place int }

// factors returns the factors of an element, leaves with tables first.
func (s *singles) factors(p *layers.Program, e int32) (list []factorOf) {
	var nodes []factorOf
	for _, f := range p.ElementFactors(e) {
		if at := s.place[f]; at >= 0 {
			nodes = append(nodes, factorOf{-1, at})
		} else {
			in := int(p.Vectors[f].Def)
			list = append(list, factorOf{in, s.tableAt[in]})
		}
	}
	return append(list, nodes...)
}

// shorten puts factors that are too many for one product into products of their own.
func (s *singles) shorten(p *layers.Program, list []factorOf) []factorOf {
	for len(list) > micro.SingleFactors {
		s.begin(p, [][]factorOf{list[:micro.SingleFactors]}, 1)
		at, place := len(s.weights), s.newPlace()
		s.weights = append(s.weights, oneWeight)
		s.end(place, at)
		list = append(list[micro.SingleFactors:len(list):len(list)], factorOf{-1, place})
	}
	return list
}

// singleSizes are lengths in words, of each thread and of all.
type singleSizes struct{ own, shared int }

func (s *singles) counts() int { return s.leafCounts + len(s.weights) }

func (s *singles) sizes(x *executor) singleSizes {
	rows := s.set.Rows
	z := singleSizes{own: (3*s.vectors+3*s.operands+len(x.prog.Columns))*rows + s.operands}
	z.shared = len(s.tape) + len(s.starts) + 2*micro.SingleCodes*len(s.tables) + 2*len(s.weights) + x.rowsMax
	if x.train {
		z.shared += s.numParts(x.rowsMax)*s.counts() + len(s.wide)*x.rowsMax
	}
	return z
}

// numParts is how many parts a call of some rows is divided into. Each has counts of its own,
// which cost as much as a few rows, so it has two vectors of rows or more.
func (s *singles) numParts(rows int) int {
	return max(1, min(singleParts, rows/(2*s.set.Rows)))
}

// init makes the memory that threads share.
func (s *singles) init(x *executor) {
	s.tableBits = cpu.Aligned[uint32](max(1, 2*micro.SingleCodes*len(s.tables)))
	s.weightBits = cpu.Aligned[uint32](2 * len(s.weights))
	s.rootFlow = make([]float32, x.rowsMax)
	s.parts = make([][]float32, s.numParts(x.rowsMax))
	if !x.train {
		return
	}
	for i := range s.parts {
		s.parts[i] = cpu.Aligned[float32](s.counts())
	}
	s.flows = cpu.Aligned[float32](len(s.wide) * x.rowsMax)
}

// initWorker makes the memory of the i-th thread, and the arguments of its kernels that stay.
// Threads past singleParts take no rows, but they move parameters.
func (s *singles) initWorker(x *executor, i int, k *singleWorker) {
	rows := s.set.Rows
	k.row = make([]float32, s.operands)
	if i >= singleParts {
		return
	}
	k.values, k.flows = cpu.Aligned[uint32](2*rows*s.vectors), cpu.Aligned[float32](rows*s.vectors)
	k.codes, k.scratch = cpu.Aligned[uint32](max(1, rows*len(x.prog.Columns))), cpu.Aligned[uint32](3*rows*s.operands)
	k.args = micro.SingleArgs{
		Tape: &s.tape[0], Values: &k.values[0], Flows: &k.flows[0], Codes: &k.codes[0], Scratch: &k.scratch[0],
		Far: s.far,
	}
}

package layers

import "fmt"

// Module asks a device to make a program ready.
type Module struct {
	Program *Program
	Rows    int  // the most rows of a launch
	Train   bool // make room for Backward and Update
	Queries bool // make room for Posteriors and Maximise
	Mixed   bool // products of lower precision where the device has them
	// StepRows is the most rows whose flows are added up before an update; 0
	// means Rows.
	StepRows int64
	// Scales holds, for each input that owns its parameters, the powers of two that
	// its statistics, those of all inputs that share with it, are divided by before
	// they are rounded to the grid of flows; nil means ones.
	Scales [][]float64
}

// StatsAreShares reports whether the statistics of a family without codes are 0 or 1, whatever the cells are, by its
// method of that name.
func StatsAreShares(f Family) bool {
	s, ok := f.(interface{ StatsAreShares() bool })
	return ok && s.StatsAreShares()
}

// StatScale is what the k-th statistic of an input without codes is divided by, by Module.Scales.
func StatScale(scales [][]float64, in *Input, k int) float64 {
	if int(in.Owner) >= len(scales) || k >= len(scales[in.Owner]) {
		return 1
	}
	return scales[in.Owner][k]
}

// ModuleKind names the form of module: a tensor program.
const ModuleKind = "tensor"

// ModuleKind names the form of module: a tensor program.
func (Module) ModuleKind() string { return ModuleKind }

// CellBytes is what the cells of a launch take.
func (m Module) CellBytes() int64 {
	n, code := int64(0), int64(2)
	if m.Program.WideCodes() {
		code = 4
	}
	for _, c := range m.Program.Columns {
		if c.Codes > 0 {
			n += code
		} else {
			n += 4
		}
	}
	return n * int64(m.Rows)
}

// RowBytes is what the cells and log-likelihoods of a launch take.
func (m Module) RowBytes() int64 { return m.CellBytes() + 8*int64(m.Rows) }

// FlowLen is the length of a buffer of flows: one for each parameter, in the
// parameters' places, then the normalisers.
func (p *Program) FlowLen() int64 { return p.NumParams + p.VisitLen() }

// SumNorm is the offset in the flows of the normalisers of an owning sum, one
// for each unit, padding included.
func (p *Program) SumNorm(s int32) int64 {
	return p.NumParams + int64(p.Vectors[p.Sums[s].Vector].First)*int64(p.BlockSize)
}

// InputNorm is the offset in the flows of the normalisers of an owning input.
func (p *Program) InputNorm(i int32) int64 {
	return p.NumParams + int64(p.Vectors[p.Inputs[i].Vector].First)*int64(p.BlockSize)
}

// VisitLen is the length of a buffer with a number for each unit of node space,
// padding included: the last part of the flows.
func (p *Program) VisitLen() int64 { return int64(p.NodeBlocks) * int64(p.BlockSize) }

// AverageLen is the length of a buffer of averaged flows: FlowLen, then what
// float32 cannot hold of the statistics of function leaves, which are
// differences of large numbers.
func (p *Program) AverageLen() int64 {
	n := p.FlowLen()
	for i := range p.Inputs {
		n += p.Residues(int32(i))
	}
	return n
}

// Residues is the length of an input's part of that end, [NumStats+1, width] for
// an owning function leaf, the normalisers last, else 0.
func (p *Program) Residues(input int32) int64 {
	in := &p.Inputs[input]
	if in.Codes > 0 || in.Owner != input || in.Family.NumParams() == 0 {
		return 0
	}
	return int64(in.Family.NumStats()+1) * int64(p.Width(in.Vector))
}

// PosteriorOffsets returns where the posterior of each of the columns of lies in a row of
// posteriors: column of[i] has the elements offsets[i] to offsets[i+1]-1, and the last offset
// is the row's length. A column with codes has an element for each code, a column of
// functions one for each unit of its inputs, in the order of Functions. The number of a
// column with rows of evidence plus the number of columns means the units of its
// inputs, in order. Columns that do not exist or are listed twice are errors that match ErrIndex.
func (p *Program) PosteriorOffsets(of []int32) (offsets []int, err error) {
	columns := len(p.Columns)
	widths, seen := make([]int, 2*columns), make([]bool, 2*columns)
	for i := range p.Columns {
		widths[i] = int(p.Columns[i].Codes)
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		units := int(p.Vectors[in.Vector].Units)
		if in.Codes == 0 {
			widths[in.Column] += units
		} else if p.Columns[in.Column].Soft > 0 {
			widths[columns+int(in.Column)] += units
		}
	}
	offsets = make([]int, 1, len(of)+1)
	for i, c := range of {
		if c < 0 || int(c) >= 2*columns || int(c) >= columns && widths[c] == 0 {
			return nil, fmt.Errorf("%w: column %d of %d", ErrIndex, c, columns)
		}
		if seen[c] {
			return nil, fmt.Errorf("%w: column %d is listed twice", ErrIndex, c)
		}
		seen[c] = true
		offsets = append(offsets, offsets[i]+widths[c])
	}
	return offsets, nil
}

// gridRows is how many counts a flow holds on the finest grid, with room for
// the rounding of many shards.
const gridRows = 1 << 22

// Grid is the unit, in rows, that expected counts are rounded to before they are
// added as integers: 2^-40, or the power of two above it that keeps a step of
// stepRows rows within 64 bits where parameters are shared or rows are many.
func (p *Program) Grid(stepRows int64) float64 {
	sums, inputs := make([]int64, len(p.Sums)), make([]int64, len(p.Inputs))
	most := int64(1)
	for i := range p.Sums {
		o := p.Sums[i].Owner
		sums[o]++
		most = max(most, sums[o])
	}
	for i := range p.Inputs {
		o := p.Inputs[i].Owner
		inputs[o]++
		most = max(most, inputs[o])
	}
	grid := 0x1p-40
	for room := int64(1); room < most; room *= 2 {
		grid *= 2
	}
	for room := int64(gridRows); room < stepRows; room *= 2 {
		grid *= 2
	}
	return grid
}

package layers

// Module asks a device to make a program ready.
type Module struct {
	Program *Program
	Rows    int  // the most rows of a launch
	Train   bool // make room for Backward and Update
	Mixed   bool // bfloat16 products in the flows where the device has them
	// Scales holds, for each column of values, the powers of two that the
	// statistics of its leaves are divided by before they are rounded to the
	// grid of flows; nil means ones.
	Scales [][]float64
}

// ModuleKind names the form of module: a tensor program.
func (Module) ModuleKind() string { return "tensor" }

// FlowLen is the length of a buffer of flows: one for each parameter, in the
// parameters' places, then the normalisers.
func (p *Program) FlowLen() int64 { return p.NumParams + int64(p.normLen()) }

// SumNorm is the offset in the flows of the normalisers of an owning sum, one
// for each unit, padding included.
func (p *Program) SumNorm(s int32) int64 {
	return p.NumParams + int64(p.Vectors[p.Sums[s].Vector].First)*int64(p.BlockSize)
}

// InputNorm is the offset in the flows of the normalisers of an owning input.
func (p *Program) InputNorm(i int32) int64 {
	return p.NumParams + int64(p.Vectors[p.Inputs[i].Vector].First)*int64(p.BlockSize)
}

func (p *Program) normLen() int { return int(p.NodeBlocks) * p.BlockSize }

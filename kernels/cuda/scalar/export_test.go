package scalar

import "github.com/pce-engine/pce/kernels"

// MostWorks is how many graphs a program keeps.
const MostWorks = mostWorks

// Inside says how many kernels and graphs a program has, and for how many rows it has scratch memory.
func Inside(p kernels.CodeProgram) (kernels, works, rows int) {
	own := p.(*program)
	return len(own.low.Kernels), len(own.works), own.rows
}

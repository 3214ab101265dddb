package tensor

import (
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestPrecision wants products of lower precision where a set of kernels has them:
// on both sides of the smallest blocks and of the smallest sums.
func TestPrecision(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 4, Latents: 64, Leaf: func(int) circuit.Leaf { return circuit.Bernoulli{} }})
	if err != nil {
		t.Fatal(err)
	}
	for _, fastest := range micro.All() {
		for _, block := range []int{1, 2, 16, 32} {
			o := compile.DefaultOptions()
			o.BlockSize = block
			r, err := compile.Compile(g, o)
			if err != nil {
				t.Fatal(err)
			}
			units := r.Program.TypicalUnits()
			least := map[bool]int{true: 2, false: 1 << 30}[fastest.BF16 != nil]
			if fastest.Half != nil {
				least = 32
			}
			for _, halfUnits := range []int{0, units, units + 1} {
				set := *fastest
				set.HalfUnits = halfUnits
				d := opened(t, cpu.Options{Threads: 1, Set: &set})
				for _, m := range []layers.Module{{}, {Train: true}, {Mixed: true}, {Train: true, Mixed: true}} {
					m.Program, m.Rows = r.Program, 4
					p, err := kernels.LoadAs[tensor.Program](t.Context(), d, m)
					if err != nil {
						t.Fatal(err)
					}
					want := tensor.Precision{Flows: m.Train && m.Mixed && block >= least && units >= halfUnits}
					if got := p.Precision(); got != want || got.String() != map[bool]string{true: "mixed", false: "fp32"}[want.Flows] {
						t.Errorf("%s: blocks of %d, sums of %d units with kernels from %d on, train %v, mixed %v: precision %v %+v, want %+v",
							set.Name, block, units, halfUnits, m.Train, m.Mixed, got, got, want)
					}
					p.Free()
					if got := p.Precision(); got != (tensor.Precision{}) {
						t.Errorf("after Free: precision %v", got)
					}
				}
			}
		}
	}
}

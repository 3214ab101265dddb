package tensor

import (
	"fmt"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// TestMemory compares what is planned with what is allocated.
func TestMemory(t *testing.T) {
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 5} }
	tree, err := structures.GridTree(3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	graphs := map[string]func() (*circuit.Graph, error){
		"hclt": func() (*circuit.Graph, error) {
			return structures.HCLT(tree, structures.HCLTOptions{Latents: 48, Leaf: leaf})
		},
		"hmm": func() (*circuit.Graph, error) {
			return structures.HMM(structures.HMMOptions{Length: 6, Latents: 64, Tied: true, Leaf: leaf})
		},
		"gaussian": func() (*circuit.Graph, error) {
			return structures.HMM(structures.HMMOptions{Length: 6, Latents: 3, Leaf: func(int) circuit.Leaf { return circuit.Gaussian{} }})
		},
		"pd": func() (*circuit.Graph, error) {
			return structures.PD(structures.PDOptions{Shape: [3]int{4, 4, 1}, SplitInterval: 1, MaxProductBlocks: 2, Latents: 64, Leaf: leaf})
		},
	}
	for name, build := range graphs {
		g, err := build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := compile.Compile(g, compile.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range []layers.Module{{}, {Train: true}, {Queries: true}, {Train: true, Queries: true}} {
			for _, mixed := range []bool{false, true} {
				for _, threads := range []int{1, 2, 3} {
					t.Run(fmt.Sprintf("%s/train=%v/queries=%v/mixed=%v/threads=%d", name, load.Train, load.Queries, mixed, threads), func(t *testing.T) {
						m := layers.Module{Program: r.Program, Rows: 77, Train: load.Train, Queries: load.Queries, Mixed: mixed}
						o := cpu.Options{Threads: threads, Set: widest()}
						want := allocated(newExecutor(m, opened(t, o)))
						got, err := Plan(m, o)
						if err != nil {
							t.Fatal(err)
						}
						if got != want {
							t.Errorf("Plan = %+v, allocated %+v", got, want)
						}
					})
				}
			}
		}
	}
}

// TestMostThreads wants threads past those that can run to have no memory, in what is planned as in what is allocated.
func TestMostThreads(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 6, Latents: 16, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 5} }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	m := layers.Module{Program: r.Program, Rows: 77, Train: true}
	scratch := func(threads int) (plan, made Memory) {
		o := cpu.Options{Threads: threads, Set: widest()}
		if plan, err = Plan(m, o); err != nil {
			t.Fatal(err)
		}
		return plan, allocated(newExecutor(m, opened(t, o)))
	}
	some, _ := scratch(mostThreads())
	if plan, made := scratch(4096); plan != some || made != some || some.Scratch == 0 {
		t.Errorf("4096 threads have %+v, planned %+v; want those of %d, %+v", made, plan, mostThreads(), some)
	}
}

// allocated counts the bytes of an executor's workspace, buffers that several
// workers share once.
func allocated(x *executor) Memory {
	var m Memory
	m.Values = 4 * int64(len(x.values)+len(x.exps)+len(x.shifts))
	m.Flows = 4 * int64(len(x.flows)+len(x.kept)+len(x.norms)+len(x.came))
	m.Scratch = 4 * int64(len(x.logs.counts)+len(x.logs.index)+len(x.taken)+len(x.peaks.table)+len(x.peaks.exps))
	for _, g := range x.groups {
		m.Scratch += 4 * int64(len(g))
	}
	seen := map[*float32]bool{}
	add := func(bufs ...[]float32) {
		for _, b := range bufs {
			if len(b) > 0 && !seen[&b[0]] {
				seen[&b[0]] = true
				m.Scratch += 4 * int64(len(b))
			}
		}
	}
	pairs := map[*uint32]bool{}
	for _, w := range x.workers {
		add(w.e, w.fp, w.tt, w.grad, w.count, w.min, w.row, w.exps)
		add(w.mix.flows, w.mix.rows, w.mix.table, w.mix.strip)
		m.Scratch += 4 * int64(len(w.shift))
		m.Scratch += 8 * int64(len(w.function.terms)+len(w.function.logs))
		for _, cells := range w.function.cells {
			m.Scratch += 8 * int64(len(cells))
		}
		h := &w.half
		add(h.scale, h.sent, h.ratioUp, h.ratioDown, h.operandUp, h.operandDown, h.asideRatios, h.asideOperands, h.asideFlows)
		m.Scratch += 4 * int64(len(h.top)+len(h.shift)+cap(h.aside))
		m.Scratch += 2 * int64(len(h.weights)+len(h.ratios)+len(h.operands)+len(h.sums))
		for _, b := range [][]uint32{w.pairs.weights, w.pairs.ratios, w.pairs.ratioT, w.pairs.operands} {
			if len(b) > 0 && !pairs[&b[0]] {
				pairs[&b[0]] = true
				m.Scratch += 4 * int64(len(b))
			}
		}
	}
	return m
}

func opened(t testing.TB, o cpu.Options) *cpu.Device {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// widest returns the set with the most kernels.
func widest() *micro.Set {
	for _, s := range micro.All() {
		if s.BF16 != nil {
			return s
		}
	}
	return micro.All()[0]
}

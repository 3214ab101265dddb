package tensor_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// leafInput is an input of a test: units of a family, whose flows come from uses.
type leafInput struct {
	family      circuit.Leaf
	units, uses int
	missing     float64 // share of missing cells
}

// leaves are inputs with their data, as arguments of kernels.
type leaves struct {
	size, rows, cap int // S, rows of a launch, rows of the buffers
	rng             *rand.Rand
	cases           []leafInput

	Params, Values, Kept, Val, Visits, Counts []float32
	Averages, AverNorms, Residues, Totals     []float32
	Codes                                     []uint16
	Exp                                       []int32
	Fans, List                                []uint32
	Flows, FlowNorms                          []int64
	Constants                                 []float64
	Inputs, Uses, Control                     []byte

	inputs []tensor.Input
	uses   []tensor.Use
	shift  uint32 // statistics are gathered in 2^shift parts, unless it is 0

	step, pseudocount, scale float64
	average, take, grid      float32
}

func newLeaves(size, rows int, seed uint64, cases ...leafInput) *leaves {
	w := &leaves{
		size: size, rows: rows, cap: rows + 3, rng: rand.New(rand.NewPCG(seed, 11)), cases: cases,
		step: 1, scale: 1, grid: 0x1p-40,
	}
	unit := uint32(size) // of node space
	for i, c := range cases {
		width := (c.units + size - 1) / size * size
		in := tensor.Input{
			Table: tensor.NoParams, Params: tensor.NoParams, Codes: uint32(c.family.Codes()), Width: uint32(width), Units: uint32(c.units),
			Unit: unit, Stats: uint32(c.family.NumStats()), Constant: uint32(len(w.Constants)), Use: uint32(len(w.uses)), Uses: uint32(c.uses),
		}
		unit += uint32(width)
		w.Constants = append(w.Constants, c.family.Constants()...)
		in.Family = map[string]uint32{
			"gaussian": tensor.FamilyGaussian, "poisson": tensor.FamilyPoisson, "binomial": tensor.FamilyBinomial,
			"discretised-logistic": tensor.FamilyLogistic, "histogram": tensor.FamilyHistogram, "indicator": tensor.FamilyIndicator,
			"real-histogram": tensor.FamilyRealHistogram,
		}[c.family.Name()]
		w.parameters(&in, c)
		if in.Codes == 0 {
			in.Val, in.Exp = uint64(room(&w.Val, w.cap*width, poison)), uint32(room(&w.Exp, w.cap, 1<<20))
			in.Residue, in.Scales = uint32(len(w.Residues)), uint32(len(w.Constants))
			for k := range c.family.NumStats() {
				w.Constants = append(w.Constants, math.Ldexp(1, k*3+2))
			}
			w.Residues = append(w.Residues, make([]float32, (c.family.NumStats()+1)*width)...)
		} else if in.Codes > tensor.SharedCodes {
			in.Counts = uint64(room(&w.Counts, int(in.Codes)*width, poison))
		}
		for range c.uses {
			w.use(&in, c)
		}
		in.At = w.uses[in.Use].At
		w.inputs = append(w.inputs, in)
		for run := range (c.units + 31) / 32 {
			w.List = append(w.List, uint32(i), uint32(run))
		}
	}
	w.Flows, w.FlowNorms = make([]int64, len(w.Params)), make([]int64, unit)
	w.Averages, w.AverNorms = make([]float32, len(w.Params)), make([]float32, unit)
	room(&w.Totals, tensor.LeafParts*int(unit), poison)
	w.Fans, w.Visits = make([]uint32, unit), make([]float32, unit)
	for i, in := range w.inputs {
		w.Inputs = append(w.Inputs, tensor.Words(in, tensor.InputSize)...)
		for u := range in.Units {
			w.Visits[in.Unit+u] = w.rng.Float32()
			for c := range in.Codes {
				if w.Params[in.Table+uint64(c*in.Width+u)] > 0 && w.cases[i].family.Codes() > 0 {
					w.Fans[in.Unit+u]++
				}
			}
		}
	}
	for _, u := range w.uses {
		w.Uses = append(w.Uses, tensor.Words(u, tensor.UseSize)...)
	}
	return w
}

// parameters draws those of an input; a tenth of the masses are 0.
func (w *leaves) parameters(in *tensor.Input, c leafInput) {
	width, np := int(in.Width), c.family.NumParams()
	own := in.Codes > 0 && !circuit.ParamsAreTable(c.family)
	if in.Codes > 0 {
		in.Table = uint64(room(&w.Params, (int(in.Codes)+1)*width, 0))
	}
	if in.Codes == 0 || own {
		in.Params = uint64(len(w.Params))
		w.Params = append(w.Params, make([]float32, np*width)...)
	}
	if own && in.Family != tensor.FamilyHistogram {
		in.Exps = uint32(room(&w.Params, (int(in.Codes)+1)*width, 0)) - uint32(in.Table)
	}
	p := make([]float64, np)
	for u := range c.units {
		col := circuit.ColumnStats{Mean: 2, Variance: 3, Max: 1}
		if in.Codes > 0 {
			col.Mean = float64(in.Codes) / 3
		}
		c.family.Init(p, col, w.rng)
		if c.family.NumStats() == np && np > 2 {
			mass := 0.0
			for k := range p {
				if w.rng.IntN(10) == 0 && k != u%np {
					p[k] = 0
				}
				mass += p[k]
			}
			for k := range p {
				p[k] /= mass
			}
		}
		if in.Family == tensor.FamilyBinomial && u%4 > 1 {
			p[0] = float64(u % 2) // certain: stays
		}
		w.putParams(in, u, c.family, p)
		if in.Codes > 0 {
			w.Params[in.Table+uint64(int(in.Codes)*width+u)] = 1
		}
	}
}

// putParams stores parameters of a unit, and what is made of them.
func (w *leaves) putParams(in *tensor.Input, u int, f circuit.Leaf, p []float64) {
	width := int(in.Width)
	p = slices.Clone(p)
	for k := range p {
		p[k] = float64(float32(p[k]))
		if in.Params != tensor.NoParams {
			w.Params[in.Params+uint64(k*width+u)] = float32(p[k])
		}
	}
	for c := range int(in.Codes) {
		at := in.Table + uint64(c*width+u)
		log := f.LogProb(p, float64(c))
		if in.Exps == 0 {
			w.Params[at] = float32(math.Exp(log))
			continue
		}
		w.Params[at], w.Params[at+uint64(in.Exps)] = 0, 0
		if e := math.Floor(log / math.Ln2); e > math.Inf(-1) {
			w.Params[at], w.Params[at+uint64(in.Exps)] = float32(math.Exp(log-e*math.Ln2)), float32(e)
		}
	}
}

// compareTables checks the tables of an input whose numbers have exponents against
// others: a relative error of 1e-6 for probabilities far below float32's.
func (w *leaves) compareTables(t *testing.T, i int, want *leaves) {
	t.Helper()
	in := &w.inputs[i]
	log2 := func(l *leaves, at uint64) float64 {
		m, e := float64(l.Params[at]), float64(l.Params[at+uint64(in.Exps)])
		if m != 0 && !(m >= 1 && m <= 2) || m == 0 && e != 0 || e != math.Trunc(e) {
			t.Fatalf("%s: a probability is %v·2^%v", w.place(int(at)), m, e)
		}
		return math.Log2(m) + e
	}
	for c := range int(in.Codes) {
		for u := range w.cases[i].units {
			at := in.Table + uint64(c*int(in.Width)+u)
			if got, want := log2(w, at), log2(want, at); !(got == want || math.Abs(got-want) <= 1.5e-6) {
				t.Fatalf("%s: code %d of unit %d has a probability of 2^%v, but 2^%v by the parameters that are stored", w.place(int(at)), c, u, got, want)
			}
		}
	}
}

// params reads the parameters of a unit.
func (w *leaves) params(in *tensor.Input, u int, f circuit.Leaf) []float64 {
	p := make([]float64, f.NumParams())
	base := in.Params
	if base == tensor.NoParams {
		base = in.Table
	}
	for k := range p {
		p[k] = float64(w.Params[base+uint64(k*int(in.Width)+u)])
	}
	return p
}

// use draws the data and the flows of a use; where a code's mass is 0 there is no
// flow.
func (w *leaves) use(in *tensor.Input, c leafInput) {
	width := int(in.Width)
	pitch := width + w.rng.IntN(2)*w.size
	kept := room(&w.Kept, w.cap*pitch, poison)
	at := 0
	if in.Codes > 0 {
		at = room(&w.Codes, w.cap, 0xffff)
	} else {
		at = room(&w.Values, w.cap, 0)
	}
	for r := range w.cap {
		missing := w.rng.Float64() < c.missing
		if in.Codes > 0 {
			code := w.rng.IntN(int(in.Codes))
			if r > 0 && w.rng.IntN(2) == 0 && int(w.Codes[at+r-1]) < int(in.Codes) {
				code = int(w.Codes[at+r-1])
			}
			if missing {
				code = int(in.Codes)
			}
			w.Codes[at+r] = uint16(code)
		} else {
			w.Values[at+r] = float32(w.rng.NormFloat64()*3 + 1)
			if in.Family == tensor.FamilyPoisson {
				w.Values[at+r] = float32(w.rng.IntN(30))
			}
			if missing {
				w.Values[at+r] = poison
			}
		}
		for u := range c.units {
			f := w.rng.Float32()
			if r < w.rows {
				w.Kept[kept+r*pitch+u] = f * f * f
				if in.Codes > 0 && w.Params[in.Table+uint64(int(w.Codes[at+r])*width+u)] == 0 {
					w.Kept[kept+r*pitch+u] = 0
				}
			}
		}
	}
	w.uses = append(w.uses, tensor.Use{Kept: uint64(kept), Width: uint32(pitch), At: uint32(at)})
}

// launch runs a kernel on an emulator and takes over what it wrote.
func (w *leaves) launch(t *testing.T, kernel string, grid [3]int, more map[string]any) {
	t.Helper()
	launchLeaves(t, tensor.Variant{Block: w.size, Major: 8}, kernel, grid, w.args(more))
}

// args are the arguments of a launch by name, with some in place of the leaves' own.
func (w *leaves) args(more map[string]any) map[string]any {
	w.Control = make([]byte, tensor.ControlSize)
	put := binary.LittleEndian
	put.PutUint32(w.Control[tensor.ControlRows:], uint32(w.rows))
	put.PutUint32(w.Control[tensor.ControlUnits:], uint32(len(w.FlowNorms)))
	put.PutUint64(w.Control[tensor.ControlStep:], math.Float64bits(w.step))
	put.PutUint64(w.Control[tensor.ControlPseudocount:], math.Float64bits(w.pseudocount))
	put.PutUint64(w.Control[tensor.ControlScale:], math.Float64bits(w.scale))
	put.PutUint32(w.Control[tensor.ControlAverage:], math.Float32bits(w.average))
	put.PutUint32(w.Control[tensor.ControlTake:], math.Float32bits(w.take))
	put.PutUint32(w.Control[tensor.ControlGrid:], math.Float32bits(w.grid))
	put.PutUint32(w.Control[tensor.ControlFine:], math.Float32bits(w.grid*0x1p23))
	args := map[string]any{
		tensor.ArgControl: w.Control, tensor.ArgParams: w.Params, tensor.ArgCodes: w.Codes, tensor.ArgValues: w.Values,
		tensor.ArgVal: w.Val, tensor.ArgExp: w.Exp, tensor.ArgKept: w.Kept, tensor.ArgFans: w.Fans, tensor.ArgFlows: w.Flows,
		tensor.ArgFlowNorms: w.FlowNorms, tensor.ArgAverages: w.Averages, tensor.ArgAverNorms: w.AverNorms,
		tensor.ArgResidues: w.Residues, tensor.ArgVisits: w.Visits, tensor.ArgCounts: w.Counts, tensor.ArgTotals: w.Totals, tensor.ArgInputs: w.Inputs,
		tensor.ArgUses: w.Uses, tensor.ArgConstants: w.Constants, tensor.ArgList: w.List,
	}
	for name, a := range more {
		args[name] = a
	}
	return args
}

// launchLeaves runs one of the kernels of LeafModule with slices as arguments.
func launchLeaves(t *testing.T, v tensor.Variant, kernel string, grid [3]int, args map[string]any) {
	t.Helper()
	if _, err := tryLeaves(t, emulator.Options{Major: 8, Seed: 5, Races: true}, v, kernel, grid, args); err != nil {
		t.Fatal(err)
	}
}

// tryLeaves is launchLeaves on a card of its own, with what that says of the kernel.
func tryLeaves(t *testing.T, o emulator.Options, v tensor.Variant, kernel string, grid [3]int, args map[string]any) (*emulator.Emulator, error) {
	t.Helper()
	entry, text := printed(t, kernelSet{v, "leaves"}, kernel)
	em := emulator.New(o)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	module, err := em.Load(text)
	check(err)
	f, info, err := em.Function(module, kernel, 0)
	check(err)
	s, err := em.NewStream()
	check(err)
	l := cuda.Launch{Function: f, Grid: grid, Block: min(info.MaxThreads, 128)}
	type taken struct {
		data any
		ptr  cuda.Ptr
		was  []byte
	}
	var took []taken
	for _, p := range entry.Params {
		b, err := binary.Append(nil, binary.LittleEndian, args[p.Name])
		check(err)
		b = append(b, make([]byte, 8)...) // empty arguments need a place
		ptr, err := em.Alloc(int64(len(b)))
		check(err)
		check(em.CopyIn(ptr, b, s))
		l.Args = append(l.Args, uint64(ptr))
		took = append(took, taken{args[p.Name], ptr, b})
	}
	check(em.Launch(l, s))
	if err := em.Wait(s); err != nil {
		return em, err
	}
	for _, a := range took {
		b := make([]byte, len(a.was))
		check(em.CopyOut(b, a.ptr, s))
		check(em.Wait(s))
		if !bytes.Equal(b, a.was) {
			check(binary.Read(bytes.NewReader(b), binary.LittleEndian, a.data))
		}
	}
	return em, nil
}

// leafFamilies are inputs of all families.
func leafFamilies(units int) []leafInput {
	var all []leafInput
	for i, f := range []circuit.Leaf{
		circuit.Categorical{Categories: 7}, circuit.Bernoulli{}, circuit.Categorical{Categories: 1},
		circuit.Gaussian{}, circuit.Poisson{}, circuit.Gaussian{MinSigma: 2}, circuit.Binomial{Trials: 40},
		circuit.DiscretisedLogistic{Domain: 12, MinScale: 0.2}, circuit.Histogram{Edges: []int{0, 3, 4, 9, 10, 17}},
	} {
		all = append(all, leafInput{f, units, 1 + i%3, float64(i%4) * 0.2})
	}
	for _, f := range []circuit.Leaf{ // without evidence
		circuit.Categorical{Categories: 3}, circuit.Gaussian{}, circuit.Poisson{}, circuit.Binomial{Trials: 3},
		circuit.DiscretisedLogistic{Domain: 3}, circuit.Histogram{Edges: []int{0, 3, 4, 9}},
	} {
		all = append(all, leafInput{f, units, 1, 1})
	}
	return all
}

// evidence is what the rows say of a unit: Σ flow·T(x) and Σ flow, and with that of
// missing cells.
func (w *leaves) evidence(i, unit int) (stats []float64, norm, visits float64) {
	in, f := &w.inputs[i], w.cases[i].family
	stats, t := make([]float64, f.NumStats()), make([]float64, f.NumStats())
	for _, use := range w.uses[in.Use : in.Use+in.Uses] {
		for r := range w.rows {
			flow := float64(w.Kept[int(use.Kept)+r*int(use.Width)+unit])
			visits += flow
			x := 0.0
			if in.Codes > 0 {
				c := w.Codes[int(use.At)+r]
				if uint32(c) == in.Codes {
					continue
				}
				x = float64(c)
			} else {
				if x = float64(w.Values[int(use.At)+r]); x != x {
					continue
				}
			}
			f.Stats(x, t)
			for k := range t {
				stats[k] += flow * t[k]
			}
			norm += flow
		}
	}
	return stats, norm, visits
}

// compare checks the parameters of all units against those that an M-step gives.
func (w *leaves) compare(t *testing.T, was *leaves, tol float64, mstep func(i, u int, p []float64)) {
	t.Helper()
	want := *was
	want.Params = slices.Clone(was.Params)
	stored := *was
	stored.Params = slices.Clone(was.Params)
	moved := 0
	apart := make([]bool, len(w.Params))
	for i := range w.inputs {
		in, f := &w.inputs[i], w.cases[i].family
		for u := range w.cases[i].units {
			p := was.params(in, u, f)
			mstep(i, u, p)
			want.putParams(in, u, f, p)
			stored.putParams(in, u, f, w.params(in, u, f))
		}
		if in.Exps > 0 {
			w.compareTables(t, i, &stored)
			for k := range uint64(in.Codes * in.Width) {
				apart[in.Table+k], apart[in.Table+uint64(in.Exps)+k] = true, true
			}
		}
	}
	for k, p := range w.Params {
		if apart[k] {
			continue
		}
		if e := stored.Params[k]; !(math.Abs(float64(p-e)) <= 0x1p-22*float64(e)+0x1p-140) && e > 0 {
			t.Fatalf("%s: parameter %d is %v, but %v by those that are stored", w.place(k), k, p, e)
		}
		e := float64(want.Params[k])
		if !(math.Abs(float64(p)-e) <= tol*max(math.Abs(e), 1e-3)) || (e == 0) != (p == 0) {
			t.Fatalf("%s: parameter %d is %v, want %v, was %v", w.place(k), k, p, e, was.Params[k])
		}
		if p != was.Params[k] {
			moved++
		}
	}
	if moved == 0 {
		t.Fatal("nothing moved")
	}
}

// place names the input of a parameter.
func (w *leaves) place(k int) string {
	name := ""
	for i, in := range w.inputs {
		if uint64(k) >= min(in.Table, in.Params) {
			name = fmt.Sprintf("input %d, %T %+v", i, w.cases[i].family, w.cases[i].family)
		}
	}
	return name
}

// copy returns leaves that share nothing that kernels write.
func (w *leaves) copy() *leaves {
	c := *w
	c.Params, c.Flows, c.FlowNorms = slices.Clone(w.Params), slices.Clone(w.Flows), slices.Clone(w.FlowNorms)
	c.Averages, c.AverNorms = slices.Clone(w.Averages), slices.Clone(w.AverNorms)
	c.Residues, c.Counts, c.Totals = slices.Clone(w.Residues), slices.Clone(w.Counts), slices.Clone(w.Totals)
	return &c
}

// update starts one of the kernels that work on pairs of an input and a run.
func (w *leaves) update(t *testing.T, kernel string) {
	t.Helper()
	if w.shift == 0 || kernel != tensor.KernelLeafMove && kernel != tensor.KernelLeafCount {
		w.launch(t, kernel, [3]int{len(w.List) / 2, 1, 1}, nil)
		return
	}
	parts := w.parts()
	for _, k := range []string{tensor.KernelLeafGather, kernel} {
		w.launch(t, k, [3]int{len(parts) / 2, 1, 1}, map[string]any{tensor.ArgList: parts})
	}
}

// parts is the list of a launch in parts.
func (w *leaves) parts() (list []uint32) {
	for i := 0; i < len(w.List); i += 2 {
		for p := range uint32(1) << w.shift {
			list = append(list, w.List[i], tensor.LeafPart(w.List[i+1], p, w.shift))
		}
	}
	return list
}

// eachLeaves calls do with inputs of all families, of many widths and numbers of
// rows, and with tables of several sizes.
func eachLeaves(t *testing.T, each func(t *testing.T, w *leaves)) {
	cases := 0
	do := func(t *testing.T, w *leaves) {
		if cases++; testing.Short() && cases%3 != 0 {
			t.Skip("every third case stands for the others; run without -short")
		}
		each(t, w)
	}
	for i, c := range []struct{ size, units, rows int }{
		{1, 1, 1}, {1, 3, 40}, {2, 5, 33}, {4, 4, 32}, {8, 40, 7}, {16, 33, 65}, {32, 32, 130}, {32, 70, 64},
	} {
		t.Run(fmt.Sprintf("S=%d/units=%d/rows=%d", c.size, c.units, c.rows), func(t *testing.T) {
			do(t, newLeaves(c.size, c.rows, uint64(i), leafFamilies(c.units)...))
		})
	}
	for i, f := range []circuit.Leaf{
		circuit.Categorical{Categories: 256}, circuit.Categorical{Categories: 300}, circuit.Binomial{Trials: 255},
		circuit.Binomial{Trials: 259}, circuit.DiscretisedLogistic{Domain: 256}, circuit.DiscretisedLogistic{Domain: 261},
		circuit.Histogram{Edges: []int{0, 100, 101, 256}}, circuit.Histogram{Edges: []int{0, 100, 101, 105, 257}},
	} {
		t.Run(fmt.Sprintf("%s/codes=%d", f.Name(), f.Codes()), func(t *testing.T) {
			do(t, newLeaves(4, 90, uint64(20+i), leafInput{f, 35, 2, 0.1}))
		})
	}
	for i, c := range []struct {
		size, units, rows, codes int
		shift                    uint32
	}{{1, 3, 1, 257, 1}, {8, 40, 140, 300, 2}, {32, 33, 260, 1000, 4}} {
		t.Run(fmt.Sprintf("parts/S=%d/units=%d/rows=%d/codes=%d", c.size, c.units, c.rows, c.codes), func(t *testing.T) {
			f := circuit.Categorical{Categories: c.codes}
			w := newLeaves(c.size, c.rows, uint64(30+i), leafInput{f, c.units, 2, 0.1}, leafInput{f, 2, 1, 0})
			w.shift = c.shift
			do(t, w)
		})
	}
}

// TestLeafMove compares the parameters that leaf_move leaves with those of the
// families' M-steps in float64.
func TestLeafMove(t *testing.T) {
	eachLeaves(t, func(t *testing.T, w *leaves) {
		for _, rule := range []struct{ step, pseudocount float64 }{{1, 0.1}, {0.3, 0}, {0.5, 2}} {
			was := w.copy()
			w.step, w.pseudocount = rule.step, rule.pseudocount
			w.update(t, tensor.KernelLeafMove)
			w.compare(t, was, 1e-5, func(i, u int, p []float64) {
				stats, norm, _ := w.evidence(i, u)
				w.cases[i].family.MStep(p, stats, norm, w.pseudocount, w.step)
			})
			w.Params = was.Params
		}
	})
}

// TestLeafFlows checks that flows, counted and then used, move parameters to the
// very bits that leaf_move does, that they hold the evidence, and are cleared.
func TestLeafFlows(t *testing.T) {
	eachLeaves(t, func(t *testing.T, w *leaves) {
		for _, grid := range []float32{0x1p-40, 0x1p-9} { // counts that lie on the grid by themselves, and others
			w := w.copy()
			w.grid, w.step, w.pseudocount = grid, 0.4, 0.5
			w.byFlows(t)
		}
	})
}

// byFlows is TestLeafFlows for one case.
func (w *leaves) byFlows(t *testing.T) {
	fused := w.copy()
	fused.update(t, tensor.KernelLeafMove)
	w.update(t, tensor.KernelLeafCount)
	grid := float64(w.grid)
	for i, in := range w.inputs {
		for u := range w.cases[i].units {
			stats, norm, _ := w.evidence(i, u)
			got := float64(w.FlowNorms[int(in.Unit)+u]) * grid
			if !(math.Abs(got-norm) <= 1e-5*norm+grid) {
				t.Fatalf("input %d unit %d: norm %v, want %v", i, u, got, norm)
			}
			for k, s := range stats {
				at, scale := in.Params, 1.0
				if in.Codes > 0 {
					if at = in.Table; in.Params != tensor.NoParams {
						break
					}
				} else {
					scale = w.Constants[int(in.Scales)+k]
				}
				got := float64(w.Flows[int(at)+k*int(in.Width)+u]) * grid * scale
				if !(math.Abs(got-s) <= 1e-5*math.Abs(s)+scale*grid) {
					t.Fatalf("input %d unit %d: statistic %d is %v, want %v", i, u, k, got, s)
				}
			}
		}
	}
	w.update(t, tensor.KernelLeafUpdate)
	for k, p := range w.Params {
		if math.Float32bits(p) != math.Float32bits(fused.Params[k]) {
			t.Fatalf("%s: parameter %d by flows is %v, at once %v", w.place(k), k, p, fused.Params[k])
		}
	}
	for k, f := range slices.Concat(w.Flows, w.FlowNorms) {
		if f != 0 {
			t.Fatalf("flow %d was left at %d", k, f)
		}
	}
}

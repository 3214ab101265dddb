package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/layers"
)

// TestRowsWithin wants powers of two below the full launch, and one row at least.
func TestRowsWithin(t *testing.T) {
	for _, tc := range []struct {
		bytes, one, all int64
		full, want      int
	}{
		{100, 10, 10 + 511*10, 512, 8}, {89, 10, 10 + 511*10, 512, 8}, {79, 10, 10 + 511*10, 512, 4},
		{5, 10, 10 + 511*10, 512, 1}, {1 << 40, 10, 10 + 511*10, 512, 256}, {100, 10, 20, 1, 1}, {100, 10, 20, 2, 1},
	} {
		if got := rowsWithin(tc.bytes, tc.one, tc.all, tc.full); got != tc.want {
			t.Errorf("%d bytes where one row takes %d and %d take %d: %d rows, want %d", tc.bytes, tc.one, tc.full, tc.all, got, tc.want)
		}
	}
}

// TestRefusedFor wants the advice of a refusal to be about what takes the memory: the circuit, the rows of a launch or the tables.
func TestRefusedFor(t *testing.T) {
	b := longHMM(t, 400)
	for words, l := range map[string]Load{
		"lower shard_rows":                                                   {Options: Options{Rows: 2048, MaxMemory: 40 << 20}},
		"fewer rows do not help; use fewer latents":                          {Options: Options{Rows: 2048, MaxMemory: 1 << 20}},
		"tables of rows take 1024, and 40 MiB are available; use fewer rows": {Options: Options{Rows: 2048, MaxMemory: 40 << 20}, Tables: 1 << 30},
	} {
		l.Device, l.Threads, l.Train = "cpu", 1, true
		if err := b.check(l); !errors.Is(err, kernels.ErrMemory) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

// TestDrawsPlanned wants the plan of a run that draws by an engine of its own to have what that takes.
func TestDrawsPlanned(t *testing.T) {
	b := longHMM(t, 40)
	plan := func(l Load) MemoryPlan {
		l.Device, l.Threads, l.Engines = "cpu", 1, 1
		m, err := b.Memory(l)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	train := Load{Options: Options{Rows: 512}, Train: true}
	without, alone := plan(train), plan(Load{Options: Options{Rows: 64}})
	train.Draws = 64
	with := plan(train)
	if with.Values != without.Values+alone.Values || with.Parameters != without.Parameters+alone.Parameters || with.Scratch != without.Scratch+alone.Scratch {
		t.Errorf("a run that draws is planned with %+v, without draws %+v; an engine that draws has %+v", with, without, alone)
	}
}

// longHMM is a chain of the given number of steps with 8 states, each with weights
// of its own.
func longHMM(t *testing.T, steps int) *Blueprint {
	t.Helper()
	return longHMMOf(t, steps, circuit.Categorical{Categories: 4})
}

// longHMMOf is longHMM with leaves of a kind.
func longHMMOf(t *testing.T, steps int, l circuit.Leaf) *Blueprint {
	t.Helper()
	leaf := func(int) circuit.Leaf { return l }
	g, err := structures.HMM(structures.HMMOptions{Length: steps, Latents: 8, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	p, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := FromGraph(How{}, g, p.Read, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// asked is what a pool gives for rows, and the rows of a launch of the engine that
// it leaves idle.
func asked(t *testing.T, p *engine.Pool[engine.Runner], b *Blueprint, rows [][]float64) (ll []float64, launch int) {
	t.Helper()
	batch := reference.Batch(b.Schema, rows)
	ll = make([]float64, len(rows))
	if err := p.Do(t.Context(), len(rows), func(r engine.Runner) error {
		launch = r.Info().Rows
		return engine.EvaluateBatch(t.Context(), r, batch, ll)
	}); err != nil {
		t.Fatal(err)
	}
	return ll, launch
}

// TestQueryMemory asks a long chain for one row, then for many: the first engine
// takes little, a later one what the call asks for, within MaxMemory.
func TestQueryMemory(t *testing.T) {
	const steps = 4000
	b := longHMM(t, steps)
	for _, device := range []string{"cpu", "emulator"} {
		o := Options{Device: device, Engines: 1}
		plan := func(rows int) MemoryPlan {
			p, err := b.Memory(QueryLoad(Options{Device: device, Rows: rows}))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		rows, err := b.queryRows(o)
		if err != nil {
			t.Fatal(err)
		}
		p, next := plan(rows.First), plan(2*rows.First)
		if p.Values+p.Flows+p.Scratch > 64<<20 || next.Values+next.Flows+next.Scratch <= 64<<20 || rows.Most != 512 {
			t.Errorf("%s: %+v rows, which take %+v", device, rows, p)
		}
		if device == "emulator" {
			continue // runs of 4,000 levels take long
		}
		pool := func(o Options) *engine.Pool[engine.Runner] {
			t.Helper()
			p, err := b.Pool(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			return p
		}
		row := make([]float64, steps)
		for i := range row {
			row[i] = float64(i * 7 % 4)
		}
		wide := pool(o)
		one, launch := asked(t, wide, b, [][]float64{row})
		if launch != rows.First {
			t.Fatalf("an engine for %d rows, want %d", launch, rows.First)
		}
		many, launch := asked(t, wide, b, slices.Repeat([][]float64{row}, rows.First+1))
		if launch != 2*rows.First || math.Float64bits(many[rows.First]) != math.Float64bits(one[0]) {
			t.Fatalf("an engine for %d rows, want %d; %v and %v", launch, 2*rows.First, one[0], many[rows.First])
		}
		if _, launch := asked(t, wide, b, [][]float64{row}); launch != 2*rows.First {
			t.Errorf("an engine for %d rows once there was one for %d", launch, 2*rows.First)
		}
		o.MaxMemory = plan(2).Total
		if rows, err := b.queryRows(o); err != nil || rows != (engine.LaunchRows{First: 2, Most: 2}) {
			t.Fatalf("%v: %+v with room for 2 rows", err, rows)
		}
		few, _ := asked(t, pool(o), b, slices.Repeat([][]float64{row}, 5))
		if math.Float64bits(few[4]) != math.Float64bits(one[0]) {
			t.Errorf("%v in launches of 2 rows, want %v", few, one[0])
		}
		o.MaxMemory = plan(1).Total - 1
		_, err = b.Pool(t.Context(), o)
		if !errors.Is(err, kernels.ErrMemory) {
			t.Fatalf("room for no row: %v, want ErrMemory", err)
		}
		var need, available int
		if _, text, _ := strings.Cut(err.Error(), "the run needs "); text == "" {
			t.Errorf("room for no row: %v", err)
		} else if n, _ := fmt.Sscanf(text, "%d MiB, %d MiB are", &need, &available); n != 2 || need <= available {
			t.Errorf("a byte too little: %v", err)
		}
	}
}

// TestMemoryOfDevices wants the plan of a circuit to have all that the device plans.
func TestMemoryOfDevices(t *testing.T) {
	b := longHMM(t, 20)
	for _, name := range []string{"cpu", "cuda", "emulator"} {
		at, err := device.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		work, err := at.Plan(layers.Module{Program: b.Program, Rows: 64, Train: true}, device.Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		m, err := b.Memory(Load{Options: Options{Device: name, Threads: 2, Rows: 64}, Train: true})
		if err != nil {
			t.Fatal(err)
		}
		if m.Values != work.Values || m.Flows != work.Flows || m.Scratch != work.Scratch+ownerBytes(b) || m.Program != work.Program+programBytes(b) {
			t.Errorf("%s: plan %+v, of the device %+v", name, m, work)
		}
		if card := work.Program > 0; card != (name != "cpu") {
			t.Errorf("%s: tables of %d bytes; the test compares nothing", name, work.Program)
		}
	}
}

// TestMemoryOfCode wants the plan of a circuit as code to have the cells and results of a launch for each thread of the CPU, and
// twice the cells of one on a device with memory of its own: bytes of 255 categories, and float32 of 256 and of numbers.
func TestMemoryOfCode(t *testing.T) {
	const vars, rows = 20, 64
	for _, c := range []struct {
		leaf circuit.Leaf
		cell int64 // bytes
	}{{circuit.Categorical{Categories: 4}, 1}, {circuit.Categorical{Categories: 255}, 1}, {circuit.Categorical{Categories: 256}, 4}, {circuit.Gaussian{}, 4}} {
		b := longHMMOf(t, vars, c.leaf)
		b.how.Path = PathCode
		if err := b.compile(compile.Options{}); err != nil {
			t.Fatal(err)
		}
		values := func(name string, threads int) int64 {
			m, err := b.Memory(Load{Options: Options{Device: name, Threads: threads, Rows: rows}, Queries: true})
			if err != nil {
				t.Fatal(err)
			}
			return m.Values
		}
		one, cells := values("cpu", 1), c.cell*vars*rows
		if one < cells+8*rows || one > cells+100*rows {
			t.Errorf("%+v: the rows of a thread take %d bytes, of which cells %d", c.leaf, one, cells)
		}
		if seven := values("cpu", 7); seven != 7*one {
			t.Errorf("%+v: the rows of seven threads take %d bytes, want %d", c.leaf, seven, 7*one)
		}
		if card := values("emulator", 7); card < one+cells || card > one+cells+100*rows {
			t.Errorf("%+v: the rows of a launch take %d bytes on host and device, of which a thread's are %d", c.leaf, card, one)
		}
	}
}

// TestMemoryOfClasses wants the plan of a circuit as code to have the results of a launch for all classes of the column that has most.
func TestMemoryOfClasses(t *testing.T) {
	const codes, rows = 1000, 64
	b := longHMMOf(t, 20, circuit.Categorical{Categories: codes})
	b.how.Path = PathCode
	if err := b.compile(compile.Options{}); err != nil {
		t.Fatal(err)
	}
	scratch := func(name string, queries bool) int64 {
		m, err := b.Memory(Load{Options: Options{Device: name, Threads: 2, Rows: rows}, Queries: queries})
		if err != nil {
			t.Fatal(err)
		}
		return m.Scratch
	}
	for name, want := range map[string]int64{"cpu": 2 * 16 * rows * codes, "emulator": (16 + 8) * rows * codes} {
		if got := scratch(name, true) - scratch(name, false); got != want {
			t.Errorf("%s: %d bytes for %d classes of %d rows, want %d", name, got, codes, rows, want)
		}
	}
}

// TestMemoryBesideCode wants the engine beside code, where launches of a card have many rows, to take what these leave of MaxMemory.
func TestMemoryBesideCode(t *testing.T) {
	g := flat(50, 5000)
	p, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := FromGraph(How{Single: true}, g, p.Read, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tensor, err := b.tensor()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Device: "emulator", Engines: 1}
	code, err := b.runnerMemory(QueryLoad(o.forCode()))
	if err != nil {
		t.Fatal(err)
	}
	plan := func(rows int) MemoryPlan {
		m, err := tensor.runnerMemory(QueryLoad(Options{Device: o.Device, Rows: rows}))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	left := plan(64).Total
	if code.Rows != CardRows || plan(512).Total <= left {
		t.Fatalf("code %+v, tensors of 512 rows %+v; the test compares nothing", code, plan(512))
	}
	o.MaxMemory = code.Total - code.Runtime + left
	pool, err := b.Pool(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Do(t.Context(), CardRows, func(r engine.Runner) error {
		e, err := Tensor(t.Context(), r)
		if err != nil {
			return err
		}
		if rows := r.Info().Rows; rows != CardRows {
			t.Errorf("code for %d rows, want %d", rows, CardRows)
		}
		if got := plan(e.Info().Rows).Total; got > left {
			t.Errorf("an engine for %d rows, which takes %d bytes where code leaves %d", e.Info().Rows, got, left)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPruneMemory wants the rows by which a circuit is pruned to come in launches that MaxMemory has room for: nothing else chooses
// their rows.
func TestPruneMemory(t *testing.T) {
	const steps = 400
	b := longHMM(t, steps)
	m, err := b.Memory(Load{Options: Options{Device: "cpu", Threads: 1, Rows: 16}, Train: true, AnyRows: true, Shards: true, StepRows: maxPruneRows})
	if err != nil {
		t.Fatal(err)
	}
	left := 40
	read := func(_ context.Context, s *dataset.Schema, most int) (*dataset.Batch, error) {
		if left == 0 {
			return nil, io.EOF
		}
		if most != 16 {
			t.Errorf("%d rows are asked for, want 16", most)
		}
		rows := slices.Repeat([][]float64{make([]float64, steps)}, min(most, left))
		left -= len(rows)
		return reference.Batch(s, rows), nil
	}
	_, rows, err := b.flows(t.Context(), read, Options{Device: "cpu", Threads: 1, MaxMemory: m.Total})
	if err != nil || rows != 40 {
		t.Errorf("%d rows, %v; want 40", rows, err)
	}
	if _, _, err := b.flows(t.Context(), read, Options{Device: "cpu", Threads: 1, MaxMemory: 1 << 20}); !errors.Is(err, kernels.ErrMemory) {
		t.Errorf("room for nothing: %v, want ErrMemory", err)
	}
}

// TestMemoryOfQueriesOfCode wants the engine of a circuit of code planned beside the code, where queries need it: its parts
// are those of the same circuit without code, and the values of both. The way down keeps flows, as every column has two leaves.
func TestMemoryOfQueriesOfCode(t *testing.T) {
	b, _ := rareCodes(t, 1)
	b.how.Path = PathAuto
	b.tensor = b.alsoTensor(compile.DefaultOptions())
	plan := func(b *Blueprint, l Load) MemoryPlan {
		t.Helper()
		m, err := b.Memory(l)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	l := Load{Options: Options{Device: "cpu", Threads: 1, Rows: 64}}
	code := plan(b, l)
	l.Queries = true
	both := plan(b, l)
	tensor, err := b.tensor()
	if err != nil {
		t.Fatal(err)
	}
	engine := plan(tensor, l.besideCode())
	if code.Values <= 0 || engine.Values <= 0 || engine.Flows <= 0 || engine.Program <= 0 || both.Values != code.Values+engine.Values || both.Flows != code.Flows+engine.Flows ||
		both.Program != code.Program+engine.Program || both.Scratch != code.Scratch+engine.Scratch || both.Parameters != engine.Parameters {
		t.Errorf("%+v, of which the code takes %+v and the engine %+v", both, code, engine)
	}
	if sum := both.Parameters + both.Values + both.Flows + both.Scratch + both.Program + both.Data + both.Runtime; both.Total != sum || both.Total <= code.Total {
		t.Errorf("a total of %d, the parts have %d, code alone %d", both.Total, sum, code.Total)
	}
}

// pair is a mixture of 8 products of two leaves of a kind.
func pair(t *testing.T, leaf circuit.Leaf, soft int) *Blueprint {
	t.Helper()
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 8, Var: 0, Leaf: leaf},
		{Kind: circuit.Input, Units: 8, Var: 1, Leaf: leaf},
		{Kind: circuit.Product, Units: 8, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	p, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := compile.DefaultOptions()
	o.Soft = soft
	b, err := FromGraph(How{Path: PathTensor}, g, p.Read, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestMemoryOfQueries wants the plan to have room for what queries keep beside the device's part: posteriors, also those
// of units where a cell may be evidence, and points of covariances, partial completions or shares of evidence.
func TestMemoryOfQueries(t *testing.T) {
	const rows = 64
	for name, tc := range map[string]struct {
		leaf circuit.Leaf
		soft int
		want int64
	}{
		"completions": {circuit.Categorical{Categories: 4}, 0, 2*4*rows*8 + rows/10*25*64},
		"evidence":    {circuit.Categorical{Categories: 4}, 64, 2*4*rows*(8+16) + 8*(2*32+64*32)},
		"codes":       {circuit.Categorical{Categories: 60000}, 0, 2*4*rows*120000 + rows/8*24*60000},
		"values":      {circuit.Gaussian{MinSigma: 0.1}, 0, 2*4*rows*16 + rows/8*24*16384},
	} {
		b := pair(t, tc.leaf, tc.soft)
		l := Load{Options: Options{Device: "cpu", Threads: 1, Rows: rows}, Queries: true}
		m, err := b.Memory(l)
		if err != nil {
			t.Fatal(err)
		}
		at, err := device.Find("cpu")
		if err != nil {
			t.Fatal(err)
		}
		work, err := at.Plan(layers.Module{Program: b.Program, Rows: rows, Queries: true}, device.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Scratch - work.Scratch - ownerBytes(b); got != tc.want {
			t.Errorf("%s: %d bytes beside those of the device, want %d", name, got, tc.want)
		}
	}
}

// TestMemoryOfEngines wants MaxMemory to be for all engines of a pool: a second one is made where it has room for both.
func TestMemoryOfEngines(t *testing.T) {
	b := longHMM(t, 4000)
	plan, err := b.Memory(QueryLoad(Options{Device: "cpu", Threads: 1, Rows: 1}))
	if err != nil {
		t.Fatal(err)
	}
	both := 2*plan.Total - runtimeBytes
	for limit, want := range map[int64]bool{0: true, both: true, both - 2: false, plan.Total: false} {
		synctest.Test(t, func(t *testing.T) {
			p, err := b.Pool(t.Context(), Options{Device: "cpu", Threads: 1, Rows: 1, MaxMemory: limit})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			second, ended := false, make(chan error)
			if err := p.Do(t.Context(), 1, func(engine.Runner) error {
				go func() {
					ended <- p.Do(t.Context(), 1, func(engine.Runner) error {
						second = true
						return nil
					})
				}()
				synctest.Wait()
				if second != want {
					t.Errorf("MaxMemory is %d, an engine takes %d: a second one is %v, want %v", limit, plan.Total, second, want)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPoolLoad wants a pool's engines to be described as they come to be: in launches of the rows that MaxMemory leaves each of them.
func TestPoolLoad(t *testing.T) {
	b := longHMM(t, 400)
	plan := func(o Options) MemoryPlan {
		t.Helper()
		m, err := b.Memory(QueryLoad(o))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	few := plan(Options{Device: "cpu", Threads: 1, Rows: 64})
	for _, limit := range []int64{0, few.Total, 2*few.Total - runtimeBytes} {
		o := Options{Device: "cpu", Threads: 1, MaxMemory: limit}
		l, err := b.PoolLoad(o)
		if err != nil {
			t.Fatal(err)
		}
		if m := plan(l.Options); limit > 0 && (m.Total > limit || m.Rows < 64 || m.Rows >= 512) || limit == 0 && m.Rows != 512 {
			t.Errorf("within %d bytes an engine has %d rows, which take %d", limit, m.Rows, m.Total)
		}
	}
}

// TestMemoryOfSharedProducts compares the plan of a program whose products are read by many sums with what graph, program and
// engine have on the heap: each sum has operands of its own.
func TestMemoryOfSharedProducts(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what the first one has found finalizers for
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 200
	before := heap()
	g := &circuit.Graph{NumVars: 2}
	add := func(k circuit.Kind, v int, children ...circuit.NodeID) circuit.NodeID {
		node := circuit.Node{Kind: k, Units: 1, Var: v, Children: children}
		if k == circuit.Input {
			node.Leaf = circuit.Bernoulli{}
		}
		g.Nodes = append(g.Nodes, node)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	var products, sums []circuit.NodeID
	for range n {
		products = append(products, add(circuit.Product, 0, add(circuit.Input, 0), add(circuit.Input, 1)))
	}
	for range n {
		sums = append(sums, add(circuit.Sum, 0, products...))
	}
	g.Root = add(circuit.Sum, 0, sums...)
	b, err := FromGraph(How{Path: PathTensor}, g, func(id circuit.NodeID, dst []float32) error { return circuit.InitParams(g, id, 3, nil, dst) }, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l := Load{Options: Options{Device: "cpu", Threads: 1, Rows: 1}, Train: true}
	plan, err := b.Memory(l)
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.Engine(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	took := heap() - before - plan.Parameters - plan.Values - plan.Flows - plan.Scratch
	if len(b.Program.Elements) < n*n || took > plan.Program*5/4 || took < plan.Program/2 {
		t.Errorf("%d operands: graph, program and lists have %d bytes, planned %d", len(b.Program.Elements), took, plan.Program)
	}
	e.Close()
	runtime.KeepAlive(g)
}

package fold

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

func interpreted(m *simt.Module) (Code, error) { return simt.Compile(m, 4) }

func load(t *testing.T, op *Operator) *Program {
	t.Helper()
	p, err := Load(op, interpreted)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOperators: each operator combines as Go does, and its initial element changes nothing, to the bit.
func TestOperators(t *testing.T) {
	floats := []float64{0, math.Copysign(0, -1), 1, -2.5, 1e30, -1e30, math.Inf(1), math.Inf(-1), 3, 3}
	for name, c := range map[string]struct {
		op   *Operator
		want func(x, y float64) float64
	}{
		"sum":     {Sum(simt.F64), func(x, y float64) float64 { return x + y }},
		"product": {Product(simt.F64), func(x, y float64) float64 { return x * y }},
		"max":     {Max(simt.F64), func(x, y float64) float64 { return max(x, y) }},
		"min":     {Min(simt.F64), func(x, y float64) float64 { return min(x, y) }},
	} {
		p := load(t, c.op)
		for _, x := range floats {
			for _, y := range floats {
				e, want := Elements{[]float64{x}}, c.want(x, y)
				if err := p.Combine(t.Context(), e, 0, Elements{[]float64{y}}, 0, 1); err != nil {
					t.Fatal(err)
				}
				if got := e[0].([]float64)[0]; got != want && !(got != got && want != want) {
					t.Errorf("%s of %v and %v is %v, want %v", name, x, y, got, want)
				}
			}
			e, err := p.New(t.Context(), 1)
			if err == nil {
				err = p.Combine(t.Context(), e, 0, Elements{[]float64{x}}, 0, 1)
			}
			if got := e[0].([]float64)[0]; err != nil || math.Float64bits(got) != math.Float64bits(x) {
				t.Errorf("%s of nothing and %v is %v, %v", name, x, got, err)
			}
		}
	}
	for _, op := range []*Operator{Sum(simt.I32), Product(simt.I32), Max(simt.I32), Min(simt.I32)} {
		p := load(t, op)
		for _, x := range []int32{0, 1, -5, math.MinInt32, math.MaxInt32} {
			e, err := p.New(t.Context(), 3)
			if err == nil {
				err = p.Combine(t.Context(), e, 1, Elements{[]int32{9, x}}, 1, 1)
			}
			if got := e[0].([]int32); err != nil || got[1] != x || got[0] != got[2] || op.Name == "sum" && got[0] != 0 {
				t.Errorf("%s of nothing and %v is %v, %v", op.Name, x, got, err)
			}
		}
	}
	p := load(t, Sum(simt.I64))
	if e, err := p.New(t.Context(), 2); err != nil || !slices.Equal(e[0].([]int64), []int64{0, 0}) {
		t.Errorf("two sums of i64: %v, %v", e, err)
	}
	if _, err := (&Program{op: Sum(simt.U8)}).New(t.Context(), 1); !errors.Is(err, ErrNest) {
		t.Errorf("sums of u8: %v", err)
	}
}

// TestArgMax: the first of the largest numbers wins in whatever order they come, NaN never.
func TestArgMax(t *testing.T) {
	p := load(t, ArgMax(simt.F32))
	nan := float32(math.NaN())
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		list []float32
		want int32
	}{
		{nil, math.MaxInt32}, {[]float32{nan, nan}, math.MaxInt32}, {[]float32{3}, 0}, {[]float32{1, 3, 2, 3}, 1}, {[]float32{nan, -4, nan, -5}, 1},
		{[]float32{float32(math.Inf(-1)), nan}, 0}, {[]float32{0, float32(math.Copysign(0, -1)), 0}, 0},
	} {
		for range 20 {
			e, err := p.New(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range rng.Perm(len(c.list)) {
				if err := p.Combine(t.Context(), e, 0, Elements{[]float32{c.list[i]}, []int32{int32(i)}}, 0, 1); err != nil {
					t.Fatal(err)
				}
			}
			if got := e[1].([]int32)[0]; got != c.want {
				t.Fatalf("arg-max of %v is %d, want %d", c.list, got, c.want)
			}
		}
	}
}

// TestConflicts: a loop conflicts if it is parallel and its iterations meet.
func TestConflicts(t *testing.T) {
	loop := func(name string, n int, parallel bool) Loop { return Loop{Name: name, N: n, Parallel: parallel} }
	b0, b1 := loop("b0", 4, true), loop("b1", 8, false)
	tree := loop("tree", 10, true)
	conflicts := func(around []Loop, reductions ...[]Index) string {
		into := &Buffer{Name: "b", Sizes: make([]int, len(reductions[0]))}
		var body []Item
		for _, at := range reductions {
			body = append(body, Item{Reduce: &Reduce{Into: into, At: at}})
		}
		for i := len(around) - 1; i >= 0; i-- {
			l := around[i]
			l.Body = body
			body = []Item{{Loop: &l}}
		}
		var names []string
		for _, l := range Conflicts(body, into) {
			names = append(names, l.Name)
		}
		return strings.Join(names, " ")
	}
	rows := []Index{{{"b0", 8}, {"b1", 1}}}
	for _, c := range []struct {
		want       string
		around     []Loop
		reductions [][]Index
	}{
		{"", []Loop{b0, b1}, [][]Index{rows}},
		{"b0", []Loop{b0, b1}, [][]Index{{{{"b0", 7}, {"b1", 1}}}}}, // tiles overlap
		{"tree", []Loop{b0, b1, tree}, [][]Index{rows}},
		{"tree", []Loop{tree, b0, b1}, [][]Index{rows}},
		{"b0 tree", []Loop{b0, b1, tree}, [][]Index{{{{"b1", 1}}}}},
		{"", []Loop{b1, loop("s", 10, false), loop("one", 1, true)}, [][]Index{{}}},
		{"", []Loop{b0, b1}, [][]Index{{{{"b1", 1}}, {{"b0", 1}}}}}, // a dimension of its own
		{"", []Loop{b0, b1}, [][]Index{rows, {{{"b0", 8}}}}},
		{"b0", []Loop{b0, b1}, [][]Index{rows, {{{"b0", 9}, {"b1", 1}}}}},                         // each alone is apart
		{"b0", []Loop{b1, b0}, [][]Index{{{{"b0", 1}, {"b1", 4}}}, {{{"b0", 1}, {"b1", 5}}}}},     // b1 moves one further
		{"", []Loop{b1, b0}, [][]Index{{{{"b0", 1}, {"b1", 4}}}, {{{"b1", 4}, {"b0", 1}}}}},       // the same in another order
		{"b0", []Loop{b0, b1}, [][]Index{{{{"b0", 1}}, {{"b1", 1}}}, {{{"b1", 1}}, {{"b0", 1}}}}}, // each by another dimension
	} {
		if got := conflicts(c.around, c.reductions...); got != c.want {
			t.Errorf("%v: %q conflict, want %q", c.reductions, got, c.want)
		}
	}
}

// TestPlan: what a plan adds, of two parallel loops over trees in tiles of rows: stages, each for the rows of its tile.
func TestPlan(t *testing.T) {
	sums := &Buffer{Name: "sums", Op: Sum(simt.F64), Sizes: []int{12}}
	reduce := Item{Reduce: &Reduce{Into: sums, At: []Index{{{"b0", 4}, {"b1", 1}}}}}
	nest := func(name string, n int, parallel bool, body ...Item) Item {
		return Item{Loop: &Loop{Name: name, N: n, Parallel: parallel, Body: body}}
	}
	p, err := Plan([]Item{nest("b0", 3, true, nest("t0", 2, true, nest("b1", 4, false, nest("t1", 5, true, reduce))))})
	if err != nil {
		t.Fatal(err)
	}
	want := `for b0 3 parallel
  fill sums.t0 [0 2] [b0*4 4]
  for t0 2 parallel
    for b1 4
      fill sums.t0.t1 [0 5] [t0*1 1] [b0*4+b1*1 1]
      for t1 5 parallel
        sums.t0.t1[t1*1][t0*1][b0*4+b1*1]
      combine sums.t0.t1 [0 5] [t0*1 1] [b0*4+b1*1 1] into sums.t0
  combine sums.t0 [0 2] [b0*4 4] into sums
`
	if got := text(p.Body, ""); got != want || len(p.Private) != 2 {
		t.Errorf("%d private buffers\n%swant\n%s", len(p.Private), got, want)
	}
}

// text writes a nest for tests.
func text(list []Item, indent string) string {
	index := func(x Index) string {
		var s []string
		for _, t := range x {
			s = append(s, fmt.Sprint(t.Loop, "*", t.Stride))
		}
		if len(s) == 0 {
			return "0"
		}
		return strings.Join(s, "+")
	}
	region := func(g *Region) string {
		s := g.Buffer.Name
		for _, r := range g.Ranges {
			s += fmt.Sprintf(" [%s %d]", index(r.From), r.Size)
		}
		return s
	}
	var b strings.Builder
	for _, it := range list {
		switch {
		case it.Loop != nil:
			fmt.Fprintf(&b, "%sfor %s %d%s\n%s", indent, it.Loop.Name, it.Loop.N, map[bool]string{true: " parallel"}[it.Loop.Parallel], text(it.Loop.Body, indent+"  "))
		case it.Reduce != nil:
			b.WriteString(indent + it.Reduce.Into.Name)
			for _, x := range it.Reduce.At {
				b.WriteString("[" + index(x) + "]")
			}
			b.WriteByte('\n')
		case it.Fill != nil:
			b.WriteString(indent + "fill " + region(it.Fill) + "\n")
		default:
			b.WriteString(indent + "combine " + region(it.Dimension.Of) + " into " + it.Dimension.Into.Name + "\n")
		}
	}
	return b.String()
}

// random draws a nest over two buffers, with loops in tiles, and returns it with its buffers.
func random(rng *rand.Rand) ([]Item, []*Buffer) {
	ops := []*Operator{Sum(simt.I32), Max(simt.I32), Min(simt.I32), Product(simt.I32), ArgMax(simt.I32)}
	buffers := []*Buffer{{Name: "a", Op: ops[rng.IntN(len(ops))], Sizes: []int{24, 6}}, {Name: "b", Op: ops[rng.IntN(len(ops))]}}
	values, names := 0, 0
	var items func(depth int, around []*Loop) []Item
	items = func(depth int, around []*Loop) (list []Item) {
		for range 1 + rng.IntN(2) {
			if depth > 0 && (depth > 2 || rng.IntN(3) > 0) {
				l := &Loop{Name: fmt.Sprint("l", names), N: rng.IntN(4), Parallel: rng.IntN(2) == 0}
				names++
				l.Body = items(depth-1, append(around[:len(around):len(around)], l))
				list = append(list, Item{Loop: l})
				continue
			}
			r := &Reduce{Into: buffers[rng.IntN(2)], Value: values}
			values++
			for _, size := range r.Into.Sizes {
				var x Index
				left := size - 1
				for _, l := range around {
					if stride := 1 + rng.IntN(6); rng.IntN(2) == 0 && stride*max(l.N-1, 0) <= left {
						x, left = append(x, Term{l.Name, stride}), left-stride*max(l.N-1, 0)
					}
				}
				r.At = append(r.At, x)
			}
			list = append(list, Item{Reduce: r})
		}
		return list
	}
	return items(4, nil), buffers
}

// value is what a reduction of random nests combines: it depends on all loops around it.
func value(op *Operator, v int, at map[string]int) Elements {
	h := uint32(v + 1)
	for i := range 40 {
		if k, ok := at[fmt.Sprint("l", i)]; ok {
			h = h*31 + uint32(i*7+k+1)
		}
	}
	e := Elements{[]int32{int32(h%11) - 4}}
	if len(op.Types) > 1 {
		e = append(e, []int32{int32(h % 1000)})
	}
	return e
}

// TestRandomNests: planned nests on threads give what the loops give one after the other, and have no conflict left.
func TestRandomNests(t *testing.T) {
	planned, stages := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		nest, buffers := random(rng)
		plan, err := Plan(nest)
		if err != nil {
			t.Fatal(err)
		}
		programs := map[*Operator]*Program{}
		kinds := map[int]*Operator{}
		for _, b := range buffers {
			programs[b.Op] = load(t, b.Op)
		}
		var visit func(list []Item)
		visit = func(list []Item) {
			for _, it := range list {
				switch {
				case it.Loop != nil:
					visit(it.Loop.Body)
				case it.Reduce != nil:
					kinds[it.Reduce.Value] = it.Reduce.Into.Op
					if len(it.Reduce.At) != len(it.Reduce.Into.Sizes) || len(Conflicts(plan.Body, it.Reduce.Into)) > 0 {
						t.Fatalf("seed %d: conflicts are left\n%s%s", seed, text(nest, ""), text(plan.Body, ""))
					}
				}
			}
		}
		visit(plan.Body)
		run := func(p *Planned, threads int) (out []Elements) {
			r := &Runner{Threads: threads, Programs: programs, Memory: map[*Buffer]Elements{}, Value: func(v int, at map[string]int) Elements { return value(kinds[v], v, at) }}
			for _, b := range buffers {
				e, err := programs[b.Op].New(t.Context(), b.elements())
				if err != nil {
					t.Fatal(err)
				}
				r.Memory[b] = e
				out = append(out, e)
			}
			if err := r.Run(t.Context(), p); err != nil {
				t.Fatalf("seed %d: %v\n%s%s", seed, err, text(nest, ""), text(p.Body, ""))
			}
			return out
		}
		want, got := run(&Planned{Body: nest}, 1), run(plan, 3)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %v, want %v\n%s%s", seed, got, want, text(nest, ""), text(plan.Body, ""))
		}
		if len(plan.Private) > 0 {
			planned++
		}
		for _, b := range plan.Private {
			if strings.Count(b.Name, ".") > 1 {
				stages++
				break
			}
		}
	}
	if planned < 100 || stages < 20 {
		t.Errorf("%d nests had conflicts, %d of them in stages", planned, stages)
	}
}

// TestInPlace: a dimension that is combined in place ends in its first elements, of the range alone.
func TestInPlace(t *testing.T) {
	b := &Buffer{Name: "b", Op: Sum(simt.I32), Sizes: []int{3, 2, 4}}
	p := load(t, b.Op)
	numbers := make([]int32, 24)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	r := &Runner{Programs: map[*Operator]*Program{b.Op: p}, Memory: map[*Buffer]Elements{b: {numbers}}}
	d := &Dimension{Of: &Region{Buffer: b, Ranges: []Range{{Size: 3}, {From: Index{{"l", 1}}, Size: 1}, {From: Index{{"l", 2}}, Size: 2}}}}
	if err := r.Run(t.Context(), &Planned{Body: []Item{{Loop: &Loop{Name: "l", N: 2, Body: []Item{{Dimension: d}}}}}}); err != nil {
		t.Fatal(err)
	}
	want := []int32{0 + 8 + 16, 1 + 9 + 17, 2, 3, 4, 5, 6 + 14 + 22, 7 + 15 + 23}
	if !slices.Equal(numbers[:8], want) || numbers[8] != 8 || numbers[23] != 23 {
		t.Errorf("%v, want %v first", numbers, want)
	}
}

// TestRegisters: copies that take values in turn have the sums, and the largest, of all values, however many there are.
func TestRegisters(t *testing.T) {
	for copies := 1; copies <= 5; copies++ {
		for _, each := range []int{1, 2, 3} {
			for _, turns := range []int{1, 2, 7} {
				b := simt.NewBuilder("registers")
				x := b.Input("x", simt.I32, simt.Rows, turns*each)
				sums, first := NewRegisters(b, Sum(simt.I32), copies, 2), NewRegisters(b, ArgMax(simt.I32), copies, 1)
				state := func() []simt.Value { return append(sums.State(), first.State()...) }
				n := len(sums.State())
				out := b.Loop(turns, append([]simt.Value{b.Int(simt.I32, 0)}, state()...), func(now []simt.Value) ([]simt.Value, simt.Value) {
					sums.Restore(now[1 : n+1])
					first.Restore(now[n+1:])
					at := now[0]
					for range each {
						v := b.LoadAt(x, at)
						sums.Reduce(0, v)
						sums.Reduce(1, b.Mul(v, v))
						first.Reduce(0, v, at)
						sums.Next()
						first.Next()
						at = b.Add(at, b.Int(simt.I32, 1))
					}
					sums.Turn()
					first.Turn()
					return append([]simt.Value{at}, state()...), b.Binary(simt.Lt, at, b.Int(simt.I32, int64(turns*each)))
				})
				sums.Restore(out[1 : n+1])
				first.Restore(out[n+1:])
				to := b.Output("out", simt.I32, simt.Rows, 4)
				b.Store(to, 0, sums.Total()[0][0])
				b.Store(to, 1, sums.Total()[1][0])
				b.Store(to, 2, first.Total()[0][1])
				b.Store(to, 3, sums.State()[0]) // of the copy that is next
				m, err := b.Module()
				if err != nil {
					t.Fatal(err)
				}
				code, err := simt.Compile(m, 1)
				if err != nil {
					t.Fatal(err)
				}
				in, got := make([]int32, turns*each), make([]int32, 4)
				var want [4]int32
				for i := range in {
					in[i] = int32(i*7%5 - 2)
					want[0], want[1] = want[0]+in[i], want[1]+in[i]*in[i]
					if i%copies == len(in)%copies {
						want[3] += in[i]
					}
					if in[i] > in[want[2]] {
						want[2] = int32(i)
					}
				}
				if err := code.Run(t.Context(), 0, 1, []any{in}, []any{got}); err != nil || [4]int32(got) != want {
					t.Fatalf("%d copies, %d turns of %d: %v, %v; want %v", copies, turns, each, got, err, want)
				}
			}
		}
	}
}

// TestBadNests: each refusal, beside a nest that is right.
func TestBadNests(t *testing.T) {
	b := &Buffer{Name: "b", Op: Sum(simt.F32), Sizes: []int{8}}
	reduce := func(at ...Index) Item { return Item{Reduce: &Reduce{Into: b, At: at}} }
	loop := func(name string, n int, body ...Item) Item { return Item{Loop: &Loop{Name: name, N: n, Body: body}} }
	if _, err := Plan([]Item{loop("l", 8, reduce(Index{{"l", 1}})), loop("m", 0, reduce(Index{{"m", 100}}))}); err != nil {
		t.Error(err)
	}
	for want, list := range map[string][]Item{
		"up to 8 of 8":      {loop("l", 9, reduce(Index{{"l", 1}}))},
		"up to 14 of 8":     {loop("l", 8, reduce(Index{{"l", 2}}))},
		`"m"`:               {loop("l", 8, reduce(Index{{"m", 1}}))},
		"0 times":           {loop("l", 8, reduce(Index{{"l", 0}}))},
		"number of indices": {loop("l", 8, reduce())},
		"without a buffer":  {{Reduce: &Reduce{}}},
		"name of its own":   {loop("l", 1, loop("l", 1))},
		"-1 iterations":     {loop("l", -1)},
		"neither":           {{}},
		"or both":           {{Loop: &Loop{Name: "l"}, Reduce: &Reduce{}}},
	} {
		if _, err := Plan(list); !errors.Is(err, ErrNest) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

package layers_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/layers"
)

// sample compiles a circuit that has tied sums and inputs, a stored product, a
// block-sparse sum and leaves of both sorts, in blocks of two units.
func sample(t testing.TB) *layers.Program {
	t.Helper()
	g := &circuit.Graph{NumVars: 6}
	add := func(n circuit.Node) circuit.NodeID {
		g.Root = circuit.NodeID(len(g.Nodes))
		g.Nodes = append(g.Nodes, n)
		return g.Root
	}
	input := func(v int, l circuit.Leaf, tied circuit.NodeID) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Input, Units: 3, Var: v, Leaf: l, Tie: circuit.TieTo(tied)})
	}
	sum := func(units int, e *circuit.Edges, tied circuit.NodeID, children ...circuit.NodeID) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Sum, Units: units, Edges: e, Tie: circuit.TieTo(tied), Children: children})
	}
	a := input(0, circuit.Categorical{Categories: 4}, circuit.None)
	b := input(1, circuit.Categorical{Categories: 4}, a)
	c := input(2, circuit.Gaussian{}, circuit.None)
	d := input(3, circuit.Binomial{Trials: 2}, circuit.None)
	e := input(4, circuit.Poisson{}, circuit.None)
	f := input(5, circuit.Bernoulli{}, circuit.None)
	s := sum(3, nil, circuit.None, a)
	tied := sum(3, nil, s, b)
	p := add(circuit.Node{Kind: circuit.Product, Units: 3, Children: []circuit.NodeID{s, tied, c, d, e, f}})
	dense := sum(3, nil, circuit.None, p)
	sparse := sum(4, &circuit.Edges{Rows: 2, Cols: 1, Pairs: [][2]int32{{0, 0}, {1, 1}, {1, 2}}}, circuit.None, p)
	sum(1, nil, circuit.None, dense, sparse)
	r, err := compile.Compile(g, compile.Options{MaxGroups: 8, BlockSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r.Program
}

// clone returns a deep copy.
func clone(p *layers.Program) *layers.Program {
	c := deepCopy(reflect.ValueOf(*p)).Interface().(layers.Program)
	return &c
}

func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if out.Field(i).CanSet() {
				out.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return out
		}
		out = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
	}
	return out
}

// TestValidate makes one edit to a valid program at a time.
func TestValidate(t *testing.T) {
	ok := sample(t)
	// Layer 0 holds the first sums, 1 the stored product alone, 2 the sums over it.
	for _, tc := range []struct {
		name string
		edit func(*layers.Program)
		want error
	}{
		{"valid", func(*layers.Program) {}, nil},
		{"block size no power of two", func(p *layers.Program) { p.BlockSize = 3 }, layers.ErrShape},
		{"block size 0", func(p *layers.Program) { p.BlockSize = 0 }, layers.ErrShape},
		{"blocks of another size", func(p *layers.Program) { p.BlockSize = 4 }, layers.ErrShape},
		{"negative node space", func(p *layers.Program) { p.NodeBlocks = -1 }, layers.ErrShape},
		{"short node space", func(p *layers.Program) { p.NodeBlocks-- }, layers.ErrShape},
		{"huge element space", func(p *layers.Program) { p.ElementBlocks = math.MaxInt32 }, layers.ErrShape},
		{"short param space", func(p *layers.Program) { p.ParamBlocks-- }, layers.ErrShape},
		{"short parameters", func(p *layers.Program) { p.NumParams-- }, layers.ErrShape},
		{"no variables", func(p *layers.Program) { p.NumVars = 0 }, layers.ErrShape},
		{"negative root", func(p *layers.Program) { p.Root = -1 }, layers.ErrIndex},
		{"root past the vectors", func(p *layers.Program) { p.Root = int32(len(p.Vectors)) }, layers.ErrIndex},
		{"root of several units", func(p *layers.Program) { p.Root-- }, layers.ErrShape},
		{"root is an input", func(p *layers.Program) { p.Root = 0 }, layers.ErrShape},

		{"vector out of place", func(p *layers.Program) { p.Vectors[1].First++ }, layers.ErrShape},
		{"vector without units", func(p *layers.Program) { p.Vectors[0].Units = 0 }, layers.ErrShape},
		{"vector with too many units", func(p *layers.Program) { p.Vectors[0].Units = 5 }, layers.ErrShape},
		{"vector with an idle block", func(p *layers.Program) { p.Vectors[0].Units = 2 }, layers.ErrShape},
		{"vector of no kind", func(p *layers.Program) { p.Vectors[0].Kind = 9 }, layers.ErrIndex},
		{"definition past the end", func(p *layers.Program) { p.Vectors[0].Def = 99 }, layers.ErrIndex},
		{"definition of another", func(p *layers.Program) { p.Vectors[0].Def, p.Vectors[1].Def = 1, 0 }, layers.ErrIndex},
		{"vector too shallow", func(p *layers.Program) { p.Vectors[p.Root].Depth = 1 }, layers.ErrIndex},
		{"missing definition", func(p *layers.Program) { p.Stored = nil }, layers.ErrIndex},
		{"definition without vector", func(p *layers.Program) { p.Stored = append(p.Stored, p.Stored[0]) }, layers.ErrShape},

		{"column of no variable", func(p *layers.Program) { p.Columns[0].Var = 6 }, layers.ErrIndex},
		{"column with too many codes", func(p *layers.Program) { p.Columns[0].Codes = 1<<24 + 1 }, layers.ErrIndex},
		{"column with the most codes, and other inputs", func(p *layers.Program) { p.Columns[0].Codes = 1 << 24 }, layers.ErrShape},
		{"column in the wrong slot", func(p *layers.Program) { p.Columns[0].Slot = 7 }, layers.ErrIndex},
		{"two columns in one slot", func(p *layers.Program) { p.Columns[1].Slot = 0 }, layers.ErrIndex},

		{"evidence for values", func(p *layers.Program) { p.Columns[2].Soft = 1 }, layers.ErrShape},
		{"codes of a column that has evidence alone", func(p *layers.Program) { p.Columns[0].Beside = true }, layers.ErrShape},

		{"element without factors", func(p *layers.Program) { p.Elements[0].FactorHi = p.Elements[0].FactorLo }, layers.ErrShape},
		{"element with factors past the end", func(p *layers.Program) { p.Elements[0].FactorHi = 1000 }, layers.ErrShape},
		{"element out of place", func(p *layers.Program) { p.Elements[0].First = 2 }, layers.ErrShape},
		{"element of the wrong size", func(p *layers.Program) { p.Elements[0].Count = 1 }, layers.ErrShape},
		{"negative factor", func(p *layers.Program) { p.Factors[0] = -1 }, layers.ErrIndex},
		{"factor of another size", func(p *layers.Program) { p.Factors[0] = p.Root }, layers.ErrShape},
		{"factor from later", func(p *layers.Program) { p.Factors[0] = p.Sums[1].Vector }, layers.ErrIndex},

		{"input of no vector", func(p *layers.Program) { p.Inputs[0].Vector = -1 }, layers.ErrIndex},
		{"input of no column", func(p *layers.Program) { p.Inputs[0].Column = 99 }, layers.ErrIndex},
		{"input of a column of values", func(p *layers.Program) { p.Inputs[0].Column = 2 }, layers.ErrShape},
		{"input without family", func(p *layers.Program) { p.Inputs[0].Family = nil }, layers.ErrShape},
		{"input with another family", func(p *layers.Program) { p.Inputs[0].Family = circuit.Bernoulli{} }, layers.ErrShape},
		{"table past the parameters", func(p *layers.Program) { p.Inputs[0].Table = p.NumParams }, layers.ErrShape},
		{"table on the weights", func(p *layers.Program) { p.Inputs[0].Table = 0 }, layers.ErrShape},
		{"input with neither table nor parameters", func(p *layers.Program) { p.Inputs[2].Params = -1 }, layers.ErrShape},
		{"exponents without a table", func(p *layers.Program) {
			in := &p.Inputs[2]
			in.Exps, p.NumParams = p.NumParams, p.NumParams+p.TableRows(in)*int64(p.Width(in.Vector))
		}, layers.ErrShape},
		{"input with the table of another", func(p *layers.Program) { p.Inputs[3].Table = p.Inputs[0].Table }, layers.ErrShape},
		{"tied input apart from its owner", func(p *layers.Program) { p.Inputs[1].Table += 2 }, layers.ErrShape},
		{"owner of an input from later", func(p *layers.Program) { p.Inputs[0].Owner = 1 }, layers.ErrIndex},
		{"owner of an input of another shape", func(p *layers.Program) { p.Inputs[5].Owner = 0 }, layers.ErrShape},

		{"sum of no vector", func(p *layers.Program) { p.Sums[0].Vector = 99 }, layers.ErrIndex},
		{"sum without elements", func(p *layers.Program) { p.Sums[0].ElemHi = p.Sums[0].ElemLo }, layers.ErrShape},
		{"sum with elements of another", func(p *layers.Program) { p.Sums[0].ElemHi++ }, layers.ErrIndex},
		{"sum without a fan", func(p *layers.Program) { p.Sums[0].Fan = nil }, layers.ErrShape},
		{"sum on another's weights", func(p *layers.Program) { p.Sums[2].Param = 1 }, layers.ErrShape},
		{"sum without edge blocks", func(p *layers.Program) { p.Sums[0].NumBlocks = 0 }, layers.ErrShape},
		{"tied sum apart from its owner", func(p *layers.Program) { p.Sums[1].Param++ }, layers.ErrShape},
		{"negative owner of a sum", func(p *layers.Program) { p.Sums[1].Owner = -1 }, layers.ErrIndex},
		{"stored product of no element", func(p *layers.Program) { p.Stored[0].Element = -1 }, layers.ErrIndex},
		{"stored product of a sum's element", func(p *layers.Program) { p.Stored[0].Element = 0 }, layers.ErrIndex},
		{"element that nobody reads", func(p *layers.Program) {
			s := &p.Sums[len(p.Sums)-1]
			s.ElemHi--
		}, layers.ErrIndex},

		{"layers in the wrong order", func(p *layers.Program) { p.Layers[0], p.Layers[2] = p.Layers[2], p.Layers[0] }, layers.ErrIndex},
		{"layer missing", func(p *layers.Program) { p.Layers = p.Layers[:2] }, layers.ErrShape},
		{"short row of factors", func(p *layers.Program) { q := &p.Layers[0].Products[0]; q.FactorIDs = q.FactorIDs[:1] }, layers.ErrShape},
		{"wrong factor block", func(p *layers.Program) { p.Layers[0].Products[0].FactorIDs[0]++ }, layers.ErrIndex},
		{"element written twice", func(p *layers.Program) { q := &p.Layers[0].Products[0]; q.ElementIDs[1] = q.ElementIDs[0] }, layers.ErrIndex},
		{"element written by a later layer", func(p *layers.Program) {
			a, b := p.Layers[0].Products[0], p.Layers[2].Products[0]
			a.ElementIDs[0], b.ElementIDs[0] = b.ElementIDs[0], a.ElementIDs[0]
		}, layers.ErrIndex},
		{"element past the space", func(p *layers.Program) { p.Layers[0].Products[0].ElementIDs[0] = p.ElementBlocks }, layers.ErrIndex},
		{"negative width", func(p *layers.Program) { p.Layers[0].Sums[0].MaxChildren = -1 }, layers.ErrShape},
		{"huge width", func(p *layers.Program) { p.Layers[0].Sums[0].MaxChildren = math.MaxInt }, layers.ErrShape},
		{"short row of children", func(p *layers.Program) { q := &p.Layers[0].Sums[0]; q.ChildIDs = q.ChildIDs[1:] }, layers.ErrShape},
		{"short row of weights", func(p *layers.Program) { q := &p.Layers[0].Sums[0]; q.ParamIDs = nil }, layers.ErrShape},
		{"node written twice", func(p *layers.Program) { q := &p.Layers[0].Sums[0]; q.NodeIDs[1] = q.NodeIDs[0] }, layers.ErrIndex},
		{"node missing", func(p *layers.Program) { p.Layers[2].Sums = p.Layers[2].Sums[1:] }, layers.ErrShape},
		{"node is no sum", func(p *layers.Program) { p.Layers[0].Sums[0].NodeIDs[0] = 1 }, layers.ErrIndex},
		{"negative child", func(p *layers.Program) { p.Layers[0].Sums[0].ChildIDs[0] = -1 }, layers.ErrIndex},
		{"child of another sum", func(p *layers.Program) { p.Layers[0].Sums[0].ChildIDs[0] = p.ElementBlocks - 1 }, layers.ErrIndex},
		{"weight of another sum", func(p *layers.Program) { p.Layers[0].Sums[0].ParamIDs[0] = p.ParamBlocks - 1 }, layers.ErrIndex},
		{"weight on padding", func(p *layers.Program) { p.Layers[0].Sums[0].ChildIDs[0] = 0 }, layers.ErrIndex},
		{"child missing", func(p *layers.Program) { q := &p.Layers[0].Sums[0]; q.ChildIDs[1], q.ParamIDs[1] = 0, 0 }, layers.ErrIndex},
		{"children swapped against their weights", func(p *layers.Program) {
			q := &p.Layers[0].Sums[0]
			q.ChildIDs[0], q.ChildIDs[1] = q.ChildIDs[1], q.ChildIDs[0]
		}, layers.ErrIndex},
		{"short row of parents", func(p *layers.Program) { q := &p.Layers[0].Elements[0]; q.ParentIDs = q.ParentIDs[1:] }, layers.ErrShape},
		{"parent past the space", func(p *layers.Program) { p.Layers[0].Elements[0].ParentIDs[0] = p.NodeBlocks }, layers.ErrIndex},
		{"parent of another layer", func(p *layers.Program) { p.Layers[0].Elements[0].ParentIDs[0] = p.NodeBlocks - 1 }, layers.ErrIndex},
		{"weight of another parent", func(p *layers.Program) {
			q := &p.Layers[0].Elements[0]
			q.ParentParamIDs[0], q.ParentParamIDs[1] = q.ParentParamIDs[1], q.ParentParamIDs[0]
		}, layers.ErrIndex},
		{"element with parents twice", func(p *layers.Program) { q := &p.Layers[0].Elements[0]; q.ElementIDs[1] = q.ElementIDs[0] }, layers.ErrIndex},
		{"no backward tensors", func(p *layers.Program) { p.Layers[0].Elements = nil }, layers.ErrIndex},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := clone(ok)
			tc.edit(p)
			if err := p.Validate(); !errors.Is(err, tc.want) {
				t.Errorf("Validate() = %v, want %v", err, tc.want)
			}
		})
	}
	if err := ok.Validate(); err != nil {
		t.Errorf("the edits reached the original: %v", err)
	}
}

// TestValidateRandom passes the programs of random circuits.
func TestValidateRandom(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 21))
		g := reference.Random(rng, reference.RandomOptions{})
		o := compile.Options{MaxGroups: 1 + rng.IntN(8), PaddingTolerance: rng.Float64(), BlockSize: 1 << rng.IntN(6)}
		r, err := compile.Compile(g, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Program.Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// integers returns every integer of a program that can be changed.
func integers(v reflect.Value, out []reflect.Value) []reflect.Value {
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8:
		return append(out, v)
	case reflect.Struct:
		for i := range v.NumField() {
			out = integers(v.Field(i), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = integers(v.Index(i), out)
		}
	}
	return out
}

// extremes are values that bounds checks forget.
var extremes = []int64{math.MinInt64, math.MinInt32, -2, -1, 0, 1, 2, 3, 31, 32, 1 << 16, 1 << 24, math.MaxInt32, math.MaxInt64}

// corrupt changes some integers and slices of a program.
func corrupt(p *layers.Program, rng *rand.Rand) {
	fields := integers(reflect.ValueOf(p).Elem(), nil)
	for range 1 + rng.IntN(4) {
		f := fields[rng.IntN(len(fields))]
		x := extremes[rng.IntN(len(extremes))]
		if rng.IntN(2) == 0 {
			if f.CanInt() {
				x = f.Int() + int64(rng.IntN(5)) - 2
			} else {
				x = int64(rng.IntN(4))
			}
		}
		switch f.Kind() {
		case reflect.Int32:
			f.SetInt(int64(int32(x)))
		case reflect.Uint8:
			f.SetUint(uint64(uint8(x)))
		default:
			f.SetInt(x)
		}
	}
	if rng.IntN(4) == 0 { // shorten a list
		lists := []any{&p.Columns, &p.Vectors, &p.Inputs, &p.Sums, &p.Stored, &p.Elements, &p.Factors, &p.Layers}
		l := reflect.ValueOf(lists[rng.IntN(len(lists))]).Elem()
		if l.Len() > 0 {
			l.SetLen(rng.IntN(l.Len()))
		}
	}
}

// FuzzValidate corrupts valid programs: Validate never panics, and a program
// that it passes is one that its own methods can read.
func FuzzValidate(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	ok := sample(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 22))
		p := clone(ok)
		corrupt(p, rng)
		if err := p.Validate(); err != nil {
			if !errors.Is(err, layers.ErrShape) && !errors.Is(err, layers.ErrIndex) {
				t.Fatalf("an error of no class: %v", err)
			}
			return
		}
		p.Digest()
		for v := range p.Vectors {
			p.Tabulated(int32(v))
		}
		for e := range p.Elements {
			p.ElementFactors(int32(e))
		}
		if n := p.FlowLen(); n < p.NumParams {
			t.Fatalf("flows of %d floats for %d parameters", n, p.NumParams)
		}
	})
}

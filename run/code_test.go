package run

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/compile/spn"
)

// rareCodes is a circuit as code in float32: products of 70 variables whose codes but the first have probabilities of some 2^-32, so that
// float32 holds the likelihood of rows with two of these, float64 of those with thirty. scale multiplies the probability
// of the first variable's last code.
func rareCodes(t *testing.T, scale float64) (*Blueprint, reference.Params) {
	t.Helper()
	const vars = 70
	g := &circuit.Graph{NumVars: vars}
	var params reference.Params
	sum := circuit.Node{Kind: circuit.Sum, Units: 1}
	for k := range 2 {
		product := circuit.Node{Kind: circuit.Product, Units: 1}
		for v := range vars {
			rare := 0x1p-32 * (1 + float64(k)*float64(v+1)/200)
			table := []float64{0, rare, rare * scale}
			if v > 0 {
				table[2] = rare
			}
			table[0] = 1 - table[1] - table[2]
			product.Children = append(product.Children, circuit.NodeID(len(g.Nodes)))
			g.Nodes = append(g.Nodes, circuit.Node{Units: 1, Var: v, Leaf: circuit.Categorical{Categories: len(table)}})
			params = append(params, table)
		}
		sum.Children = append(sum.Children, circuit.NodeID(len(g.Nodes)))
		g.Nodes, params = append(g.Nodes, product), append(params, nil)
	}
	g.Root = circuit.NodeID(len(g.Nodes))
	g.Nodes, params = append(g.Nodes, sum), append(params, []float64{0.375, 0.625})
	b, err := FromGraph(How{Path: PathCode, Numbers: spn.Choice{Type: "f32"}}, g, params.Read, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.wide = params.Read64
	if err := b.compile(compile.Options{}); err != nil {
		t.Fatal(err)
	}
	return b, params
}

// TestRowsComputedAgain asks for rows that float32 holds, that float64 does, and that only logarithms hold.
func TestRowsComputedAgain(t *testing.T) {
	b, params := rareCodes(t, 1)
	ev, err := reference.New(b.Graph, params)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float64
	for n := range 71 {
		row := make([]float64, 70)
		for v := range n {
			row[v] = 2
		}
		rows = append(rows, row)
	}
	for _, name := range []string{"cpu", "emulator"} {
		p, err := b.Pool(t.Context(), Options{Device: name, Engines: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := asked(t, p, b, rows)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		by := map[*spn.Program]int{}
		for r, row := range rows {
			want, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			from := b.Code
			for from.Exact != nil && want < from.Least {
				from = from.Exact
			}
			by[from]++
			if !(math.Abs(got[r]-want) <= from.Bound.Of(want)) {
				t.Errorf("%s: row %d is %v, want %v within %v of %v", name, r, got[r], want, from.Bound.Of(want), from)
			}
		}
		if len(by) != 3 {
			t.Errorf("rows of %d programs, want 3: %v", len(by), b.Code)
		}
	}
}

// TestDigestOfCode wants models that differ by less than float32 holds to have other names.
func TestDigestOfCode(t *testing.T) {
	one, _ := rareCodes(t, 1)
	same, _ := rareCodes(t, 1)
	other, _ := rareCodes(t, 1+0x1p-40)
	if one.Code.Module.Text() != other.Code.Module.Text() {
		t.Fatal("modules of float32 differ; the test compares nothing")
	}
	if one.Digest() != same.Digest() || one.Digest() == other.Digest() {
		t.Errorf("digests %x, %x of the same model, %x of another", one.Digest(), same.Digest(), other.Digest())
	}
}

// TestSaveDigits saves a model of code whose parameters float32 does not hold, and one whose parameters it does: both files have
// every digit, and the second takes four bytes for each.
func TestSaveDigits(t *testing.T) {
	b, params := rareCodes(t, 1)
	exact := func(id circuit.NodeID, dst []float64) error { return params.Read64(id, dst) }
	rounded := func(id circuit.NodeID, dst []float64) error {
		err := params.Read64(id, dst)
		for i, x := range dst {
			dst[i] = float64(float32(x))
		}
		return err
	}
	var sizes []int64
	for _, wide := range []circuit.ParamFunc64{exact, rounded} {
		b.wide = wide
		path := filepath.Join(t.TempDir(), "model.pce")
		if err := b.Save(t.Context(), path, nil, nil); err != nil {
			t.Fatal(err)
		}
		m, err := format.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want, got := circuit.Parameters(b.Graph, wide), circuit.Parameters(m.Graph, m.Params64)
		for id := range b.Graph.Nodes {
			x, err := want(circuit.NodeID(id))
			y, err2 := got(circuit.NodeID(id))
			if err != nil || err2 != nil || !slices.Equal(x, y) {
				t.Fatalf("node %d: %v, %v; want %v, %v", id, y, err2, x, err)
			}
		}
		f, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, f.Size())
	}
	if saved, want := sizes[0]-sizes[1], int64(4*circuit.Count(b.Graph).Params()); saved < want/2 {
		t.Errorf("files of %v bytes; want the second to be smaller by about %d", sizes, want)
	}
}

// TestCodeOfBadParameters wants the error of parameters that cannot be read, and no code of zeros.
func TestCodeOfBadParameters(t *testing.T) {
	bad := errors.New("the disk is away")
	_, err := FromGraph(How{Path: PathCode}, flat(3, 6), func(circuit.NodeID, []float32) error { return bad }, compile.Options{})
	if !errors.Is(err, bad) {
		t.Errorf("error %v, want %v", err, bad)
	}
}

// flat is a product of indicators of variables, with categories in all: 1 + 2·vars nodes and edges.
func flat(vars, categories int) *circuit.Graph {
	g := &circuit.Graph{NumVars: vars}
	product := circuit.Node{Kind: circuit.Product, Units: 1}
	for v := range vars {
		product.Children = append(product.Children, circuit.NodeID(v))
		g.Nodes = append(g.Nodes, circuit.Node{Units: 1, Var: v, Leaf: circuit.Categorical{Categories: categories / vars}})
	}
	g.Root, g.Nodes = circuit.NodeID(vars), append(g.Nodes, product)
	return g
}

// TestWants tells which circuits are code by default, on both sides of each bound.
func TestWants(t *testing.T) {
	with := func(g *circuit.Graph, change func(n *circuit.Node)) *circuit.Graph {
		change(&g.Nodes[0])
		return g
	}
	wide := func(n *circuit.Node) { n.Units = 2 }
	poisson := func(n *circuit.Node) { n.Leaf = circuit.Poisson{} }
	breaks := func(n *circuit.Node) { n.Leaf, n.Units = circuit.RealHistogram{Breaks: []float64{0, 1}}, 2 }
	both := with(flat(3, 6), breaks)
	both.Nodes[1].Leaf = circuit.Poisson{}
	for name, tc := range map[string]struct {
		g              *circuit.Graph
		single, either bool // with Single, and without
	}{
		"one leaf":              {flat(1, 2), true, false},
		"largest":               {flat(maxSingle/2-1, maxSingle), true, false},
		"one leaf more":         {flat(maxSingle/2, maxSingle), false, false},
		"most codes":            {flat(4, maxSingleCodes), true, false},
		"four codes more":       {flat(4, maxSingleCodes+4), false, false},
		"two units":             {with(flat(3, 6), wide), false, false},
		"a leaf of tensors":     {with(flat(3, 6), poisson), false, false},
		"breaks":                {with(flat(3, 6), breaks), true, true},
		"both":                  {both, false, false},
		"most breaks":           {ownBreaks(1447), true, true},
		"a leaf of breaks more": {ownBreaks(1448), false, false},
	} {
		if got := (How{Single: true}).wants(tc.g); got != tc.single {
			t.Errorf("%s: %v, want %v", name, got, tc.single)
		}
		if got := (How{}).wants(tc.g); got != tc.either {
			t.Errorf("%s, without Single: %v, want %v", name, got, tc.either)
		}
	}
}

// ownBreaks is a sum of n histograms over one variable, each with two bins of its own: n(2n+2) numbers as code.
func ownBreaks(n int) *circuit.Graph {
	g := &circuit.Graph{NumVars: 1, Root: circuit.NodeID(n)}
	root := circuit.Node{Kind: circuit.Sum, Units: 1}
	for i := range n {
		x := float64(i)
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Leaf: circuit.RealHistogram{Breaks: []float64{x, x + 0.5, x + 1}}})
		root.Children = append(root.Children, circuit.NodeID(i))
	}
	g.Nodes = append(g.Nodes, root)
	return g
}

// TestHowOnly wants the path of tensors for queries that code has no part in, and what was chosen otherwise.
func TestHowOnly(t *testing.T) {
	if got := (How{Single: true}).only(QueryClass); got != (How{}) {
		t.Errorf("classes, with Single: %+v, want none of it", got)
	}
	for _, soft := range []bool{false, true} {
		if _, err := (Options{Only: "banana", Soft: soft}).How(); !errors.Is(err, ErrOptions) {
			t.Errorf("an unknown kind, soft %v: %v, want ErrOptions", soft, err)
		}
	}
	chosen := How{Numbers: spn.Choice{Type: "f32"}, Single: true}
	for _, path := range []Path{PathAuto, PathTensor} { // which code has no part in
		if _, err := (Options{Path: path, Soft: true, Numbers: chosen.Numbers}).How(); !errors.Is(err, ErrOptions) {
			t.Errorf("numbers of code for evidence that is not a value, path %q: %v, want ErrOptions", path, err)
		}
	}
	for _, tc := range []struct {
		how  How
		kind string
		want Path
	}{
		{How{Single: true}, QueryLogLikelihood, PathAuto},
		{How{Single: true}, "", PathAuto},
		{How{}, QueryClass, PathAuto},
		{How{Single: true}, QueryKL, PathAuto},
		{How{Single: true}, QueryEntropy, PathAuto},
		{How{Single: true}, QueryMoments, PathTensor},
		{How{}, QuerySample, PathTensor},
		{How{}, QueryMPE, PathTensor},
		{How{Path: PathCode}, QueryMoments, PathCode},
		{chosen, QueryMoments, PathAuto},
	} {
		want := tc.how
		want.Path = tc.want
		if got := tc.how.only(tc.kind); got != want {
			t.Errorf("%+v for %s: %+v, want %+v", tc.how, tc.kind, got, want)
		}
	}
}

// TestOpenParameters opens circuits that would be code if they had parameters, of which files leave some out: they are tensors
// unless code was asked for.
func TestOpenParameters(t *testing.T) {
	for _, text := range []string{
		"circuit 1\na = input x0 bernoulli\ns = sum a\n",
		"circuit 1\na = input x0 bernoulli 0.5\nb = input x0 bernoulli 0.1\ns = sum a b\n",
	} {
		path := filepath.Join(t.TempDir(), "open.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := OpenModelFor(How{Single: true}, path, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if i, err := b.Info(QueryLoad(Options{})); err != nil || i.Path != string(PathTensor) {
			t.Errorf("%v, %v; want a circuit of tensors", i, err)
		}
		if _, err := b.Engine(t.Context(), QueryLoad(Options{Rows: 1})); !errors.Is(err, format.ErrNoParams) {
			t.Errorf("an engine: %v, want ErrNoParams", err)
		}
		b.Close()
		for _, how := range []How{{Path: PathCode}, {Single: true, Numbers: spn.Choice{Type: "f32"}}} {
			if _, err := OpenModelFor(how, path, compile.Options{}); !errors.Is(err, format.ErrNoParams) {
				t.Errorf("%+v: %v, want ErrNoParams", how, err)
			}
		}
	}
}

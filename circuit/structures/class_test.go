package structures

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestAddClass gives a network three classes as variables at both ends and between others, and refuses what has no root
// of its own for each.
func TestAddClass(t *testing.T) {
	const vars, classes = 8, 3
	o := DefaultRATSPN()
	o.Vars, o.Latents, o.Depth, o.Leaf = vars, 3, 2, func(int) circuit.Leaf { return circuit.Gaussian{} }
	network := func() *circuit.Graph {
		g, err := RATSPN(o)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, variable := range []int{0, 3, vars} {
		g, plain := network(), network()
		if err := AddClass(g, variable, classes); err != nil {
			t.Fatal(err)
		}
		if err := circuit.Validate(g); err != nil || g.NumVars != vars+1 {
			t.Fatalf("%d variables: %v", g.NumVars, err)
		}
		if p := circuit.Properties(g); !p.Smooth || !p.Decomposable {
			t.Errorf("class %d: %+v", variable, p)
		}
		params, err := reference.Init(g, 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := &g.Nodes[g.Root]
		if len(last.Children) != classes {
			t.Fatalf("the root has %d children", len(last.Children))
		}
		for r, row := range reference.RandomRows(plain, rand.New(rand.NewPCG(1, 2)), 10, 0.2) {
			for k := range classes {
				// The density of class k is that of the network whose root has the weights of root k.
				own := slices.Clone(params[:len(plain.Nodes)])
				own[plain.Root] = params[g.Nodes[last.Children[k]].Children[0]]
				want := logLikelihood(t, plain, own, row) + math.Log(params[g.Root][k])
				got := logLikelihood(t, g, params, slices.Insert(slices.Clone(row), variable, float64(k)))
				if !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
					t.Errorf("class variable %d, row %d, class %d: %v, want %v", variable, r, k, got, want)
				}
			}
		}
	}
	for name, spoil := range map[string]func(g *circuit.Graph){
		"a product as the root": func(g *circuit.Graph) {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{g.Root}})
			g.Root++
		},
		"nodes behind the root": func(g *circuit.Graph) {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{g.Root - 1}})
		},
		"a sparse root": func(g *circuit.Graph) {
			g.Nodes[g.Root].Edges = &circuit.Edges{Rows: 1, Cols: 1, Pairs: [][2]int32{{0, 0}}}
		},
		"a tied root": func(g *circuit.Graph) {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Sum, Units: 1, Children: g.Nodes[g.Root].Children, Tie: circuit.TieTo(g.Root)})
			g.Root++
		},
		"no root": func(g *circuit.Graph) { g.Root = 1000 },
	} {
		g := network()
		spoil(g)
		before := len(g.Nodes)
		if err := AddClass(g, vars, classes); err == nil || len(g.Nodes) != before || g.NumVars != vars {
			t.Errorf("%s: %v, %d nodes where there were %d", name, err, len(g.Nodes), before)
		}
	}
	for _, bad := range []struct{ variable, classes int }{{vars, -1}, {vars, 0}, {vars, maxLatents + 1}, {-1, 3}, {vars + 1, 3}} {
		g := network()
		if err := AddClass(g, bad.variable, bad.classes); !errors.Is(err, ErrOptions) || !reflect.DeepEqual(g, network()) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// logLikelihood is that of a row by the reference.
func logLikelihood(t *testing.T, g *circuit.Graph, p reference.Params, row []float64) float64 {
	t.Helper()
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	ll, err := ev.LogLikelihood(row)
	if err != nil {
		t.Fatal(err)
	}
	return ll
}

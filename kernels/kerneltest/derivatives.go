package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
)

// testDerivatives compares the flows of a device with derivatives of the
// reference's log-likelihood by central differences, for every structure, for
// every leaf and for random circuits: the flow of a weight is d log p / d log θ,
// and statistics of a leaf give d log p / d θ of its parameters.
//
// Flows as derivatives: Liu, Ahmed, Van den Broeck, "Scaling Tractable
// Probabilistic Circuits", appendix B.2.
func testDerivatives(t *testing.T, open Open, depth Depth) {
	list := append(structured(t, 2, 3), everyLeaf(t), tiedGaussians(t))
	for seed := range uint64(depth.count(12)) {
		o := reference.RandomOptions{Vars: 3, MaxUnits: 4, MaxNodes: 12, Positive: true}
		list = append(list, structure{"random", reference.Random(rand.New(rand.NewPCG(seed, 61)), o)})
	}
	for i, s := range list {
		rng := rand.New(rand.NewPCG(uint64(i), 62))
		rows := reference.RandomRows(s.graph, rng, 8, 0.2)
		dev := open(t)
		m := Build(t, dev, s.graph, initial(t, s.graph), compile.DefaultOptions(), engine.Options{Rows: 64, Train: true})
		accumulate(t, m, reference.Batch(reference.Schema(s.graph), rows))
		d := derivatives{t: t, name: s.name, m: m, rows: rows}
		d.check()
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// derivatives compares the flows of some rows with the slopes of their
// log-likelihood.
type derivatives struct {
	t       *testing.T
	name    string
	m       *Model
	rows    [][]float64
	flows   []float64
	checked int
}

func (d *derivatives) check() {
	p, ev := d.m.Result.Program, d.evaluator()
	d.rows = slices.DeleteFunc(d.rows, func(row []float64) bool { // impossible rows have no flows
		ll, err := ev.LogLikelihood(row)
		return err != nil || math.IsInf(ll, -1)
	})
	raw := make([]int64, p.FlowLen())
	if err := d.m.Engine.ReadFlows(context.Background(), 0, raw); err != nil {
		d.t.Fatal(err)
	}
	d.flows = make([]float64, len(raw))
	for i, f := range raw {
		d.flows[i] = float64(f) * d.m.Engine.Grid()
	}
	owners := map[circuit.NodeID]int{}
	for i := range d.m.Result.Map.Len() {
		owners[d.m.Result.Map.Node(i)] = i
	}
	for id, i := range owners {
		switch d.m.Graph.Nodes[id].Kind {
		case circuit.Sum:
			d.sum(id, i)
		case circuit.Input:
			d.input(id, i)
		}
	}
	if d.checked == 0 || len(d.rows) == 0 {
		d.t.Errorf("%s: nothing was compared", d.name)
	}
}

// slope is the derivative of the rows' log-likelihood by a parameter, from a step
// that is a share of it.
func (d *derivatives) slope(theta *float64) float64 {
	at := *theta
	step := 1e-4 * math.Abs(at)
	*theta = at + step
	high := d.logLikelihood()
	*theta = at - step
	low := d.logLikelihood()
	*theta = at
	return (high - low) / (2 * step)
}

// evaluator returns one of the parameters as they are now.
func (d *derivatives) evaluator() *reference.Evaluator {
	ev, err := reference.New(d.m.Graph, d.m.Params)
	if err != nil {
		d.t.Fatal(err)
	}
	return ev
}

func (d *derivatives) logLikelihood() (sum float64) {
	ev := d.evaluator()
	for _, row := range d.rows {
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			d.t.Fatal(err)
		}
		sum += ll
	}
	return sum
}

// compare allows 1e-4 of what is compared for float32 sums through a few layers
// and the third derivative, and as much of a row's flow for what cancels.
func (d *derivatives) compare(id circuit.NodeID, param int, got, want float64) {
	d.checked++
	if !near(got, want, 1e-4*math.Abs(want)+1e-4) {
		d.t.Errorf("%s: node %d (%v), parameter %d: the flows give a slope of %v, want %v", d.name, id, d.m.Graph.Nodes[id].Kind, param, got, want)
	}
}

func (d *derivatives) sum(id circuit.NodeID, owner int) {
	theta := d.m.Params[id]
	at, n := d.m.Result.Map.Region(owner)
	region, canonical := make([]float32, n), make([]float32, len(theta))
	for i := range region {
		region[i] = float32(d.flows[at+int64(i)])
	}
	if err := d.m.Result.Map.Unpack(owner, region, canonical); err != nil {
		d.t.Fatal(err)
	}
	for k := range theta {
		if theta[k] > 0 {
			d.compare(id, k, float64(canonical[k]), theta[k]*d.slope(&theta[k]))
		}
	}
}

// input compares the parameters of a leaf. Its log density is affine in the
// statistics; a tabulated one has a count for each code.
func (d *derivatives) input(id circuit.NodeID, owner int) {
	p, n := d.m.Result.Program, &d.m.Graph.Nodes[id]
	index := -1
	at, _ := d.m.Result.Map.Region(owner)
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.Owner == int32(i) && (in.Table == at || in.Table < 0 && in.Params == at) {
			index = i
		}
	}
	in := &p.Inputs[index]
	width, np := int64(p.Width(in.Vector)), n.Leaf.NumParams()
	norm := p.InputNorm(int32(index))
	for u := range int64(n.Units) {
		theta := d.m.Params[id][int(u)*np : (int(u)+1)*np]
		for k := range theta {
			if theta[k] == 0 {
				continue
			}
			// bend is the slope of the log density at a point.
			bend := func(x float64) float64 {
				v := theta[k]
				step := 1e-4 * math.Abs(v)
				theta[k] = v + step
				high := n.Leaf.LogProb(theta, x)
				theta[k] = v - step
				low := n.Leaf.LogProb(theta, x)
				theta[k] = v
				return (high - low) / (2 * step)
			}
			got := 0.0
			if in.Codes > 0 {
				for c := range int64(in.Codes) {
					if count := d.flows[in.Table+c*width+u]; count > 0 {
						got += count * bend(float64(c))
					}
				}
			} else {
				constant, a := affine(n.Leaf, bend)
				got = constant * d.flows[norm+u]
				for s := range a {
					got += a[s] * d.flows[in.Params+int64(s)*width+u]
				}
			}
			d.compare(id, int(u)*np+k, theta[k]*got, theta[k]*d.slope(&theta[k]))
		}
	}
}

// affine returns b and a of a function that is b + a·T(x), with one or two
// statistics T of a leaf.
func affine(leaf circuit.Leaf, of func(x float64) float64) (b float64, a []float64) {
	var t [3][2]float64 // a leaf of one statistic leaves 0 in the second place
	var y [3]float64
	for i := range t {
		x := float64(i + 1)
		leaf.Stats(x, t[i][:leaf.NumStats()])
		y[i] = of(x)
	}
	p, q := [2]float64{t[1][0] - t[0][0], t[1][1] - t[0][1]}, [2]float64{t[2][0] - t[0][0], t[2][1] - t[0][1]}
	u, v := y[1]-y[0], y[2]-y[0]
	if leaf.NumStats() == 1 {
		a = []float64{u / p[0]}
	} else {
		det := p[0]*q[1] - p[1]*q[0]
		a = []float64{(u*q[1] - p[1]*v) / det, (p[0]*v - u*q[0]) / det}
	}
	b = y[0]
	for i := range a {
		b -= a[i] * t[0][i]
	}
	return b, a
}

package rtl_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/rtl"
)

// TestRefusals wants one line, of a class, for what has no datapath, and both sides of each bound
// of the options.
func TestRefusals(t *testing.T) {
	const bits = `Root Histogram(a|[0., 1., 2.];[0.25,0.75])`
	const wide = `Root ProductNode(A, B){
		A Histogram(a|[0., 1., 70000.];[0.5,0.1])
		B Histogram(b|[0., 1., 2.];[0.5,0.5])
		}`
	loud := "Root ProductNode("
	var body []string
	for i := range 9 {
		loud += fmt.Sprintf("%sA%d", map[bool]string{true: ", "}[i > 0], i)
		body = append(body, fmt.Sprintf("A%d Histogram(v%d|[0., 1., 2.];[1e37,2e37])", i, i))
	}
	loud += "){" + strings.Join(body, "\n") + "}"
	for _, c := range []struct {
		name, text, want string
		set              func(o *rtl.Options)
		class            error
	}{
		{"least table", bits, "", func(o *rtl.Options) { o.TableBits = 4 }, nil},
		{"small table", bits, "table-bits is 3; want 4 to 12", func(o *rtl.Options) { o.TableBits = 3 }, rtl.ErrOptions},
		{"largest table", bits, "", func(o *rtl.Options) { o.TableBits = 12 }, nil},
		{"large table", bits, "table-bits is 13; want 4 to 12", func(o *rtl.Options) { o.TableBits = 13 }, rtl.ErrOptions},
		{"no stage", bits, "mul-stages is 0", func(o *rtl.Options) { o.MulStages = 0 }, rtl.ErrOptions},
		{"stages", bits, "add-stages is 65", func(o *rtl.Options) { o.AddStages = 65 }, rtl.ErrOptions},
		{"inputs", bits, "input-bits is 17", func(o *rtl.Options) { o.InputBits = 17 }, rtl.ErrOptions},
		{"no rows", bits, "rows is 0", func(o *rtl.Options) { o.Rows = 0 }, rtl.ErrOptions},
		{"device", bits, `device "xcku"; want one of`, func(o *rtl.Options) { o.Device = "xcku" }, rtl.ErrOptions},
		{"gaussian", `Root Gaussian(x|mean=0;stdev=1)`, "a gaussian leaf, whose domain is not finite; give input-bits", nil, rtl.ErrCircuit},
		{"gaussian of integers", `Root Gaussian(x|mean=0;stdev=1)`, "", func(o *rtl.Options) { o.InputBits = 4 }, nil},
		{"wide default", wide, "", nil, nil},
		{"wide faithful", wide, "a leaf up to 70000", func(o *rtl.Options) { o.Faithful = true }, rtl.ErrCircuit},
		{"overflow", loud, "overflow", func(o *rtl.Options) { o.TableBits = 4 }, rtl.ErrCircuit},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := spflow.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			o := rtl.DefaultOptions()
			if c.set != nil {
				c.set(&o)
			}
			_, err = rtl.Compile(m.Graph, m.Params64, o)
			if !errors.Is(err, c.class) || c.class == nil && err != nil {
				t.Fatalf("error %v, want the class %v", err, c.class)
			}
			if err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error %q, want %q in one line", err, c.want)
			}
		})
	}
}

// TestLeast wants Least to say that likelihoods may come out as 0 where numbers are lost already to tables and weights,
// which are made of those of the circuit.
func TestLeast(t *testing.T) {
	const two = `Root ProductNode(A, B){
		A Categorical(a|p=[%[1]s,1.])
		B Categorical(b|p=[%[1]s,1.])
		}`
	const sums = `Root SumNode(%[1]s*S, 1.*C){
		S SumNode(%[1]s*A, 1.*B){
		A Categorical(x|p=[1.,0.])
		B Categorical(x|p=[0.,1.])
		}
		C Categorical(x|p=[0.,1.])
		}`
	gaussian := "Root Gaussian(x|mean=0;stdev=%s)"
	for _, c := range []struct {
		name, text string
		row        []float64
		lost       bool
	}{
		{"tail of a leaf", fmt.Sprintf(gaussian, "0.25"), []float64{15}, true},
		{"less of a tail", fmt.Sprintf(gaussian, "0.5"), []float64{15}, false},
		{"product of tables", fmt.Sprintf(two, "1e-200"), []float64{0, 0}, true},
		{"larger product of tables", fmt.Sprintf(two, "1e-100"), []float64{0, 0}, false},
		{"product of weights", fmt.Sprintf(sums, "1e-200"), []float64{0}, true},
		{"larger product of weights", fmt.Sprintf(sums, "1e-100"), []float64{0}, false},
	} {
		base := rtl.DefaultOptions()
		base.InputBits = 4
		for kind, o := range kinds(base) {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				m, err := spflow.Parse(c.text)
				if err != nil {
					t.Fatal(err)
				}
				d, err := rtl.Compile(m.Graph, m.Params64, o)
				if err != nil {
					t.Fatal(err)
				}
				codes := make([]int, len(c.row))
				if err := d.Encode(c.row, codes); err != nil {
					t.Fatal(err)
				}
				if p := d.Evaluate(codes); (p == 0) != c.lost || (d.Least < -1022) != c.lost {
					t.Errorf("the likelihood is %v, with Least at %v", p, d.Least)
				}
				r := d.Report(&o)
				if text, err := r.JSON(); err != nil || !bytes.Contains(text, []byte(`"least_log2": -`)) {
					t.Errorf("report.json is %s, %v", text, err)
				}
			})
		}
	}
}

// TestTooLarge wants the numbers of a datapath that a small device does not hold, and a line for
// one that no device holds, a chain of a million sums.
func TestTooLarge(t *testing.T) {
	m := shared(t, "NLTCS_200")
	o := rtl.DefaultOptions()
	o.Faithful, o.Device = true, "xc7z020"
	_, err := rtl.Compile(m.Graph, m.Params64, o)
	if !errors.Is(err, rtl.ErrFit) || !strings.Contains(err.Error(), "152 multipliers") || !strings.Contains(err.Error(), "220 DSP") {
		t.Errorf("%v; want 152 multipliers for 220 DSP", err)
	}
	depths := []int{50_000, 1_000_000}
	if testing.Short() {
		depths = depths[:1] // the other takes a second
	}
	for _, deep := range depths {
		g := &circuit.Graph{NumVars: 1}
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}})
		for i := range deep {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{circuit.NodeID(i)}})
		}
		g.Root = circuit.NodeID(deep)
		params := func(id circuit.NodeID, dst []float64) error {
			for i := range dst {
				dst[i] = 1 / float64(len(dst))
			}
			return nil
		}
		o := rtl.DefaultOptions()
		d, err := rtl.Compile(g, params, o)
		if deep == 50_000 && (err != nil || d.Count(rtl.Mul) > 0) {
			t.Errorf("%d sums of one operand: %v; want a table", deep, err)
		}
		if deep == 1_000_000 && !errors.Is(err, rtl.ErrFit) {
			t.Errorf("%d sums: %v, want ErrFit", deep, err)
		}
		o.Faithful = true
		if _, err := rtl.Compile(g, params, o); !errors.Is(err, rtl.ErrFit) {
			t.Errorf("%d multiplications: %v, want ErrFit", deep, err)
		}
	}
}

// TestOutside wants the floor for numbers outside of a histogram where a code is left for them, or
// where input-bits gives codes to all integers, and a line where neither is.
func TestOutside(t *testing.T) {
	m, err := spflow.Parse(`Root ProductNode(A, B){
		A Histogram(a|[0., 1., 2., 3.];[0.25,0.5,0.125])
		B Histogram(b|[0., 1.5, 2.];[0.5,0.5])
		}
		# a;b`)
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Load64(m.Graph, m.Params64)
	if err != nil {
		t.Fatal(err)
	}
	m2, err := spflow.Parse(`Root Histogram(a|[0., 1., 2.];[0.25,0.75])`)
	if err != nil {
		t.Fatal(err)
	}
	full, err := rtl.Compile(m2.Graph, m2.Params64, rtl.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{-1, 2, 1e9, math.NaN(), math.Inf(1)} {
		if err := full.Encode([]float64{x}, make([]int, 1)); !errors.Is(err, rtl.ErrRow) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want ErrRow", x, err)
		}
	}
	if err := full.Encode([]float64{1.75}, make([]int, 1)); err != nil {
		t.Errorf("a number within a bin: %v", err)
	}
	for kind, o := range kinds(rtl.DefaultOptions()) {
		for _, o.InputBits = range []int{0, 3} {
			d, err := rtl.Compile(m.Graph, m.Params64, o)
			if err != nil {
				t.Fatal(err)
			}
			rows := [][]float64{{0, 0}, {1, 1}, {2, 1}, {3, 0}}
			if kind == "default" && o.InputBits == 0 {
				rows = append(rows, []float64{-1e9, 1}, []float64{0.5, 1.75}, []float64{1e30, 1.5})
			}
			if o.InputBits > 0 {
				rows = append(rows, []float64{7, 7}, []float64{0, 5})
			}
			agree(t, fmt.Sprintf("%s, %d bits", kind, o.InputBits), d, m.Graph, params, rows)
		}
	}
}

// TestBreaksAsCells wants a cell that was written as a break in the bin that starts there, though float32 rounds 0.7 and 1.3 down and 0.1 up.
func TestBreaksAsCells(t *testing.T) {
	m, err := spflow.Parse(`Root Histogram(a|[0.1, 0.7, 1.3, 2.];[0.25,0.75,0.5])`)
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Load64(m.Graph, m.Params64)
	if err != nil {
		t.Fatal(err)
	}
	d, err := rtl.Compile(m.Graph, m.Params64, rtl.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float64
	for _, x := range []float32{0.1, 0.7, 1.3} {
		for _, cell := range []float32{math.Nextafter32(x, -9), x, math.Nextafter32(x, 9)} {
			rows = append(rows, []float64{float64(cell)})
		}
	}
	agree(t, "breaks", d, m.Graph, params, rows)
}

// TestOneCode wants the line for cells without a code also in columns of which all codes are one, which the
// datapath does not read, and any cell in columns without leaves.
func TestOneCode(t *testing.T) {
	for _, c := range []struct {
		leaf    string
		bits    int
		inside  float64
		outside []float64
	}{
		{"Histogram(x|[0., 7.];[0.7])", 0, 6.5, []float64{-1, 7, 12}},
		{"Histogram(x|[100., 107.];[0.7])", 3, 5, []float64{8, 103}},
		{"Categorical(x|p=[1.])", 0, 0, []float64{1, 0.5}},
	} {
		m, err := spflow.Parse("P ProductNode(A, B){\nA " + c.leaf + "\nB Bernoulli(y|p=0.3)\n}\n# x;y;z\n")
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.NumVars = 3
		params, err := reference.Load64(m.Graph, m.Params64)
		if err != nil {
			t.Fatal(err)
		}
		for kind, o := range kinds(rtl.DefaultOptions()) {
			if o.Faithful && c.bits == 0 {
				continue // whose codes are integers of a width that all leaves share
			}
			o.InputBits = c.bits
			for _, o.Marginals = range []bool{false, true} {
				d, err := rtl.Compile(m.Graph, m.Params64, o)
				if err != nil {
					t.Fatal(err)
				}
				rows := [][]float64{{c.inside, 0, 0}, {c.inside, 1, 1e9}, {c.inside, 1, math.NaN()}}
				if o.Marginals {
					rows = append(rows, []float64{math.NaN(), 1, 0})
				}
				agree(t, kind+" "+c.leaf, d, m.Graph, params, rows)
				for _, x := range append(c.outside, math.NaN()) {
					if o.Marginals && math.IsNaN(x) {
						continue
					}
					if err := d.Encode([]float64{x, 1, 0}, make([]int, 3)); !errors.Is(err, rtl.ErrRow) {
						t.Errorf("%s %s, a cell of %v: %v, want ErrRow", kind, c.leaf, x, err)
					}
				}
			}
		}
	}
}

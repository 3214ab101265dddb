package spnc

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/format/units"
)

// shared is where the networks of other programs lie, beside the repository.
const shared = "../../../../shared/data/spn/capnp"

// example has a node with two parents and every family; its variables are V3, V5 and V6.
const example = `S SumNode(0.3*P, 0.7*Q){
	P ProductNode(H1, A, G){
		H1 Histogram(V5|[0,1,3];[0.25,0.375])
		A Categorical(V6|p=[0.2,0.3,0.5])
		G SumNode(0.4*G1, 0.6*G2){
			G1 Gaussian(V3|mean=-1.5;stdev=0.25)
			G2 Gaussian(V3|mean=2;stdev=1)
			}
		}
	Q ProductNode(A, G, H2){
		H2 Histogram(V5|[-1,4];[0.2])
		}
	}

# V3;V5;V6
`

// encoded returns the file of the network of a text of SPFlow, with that query.
func encoded(t testing.TB, text, query string) []byte {
	t.Helper()
	m, err := spflow.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	m.Meta = map[string]string{MetaName: "a name", MetaFeature: "float64", MetaQuery: query}
	var b bytes.Buffer
	if lost, err := Write(&b, m); err != nil || lost != nil {
		t.Fatal(lost, err)
	}
	return b.Bytes()
}

const exampleQuery = "batch=100 error=1 most=0.02 missing=true"

func decoded(t testing.TB, b []byte) *format.Model {
	t.Helper()
	m, err := format.Decode(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFormat(t *testing.T) {
	pair := "P ProductNode(A, H){\nA Categorical(V0|p=[0.25,0.75])\nH Histogram(V1|[0,1];[1])\n}\n"
	formattest.Run(t, Format, encoded(t, pair, Bare), encoded(t, "L Gaussian(V0|mean=1;stdev=2)", exampleQuery))
}

// TestRoundTrip: a network comes back bit by bit, with its names and what a query says, and is
// written again as the same bytes.
func TestRoundTrip(t *testing.T) {
	format.Register(Format)
	want, err := spflow.Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{Bare, exampleQuery} {
		b := encoded(t, example, query)
		m := decoded(t, b)
		if m.Meta[MetaQuery] != query || m.Meta[MetaName] != "a name" || !slices.Equal(m.Names, want.Names) {
			t.Errorf("read %q and %q", m.Meta, m.Names)
		}
		m.Meta = nil
		if d := formattest.Diff64(m, want); d != "" {
			t.Error(d)
		}
		if again := encoded(t, example, query); !bytes.Equal(again, b) {
			t.Error("written twice, the bytes differ")
		}
	}
}

// TestDefaultQuery: a model from elsewhere is written as a query, with the defaults of SPNC, which does not
// compile networks alone; what a file of SPNC says stays as it is.
func TestDefaultQuery(t *testing.T) {
	format.Register(Format)
	for _, tc := range []struct{ was, want map[string]string }{
		{nil, map[string]string{MetaFeature: "float64", MetaQuery: "batch=1 error=0 most=0.02 missing=false"}},
		{map[string]string{MetaFeature: "uint8"}, map[string]string{MetaFeature: "uint8", MetaQuery: "batch=1 error=0 most=0.02 missing=false"}},
		{map[string]string{MetaQuery: Bare}, map[string]string{MetaQuery: Bare}},
		{map[string]string{MetaQuery: exampleQuery}, map[string]string{MetaQuery: exampleQuery}},
	} {
		m, err := spflow.Parse(example)
		if err != nil {
			t.Fatal(err)
		}
		m.Meta = tc.was
		var first, second bytes.Buffer
		if lost, err := Write(&first, m); err != nil || lost != nil {
			t.Fatal(lost, err)
		}
		back := decoded(t, first.Bytes())
		if !maps.Equal(back.Meta, tc.want) {
			t.Errorf("strings %q are read as %q, want %q", tc.was, back.Meta, tc.want)
		}
		m.Meta = tc.want
		if d := formattest.Diff64(back, m); d != "" {
			t.Error(d)
		}
		if _, err := Write(&second, back); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%v: written twice, the bytes differ", err)
		}
	}
}

// TestWriteRefuses: what the format does not have, and what it does not keep.
func TestWriteRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"L Poisson(V0|mean=2)":                     "family poisson",
		"L Histogram(V0|[0,0.5,1];[1,1])":          "a break at 0.5",
		"L Histogram(V0|[0,3000000000];[1e-9])":    "a break at 3e+09",
		"L LogNormal(V0|mean=2;stdev=1)\n# other;": "log-normal",
	} {
		m, err := spflow.Parse(strings.TrimSuffix(text, "\n# other;"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Write(io.Discard, m); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	m, err := spflow.Parse("L Gaussian(height|mean=2;stdev=1)")
	if err != nil {
		t.Fatal(err)
	}
	m.Meta = map[string]string{"a": "b"}
	if lost, err := Write(io.Discard, m); err != nil || len(lost) != 2 || !strings.Contains(strings.Join(lost, ";"), "names") {
		t.Errorf("lost %q, %v; want names and a string", lost, err)
	}
	if _, err := Write(&formattest.FullDisk{Room: 50}, m); err == nil {
		t.Error("a full disk was not noticed")
	}
	m.Meta[MetaQuery] = "twelve"
	if _, err := Write(io.Discard, m); !errors.Is(err, format.ErrModel) {
		t.Errorf("a string that is not a query: %v", err)
	}
}

// TestNumbers: a variable keeps the number of its name, also where the columns are in another order,
// which is that of the numbers then; names of other kinds are numbered anew.
func TestNumbers(t *testing.T) {
	format.Register(Format)
	for _, tc := range []struct {
		first, second, lost, names string
		swapped                    bool
	}{
		{"V0", "V1", "", "V0 V1", false},
		{"V3", "V7", "", "V3 V7", false},
		{"V7", "V3", "the order of the columns", "V3 V7", true},
		{"V1", "x", "the names", "V0 V1", false},
		{"b", "a", "the names", "V0 V1", false},
	} {
		m, err := spflow.Parse("P ProductNode(A, B){\nA Gaussian(" + tc.first + "|mean=0;stdev=1)\nB Gaussian(" + tc.second + "|mean=5;stdev=1)\n}\n# " + tc.first + ";" + tc.second + "\n")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		lost, err := Write(&b, m)
		if err != nil || !strings.HasPrefix(strings.Join(lost, ";"), tc.lost) || len(lost) > 0 != (tc.lost != "") {
			t.Errorf("%s, %s: lost %q, %v; want %q", tc.first, tc.second, lost, err, tc.lost)
		}
		back := decoded(t, b.Bytes())
		row := []float64{0, 5}
		if tc.swapped {
			slices.Reverse(row)
		}
		want := -math.Log(2 * math.Pi)
		if got, err := formattest.Evaluator(t, back).LogLikelihood(row); err != nil || !(math.Abs(got-want) <= 1e-12) || strings.Join(back.Names, " ") != tc.names {
			t.Errorf("%s, %s: columns %q with %v at %v, %v; want %s with %v", tc.first, tc.second, back.Names, got, row, err, tc.names, want)
		}
	}
}

// TestUnits: nodes of many units, ties and sparse sums are written unit by unit, and the value
// stays the same.
func TestUnits(t *testing.T) {
	format.Register(Format)
	m, err := spflow.Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	g := &circuit.Graph{NumVars: 2, Root: 4, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 3, Var: 0, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Input, Units: 3, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 3, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 2, Children: []circuit.NodeID{2}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{3}},
	}}
	params := [][]float64{{0, 1, 1, 2, -1, 0.5}, {0.5, 0.5, 0.25, 0.75, 1, 0}, nil, {0.5, 0.25, 0.25, 0, 0.5, 0.5}, {0.125, 0.875}}
	wide := format.NewModel(g, nil, format.Params{Float64: func(id circuit.NodeID, dst []float64) error { copy(dst, params[id]); return nil }})
	for _, m := range []*format.Model{m, wide} {
		var b bytes.Buffer
		if _, err := Write(&b, m); err != nil {
			t.Fatal(err)
		}
		back := decoded(t, b.Bytes())
		c, err := units.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(back.Graph.Nodes) != len(c.Order()) {
			t.Errorf("%d nodes, want %d units", len(back.Graph.Nodes), len(c.Order()))
		}
		was, is := formattest.Evaluator(t, m), formattest.Evaluator(t, back)
		row := make([]float64, m.Graph.NumVars)
		for x := -2.0; x < 3; x += 0.5 {
			row[0], row[1] = x, math.Abs(math.Floor(x/2))
			want, err1 := was.LogLikelihood(row)
			got, err2 := is.LogLikelihood(row)
			if err := errors.Join(err1, err2); err != nil || !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("row %v: %v, %v; want %v", row, got, err, want)
			}
		}
	}
}

// TestChains: what is written is read again, of whatever kinds of nodes with however few words
// most of the file is.
func TestChains(t *testing.T) {
	format.Register(Format)
	leaves := map[string]units.Node{
		"bernoulli": {Leaf: circuit.Bernoulli{}, Params: []float64{0.25, 0.75}},
		"one code":  {Leaf: circuit.Categorical{Categories: 1}, Params: []float64{1}},
		"gaussian":  {Leaf: circuit.Gaussian{}, Params: []float64{0, 1}},
		"histogram": {Leaf: circuit.RealHistogram{Breaks: []float64{0, 1}, Floor: Floor}, Params: []float64{1}},
	}
	for name, leaf := range leaves {
		for _, kind := range []circuit.Kind{circuit.Product, circuit.Sum} {
			for children := 1; children <= 4; children++ {
				nodes := []units.Node{leaf}
				vars := 1
				for range 50 {
					n := units.Node{Kind: kind, Children: []int{len(nodes) - 1}}
					for range children - 1 {
						l := leaf
						if kind == circuit.Product {
							l.Var = vars
							vars++
						}
						n.Children = append(n.Children, len(nodes))
						nodes = append(nodes, l)
					}
					if kind == circuit.Sum {
						n.Weights = slices.Repeat([]float64{1 / float64(children)}, children)
					}
					nodes = append(nodes, n)
				}
				m, err := units.Assemble(nodes, len(nodes)-1, vars)
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				if _, err := Write(&b, m); err != nil {
					t.Fatal(err)
				}
				back, err := Format.Decode(bytes.NewReader(b.Bytes()), int64(b.Len()))
				if err != nil || len(back.Graph.Nodes) != len(m.Graph.Nodes) {
					t.Errorf("leaves %s, a chain of kind %d with %d children: %v", name, kind, children, err)
				}
			}
		}
	}
}

// segments puts parts, each a number of words, behind a table.
func segments(parts ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(parts)-1))
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)/word))
	}
	for len(b)%word != 0 {
		b = append(b, 0)
	}
	return append(b, bytes.Join(parts, nil)...)
}

func words(list ...uint64) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// TestFarPointers: the same network in several segments, behind a far pointer and behind one
// with a pad of two words.
func TestFarPointers(t *testing.T) {
	format.Register(Format)
	file := encoded(t, example, exampleQuery)
	want, body := decoded(t, file), file[word:]
	root := binary.LittleEndian.Uint64(body)
	far := func(segment, at uint64) uint64 { return 2 | at<<3 | segment<<32 }
	for name, b := range map[string][]byte{
		"far":         segments(words(far(1, 0)), body),
		"two words":   segments(words(far(1, 0)|4), words(far(2, 1+root<<32>>34), root&^0xfffffffc), body),
		"rest behind": append(slices.Clone(file), file...),
	} {
		if d := formattest.Diff64(decoded(t, b), want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for name, b := range map[string][]byte{
		"to itself":             segments(words(far(0, 0))),
		"to a far pointer":      segments(words(far(1, 0)), words(far(0, 0))),
		"to no segment":         segments(words(far(7, 0), 0, 0)),
		"beyond its segment":    segments(words(far(1, 9999), 0, 0), body),
		"a pad of far pointers": segments(words(far(1, 0)|4, 0, 0), words(far(2, 0), far(2, 0)), body),
	} {
		refuse(t, name, b, "pointer")
	}
}

// refuse wants an error of one line with a text, within little memory.
func refuse(t *testing.T, name string, b []byte, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Format.Decode(bytes.NewReader(b), int64(len(b)))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: error is %v, want %q", name, err, want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+400*uint64(len(b)) {
		t.Errorf("%s: %d bytes of memory for a file of %d", name, n, len(b))
	}
}

// TestRefuses: networks that are not, and headers of other things.
func TestRefuses(t *testing.T) {
	one := encoded(t, "L Gaussian(V0|mean=1;stdev=2)", Bare)
	two := encoded(t, "P ProductNode(A, B){\n\tA Gaussian(V0|mean=1;stdev=2)\n\tB Gaussian(V1|mean=1;stdev=2)\n\t}\n", Bare)
	edit := func(b []byte, at int, x uint64) []byte {
		b = slices.Clone(b)
		binary.LittleEndian.PutUint64(b[word*(1+at):], x)
		return b
	}
	at := func(b []byte, what uint64) int { // of a word
		for i := range len(b)/word - 1 {
			if binary.LittleEndian.Uint64(b[word*(1+i):]) == what {
				return i
			}
		}
		t.Fatalf("no word %#x", what)
		return 0
	}
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":            {nil, "table of segments"},
		"many segments":      {words(600, 0, 0), "601 segments"},
		"a cut table":        {words(40 | 1<<32), "cut short"},
		"a cut segment":      {one[:len(one)-word], "cut short"},
		"a null root":        {edit(one, 0, 0), "the header is not there"},
		"a list for a root":  {edit(one, 0, 1|sizeEight<<32), "the header is not there"},
		"a capability":       {edit(one, 0, 3), "of a kind that networks do not have"},
		"another header":     {edit(one, 1, 7), "header of kind 7"},
		"a query without":    {edit(one, 1, 1), "the joint probability of the query is not there"},
		"another root":       {edit(one, 3, 5|1<<32), "the root is node 5"},
		"two features":       {edit(one, 3, 2<<32), "2 features and a scope of 1"},
		"a variable twice":   {edit(two, at(two, 1<<32), 1|1<<32), "2 variables, of which some are the same"},
		"a deviation of NaN": {edit(one, at(one, math.Float64bits(2)), math.Float64bits(math.NaN())), "node 0"},
		"a deviation of -2":  {edit(one, at(one, math.Float64bits(2)), math.Float64bits(-2)), "node 0"},
		"a name in Latin-1":  {bytes.Replace(one, []byte("a name"), []byte("a n\xe4me"), 1), "the name of the network is \"a n\\xe4me\", which is not UTF-8"},
		"a type in Latin-1":  {bytes.Replace(one, []byte("float64"), []byte("flo\xe4t64"), 1), "the type of its features"},
	} {
		refuse(t, name, tc.file, tc.want)
	}

	// Networks whose nodes do not fit, by a change of what is written.
	build := func(nodes func(e *encoder, list int)) []byte {
		e := &encoder{bits: make([]byte, word)}
		header := e.record(0, 1, 1)
		net := e.record(header+1, 1, 4)
		e.put(net, 0|2<<32)
		e.ints(net+3, []int32{0, 1})
		list := e.alloc(1 + 2*3)
		e.put(net+4, offset(net+4, list)|1|sizeStruct<<32|6<<35)
		e.put(list, 3<<2|1<<32|1<<48)
		nodes(e, list+1)
		return segments(e.bits)
	}
	leaf := func(e *encoder, at int, id, variable uint64) {
		e.put(at, id|uint64(gaussian)<<48)
		g := e.record(at+1, 3, 0)
		e.put(g+1, math.Float64bits(1))
		e.put(g+2, variable)
	}
	inner := func(e *encoder, at int, id uint64, weights []float64, children ...int32) {
		if weights == nil {
			e.put(at, id|uint64(product)<<48)
			e.ints(e.record(at+1, 0, 1), children)
			return
		}
		e.put(at, id|uint64(sum)<<48)
		s := e.record(at+1, 0, 2)
		e.ints(s, children)
		e.floats(s+1, weights)
	}
	for name, tc := range map[string]struct {
		nodes func(e *encoder, list int)
		want  string
	}{
		"as it should be": {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 2); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 1) }, ""},
		"a cycle":         {func(e *encoder, l int) { inner(e, l, 0, nil, 1); inner(e, l+2, 1, nil, 2, 0); leaf(e, l+4, 2, 1) }, "descendant of itself"},
		"its own child":   {func(e *encoder, l int) { inner(e, l, 0, nil, 0, 1, 2); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 1) }, "descendant of itself"},
		"a missing child": {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 9); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 1) }, "child 9 is not there"},
		"one number":      {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 2); leaf(e, l+2, 1, 0); leaf(e, l+4, 1, 1) }, "two nodes have the number 1"},
		"not reached":     {func(e *encoder, l int) { inner(e, l, 0, nil, 1); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 1) }, "not reached"},
		"another scope":   {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 2); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 7) }, "variable 7 is not in the scope"},
		"overlap":         {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 2); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 0) }, "variable"},
		"a weight less":   {func(e *encoder, l int) { inner(e, l, 0, []float64{1}, 1, 2); leaf(e, l+2, 1, 0); leaf(e, l+4, 2, 0) }, "1 weights for 2 children"},
		"weights of 0.9": {func(e *encoder, l int) {
			inner(e, l, 0, []float64{0.5, 0.4}, 1, 2)
			leaf(e, l+2, 1, 0)
			leaf(e, l+4, 2, 0)
		}, "node 0"},
		"no children": {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 2); inner(e, l+2, 1, nil); leaf(e, l+4, 2, 1) }, "child"},
		"another kind": {func(e *encoder, l int) {
			inner(e, l, 0, nil, 1, 2)
			leaf(e, l+2, 1, 0)
			leaf(e, l+4, 2, 1)
			e.put(l+4, 2|9<<48)
		}, "of kind 9"},
		"without a body": {func(e *encoder, l int) { inner(e, l, 0, nil, 1, 2); leaf(e, l+2, 1, 0); e.put(l+4, 2|3<<48) }, "what it computes is not there"},
	} {
		if b := build(tc.nodes); tc.want == "" {
			if _, err := Format.Decode(bytes.NewReader(b), int64(len(b))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			refuse(t, name, b, tc.want)
		}
	}

	// Many nodes that share one long list of children would take its length times theirs.
	e := &encoder{bits: make([]byte, word)}
	net := e.record(e.record(0, 1, 1)+1, 1, 4)
	e.put(net, 1<<32)
	e.ints(net+3, []int32{0})
	const nodes = 3000
	list := e.alloc(1 + 2*nodes)
	e.put(net+4, offset(net+4, list)|1|sizeStruct<<32|2*nodes<<35)
	e.put(list, nodes<<2|1<<32|1<<48)
	long := e.alloc(nodes / 2)
	for i := range nodes {
		at := list + 1 + 2*i
		e.put(at, uint64(i))
		p := e.record(at+1, 0, 1)
		e.put(p, offset(p, long)|1|sizeFour<<32|nodes<<35)
	}
	refuse(t, "shared children", segments(e.bits), "lists are shared")
}

// TestShared: the networks of SPNC give the values that were published with them, and come back
// from what is written.
func TestShared(t *testing.T) {
	format.Register(Format)
	files, _ := filepath.Glob(shared + "/*.bin")
	if len(files) == 0 {
		t.Skip("SKIPPED: no networks in ../shared/data/spn/capnp, which is not part of the repository: they are in esa-tu-darmstadt/spn-compiler, under execute/examples and mlir/test")
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := decoded(t, b)
		if err := m.Verify(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		var out bytes.Buffer
		lost, err := Write(&out, m)
		if err != nil || lost != nil {
			t.Fatalf("%s: lost %q, %v", path, lost, err)
		}
		if d := formattest.Diff64(decoded(t, out.Bytes()), m); d != "" {
			t.Errorf("%s: %s", path, d)
		}
		base := strings.TrimSuffix(path, ".bin")
		in, want := numbers(t, base+".input.*"), numbers(t, base+".output.*")
		if in == nil {
			continue
		}
		ev, n, step := formattest.Evaluator(t, m), m.Graph.NumVars, 3
		if testing.Short() {
			step = 40
		}
		for i := 0; i < len(want); i += step {
			got, err := ev.LogLikelihood(in[i*n : (i+1)*n])
			if err != nil || !(math.Abs(got-want[i]) <= 1e-12*math.Abs(want[i])) {
				t.Fatalf("%s, row %d: %v, %v; want %v", path, i, got, err, want[i])
			}
		}
	}
}

// numbers returns those of a packed file, nil if there is none.
func numbers(t *testing.T, pattern string) (list []float64) {
	t.Helper()
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		return nil
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.FieldsFunc(string(b), func(r rune) bool { return strings.ContainsRune(" ,;\r\n", r) }) {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

func FuzzDecode(f *testing.F) {
	format.Register(Format)
	for _, text := range []string{example, "L Gaussian(V0|mean=1;stdev=2)"} {
		for _, query := range []string{Bare, exampleQuery} {
			f.Add(encoded(f, text, query))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Format.Decode(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %q", err)
			}
			return
		}
		var out bytes.Buffer
		if _, err := Write(&out, m); err != nil {
			t.Fatal(err)
		}
		if d := formattest.Diff64(decoded(t, out.Bytes()), m); d != "" {
			t.Fatal(d)
		}
	})
}

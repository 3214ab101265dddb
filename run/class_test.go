package run_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/resize"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// flowers is a file of rows whose third column is the class, as a text, of which the other columns tell; some cells are
// missing. It returns the path.
func flowers(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	kinds := []string{"lily", "rose", "tulip"}
	b := strings.Builder{}
	b.WriteString("length,width,kind,colour,petals\n")
	for range 300 {
		k := rng.IntN(3)
		cells := []string{
			fmt.Sprintf("%.2f", float64(2*k)+rng.NormFloat64()), fmt.Sprintf("%.2f", float64(k*k)+rng.NormFloat64()),
			kinds[k], []string{"red", "white"}[(k+rng.IntN(2))%2], fmt.Sprint(3 + k + rng.IntN(3)),
		}
		if rng.IntN(10) == 0 {
			cells[rng.IntN(5)] = ""
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	path := filepath.Join(t.TempDir(), "flowers.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// classed returns options of a short run on flowers, whose kind is the class.
func classed(t *testing.T, kind, path string) run.TrainOptions {
	o := onRows(t, kind, "auto", path)
	o.Structure.Class = "kind"
	o.EM.Phases = o.EM.Phases[:1] // the other is full-batch EM
	o.EM.Phases[0].BatchRows, o.EM.ShardRows = 100, 60
	return o
}

// TestClass gives structures over columns of several kinds a root for each class, which is the one column in the middle,
// and tells the class of most rows by their other columns.
func TestClass(t *testing.T) {
	path := flowers(t)
	for _, kind := range []string{"hclt", "rat-spn"} {
		o := classed(t, kind, path)
		o.Structure.Leaf = run.Leaf{Type: "gaussian"} // of all columns of numbers, but not of the class
		o.Structure.Leaves = map[string]run.Leaf{"colour": {Type: "categorical"}, "petals": {Type: "poisson"}}
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		b, err := run.OpenModel(filepath.Join(o.Dir, run.ModelFile), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if c := b.Schema.Columns[2]; !slices.Equal(c.Labels, []string{"lily", "rose", "tulip"}) || c.Categories != 3 {
			t.Errorf("%s: the class is %+v", kind, c)
		}
		var leaves []string
		for i := range b.Graph.Nodes {
			if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input && n.Units > 0 {
				leaves = append(leaves, fmt.Sprintf("%d %s", n.Var, n.Leaf.Name()))
			}
		}
		slices.Sort(leaves)
		want := []string{"0 gaussian", "1 gaussian", "2 indicator", "2 indicator", "2 indicator", "3 categorical", "4 poisson"}
		if !slices.Equal(leaves, want) {
			t.Errorf("%s: leaves %v, want %v", kind, leaves, want)
		}
		last := &b.Graph.Nodes[b.Graph.Root]
		if len(last.Children) != 3 {
			t.Errorf("%s: the root has %d children, want one for each class", kind, len(last.Children))
		}
		right, known := told(t, b, path, 2)
		if known < 250 || float64(right) < 0.6*float64(known) {
			t.Errorf("%s: of %d rows, the classes of %d are told", kind, known, right)
		}
	}
}

// told counts the rows of a file whose class, a column, is known, and those whose likeliest class it is.
func told(t *testing.T, b *run.Blueprint, path string, class int) (right, known int) {
	t.Helper()
	src, err := run.Files(path)(t.Context(), b.Schema)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]int, src.Rows())
	for r := range rows {
		rows[r] = r
	}
	batch := dataset.NewBatch(b.Schema, len(rows))
	if err := src.Gather(t.Context(), batch, rows); err != nil {
		t.Fatal(err)
	}
	e, err := b.Engine(t.Context(), run.QueryLoad(run.Options{Device: "cpu"}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	codes := b.Schema.Columns[class].Categories
	p := make([]float64, len(rows)*codes)
	if err := e.Classify(t.Context(), batch, class, p); err != nil {
		t.Fatal(err)
	}
	for r := range rows {
		if cell := &batch.Columns[class]; !cell.IsMissing(r) {
			known++
			of := p[r*codes : (r+1)*codes]
			if of[cell.Codes.At(r)] == slices.Max(of) {
				right++
			}
		}
	}
	return right, known
}

// TestClassOfImages gives a pd circuit, whose columns but the class are an image, a root for each class.
func TestClassOfImages(t *testing.T) {
	src, err := dataset.Open(t.Context(), "builtin:random?rows=60&vars=17&categories=3", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := small(t, "pd")
	o.Train, o.Valid, o.Test, o.Samples = run.Table(src), nil, nil, 0
	o.Structure.Class, o.Structure.PD.Shape = "1", [3]int{4, 4, 1}
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b, err := run.OpenModel(filepath.Join(o.Dir, run.ModelFile), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	pd := o.Structure.PD
	pd.Latents, pd.Seed, pd.Leaf = o.Structure.Latents, o.Structure.Seed, func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }
	want, err := structures.PD(pd)
	if err != nil {
		t.Fatal(err)
	}
	if err := structures.AddClass(want, 0, 3); err != nil {
		t.Fatal(err)
	}
	if got, want := circuit.Count(b.Graph), circuit.Count(want); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestClassRefused lists what cannot be a class.
func TestClassRefused(t *testing.T) {
	path := flowers(t)
	alone := filepath.Join(t.TempDir(), "alone.csv")
	if err := os.WriteFile(alone, []byte("kind\nrose\nlily\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(o *run.TrainOptions){
		`column "scent", and`:                        func(o *run.TrainOptions) { o.Structure.Class = "scent" },
		`"length" is continuous and cannot be`:       func(o *run.TrainOptions) { o.Structure.Class = "length" },
		`column "*", and`:                            func(o *run.TrainOptions) { o.Structure.Class = "*" },
		"a class for hmm":                            func(o *run.TrainOptions) { o.Structure.Kind = "hmm" },
		"a class for learnspn":                       func(o *run.TrainOptions) { o.Structure.Kind = "learnspn" },
		`a leaf is set for "kind"`:                   func(o *run.TrainOptions) { o.Structure.Leaves = map[string]run.Leaf{"kind": {Type: "categorical"}} },
		"no shape of an image; choose another tree":  func(o *run.TrainOptions) { o.Structure.Kind, o.Structure.HCLT.Tree = "hclt", "grid" },
		"set it (model.pd.shape in a config)":        func(o *run.TrainOptions) { o.Structure.Kind = "pd" },
		"is the only column":                         func(o *run.TrainOptions) { o.Train, o.Valid = run.Files(alone), nil },
		"discriminative training by fullbatch-em":    func(o *run.TrainOptions) { o.Discriminative, o.EM.Phases[0].Rule = 1, em.FullBatch },
		"share of 1.5":                               func(o *run.TrainOptions) { o.Discriminative = 1.5 },
		"discriminative training without a class":    func(o *run.TrainOptions) { o.Discriminative, o.Structure.Class = 1, "" },
		"a discriminative share of -1; want 0 to 1":  func(o *run.TrainOptions) { o.Discriminative = -1 },
		"a discriminative share of NaN; want 0 to 1": func(o *run.TrainOptions) { o.Discriminative = math.NaN() },
	} {
		o := classed(t, "rat-spn", path)
		change(&o)
		if _, err := run.Train(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	o := classed(t, "rat-spn", path)
	o.Discriminative = 1
	elsewhere := run.Elsewhere{Flows: func(context.Context, *run.Blueprint, run.Load, dataset.Source, dataset.Source) (run.Flows, error) {
		return nil, errors.New("opened")
	}}
	if _, err := run.TrainElsewhere(t.Context(), o, elsewhere); !errors.Is(err, run.ErrOptions) {
		t.Errorf("on a cluster: %v", err)
	}
}

// TestClassByNumber skips columns of a file without names in front of the class and behind it: the class is that of its number
// in the file also for a run that is resumed, whose circuit does not know the file's numbers. Of a circuit, numbers are its own,
// and one that would be another column than its class is refused.
func TestClassByNumber(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := strings.Builder{}
	for i := range 200 {
		k := rng.IntN(3)
		fmt.Fprintf(&b, "id%d,%d,%d,%d,%d,id%d,%d\n", i, k, (k+rng.IntN(2))%3, rng.IntN(2), (k+rng.IntN(3)/2)%2, i, k)
	}
	path := filepath.Join(t.TempDir(), "numbers.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := func(ctx context.Context, schema *dataset.Schema) (dataset.Source, error) {
		return dataset.OpenAll(ctx, []string{path}, dataset.Options{Schema: schema, Header: "no", Types: map[string]dataset.Type{"1": {Skip: true}, "6": {Skip: true}}})
	}
	options := func(class string) run.TrainOptions {
		o := classed(t, "hclt", path)
		o.Train, o.Valid, o.Structure.Class, o.Discriminative = rows, rows, class, 1
		return o
	}
	for class, variable := range map[string]int{"2": 0, "7": 4} {
		resumes(t, func() run.TrainOptions { return options(class) })
		o := options(class)
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		model := filepath.Join(o.Dir, run.ModelFile)
		b, err := run.OpenModel(model, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Graph.Nodes {
			if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input && (n.Leaf.Name() == "indicator") != (n.Var == variable) {
				t.Errorf("class %s: variable %d has %s leaves", class, n.Var, n.Leaf.Name())
			}
		}
		b.Close()
		further := options("")
		further.Structure.Kind, further.Structure.File = "file", model
		if _, err := run.Train(t.Context(), further); err != nil {
			t.Errorf("the class that a circuit was made with: %v", err)
		}
		grown := filepath.Join(t.TempDir(), "grown.safetensors")
		if _, err := run.Grow(model, grown, resize.GrowOptions{Noise: 0.1, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		further = options("")
		further.Structure.Kind, further.Structure.File = "file", grown
		if _, err := run.Train(t.Context(), further); err != nil {
			t.Errorf("the class that a grown circuit was made with: %v", err)
		}
		for _, other := range []string{"3", "9", "kind"} {
			further = options(other)
			further.Structure.Kind, further.Structure.File, further.Discriminative = "file", model, 0
			if _, err := run.Train(t.Context(), further); !errors.Is(err, run.ErrOptions) {
				t.Errorf("class %s of a circuit whose class is variable %d: %v", other, variable, err)
			}
		}
	}
}

// TestDiscriminative trains for the class: from the start and after other training, on the CPU and on the emulated card,
// and resumed with the same bits.
func TestDiscriminative(t *testing.T) {
	path := flowers(t)
	first := classed(t, "hclt", path)
	if _, err := run.Train(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(first.Dir, run.ModelFile)
	further := func(t *testing.T) run.TrainOptions {
		o := classed(t, "file", path)
		o.Structure.File, o.Discriminative = model, 1
		return o
	}
	t.Run("resumed", func(t *testing.T) {
		resumes(t, func() run.TrainOptions { return further(t) })
		resumes(t, func() run.TrainOptions {
			o := classed(t, "hclt", path)
			o.Discriminative = 0.5
			return o
		})
	})
	t.Run("devices", func(t *testing.T) {
		want, wantValid := stepLLs(t, further(t), "cpu")
		got, valid := stepLLs(t, further(t), "emulator")
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= 1e-4) {
				t.Errorf("step %d: %v, on the CPU %v", i+1, got[i], want[i])
			}
		}
		if !(math.Abs(valid-wantValid) <= 1e-4) {
			t.Errorf("validation %v, on the CPU %v", valid, wantValid)
		}
		if !(want[len(want)-1] > want[0]) || wantValid > 0 {
			t.Errorf("log p(class | x) from %v to %v", want[0], wantValid)
		}
	})
}

// TestDiscriminativeThenNot resumes a run with another share of the class. Its best epoch so far is judged by the objective
// that holds now, so that epochs to come compete with it, and what is kept is the best by it. A change of the share alone, or to
// none, is a change that has to be allowed.
func TestDiscriminativeThenNot(t *testing.T) {
	path := flowers(t)
	for _, share := range []float64{0, 0.2} {
		o := classed(t, "hclt", path)
		o.Discriminative, o.EM.Patience, o.EM.Phases[0].Epochs = 1, 4, 3
		first, err := run.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		o.Discriminative, o.EM.Phases[0].Epochs, o.Resume = share, 12, true
		if _, err := run.Train(t.Context(), o); !errors.Is(err, em.ErrChanged) {
			t.Fatalf("share %v after 1: %v, want ErrChanged", share, err)
		}
		best, bestLL := 0, math.Inf(-1)
		o.AllowChanges = true
		o.EM.OnEpoch = func(m em.Metrics) {
			if m.ValidLL > bestLL {
				best, bestLL = m.Epoch, m.ValidLL
			}
		}
		res, err := run.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !(bestLL < first.ValidLL) || best <= 4 {
			t.Fatalf("share %v: the best of the epochs to come is %d with %v, and %v was there before: they show nothing", share, best, bestLL, first.ValidLL)
		}
		if res.BestEpoch != best || !(math.Abs(res.ValidLL-bestLL) <= 1e-9) {
			t.Errorf("share %v: epoch %d is kept, with %v; want %d with %v", share, res.BestEpoch, res.ValidLL, best, bestLL)
		}
	}
}

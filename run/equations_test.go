package run_test

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// equations returns the structure of a file of configs/equations.
func equations(name string, latents int, sizes map[string]int64) run.Structure {
	s := run.DefaultStructure()
	s.Kind, s.Latents = "equations", latents
	s.Equations = run.Equations{File: filepath.Join("..", "configs", "equations", name), Sizes: sizes}
	return s
}

// segments returns rows of segments, as a file and as numbers: a state lasts for three or four columns, and mostly shows
// its own symbol. The states follow each other in a ring, or skip one.
func segments(t *testing.T, seed uint64, rows, columns int) (run.Rows, [][]float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), "rows.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	var numbers [][]float64
	for range rows {
		row := make([]string, 0, columns+4)
		for s := rng.IntN(3); len(row) < columns; s = (s + 1 + rng.IntN(5)/4) % 3 {
			for range 3 + rng.IntN(2) {
				symbol := s
				if rng.IntN(10) == 0 {
					symbol = rng.IntN(3)
				}
				row = append(row, strconv.Itoa(symbol))
			}
		}
		if err := w.Write(row[:columns]); err != nil {
			t.Fatal(err)
		}
		line := make([]float64, columns)
		for k := range line {
			line[k], _ = strconv.ParseFloat(row[k], 64)
		}
		numbers = append(numbers, line)
	}
	w.Flush()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return run.Files(path), numbers
}

// trained trains on rows and returns the model. each is called after each epoch.
func trained(t *testing.T, s run.Structure, rows run.Rows, phase em.Phase, each func(em.Metrics)) *pce.Model {
	t.Helper()
	o := run.TrainOptions{
		Structure: s, Train: rows, Dir: t.TempDir(), Options: run.Options{Threads: 1}, Config: []byte("name: equations\n"),
		EM: em.Options{Phases: []em.Phase{phase}, OnEpoch: each},
	}
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), filepath.Join(o.Dir, run.ModelFile), run.Options{Rows: 512, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestEquationsOfHMM compares the equations of a hidden Markov model with the structure: their
// log-likelihoods from equal parameters, before and after three epochs.
func TestEquationsOfHMM(t *testing.T) {
	rows, all := segments(t, 3, 120, 12)
	for _, epochs := range []int{0, 3} {
		var lls [2][]float64
		for k := range lls {
			s := run.DefaultStructure()
			s.Kind, s.Latents = "hmm", 5
			if k == 1 {
				s = equations("hmm.red", 5, nil)
			}
			m := trained(t, s, rows, em.Phase{Rule: em.MiniBatch, Epochs: epochs, BatchRows: 32, Pseudocount: 0.1,
				StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.1}}}, nil)
			var err error
			if lls[k], err = m.LogLikelihood(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		for r, want := range lls[0] {
			if got := lls[1][r]; !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
				t.Fatalf("%d epochs, row %d: %v, structure hmm has %v", epochs, r, got, want)
			}
		}
	}
}

// TestDurations trains explicit durations on rows that have them. Full-batch EM never lowers
// the likelihood, the mass over all rows is 1, and rows that it has not seen are more
// probable than by a hidden Markov model of as many states.
func TestDurations(t *testing.T) {
	const columns = 12
	train, _ := segments(t, 1, 300, columns)
	_, rows := segments(t, 2, 300, columns)
	full := em.Phase{Rule: em.FullBatch, Epochs: 30}
	last := math.Inf(-1)
	never := func(m em.Metrics) {
		if m.TrainLL < last-1e-6*math.Abs(last) {
			t.Errorf("epoch %d: %v after %v", m.Epoch, m.TrainLL, last)
		}
		last = m.TrainLL
	}
	durations := trained(t, equations("hsmm.red", 3, map[string]int64{"D": 5}), train, full, never)
	last = math.Inf(-1)
	hmm := trained(t, equations("hmm.red", 3, nil), train, full, never)
	a, err := durations.LogLikelihood(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hmm.LogLikelihood(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	mean, square := 0.0, 0.0
	for r := range a {
		d := a[r] - b[r]
		mean, square = mean+d, square+d*d
	}
	n := float64(len(a))
	mean /= n
	if gain := mean / math.Sqrt((square/n-mean*mean)/n); !(gain >= 3) {
		t.Errorf("held out: %.3f nats per row more than the hmm, %.1f standard errors; want 3", mean, gain)
	} else {
		t.Logf("held out: %.3f nats per row more than the hmm, %.1f standard errors", mean, gain)
	}

	// Missing cells: the probability of a row with one is the sum over its values.
	part := append([]float64(nil), rows[0]...)
	sum := 0.0
	for c := range 3 {
		part[4] = float64(c)
		ll, err := durations.LogLikelihood(t.Context(), [][]float64{part})
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Exp(ll[0])
	}
	part[4] = math.NaN()
	ll, err := durations.LogLikelihood(t.Context(), [][]float64{part})
	if err != nil {
		t.Fatal(err)
	}
	if !(math.Abs(math.Exp(ll[0])-sum) <= 1e-5*sum) {
		t.Errorf("a missing cell: %v, want %v", math.Exp(ll[0]), sum)
	}

	// Samples have the durations: changes within a segment are rare.
	drawn, err := durations.Sample(t.Context(), 500, 1)
	if err != nil {
		t.Fatal(err)
	}
	rate := func(rows [][]float64) float64 {
		n := 0
		for _, row := range rows {
			for k := 1; k < len(row); k++ {
				if row[k] != row[k-1] {
					n++
				}
			}
		}
		return float64(n) / float64(len(rows)*(columns-1))
	}
	if got, want := rate(drawn), rate(rows); math.Abs(got-want) > 0.05 {
		t.Errorf("samples change at %.3f of the columns, rows at %.3f", got, want)
	}
}

// TestEquationsMass adds up all rows of six columns by the engine.
func TestEquationsMass(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("0,1,2,3,0,1\n1,1,1,1,1,1\n3,2,1,0,3,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := trained(t, equations("hsmm.red", 3, map[string]int64{"D": 3}), run.Files(path), em.Phase{Rule: em.FullBatch, Epochs: 1, Pseudocount: 0.5}, nil)
	states := make([][]float64, 1<<12)
	for i := range states {
		for v := range 6 {
			states[i] = append(states[i], float64(i>>(2*v)&3))
		}
	}
	lls, err := m.LogLikelihood(t.Context(), states)
	if err != nil {
		t.Fatal(err)
	}
	mass := 0.0
	for _, ll := range lls {
		mass += math.Exp(ll)
	}
	if !(math.Abs(mass-1) <= 1e-5) {
		t.Errorf("mass %v, want 1 ± 1e-5", mass)
	}
}

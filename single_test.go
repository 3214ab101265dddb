package pce_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestSingleUnits asks about circuits of single units: code on the CPU, whose log-likelihoods are those of float64, beside the
// tensors that answer the other queries with the same bits as where there is nothing else.
func TestSingleUnits(t *testing.T) {
	ctx := t.Context()
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 8))
			g := reference.Random(rng, reference.RandomOptions{MaxUnits: 1, Discrete: true})
			p, err := reference.Init(g, seed, nil)
			if err != nil {
				t.Fatal(err)
			}
			model := func(path string, o pce.Options) *pce.Model {
				t.Helper()
				m, err := pce.New(ctx, g, p.Read, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { m.Close() })
				if info, err := m.Info(); err != nil || info.Path != path {
					t.Fatalf("%+v: %+v, %v; want the path %s", o, info, err, path)
				}
				return m
			}
			m := model("code", pce.Options{Device: "cpu"})
			tensors := model("tensor", pce.Options{Device: "cpu", Path: "tensor"})
			model("tensor", pce.Options{Device: "cpu", Soft: true})
			model("tensor", pce.Options{Device: "emulator"})
			rows := reference.RandomRows(g, rng, 40, 0.4)
			ev, err := reference.New(g, p)
			if err != nil {
				t.Fatal(err)
			}
			lls, err := m.LogLikelihood(ctx, rows)
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				want, err := ev.LogLikelihood(row)
				if err != nil || lls[i] != want && !(math.Abs(lls[i]-want) <= 1e-12*max(1, math.Abs(want))) {
					t.Errorf("row %v: %v, want %v; %v", row, lls[i], want, err)
				}
			}
			path := filepath.Join(t.TempDir(), "saved.safetensors")
			saved := func(m *pce.Model) []byte {
				t.Helper()
				if err := m.Save(ctx, path); err != nil {
					t.Fatal(err)
				}
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return file
			}
			file := saved(tensors)
			if again := saved(m); !bytes.Equal(again, file) {
				t.Errorf("saved with %d bytes, and %d by tensors alone", len(again), len(file))
			}
			opened, err := pce.Open(ctx, path, pce.Options{Device: "cpu"})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if again := saved(opened); !bytes.Equal(again, file) {
				t.Errorf("opened and saved with %d bytes, want the %d of the file", len(again), len(file))
			}
			for what, ask := range map[string]func(m *pce.Model) ([][]float64, error){
				"classify":    func(m *pce.Model) ([][]float64, error) { return m.Classify(ctx, rows, 0) },
				"conditional": func(m *pce.Model) ([][]float64, error) { return m.Conditional(ctx, rows, 0) },
				"moments": func(m *pce.Model) ([][]float64, error) {
					means, variances, err := m.Moments(ctx, rows)
					return append(means, variances...), err
				},
				"sample": func(m *pce.Model) ([][]float64, error) { return m.Sample(ctx, 50, 3) },
			} {
				got, err := ask(m)
				if err != nil {
					t.Fatal(err)
				}
				want, err := ask(tensors)
				same := func(a, b []float64) bool {
					return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
				}
				if err != nil || !slices.EqualFunc(got, want, same) {
					t.Errorf("%s: not what tensors alone answer; %v", what, err)
				}
			}
		})
	}
}

// Package formattest holds what the tests of model formats share: Run, which every
// format must pass, models to write, their evaluation and their comparison.
//
// # Shapes and units
//
// Models are compared bit by bit, parameters as well.
//
// # Errors
//
// Failures are reported to the test that calls.
//
// # Source
//
// The package is pce's own.
package formattest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/reference"
)

// Everything is a small model, as a text, with everything that a model may have.
const Everything = `circuit 4
meta "schema" "{\"columns\":4}\n"
meta "" "ü"
a = input[2] x0 bernoulli 0.25 / 0.9
b = input[2] x1 categorical categories=3 0.2 0.3 0.5 / 0.1 0.1 0.8
c = input[2] x1 categorical categories=3 0.5 0.5 0 / 1 0 0
d = input[2] x2 gaussian min_sigma=0.01 0 1 / -2.5 0.5
e = input[2] x3 histogram edges=0,2,5 0.5 0.5 / 1 0
f = input[2] x0 bernoulli tied a
i = input[2] x3 indicator codes=5 value=4
p = product a b
q = product f c
m = sum[2] p q edges 1x2 (0,0) (1,0) (1,1) mask 11 01 10 : 0.25 0.75 / 0 0.5 / 0.5 0
m2 = sum[2] q p edges 1x2 (0,0) (1,0) (1,1) mask 11 01 10 tied m
h = sum[2] e i : 0.25 0.25 0.25 0.25 / 0 0 0 1
r = product m d h
r2 = product m2 d h
s = sum r r2 : 0.1 0.2 0.3 0.4
after = sum[3] s : 1 / 1 / 1
root s
`

// Diff says how two models differ, bit by bit in float32; "" means that they do
// not.
func Diff(a, b *format.Model) string {
	same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return diff(a, b, a.Params, b.Params, same)
}

// Diff64 is Diff with float64 parameters.
func Diff64(a, b *format.Model) string {
	same := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	return diff(a, b, a.Params64, b.Params64, same)
}

func diff[F float32 | float64](a, b *format.Model, readA, readB func(circuit.NodeID, []F) error, same func(x, y F) bool) string {
	if !reflect.DeepEqual(a.Graph, b.Graph) {
		return fmt.Sprintf("graphs %+v and %+v", a.Graph, b.Graph)
	}
	if !maps.Equal(a.Meta, b.Meta) {
		return fmt.Sprintf("strings %q and %q", a.Meta, b.Meta)
	}
	for i := range a.Graph.Nodes {
		id := circuit.NodeID(i)
		p := make([]F, a.Graph.NumParams(id))
		q := make([]F, len(p))
		errA, errB := readA(id, p), readB(id, q)
		if errors.Is(errA, format.ErrNoParams) && errors.Is(errB, format.ErrNoParams) {
			continue
		}
		if err := errors.Join(errA, errB); err != nil {
			return err.Error()
		}
		if !slices.EqualFunc(p, q, same) {
			return fmt.Sprintf("node %d: parameters %v and %v", i, p, q)
		}
	}
	return ""
}

// Random returns a random circuit with random float32 parameters.
func Random(t testing.TB, rng *rand.Rand) *format.Model {
	t.Helper()
	g := reference.Random(rng, reference.RandomOptions{})
	p, err := reference.Init(g, rng.Uint64(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return format.NewModel(g, map[string]string{"k": "v"}, format.Params{Float32: p.Read})
}

// Random64 returns a random circuit whose parameters have more digits than float32
// holds, as those of an import have.
func Random64(t testing.TB, rng *rand.Rand) *format.Model {
	t.Helper()
	g := reference.Random(rng, reference.RandomOptions{})
	p, err := reference.Init(g, rng.Uint64(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range p {
		for i := range values { // far within the tolerance of a row's sum
			values[i] *= 1 - 1e-7*rng.Float64()
		}
	}
	return format.NewModel(g, map[string]string{"k": "v"}, format.Params{Float64: p.Read64})
}

// Evaluator returns the float64 evaluation of a model.
func Evaluator(t testing.TB, m *format.Model) *reference.Evaluator {
	t.Helper()
	p, err := reference.Load64(m.Graph, m.Params64)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(m.Graph, p)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// Compress returns b as gzip.
func Compress(t testing.TB, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// FullDisk is a writer with space for Room bytes; it fails with ENOSPC beyond.
type FullDisk struct{ Room int }

// Write writes to the room that is left.
func (d *FullDisk) Write(p []byte) (int, error) {
	if len(p) > d.Room {
		return d.Room, syscall.ENOSPC
	}
	d.Room -= len(p)
	return len(p), nil
}

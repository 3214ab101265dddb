package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

// floatLine is what is printed for a model of continuous variables.
type floatLine struct {
	line
	Space   spn.Space `json:"space"`
	Missing float64   `json:"missing"`            // the share of cells
	Error   float64   `json:"max_relative_error"` // of log-likelihoods, against evaluation in float64
	Nats    float64   `json:"max_error_nats"`
	Bound   float64   `json:"bound"`           // of the error of those rows, the largest proven one, relative too
	Compile float64   `json:"compile_seconds"` // from the circuit to machine code
}

// floats times a model on rows of float32, whole ones and with half of the cells missing, in a space of values.
func floats(m *format.Model, file string, space spn.Space, set string, calls int, out io.Writer) error {
	vars := m.Graph.NumVars
	x, err := readFloats(file, vars)
	if err != nil {
		return err
	}
	n := len(x) / vars
	rng := rand.New(rand.NewPCG(3, 4))
	for _, share := range []float64{0, 0.5} {
		columns := make([]float32, len(x))
		for i := range x {
			if columns[i%vars*n+i/vars] = x[i]; rng.Float64() < share {
				columns[i%vars*n+i/vars] = float32(math.NaN())
			}
		}
		start := time.Now()
		p, err := spn.Compile(m.Graph, m.Params64, spn.Options{Space: space, Type: simt.F32, Joint: 16})
		if err != nil {
			return err
		}
		native, err := x86.Compile(p.Module, 1, set)
		if errors.Is(err, x86.ErrUnsupported) {
			return fmt.Errorf("%w: this benchmark is of machine code", err)
		}
		if err != nil {
			return err
		}
		took := time.Since(start).Seconds()
		native.Free()
		ll := make([]float32, n)
		l, err := measureInto(p, set, columns, ll, calls)
		if err != nil {
			return err
		}
		l.Input = "columns of float32"
		f := floatLine{line: l, Space: p.Space, Missing: share, Compile: took}
		if f.Error, f.Nats, f.Bound, err = compare(m, p, columns, ll); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// readFloats reads rows of float32, little-endian.
func readFloats(file string, vars int) ([]float32, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || len(b)%(4*vars) != 0 {
		return nil, fmt.Errorf("%s has %d bytes, want whole rows of %d numbers of 4", file, len(b), vars)
	}
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x, nil
}

// compare returns the largest relative error of log-likelihoods and the largest bound of one, of some thousand rows spread over all that the
// module computes for good.
func compare(m *format.Model, p *spn.Program, columns, ll []float32) (worst, nats, bound float64, err error) {
	const rows = 4000
	params, err := reference.Load64(m.Graph, m.Params64)
	if err != nil {
		return 0, 0, 0, err
	}
	ev, err := reference.New(m.Graph, params)
	if err != nil {
		return 0, 0, 0, err
	}
	n := len(ll)
	row := make([]float64, m.Graph.NumVars)
	for r := 0; r < n; r += max(1, n/rows) {
		for v := range row {
			row[v] = float64(columns[v*n+r])
		}
		want, err := ev.LogLikelihood(row)
		if err != nil {
			return 0, 0, 0, err
		}
		if x := float64(ll[r]); x == x && x >= p.Least {
			nats = max(nats, math.Abs(x-want))
			worst = max(worst, math.Abs(x-want)/math.Abs(want))
			bound = max(bound, p.Bound.Of(want)/math.Abs(want))
		}
	}
	return worst, nats, bound, nil
}

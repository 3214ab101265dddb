package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

// The network of SPNC's paper: Gaussians over the pixels of an image, and a root for each class.
const (
	ratVars    = 784
	ratUnits   = 46 // 340,000 edges
	ratClasses = 10
	ratThreads = 2
	ratChecked = 32 // rows whose error is printed
)

// ratLine is what is printed of the RAT-SPN.
type ratLine struct {
	Model        string  `json:"model"`
	Path         string  `json:"path"`
	Roots        int     `json:"roots"`
	Operations   int64   `json:"operations"` // edges of the circuit
	Instructions int     `json:"instructions"`
	Bytes        int     `json:"code_bytes"`
	Lower        float64 `json:"lower_seconds"`   // from the circuit to instructions
	Compile      float64 `json:"compile_seconds"` // from these to code
	Rows         int     `json:"rows"`
	Threads      int     `json:"threads"`
	Seconds      float64 `json:"seconds"` // with the class of each row, the likeliest
	Again        int     `json:"rows_again"`
	Worst        float64 `json:"largest_error_nats"` // of the rows that are checked
	Interpreter  float64 `json:"interpreter_seconds"`
	Speedup      float64 `json:"to_interpreter"`
}

// ratLibrary is what is printed of the same circuit through the library.
type ratLibrary struct {
	Model   string  `json:"model"`
	Path    string  `json:"path"`
	Query   string  `json:"query"`
	Rows    int     `json:"rows"`
	Threads int     `json:"threads"`
	Seconds float64 `json:"seconds"`
	ForAll  float64 `json:"seconds_for_10000_rows"`
}

// ratCircuit returns a random tensorised network with a root for each class, the last variable, and parameters by a seed.
func ratCircuit(units, classes int) (*circuit.Graph, circuit.ParamFunc, error) {
	o := structures.DefaultRATSPN()
	o.Vars, o.Latents, o.Seed = ratVars, units, 1
	o.Leaf = func(int) circuit.Leaf { return circuit.Gaussian{} }
	g, err := structures.RATSPN(o)
	if err != nil {
		return nil, nil, err
	}
	if err := structures.AddClass(g, ratVars, classes); err != nil {
		return nil, nil, err
	}
	return g, func(id circuit.NodeID, p []float32) error {
		rng := rand.New(rand.NewPCG(7, uint64(id)))
		n := &g.Nodes[id]
		switch {
		case n.Kind == circuit.Input:
			for i := 0; i < len(p); i += 2 {
				p[i], p[i+1] = float32(rng.NormFloat64()), float32(0.5+rng.Float64())
			}
		case n.Kind == circuit.Sum:
			for width := len(p) / n.Units; len(p) > 0; p = p[width:] {
				sum := 0.0
				for i := range p[:width] {
					p[i] = float32(rng.ExpFloat64())
					sum += float64(p[i])
				}
				for i := range p[:width] {
					p[i] = float32(float64(p[i]) / sum)
				}
			}
		}
		return nil
	}, nil
}

// rat times a seeded RAT-SPN with a root for each class: code for a set of instructions of one root and of all, and the
// same circuit through the library.
func rat(set string, rows, calls int, out io.Writer) error {
	if rows < ratThreads {
		return fmt.Errorf("-rat is %d rows, want at least %d", rows, ratThreads)
	}
	rng := rand.New(rand.NewPCG(1, 3))
	x := make([]float32, rows*(ratVars+1)) // [variable][row]
	for i := range x[:rows*ratVars] {
		x[i] = float32(rng.NormFloat64())
	}
	for _, classes := range []int{1, ratClasses} {
		runtime.GC() // of what came before
		g, params, err := ratCircuit(ratUnits, classes)
		if err != nil {
			return err
		}
		l, err := ratCode(g, params, set, x, rows, calls)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(l); err != nil {
			return err
		}
	}
	return ratLibraries(x, rows, out)
}

// ratCode times the code of a circuit's roots.
func ratCode(g *circuit.Graph, params circuit.ParamFunc, set string, x []float32, rows, calls int) (*ratLine, error) {
	count := circuit.Count(g)
	l := &ratLine{Model: fmt.Sprintf("RAT-SPN of %d units", ratUnits), Rows: rows, Threads: ratThreads, Operations: count.Edges()}
	start := time.Now()
	p, err := ratModule(g, params)
	if err != nil {
		return nil, err
	}
	l.Lower, l.Instructions, l.Roots = time.Since(start).Seconds(), p.Info.Instructions, p.Module.Outputs[0].Width
	start = time.Now()
	native, err := x86.Compile(p.Module, ratThreads, set)
	if err != nil {
		return nil, err
	}
	defer native.Free()
	l.Compile, l.Bytes, l.Path = time.Since(start).Seconds(), native.CodeBytes(), native.Path()
	ll, best := make([]float32, rows*l.Roots), make([]int, rows)
	run := func(code runner, n int) (float64, error) {
		start := time.Now()
		errs := make([]error, ratThreads)
		var wait sync.WaitGroup
		for k := range ratThreads {
			wait.Go(func() {
				lo, hi := k*n/ratThreads, (k+1)*n/ratThreads
				errs[k] = code.Run(context.Background(), lo, hi, []any{x}, []any{ll})
				for r := lo; r < hi; r++ {
					best[r] = likeliest(ll, rows, l.Roots, r)
				}
			})
		}
		wait.Wait()
		return time.Since(start).Seconds(), errors.Join(errs...)
	}
	times := make([]float64, calls)
	for i := range times {
		if times[i], err = run(native, rows); err != nil {
			return nil, err
		}
	}
	l.Seconds = median(times)
	own := make([]float64, l.Roots)
	for r := range rows {
		if ll[r] != ll[r] {
			l.Again++
		}
		if r%max(1, rows/ratChecked) == 0 && ll[r] == ll[r] {
			p.Again(x[r:], rows, 1, own)
			for k, want := range own {
				l.Worst = max(l.Worst, math.Abs(float64(ll[k*rows+r])-want))
			}
		}
	}
	interpreter, err := simt.Compile(p.Module, ratThreads)
	if err != nil {
		return nil, err
	}
	some := min(rows, 1024)
	seconds, err := run(interpreter, some)
	l.Interpreter = seconds * float64(rows) / float64(some)
	l.Speedup = l.Interpreter / l.Seconds
	return l, err
}

// likeliest returns the root with the largest log-likelihood of a row, the first of several.
func likeliest(ll []float32, rows, roots, r int) (best int) {
	for k := 1; k < roots; k++ {
		if ll[k*rows+r] > ll[best*rows+r] {
			best = k
		}
	}
	return best
}

// ratLibraries times classes by code and log-likelihoods by both paths through the library. The tensor path gets fewer rows.
func ratLibraries(x []float32, rows int, out io.Writer) (err error) {
	g, params, err := ratCircuit(ratUnits, ratClasses)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rat")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "model.safetensors")
	made, err := pce.New(ctx, g, params, pce.Options{Threads: ratThreads})
	if err != nil {
		return err
	}
	if err := errors.Join(made.Save(ctx, path), made.Close()); err != nil {
		return err
	}
	list := make([][]float64, rows)
	for r := range list {
		list[r] = make([]float64, ratVars+1)
		for v := range list[r] {
			list[r][v] = float64(x[v*rows+r])
		}
	}
	code := pce.Options{Threads: ratThreads, Path: "code"}
	code.Numbers.Type = simt.F32.String()
	for _, c := range []struct {
		query string
		opts  pce.Options
		rows  int
	}{{"classify", code, rows}, {"loglik", code, rows}, {"loglik", pce.Options{Threads: ratThreads, Path: "tensor"}, min(rows, 2000)}} {
		m, err := pce.Open(ctx, path, c.opts)
		if err != nil {
			return err
		}
		ask := func() (err error) {
			if c.query == "classify" {
				_, err = m.Classify(ctx, list[:c.rows], ratVars)
			} else {
				_, err = m.LogLikelihood(ctx, list[:c.rows])
			}
			return err
		}
		if err := ask(); err != nil { // with the time to compile
			return errors.Join(err, m.Close())
		}
		times := make([]float64, 5)
		for i := range times {
			start := time.Now()
			err = errors.Join(err, ask())
			times[i] = time.Since(start).Seconds()
		}
		if err = errors.Join(err, m.Close()); err != nil {
			return err
		}
		seconds := median(times)
		name := string(c.opts.Path)
		l := ratLibrary{fmt.Sprintf("RAT-SPN of %d units", ratUnits), name, c.query, c.rows, ratThreads, seconds, seconds * 1e4 / float64(c.rows)}
		if err := json.NewEncoder(out).Encode(l); err != nil {
			return err
		}
	}
	return nil
}

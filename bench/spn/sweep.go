package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

// partSizes are the most instructions of a part that a sweep tries.
var partSizes = []int{1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000}

// point is what a sweep prints for a way to compile a circuit.
type point struct {
	Path         string  `json:"path"` // interpreter, avx2 or avx512
	Input        string  `json:"input"`
	Loads        string  `json:"loads,omitempty"` // shuffles or gathers, of inputs and tables
	Joint        int     `json:"joint"`
	Instructions int     `json:"instructions"`
	PartSize     int     `json:"part_size,omitempty"`
	Parts        int     `json:"parts,omitempty"`
	First        int     `json:"crossings_before,omitempty"`
	Crossings    int     `json:"crossings,omitempty"`
	Lower        float64 `json:"lower_seconds"`   // from the circuit to instructions
	Compile      float64 `json:"compile_seconds"` // from these to code
	Bytes        int     `json:"code_bytes,omitempty"`
	RowsPerUs    float64 `json:"rows_per_us"`
}

// sweep compiles a circuit in float32 in every way, and runs rows of cells that are 0 or 1.
func sweep(m *format.Model, rows, calls int, out io.Writer) error {
	vars := m.Graph.NumVars
	rng := rand.New(rand.NewPCG(1, 2))
	columns, byRow, ll := make([]float32, rows*vars), make([]byte, rows*vars), make([]float32, rows)
	for i := range byRow {
		byRow[i] = byte(rng.IntN(2))
		columns[i%vars*rows+i/vars] = float32(byRow[i])
	}
	for _, in := range []struct {
		name  string
		cells any
		bytes bool
	}{{"columns of float32", columns, false}, {"rows of bytes", byRow, true}} {
		for _, joint := range []int{0, 16} {
			start := time.Now()
			p, err := spn.Compile(m.Graph, m.Params64, spn.Options{Space: spn.Linear, Type: simt.F32, Joint: joint, Bytes: in.bytes})
			if in.bytes && errors.Is(err, spn.ErrOptions) {
				return nil // cells that bytes do not hold
			}
			if err != nil {
				return err
			}
			base := point{Input: in.name, Joint: joint, Instructions: len(p.Module.Body), Lower: time.Since(start).Seconds()}
			run := func(c point, load func() (runner, error)) error {
				if err := c.time(load, calls, rows, in.cells, ll); err != nil {
					return err
				}
				return json.NewEncoder(out).Encode(c)
			}
			interpreter := base
			interpreter.Path = "interpreter"
			if err := run(interpreter, func() (runner, error) { return simt.Compile(p.Module, 1) }); err != nil {
				return err
			}
			for _, set := range slices.Compact([]string{x86.Allowed("avx2"), x86.Path()}) {
				if set == "" {
					return fmt.Errorf("%w: this benchmark is of machine code", x86.ErrUnsupported)
				}
				for i, part := range partSizes {
					if i > 0 && len(p.Module.Body) <= partSizes[i-1] {
						break // one part already
					}
					for _, gathers := range []bool{false, true} {
						if gathers && part != x86.DefaultPart && len(p.Module.Body) > part {
							continue
						}
						c := base
						c.Path, c.PartSize, c.Loads = set, part, map[bool]string{false: "shuffles", true: "gathers"}[gathers]
						o := x86.Options{Part: part, Gathers: gathers}
						if err := run(c, func() (runner, error) { return x86.CompileWith(p.Module, 1, set, o) }); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

// time measures how long code takes to load, and to run.
func (c *point) time(load func() (runner, error), calls, rows int, cells any, ll []float32) error {
	start := time.Now()
	code, err := load()
	if err != nil {
		return err
	}
	c.Compile = time.Since(start).Seconds()
	if native, ok := code.(*x86.Program); ok {
		defer native.Free()
		c.Parts, c.First, c.Crossings = native.Parts()
		c.Bytes = native.CodeBytes()
	}
	times := make([]time.Duration, calls)
	for i := range times {
		start := time.Now()
		if err := code.Run(context.Background(), 0, rows, []any{cells}, []any{ll}); err != nil {
			return err
		}
		times[i] = time.Since(start)
	}
	c.RowsPerUs = float64(rows) / float64(median(times).Nanoseconds()) * 1e3
	return nil
}

// runner is code or an interpreter.
type runner interface {
	Run(ctx context.Context, lo, hi int, in, out []any) error
}

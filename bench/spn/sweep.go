package main

import (
	"context"
	"encoding/json"
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
	x, ll := make([]float32, rows*vars), make([]float32, rows)
	for i := range x {
		x[i] = float32(rng.IntN(2))
	}
	for _, joint := range []int{0, 16} {
		start := time.Now()
		p, err := spn.Compile(m.Graph, m.Params64, spn.Options{Space: spn.Linear, Type: simt.F32, Joint: joint})
		if err != nil {
			return err
		}
		base := point{Joint: joint, Instructions: len(p.Module.Body), Lower: time.Since(start).Seconds()}
		run := func(c point, load func() (runner, error)) error {
			start := time.Now()
			code, err := load()
			if err != nil {
				return err
			}
			c.Compile = time.Since(start).Seconds()
			if native, ok := code.(*x86.Program); ok {
				defer native.Free()
				parts := native.Parts()
				c.Parts, c.First, c.Crossings, c.Bytes = len(parts.Modules), parts.First, parts.Crossings, native.CodeBytes()
			}
			times := make([]time.Duration, calls)
			for i := range times {
				start := time.Now()
				if err := code.Run(context.Background(), 0, rows, []any{x}, []any{ll}); err != nil {
					return err
				}
				times[i] = time.Since(start)
			}
			slices.Sort(times)
			c.RowsPerUs = float64(rows) / float64(times[len(times)/2].Nanoseconds()) * 1e3
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
			for i, limit := range partSizes {
				if i > 0 && len(p.Module.Body) <= partSizes[i-1] {
					break // one part already
				}
				c := base
				c.Path, c.PartSize = set, limit
				if err := run(c, func() (runner, error) { return x86.CompileParts(p.Module, 1, set, limit) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// runner is code or an interpreter.
type runner interface {
	Run(ctx context.Context, lo, hi int, in, out []any) error
}

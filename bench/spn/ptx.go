package main

import (
	"os"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
)

// ratModule compiles a circuit whose parameters are float32, in values of float32.
func ratModule(g *circuit.Graph, params circuit.ParamFunc) (*spn.Program, error) {
	wide := func(id circuit.NodeID, p []float64) error {
		narrow := make([]float32, len(p))
		err := params(id, narrow)
		for i, v := range narrow {
			p[i] = float64(v)
		}
		return err
	}
	return spn.CompileClasses(g, wide, ratVars, spn.Options{Type: simt.F32})
}

// ratText writes the kernels of the RAT-SPN with ten roots to a file, for cards of a major compute capability. Without loops
// every weight is part of an instruction.
func ratText(file string, major int, loops bool) error {
	g, params, err := ratCircuit(ratUnits, ratClasses)
	if err != nil {
		return err
	}
	p, err := ratModule(g, params)
	if err != nil {
		return err
	}
	o := scalar.Options{Major: major}
	if !loops {
		o.Roll = scalar.Never
	}
	low, err := scalar.Lower(p.Module, o)
	if err != nil {
		return err
	}
	return os.WriteFile(file, low.Text.Text(), 0o600)
}

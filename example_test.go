package pce_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/em"
)

// rain is a circuit made by hand: the first variable is rain, the second how
// many umbrellas are seen.
const rain = `circuit 2
wet  = input[2] x0 bernoulli 0.9 / 0.1
seen = input[2] x1 categorical categories=3 0.1 0.3 0.6 / 0.7 0.2 0.1
both = product wet seen
rains = sum both : 0.3 0.7
`

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "pce")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rain.txt")
	if err := os.WriteFile(path, []byte(rain), 0o644); err != nil {
		panic(err)
	}
	ctx := context.Background()
	m, err := pce.Open(ctx, path, pce.Options{})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	missing := math.NaN()
	ll, err := m.LogLikelihood(ctx, [][]float64{{1, 2}, {missing, 2}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("P(two umbrellas) = %.2f\n", math.Exp(ll[1]))
	fmt.Printf("P(rain | two umbrellas) = %.2f\n", math.Exp(ll[0]-ll[1]))
	// Output:
	// P(two umbrellas) = 0.25
	// P(rain | two umbrellas) = 0.68
}

func ExampleModel_SampleGiven() {
	ctx := context.Background()
	leaf := circuit.Bernoulli{}
	g := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: leaf},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: leaf},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	always := func(id circuit.NodeID, p []float32) error { // both variables are always 1
		p[len(p)-1] = 1
		return nil
	}
	m, err := pce.New(ctx, g, always, pce.Options{})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	rows, err := m.SampleGiven(ctx, [][]float64{{1, math.NaN()}}, 42)
	fmt.Println(rows, err)
	// Output: [[1 1]] <nil>
}

func ExampleTrain() {
	dir, err := os.MkdirTemp("", "pce")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s := pce.DefaultStructure()
	s.Latents = 4
	r, err := pce.Train(context.Background(), pce.TrainOptions{
		Structure: s,
		Train:     pce.Files("builtin:random?rows=1000&vars=8&categories=2"),
		EM: em.Options{Phases: []em.Phase{
			{Rule: em.FullBatch, Epochs: 10, Pseudocount: 1},
		}},
		Dir: filepath.Join(dir, "run"),
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d epochs, %.1f bits a variable\n", r.Epochs, pce.BitsPerDimension(r.TrainLL, r.Variables))
	// Output: 10 epochs, 1.0 bits a variable
}

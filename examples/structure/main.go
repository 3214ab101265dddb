// Command structure trains a circuit made by hand: a mixture of 10 independent
// models, one node for each variable.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/digits"
)

func main() {
	dataset.RegisterBuiltin("digits", digits.Builtin)
	const vars, parts = 784, 10
	g := &circuit.Graph{NumVars: vars}
	product := circuit.Node{Kind: circuit.Product, Units: parts}
	for v := range vars {
		product.Children = append(product.Children, circuit.NodeID(v))
		g.Nodes = append(g.Nodes, circuit.Node{
			Kind: circuit.Input, Units: parts, Var: v, Leaf: circuit.Categorical{Categories: 256},
		})
	}
	sum := circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{vars}}
	g.Nodes = append(g.Nodes, product, sum)
	g.Root = vars + 1
	r, err := pce.Train(context.Background(), pce.TrainOptions{
		Structure: pce.Structure{Graph: g},
		Train:     pce.Files("builtin:digits/train"),
		Test:      pce.Files("builtin:digits/test"),
		Dir:       "runs/mixture",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("test: %.3f bits per dimension\n", pce.BitsPerDimension(r.TestLL, r.Variables))
}

// Command train trains a hidden Chow-Liu tree on the builtin digits.
//
// Run it with go run ./examples/train; it writes runs/example.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/digits"
	"github.com/pce-engine/pce/em"
)

func main() {
	dataset.RegisterBuiltin("digits", digits.Builtin)
	s := pce.DefaultStructure()
	s.Latents = 16
	r, err := pce.Train(context.Background(), pce.TrainOptions{
		Structure: s,
		Train:     pce.Files("builtin:digits/train"),
		Test:      pce.Files("builtin:digits/test"),
		EM: em.Options{
			Phases: []em.Phase{{
				Rule: em.MiniBatch, Epochs: 5, BatchRows: 512, Pseudocount: 0.1,
				StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.05}},
			}},
			OnEpoch: func(m em.Metrics) { fmt.Printf("epoch %d: %.1f nats\n", m.Epoch, m.TrainLL) },
		},
		Dir:     "runs/example",
		Samples: 100,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("test: %.3f bits per dimension\n", pce.BitsPerDimension(r.TestLL, r.Variables))
}

// Command query asks a model how likely rows are and completes one of them.
//
// Run it with go run ./examples/query, after go run ./examples/train.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/pce-engine/pce"
)

func main() {
	ctx := context.Background()
	m, err := pce.Open(ctx, "runs/example/model.safetensors", pce.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	rows, err := m.Sample(ctx, 2, 42)
	if err != nil {
		log.Fatal(err)
	}
	half := rows[1]
	for v := range len(half) / 2 {
		half[v] = math.NaN() // the upper half of the image is missing
	}
	ll, err := m.LogLikelihood(ctx, rows)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("an image: %.1f nats; the lower half of one: %.1f nats\n", ll[0], ll[1])
	if rows, err = m.SampleGiven(ctx, rows, 7); err != nil {
		log.Fatal(err)
	}
	fmt.Println("its completion:", rows[1])
}

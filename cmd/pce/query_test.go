package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// answer runs a command that must succeed and returns the numbers that it
// prints, one of each line.
func answer(t *testing.T, input string, args ...string) []float64 {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), args, nil, strings.NewReader(input), &out, &errs); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, &errs)
	}
	var all []float64
	for line := range strings.Lines(out.String()) {
		x, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			t.Fatalf("%v printed %q", args, line)
		}
		all = append(all, x)
	}
	return all
}

// TestMarginalByName asks a trained model about some of its columns, by standard
// input, and wants the sum over the others. The file of the training marks missing
// cells in its own way, which the model keeps.
func TestMarginalByName(t *testing.T) {
	t.Chdir(t.TempDir())
	cities, pets := []string{"Köln", "Paris", "Rom"}, []string{"cat", "dog"}
	rng := rand.New(rand.NewPCG(1, 2))
	var rows strings.Builder
	rows.WriteString("pet;age;city\n")
	for range 400 {
		c := rng.IntN(len(cities))
		age := fmt.Sprint(38 + rng.IntN(3) + c)
		if rng.IntN(8) == 0 {
			age = "unknown"
		}
		fmt.Fprintf(&rows, "%s;%s;%s\n", pets[rng.IntN(2)*c/2], age, cities[c])
	}
	if err := os.WriteFile("train.csv", []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "data.missing=unknown", "--set", "model.latents=4", "--set", "train.epochs=3", "--set", "train.batch_size=64", "--out", "run", "--threads", "1")
	query := []string{"query", "loglik", "--model", "run/model.safetensors", "--data", "-"}

	got := answer(t, "age,city\n40,Paris\nunknown,Paris\nNA,Rom\n", query...)
	var full strings.Builder
	full.WriteString("city,pet,age\n")
	for _, city := range []string{"Paris", "Rom"} {
		for _, pet := range pets {
			for age := range 43 {
				fmt.Fprintf(&full, "%s,%s,%d\n", city, pet, age)
			}
		}
	}
	joint := answer(t, full.String(), query...)
	want := make([]float64, 3)
	for i, ll := range joint {
		p := math.Exp(ll)
		switch {
		case i >= 2*43:
			want[2] += p
		default:
			want[1] += p
			if i%43 == 40 {
				want[0] += p
			}
		}
	}
	for i := range want {
		if !(math.Abs(got[i]-math.Log(want[i])) < 1e-5) {
			t.Errorf("row %d: %v, the sum over the other columns gives %v", i, got[i], math.Log(want[i]))
		}
	}

	var out, errs bytes.Buffer
	if code := Run(t.Context(), query, nil, strings.NewReader("age,town\n40,Paris\n"), &out, &errs); code != exitData || !strings.Contains(errs.String(), `-:1:2: the header has "town"`) {
		t.Errorf("an unknown column: exit %d: %s", code, &errs)
	}
}

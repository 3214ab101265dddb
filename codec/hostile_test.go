package codec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
)

// TestCodecHostile decodes streams of random bytes whose checksums fit, in every framing.
func TestCodecHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of damaged streams; without -short")
	}
	m := exactModel(t)
	rng := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		stream := make([]byte, rng.IntN(60))
		for i := range stream {
			stream[i] = byte(rng.Uint32())
		}
		for _, facts := range [][]byte{{factLines, 0, 0}, {factLines, quoteAll, flagColumns, 1, 3}, {factFixed, 2, 0}, {factFixed, 8, 1}, {factFixed, 3, 0}, {factChars}, {factLines, 0xff, 9}, nil} {
			file := forge(m, facts, 1+rng.IntN(9), stream)
			checkHostile(t, m, file)
			if _, err := m.Decompress(context.Background(), new(bytes.Buffer), bytes.NewReader(file)); !errors.Is(err, ErrFile) {
				t.Fatalf("facts %v, stream %x: %v, want a file that is refused by the checksum of its content or before", facts, stream, err)
			}
		}
	}
}

// TestCodecShortFacts refuses a file whose header says how it is written and is cut behind that, and an array of a model of
// characters, although the checksum of the header fits.
func TestCodecShortFacts(t *testing.T) {
	m := exactModel(t)
	for _, facts := range [][]byte{nil, {factFixed}, {factFixed, 2}, {factFixed, 2, 2}, {factLines}, {factLines, 0}, {factChars}} {
		if _, err := m.Decompress(context.Background(), new(bytes.Buffer), bytes.NewReader(forge(m, facts, 1, nil))); !errors.Is(err, ErrFile) && !errors.Is(err, ErrModel) {
			t.Errorf("facts %v: %v", facts, err)
		}
	}
	if f, err := readFraming(&dataset.Schema{Unit: dataset.Char}, []byte{factFixed, 2, 0}); !errors.Is(err, ErrFile) {
		t.Errorf("an array of characters: %v, %v", f, err)
	}
}

// TestCodecImpossible wants a cell without any probability to leave those to come as they
// were, and to come back.
func TestCodecImpossible(t *testing.T) {
	in := func(v int, l circuit.Leaf) circuit.Node {
		return circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: l}
	}
	g := &circuit.Graph{NumVars: 2, Root: 6, Nodes: []circuit.Node{
		in(0, circuit.Indicator{Domain: 3, Value: 0}), in(1, circuit.Bernoulli{}),
		in(0, circuit.Indicator{Domain: 3, Value: 2}), in(1, circuit.Bernoulli{}),
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}}, {Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{2, 3}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{4, 5}},
	}}
	params := func(id circuit.NodeID, dst []float32) error {
		copy(dst, map[circuit.NodeID][]float32{1: {0.25, 0.75}, 3: {0.75, 0.25}, 6: {0.9, 0.1}}[id])
		return nil
	}
	m, err := New(g, params, reference.Schema(g))
	if err != nil {
		t.Fatal(err)
	}
	_, stats := roundTrip(t, m, bytes.Repeat([]byte("1,1\n1,0\n0,1\n"), 100))
	// A row 1,x costs 32 bits and those of x, whose probabilities are 0.7 and 0.3.
	if want := 100*(64-math.Log2(0.7)-math.Log2(0.3)-math.Log2(0.9)-math.Log2(0.75))/8 + 45; !(math.Abs(float64(stats.Stored)-want) <= 8) {
		t.Errorf("%d bytes, want about %v", stats.Stored, want)
	}
}

// bitCount is a cellCoder that adds up what cells cost.
type bitCount struct{ bits float64 }

func (b *bitCount) cell(d *distribution, code int) int {
	lo, hi := d.below(code), d.below(code+1)
	d.possible = lo < hi
	b.bits -= math.Log2((hi - lo) / d.all)
	return code
}

// TestCodecLong compares the bits of rows of many variables, whose probabilities leave
// the range of a mantissa, with the reference.
func TestCodecLong(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m, ev, g := testModel(t, seed, reference.RandomOptions{Vars: 120, MaxCodes: 40, MaxUnits: 4, MaxNodes: 500, Positive: true})
			rows := sampleRows(t, ev, g, rand.New(rand.NewPCG(seed, 5)), 5, 0)
			var got bitCount
			newState(m).group(&got, codesOf(rows), len(rows))
			want := 0.0
			for _, row := range rows {
				ll, err := ev.LogLikelihood(row)
				if err != nil {
					t.Fatal(err)
				}
				want -= ll / math.Ln2
			}
			if !(want > 5*100) || !(math.Abs(got.bits-want) <= 1e-3*want) {
				t.Errorf("%v bits, want %v, which leave the range", got.bits, want)
			}
		})
	}
}

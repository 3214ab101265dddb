package codec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// independent makes a model of independent Bernoulli variables with one probability.
func independent(t *testing.T, vars int, p float32) *Model {
	t.Helper()
	g := &circuit.Graph{NumVars: vars, Root: circuit.NodeID(vars)}
	top := circuit.Node{Kind: circuit.Product, Units: 1}
	for v := range vars {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Bernoulli{}})
		top.Children = append(top.Children, circuit.NodeID(v))
	}
	g.Nodes = append(g.Nodes, top)
	s := reference.Schema(g)
	for v := range s.Columns {
		s.Columns[v].Name = fmt.Sprint("c", v)
	}
	m, err := New(g, func(_ circuit.NodeID, dst []float32) error {
		dst[0], dst[1] = 1-p, p
		return nil
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCodecSize wants files to be as small as docs/compression.md says: beside the bits of the
// rows, some bytes for the file, for each block, and for each column that is not in its place.
func TestCodecSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, tc := range []struct {
		vars, rows int
		p          float64
	}{
		{1, 1, 0.5}, {1, blockRecords, 1 - 1e-6}, {1, blockRecords + 1, 0.5}, {2, 3 * blockRecords, 1 - 1e-6}, {40, 3, 0.5}, {40, 30000, 1 - 1e-5}, {300, 4, 0.5},
	} {
		if testing.Short() && tc.vars*tc.rows > 1<<20 {
			continue
		}
		m := independent(t, tc.vars, float32(tc.p))
		names := make([]string, tc.vars)
		for v := range names {
			names[v] = m.schema.Columns[v].Name
		}
		blocks := (tc.rows-1)/min(blockRecords, blockCells/tc.vars) + 1
		size := func(names []string, more int) {
			b := []byte(strings.Join(names, ",") + "\n")
			bits := 0.0
			for range tc.rows {
				for k := range names {
					if b = append(b, "1,"...); rng.Float64() < tc.p {
						bits -= math.Log2(tc.p)
					} else {
						b[len(b)-2] = '0'
						bits -= math.Log2(1 - tc.p)
					}
					if k == len(names)-1 {
						b[len(b)-1] = '\n'
					}
				}
			}
			_, stats := roundTrip(t, m, b)
			if most := 1.001*bits/8 + float64(40+16*blocks+more); stats.Rows != int64(tc.rows) || !(float64(stats.Stored) <= most) {
				t.Errorf("%+v, %d columns: %d rows in %d bytes, want %d in at most %.1f, of which the rows have %.1f", tc, len(names), stats.Rows, stats.Stored, tc.rows, most, bits/8)
			}
		}
		size(names, 0)
		slices.Reverse(names) // half of the columns, the last one first
		names = names[:(tc.vars+1)/2]
		size(names, 2+2*len(names))
	}
}

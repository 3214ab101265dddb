package compile

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/layers"
)

var blockSizes = []int{0, 1, 2, 4, 8, 16, 32}

func mustCompile(t testing.TB, g *circuit.Graph, o Options) *Result {
	t.Helper()
	r, err := Compile(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestParamMapRoundTrip packs the parameters of random circuits and unpacks
// them: every bit comes back, and no owner writes on another's floats.
func TestParamMapRoundTrip(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 11))
		g := reference.Random(rng, reference.RandomOptions{})
		params, err := reference.Init(g, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		narrow := params.Float32()
		for _, size := range blockSizes {
			o := DefaultOptions()
			o.BlockSize = size
			r := mustCompile(t, g, o)
			buf := make([]float32, r.Program.NumParams)
			for i := range buf {
				buf[i] = float32(math.NaN())
			}
			for i := range r.Map.Len() {
				offset, n := r.Map.Region(i)
				id := r.Map.Node(i)
				region := buf[offset : offset+int64(n)]
				for _, x := range region {
					if x == x {
						t.Fatalf("seed %d, blocks of %d: the region of node %d holds floats of another", seed, size, id)
					}
				}
				if err := r.Map.Pack(i, narrow[id], region); err != nil {
					t.Fatal(err)
				}
			}
			owners := 0
			for i := range r.Map.Len() {
				offset, n := r.Map.Region(i)
				id := r.Map.Node(i)
				owners += g.NumParams(id)
				got := make([]float32, g.NumParams(id))
				if err := r.Map.Unpack(i, buf[offset:offset+int64(n)], got); err != nil {
					t.Fatal(err)
				}
				for k := range got {
					if math.Float32bits(got[k]) != math.Float32bits(narrow[id][k]) {
						t.Fatalf("seed %d, blocks of %d: parameter %d of node %d is %v, want %v", seed, size, k, id, got[k], narrow[id][k])
					}
				}
			}
			for i, x := range buf[r.Program.ParamOffset(1):] {
				if !(x >= -math.MaxFloat32 && x <= math.MaxFloat32) {
					t.Fatalf("seed %d, blocks of %d: float %d of the buffer belongs to nobody", seed, size, i)
				}
			}
			checkWeights(t, r, buf)
		}
	}
}

// checkWeights checks what kernels rely on: padding has no weight, units that
// exist sum to 1, and a missing cell reads 1.
func checkWeights(t *testing.T, r *Result, buf []float32) {
	t.Helper()
	p, size := r.Program, r.Program.BlockSize
	sums := make(map[int32]float64) // by unit of node space
	for l := range p.Layers {
		for _, q := range p.Layers[l].Sums {
			for i, n := range q.NodeIDs {
				for k := i * q.MaxChildren; k < (i+1)*q.MaxChildren && q.ChildIDs[k] > 0; k++ {
					at := p.ParamOffset(q.ParamIDs[k])
					for j, w := range buf[at : at+int64(size*size)] {
						sums[n*int32(size)+int32(j/size)] += float64(w)
					}
				}
			}
		}
	}
	for i := range p.Sums {
		v := &p.Vectors[p.Sums[i].Vector]
		for u := range int32(p.Width(p.Sums[i].Vector)) {
			want := 0.0
			if u < v.Units {
				want = 1
			}
			// Weights are rounded to float32, half an ulp each.
			if got := sums[v.First*int32(size)+u]; !(math.Abs(got-want) <= 1e-5) {
				t.Fatalf("sum %d unit %d of %d: weights add up to %v, want %v", i, u, v.Units, got, want)
			}
		}
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if in.Table < 0 {
			continue
		}
		width := p.Width(in.Vector)
		for u := range width {
			want, mass := 0.0, 0.0
			if u < int(p.Vectors[in.Vector].Units) {
				want = 1
			}
			for c := range int(in.Codes) {
				cell, e := int64(c*width+u), 0.0
				if in.Exps >= 0 {
					e = float64(buf[in.Exps+cell])
				}
				mass += math.Ldexp(float64(buf[in.Table+cell]), int(e))
			}
			if got := float64(buf[in.Table+int64(int(in.Codes)*width+u)]); got != want || !(math.Abs(mass-want) <= 1e-5) {
				t.Fatalf("input %d unit %d: a missing cell reads %v and the codes add up to %v, want %v", i, u, got, mass, want)
			}
		}
	}
}

// TestParamMapLengths sees slices of the wrong length refused.
func TestParamMapLengths(t *testing.T) {
	g := reference.Random(rand.New(rand.NewPCG(1, 2)), reference.RandomOptions{})
	r := mustCompile(t, g, DefaultOptions())
	for i := range r.Map.Len() {
		_, n := r.Map.Region(i)
		region := make([]float32, n)
		wrong := make([]float32, g.NumParams(r.Map.Node(i))+1)
		if err := r.Map.Pack(i, wrong, region); !errors.Is(err, circuit.ErrGraph) {
			t.Errorf("Pack of %d parameters: %v", len(wrong), err)
		}
		if err := r.Map.Unpack(i, region, wrong); !errors.Is(err, circuit.ErrGraph) {
			t.Errorf("Unpack of %d parameters: %v", len(wrong), err)
		}
	}
}

// TestTiedSharesOnePlace checks that tied nodes read the floats of their owner.
func TestTiedSharesOnePlace(t *testing.T) {
	seen := 0
	for seed := range uint64(60) {
		g := reference.Random(rand.New(rand.NewPCG(seed, 12)), reference.RandomOptions{})
		p := mustCompile(t, g, DefaultOptions()).Program
		for i := range p.Sums {
			if o := &p.Sums[p.Sums[i].Owner]; p.Sums[i].Param != o.Param || !slices.Equal(p.Sums[i].Fan, o.Fan) {
				t.Errorf("seed %d: sum %d does not share the weights of its owner", seed, i)
			} else if o != &p.Sums[i] {
				seen++
			}
		}
		for i := range p.Inputs {
			if o := &p.Inputs[p.Inputs[i].Owner]; p.Inputs[i].Table != o.Table || p.Inputs[i].Params != o.Params {
				t.Errorf("seed %d: input %d does not share the table of its owner", seed, i)
			} else if o != &p.Inputs[i] {
				seen++
			}
		}
	}
	if seen == 0 {
		t.Error("no tied nodes; the trials test nothing")
	}
}

var _ layers.Family = circuit.Leaf(nil) // every leaf is what devices ask for

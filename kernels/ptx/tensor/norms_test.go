package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

const (
	normGrid = 0x1p-12
	normFine = normGrid * 0x1p23
)

// normCase is a random set of owners, of sums that share their weights, and of flows.
type normCase struct {
	rows      int
	sums      []tensor.Sum
	uses      []tensor.Use
	owners    []tensor.Owner
	ownerSums []uint32
	list      []uint32
	val, kept []float32
	ratio     []float32 // in the places of val
	bad       []uint32
	exp       []int32 // of the root
	units     int
	want      []float64 // flow through each unit of node space
	owned     []bool    // by unit of node space
}

func newNormCase(rng *rand.Rand, rows int) *normCase {
	const width = 40
	n := &normCase{rows: rows, bad: make([]uint32, rows), exp: make([]int32, rows)}
	for r := range n.bad {
		if rng.IntN(4) == 0 {
			n.bad[r] = 1
		} else {
			n.exp[r] = []int32{0, tensor.Lost + 1, tensor.Lost}[rng.IntN(3)]
		}
	}
	for o := range 3 {
		owner := tensor.Owner{Unit: uint32(n.units), Width: width, Member: uint32(len(n.ownerSums)), Members: uint32([]int{1, 3, 1}[o])}
		flows := make([]float64, width)
		for range owner.Members {
			s := tensor.Sum{Val: uint64(len(n.val)), Width: width, Units: width - 3, User: uint32(len(n.uses)), Users: uint32(rng.IntN(5))}
			if o == 2 {
				s.Root, s.Units, s.Users = 1, 1, s.Users%3
				n.val = append(n.val, make([]float32, rows*width)...)
				for r := range rows {
					x := []float32{1.5, 0, -3, float32(math.Inf(-1))}[rng.IntN(4)]
					if n.bad[r] == 0 {
						x = max(x, 0)
					}
					n.val[int(s.Val)+r*width] = x
					if n.bad[r] == 0 && x > 0 && n.exp[r] > tensor.Lost || n.bad[r] == 1 && !math.IsInf(float64(x), -1) {
						flows[0]++
					}
				}
			}
			if s.Users > 2 { // its ratios tell, and nobody reads what its uses keep
				for i := range rows * width {
					x, f := 0x1p-20*(1+rng.Float32()), rng.Float32()
					switch {
					case i%width >= int(s.Units) || rng.IntN(3) == 0:
						x, f = 0, 0
					case n.bad[i/width] == 1:
						n.val, n.ratio = append(n.val, -3), append(n.ratio, f)
						flows[i%width] += float64(f)
						continue
					}
					n.val, n.ratio = append(n.val, x), append(n.ratio, f*0x1p20)
					flows[i%width] += float64(x) * float64(f*0x1p20)
				}
				n.uses = append(n.uses, make([]tensor.Use, s.Users)...)
				n.ownerSums, n.sums = append(n.ownerSums, uint32(len(n.sums))), append(n.sums, s)
				continue
			}
			for len(n.ratio) < len(n.val) {
				n.ratio = append(n.ratio, float32(math.NaN()))
			}
			for range s.Users {
				const pitch = width + 8
				n.uses = append(n.uses, tensor.Use{Kept: uint64(len(n.kept)), Width: pitch})
				for i := range rows * pitch {
					f := float32(0)
					if i%pitch < int(s.Units) && rng.IntN(3) > 0 {
						f = rng.Float32()
						flows[i%pitch] += float64(f)
					}
					n.kept = append(n.kept, f)
				}
			}
			n.ownerSums = append(n.ownerSums, uint32(len(n.sums)))
			n.sums = append(n.sums, s)
		}
		for run := range (width + 31) / 32 {
			n.list = append(n.list, uint32(len(n.owners)), uint32(run))
		}
		n.owners = append(n.owners, owner)
		n.units += width + 8 // a place that belongs to nobody follows
		n.want = append(n.want, append(flows, make([]float64, 8)...)...)
		for u := range width + 8 {
			n.owned = append(n.owned, u < width)
		}
	}
	return n
}

func (n *normCase) card(t *testing.T) *rowCard {
	c := newRowCard(t, tensor.Variant{Block: 8, Major: 8}, emulator.Options{Seed: 5})
	c.put(tensor.ArgControl, control{Rows: uint32(n.rows), Grid: normGrid, Fine: normFine})
	c.put(tensor.ArgVal, n.val)
	c.put(tensor.ArgRatio, n.ratio)
	c.put(tensor.ArgKept, append(n.kept, 0))
	c.put(tensor.ArgBad, n.bad)
	c.put(tensor.ArgExp, n.exp)
	c.put(tensor.ArgSums, n.sums, tensor.SumSize)
	c.put(tensor.ArgUses, n.uses, tensor.UseSize)
	c.put(tensor.ArgOwners, n.owners, tensor.OwnerSize)
	c.put(tensor.ArgOwnerSums, n.ownerSums)
	c.put(tensor.ArgList, n.list)
	return c
}

func TestNorms(t *testing.T) {
	for _, rows := range []int{1, 7, 33, 260} {
		t.Run(fmt.Sprint("rows=", rows), func(t *testing.T) {
			n := newNormCase(rand.New(rand.NewPCG(uint64(rows), 3)), rows)
			c := n.card(t)
			norms, visits, flows := make([]float32, n.units), make([]float32, n.units), make([]int64, n.units)
			for u := range norms {
				norms[u], visits[u], flows[u] = -1, -1, 1000
			}
			c.put(tensor.ArgNorms, norms)
			c.put(tensor.ArgVisits, visits)
			c.put(tensor.ArgFlowNorms, flows)
			c.launch(tensor.KernelNorms, len(n.list)/2)
			c.launch(tensor.KernelVisits, len(n.list)/2)
			c.launch(tensor.KernelNormsCount, len(n.list)/2)
			norms, visits = get[float32](c, tensor.ArgNorms, n.units), get[float32](c, tensor.ArgVisits, n.units)
			flows = get[int64](c, tensor.ArgFlowNorms, n.units)
			for u, want := range n.want {
				if !n.owned[u] {
					if norms[u] != -1 || visits[u] != -1 || flows[u] != 1000 {
						t.Fatalf("unit %d, of no owner: %v, %v, %v were written", u, norms[u], visits[u], flows[u])
					}
					continue
				}
				// At most 5 uses of 33 additions each a warp.
				if tol := 40 * 0x1p-24 * want; !(math.Abs(float64(visits[u])-want) <= tol) {
					t.Errorf("unit %d: %v visits, want %v", u, visits[u], want)
				}
				if !(math.Abs(float64(norms[u])-want) <= 2.5*normGrid) || math.Mod(float64(norms[u]), normGrid) != 0 {
					t.Errorf("unit %d: flow %v, want %v on the grid", u, norms[u], want)
				}
				if got := float64(flows[u]-1000) * normGrid; got != float64(norms[u]) {
					t.Errorf("unit %d: counted %v, want %v", u, got, norms[u])
				}
			}
		})
	}
}

// TestNormsAlone checks that rows behind those of the launch do not matter.
func TestNormsAlone(t *testing.T) {
	n := newNormCase(rand.New(rand.NewPCG(9, 3)), 20)
	for s := range n.sums {
		n.sums[s].Users, n.sums[s].Root = 0, 0
	}
	n.uses = []tensor.Use{{Width: 8}}
	n.sums[0].User, n.sums[0].Users = 0, 1
	n.rows = 3
	c := n.card(t)
	c.put(tensor.ArgVisits, make([]float32, n.units))
	c.launch(tensor.KernelVisits, 1)
	for u, got := range get[float32](c, tensor.ArgVisits, 8) {
		if want := n.kept[u] + n.kept[8+u] + n.kept[16+u]; got != want {
			t.Errorf("unit %d: %v, want %v", u, got, want)
		}
	}
}

// TestNormsUpdate compares bits with the definition in float32.
func TestNormsUpdate(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	owners := []tensor.Owner{{Unit: 8, Width: 40}, {Unit: 56, Width: 8}}
	list := []uint32{0, 0, 0, 1, 1, 0}
	const units = 72
	owned := func(u int) bool { return u >= 8 && u < 48 || u >= 56 && u < 64 }
	flows, old := make([]int64, units), make([]float32, units)
	for u := range flows {
		flows[u] = rng.Int64N(1<<40) >> rng.IntN(40)
		old[u] = rng.Float32() * float32(math.Exp(rng.NormFloat64()*20))
		if u == 9 {
			flows[u], old[u] = 0, 0x1p-64
		}
	}
	keep, take := float32(0.9), float32(1)-float32(0.9)
	for _, averages := range []bool{false, true} {
		c := newRowCard(t, tensor.Variant{Block: 8, Major: 8}, emulator.Options{})
		c.put(tensor.ArgControl, control{Grid: normGrid, Fine: normFine, Average: keep, Take: take})
		c.put(tensor.ArgOwners, owners, tensor.OwnerSize)
		c.put(tensor.ArgList, list)
		c.put(tensor.ArgFlowNorms, flows)
		c.put(tensor.ArgAverNorms, old)
		c.put(tensor.ArgNorms, make([]float32, units))
		name := tensor.KernelNormsUpdate
		if averages {
			name = tensor.KernelNormsAverages
		}
		c.launch(name, len(list)/2)
		norms, left := get[float32](c, tensor.ArgNorms, units), get[int64](c, tensor.ArgFlowNorms, units)
		next := get[float32](c, tensor.ArgAverNorms, units)
		for u := range units {
			norm, left0, avg := float32(0), flows[u], old[u]
			if owned(u) {
				norm, left0 = float32(flows[u])*normGrid, 0
				if averages {
					norm = averageOf(old[u], norm, keep, take)
					avg = norm
				}
			}
			if norms[u] != norm || left[u] != left0 || next[u] != avg {
				t.Errorf("averages %v, unit %d: norm %v, flow left %d, average %v; want %v, %d, %v", averages, u, norms[u], left[u], next[u], norm, left0, avg)
			}
		}
	}
}

// averageOf moves an average on by a count.
func averageOf(old, count, keep, take float32) float32 {
	a := float32(old*keep) + float32(count*take)
	if a < 0x1p-64 {
		return 0
	}
	return a
}

// TestCoefficients compares bits with the definition in float64.
func TestCoefficients(t *testing.T) {
	const units = 300
	rng := rand.New(rand.NewPCG(12, 3))
	norms, visits, fans := make([]float32, units), make([]float32, units), make([]uint32, units)
	for u := range units {
		norms[u] = rng.Float32() * 100
		visits[u] = rng.Float32() * 10
		fans[u] = uint32(rng.IntN(50))
		if u%7 == 0 {
			norms[u] = 0
		}
	}
	for _, pseudocount := range []float64{0, 0.1} {
		for _, anemone := range []bool{false, true} {
			step, scale := 0.37, 1.0
			name := tensor.KernelCoefficients
			if anemone {
				name, scale = tensor.KernelCoefficientsVisits, step/(123*0.271)
			}
			c := newRowCard(t, tensor.Variant{Block: 1, Major: 8}, emulator.Options{})
			c.put(tensor.ArgControl, control{Step: step, Pseudocount: pseudocount, Scale: scale, Units: units})
			c.put(tensor.ArgNorms, norms)
			c.put(tensor.ArgVisits, visits)
			c.put(tensor.ArgFans, fans)
			for _, a := range []string{tensor.ArgKeep, tensor.ArgGain, tensor.ArgPrior} {
				c.put(a, make([]float32, units))
			}
			c.launch(name, (units+255)/256)
			keep, gain, prior := get[float32](c, tensor.ArgKeep, units), get[float32](c, tensor.ArgGain, units), get[float32](c, tensor.ArgPrior, units)
			for u := range units {
				k, g, p := float32(1), float32(0), float32(0)
				d := float64(scale*float64(norms[u])) + pseudocount
				if d > 0 && fans[u] > 0 {
					s := step
					if anemone {
						s = d / (float64((1-step)*float64(visits[u])) + d)
					}
					k, g, p = float32(1-s), float32(s*scale/d), float32(s*pseudocount/(float64(fans[u])*d))
				}
				if keep[u] != k || gain[u] != g || prior[u] != p {
					t.Errorf("%s, pseudocount %v, unit %d: %v, %v, %v; want %v, %v, %v", name, pseudocount, u, keep[u], gain[u], prior[u], k, g, p)
				}
			}
		}
	}
}

// TestUpdate compares bits with the definition in float32.
func TestUpdate(t *testing.T) {
	for _, s := range []int{1, 2, 4, 8, 16, 32} {
		for _, averages := range []bool{false, true} {
			t.Run(fmt.Sprintf("S=%d/averages=%v", s, averages), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(s), 4))
				tiles := []tensor.Tile{{}, {Blocks: 3, Param: 2, Unit: uint32(3 * s)}, {Blocks: 1, Param: 5, Unit: 0}}
				const blocks = 8
				units, n := 8*s, blocks*s*s
				weights, flows, old := make([]float32, n), make([]int64, n), make([]float32, n)
				for i := range weights {
					weights[i] = rng.Float32()
					flows[i] = rng.Int64N(1<<36) >> rng.IntN(36)
					old[i] = rng.Float32() * 3
					switch rng.IntN(8) {
					case 0:
						weights[i] = 0
					case 1:
						weights[i], flows[i], old[i] = 0x1p-99, 0, 0
					}
				}
				keep, gain, prior := make([]float32, units), make([]float32, units), make([]float32, units)
				for u := range units {
					keep[u], gain[u], prior[u] = rng.Float32(), rng.Float32(), rng.Float32()*0.01
					if u%3 == 0 {
						prior[u] = 0
					}
				}
				share, take := float32(0.9), float32(1)-float32(0.9)
				c := newRowCard(t, tensor.Variant{Block: s, Major: 8}, emulator.Options{Seed: 1})
				c.put(tensor.ArgControl, control{Grid: normGrid, Fine: normFine, Average: share, Take: take})
				c.put(tensor.ArgParams, weights)
				c.put(tensor.ArgFlows, flows)
				c.put(tensor.ArgAverages, old)
				c.put(tensor.ArgKeep, keep)
				c.put(tensor.ArgGain, gain)
				c.put(tensor.ArgPrior, prior)
				c.put(tensor.ArgTiles, tiles, tensor.TileSize)
				c.put(tensor.ArgList, []uint32{2, 1})
				name := tensor.KernelUpdate
				if averages {
					name = tensor.KernelUpdateAverages
				}
				c.launch(name, 2)
				got, left := get[float32](c, tensor.ArgParams, n), get[int64](c, tensor.ArgFlows, n)
				next := get[float32](c, tensor.ArgAverages, n)
				for i := range n {
					want, flow, avg := weights[i], flows[i], old[i]
					for _, tile := range tiles {
						o := (i - int(tile.Param)*s*s) / s
						if i < int(tile.Param)*s*s || o >= int(tile.Blocks)*s {
							continue
						}
						u := int(tile.Unit) + o
						count := float32(flow) * normGrid
						flow = 0
						if averages {
							avg = averageOf(avg, count, share, take)
							if count = avg; count < normFine {
								count = float32(count+normFine) - normFine
							}
						}
						if want != 0 {
							want = float32(float32(want*keep[u])+float32(count*gain[u])) + prior[u]
							want = max(want, 0x1p-100)
						}
					}
					if got[i] != want || left[i] != flow || next[i] != avg {
						t.Fatalf("weight %d: %v, flow left %d, average %v; want %v, %d, %v", i, got[i], left[i], next[i], want, flow, avg)
					}
				}
			})
		}
	}
}

func TestNormalise(t *testing.T) {
	for _, s := range []int{1, 2, 4, 8, 16, 32} {
		t.Run(fmt.Sprint("S=", s), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(s), 5))
			const blocks = 40
			weights := make([]float32, blocks*s*s)
			for i := range weights {
				weights[i] = rng.Float32()
			}
			// Group 1 has 9 row blocks and 3 steps, in an order of their own; group 0 one
			// row block of which one unit has no weights, and one has an infinite one.
			steps := []tensor.Step{{Param: 0}, {Param: 2}, {Param: 13}, {Param: 31}, {Param: 4}}
			groups := []tensor.Group{{Blocks: 1, Step: 0, Steps: 2}, {Blocks: 9, Step: 2, Steps: 3}}
			place := func(g tensor.Group, o, k int) int {
				return int(steps[int(g.Step)+k/s].Param)*s*s + o*s + k%s
			}
			if s > 1 {
				for k := range 2 * s {
					weights[place(groups[0], 1, k)] = 0
				}
			}
			weights[place(groups[0], 0, s)] = float32(math.Inf(1))
			c := newRowCard(t, tensor.Variant{Block: s, Major: 8}, emulator.Options{Seed: 1})
			c.put(tensor.ArgParams, weights)
			c.put(tensor.ArgGroups, groups, tensor.GroupSize)
			c.put(tensor.ArgSteps, steps, tensor.StepSize)
			c.put(tensor.ArgList, []uint32{1, 0})
			c.launch(tensor.KernelNormalise, 2)
			got := get[float32](c, tensor.ArgParams, len(weights))
			want := make([]float64, len(weights))
			for i, w := range weights {
				want[i] = float64(w)
			}
			for _, g := range groups {
				for o := range int(g.Blocks) * s {
					total := 0.0
					for k := range int(g.Steps) * s {
						total += want[place(g, o, k)]
					}
					for k := range int(g.Steps) * s {
						if total > 0 && !math.IsInf(total, 1) {
							want[place(g, o, k)] /= total
						}
					}
				}
			}
			for i, w := range want {
				if g := float64(got[i]); g != w && !(math.Abs(g-w) <= 10*0x1p-24*w) { // of 3 rounded sums, a reciprocal, a product
					t.Fatalf("weight %d: %v, want %v", i, g, w)
				}
			}
		})
	}
}

package sliced

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// each runs a test for every set of loops but the one that defines them.
func each(t *testing.T, test func(t *testing.T, l *Loops, rng *rand.Rand)) {
	if len(All()) == 1 {
		t.Skip("SKIPPED: this machine or build has the portable loops alone, which define the others")
	}
	for _, l := range native() {
		t.Run(l.Name, func(t *testing.T) { test(t, l, rand.New(rand.NewPCG(3, 4))) })
	}
}

func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		src := make([]float32, 16*40)
		for i := range src {
			src[i] = math.Float32frombits(rng.Uint32())
		}
		inf := float32(math.Inf(1))
		copy(src, []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), -float32(math.NaN()), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32,
			math.Float32frombits(0x7f800001), math.Float32frombits(0xff800001), 1, -1})
		want, got := make([]uint32, len(src)), make([]uint32, len(src)+1)
		for _, n := range []int{l.keysStep, 3 * l.keysStep, len(src)} {
			clear(got)
			keysGeneric(&want[0], &src[0], n)
			l.keys(&got[0], &src[0], n)
			if !slices.Equal(got[:n], want[:n]) || got[n] != 0 {
				t.Fatalf("%d keys differ", n)
			}
		}
	})
}

func TestQuads(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		for _, cells := range []int{4, 5, 7, 13} {
			src := make([]float32, quadRows*cells)
			for i := range src {
				src[i] = math.Float32frombits(rng.Uint32())
			}
			for n := quadLeast; n <= quadRows; n += quadLeast {
				var want, got [quadCells * quadRows]uint32
				quadsGeneric(&src[cells-4], 4*cells, n, &want[0])
				l.quads(&src[cells-4], 4*cells, n, &got[0])
				if want != got {
					t.Fatalf("keys of %d rows of %d cells differ", n, cells)
				}
			}
		}
	})
}

func TestSearch(t *testing.T) {
	for _, l := range All() {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, steps := range l.steps {
			for round := range 20 {
				cuts := make([]float64, rng.IntN(1<<steps))
				if round == 0 {
					cuts = make([]float64, 1<<steps-1)
				}
				for i := range cuts {
					cuts[i] = float64(float32(i)) - 20
				}
				table := l.table(cuts, steps)
				n := 1 + rng.IntN(130)
				const guard = 64 // rows that a loop may write in addition
				keys := make([]uint32, n+guard)
				for i := range keys {
					x := float32(rng.IntN(300) - 40)
					if rng.IntN(8) == 0 {
						x = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[rng.IntN(3)]
					}
					keys[i] = key(x)
				}
				got := make([]byte, n+guard)
				l.search(&keys[0], &table[0], steps, &got[0], n)
				if got[(n+guard-1)/guard*guard] != 0 {
					t.Fatalf("%s: %d keys: more than whole multiples of %d are written", l.Name, n, guard)
				}
				for i, c := range got[:n] {
					count := 0
					for _, cut := range cuts {
						if key(float32(cut)) <= keys[i] {
							count++
						}
					}
					if keys[i] == math.MaxUint32 {
						count = 1<<steps - 1
					}
					if int(c) != count {
						t.Fatalf("%s, %d steps, %d cuts: key %#x has rank %d, want %d", l.Name, steps, len(cuts), keys[i], c, count)
					}
				}
			}
		}
	}
}

func TestRanks(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		for _, count := range []int{0, 1, 256, 1000, 1023, 65533} {
			cuts := make([]float64, count)
			for i := range cuts {
				cuts[i] = float64(i)
			}
			steps := bits.Len(uint(count + 1))
			table := searchTable(cuts, steps)
			n := 1 + rng.IntN(130)
			keys := make([]uint32, n+groupRows)
			for i := range keys {
				keys[i] = key(float32(rng.IntN(count+2) - 1))
				if rng.IntN(8) == 0 {
					keys[i] = math.MaxUint32
				}
			}
			want, got := make([]uint16, n), make([]uint16, n+groupRows)
			ranksGeneric(&keys[0], &table[0], steps, &want[0], n)
			l.ranks(&keys[0], &table[0], steps, &got[0], n)
			if !slices.Equal(got[:n], want) || got[(n+groupRows-1)/groupRows*groupRows] != 0 {
				t.Fatalf("%d cuts: ranks %v, want %v", count, got, want)
			}
		}
	})
}

// random fills sets.
func random(rng *rand.Rand, sets []rowSet) {
	for i := range sets {
		for w := range sets[i] {
			sets[i][w] = rng.Uint64()
		}
	}
}

func TestMasks(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		codes := make([]byte, blockRows)
		for i := range codes {
			codes[i] = byte(rng.Uint32())
		}
		var groups []uint32
		for e := 0; e < 256; e += groupSets {
			groups = append(groups, groupOf(e))
		}
		not := make([]rowSet, 1)
		random(rng, not)
		var tables [2][tableSets]rowSet
		var masks [2][257]rowSet
		for i, l := range []*Loops{generic, l} {
			l.nibbles(&codes[0], &tables[i][0], 2)
			l.ends(&tables[i][0], &tables[i][lowSets], &groups[0], len(groups), &not[0], &masks[i][0], 2)
		}
		if tables[0] != tables[1] {
			t.Fatal("sets of nibbles differ")
		}
		if masks[0] != masks[1] {
			t.Fatal("masks differ")
		}
		for e := range 256 {
			for r, c := range codes {
				if in := masks[0][e][r>>6]>>(r&63)&1 != 0; in != (int(c) >= e && not[0][r>>6]>>(r&63)&1 == 0) {
					t.Fatalf("row %d of code %d is in the mask of %d: %v", r, c, e, in)
				}
			}
		}
		// One half.
		var half [tableSets]rowSet
		l.nibbles(&codes[0], &half[0], 1)
		for i := range half {
			if *(*[4]uint64)(half[i][:]) != *(*[4]uint64)(tables[0][i][:]) {
				t.Fatalf("half of set %d differs", i)
			}
		}
	})
}

// last is where a tree of a height has its j-th node with a subtree of height h, each
// node after the nodes of its subtrees.
func last(height, h, j int) int {
	if height == h {
		return 1<<height - 2
	}
	half := 1 << (height - 1 - h) // of these nodes in each subtree
	if j < half {
		return last(height-1, h, j)
	}
	return 1<<(height-1) - 1 + last(height-1, h, j-half)
}

func TestTrees(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		masks := make([]rowSet, 300)
		random(rng, masks)
		for h := 1; h <= maxHeight; h++ {
			offsets := make([]uint32, 1<<h-1)
			for i := range offsets {
				offsets[i] = uint32(setBytes * rng.IntN(len(masks)))
			}
			var want, got, half [planeSets]rowSet
			muxGeneric(h, &masks[0], &offsets[0], &want[0])
			l.mux[h](&masks[0], &offsets[0], &got[0], 2)
			l.mux[h](&masks[0], &offsets[0], &half[0], 1)
			var a, b [blockRows]byte
			indicesGeneric(&want[0], &a[0], 2)
			l.indices(&want[0], &b[0], 2)
			if a != b {
				t.Fatalf("height %d: leaves %v, want %v", h, b[:40], a[:40])
			}
			for i := range maxHeight {
				if want[i] != got[i] || *(*[4]uint64)(half[i][:]) != *(*[4]uint64)(want[i][:]) {
					t.Fatalf("height %d: plane %d differs", h, i)
				}
			}
			for r := range 40 { // by a walk
				at := 0
				for level := range h {
					node := 0 // in the order of muxGeneric
					if left := h - level; left > lowHeight {
						node = 1<<h - 1 - (1<<(h-left+1) - 1) + at
					} else {
						low := min(h, lowHeight)
						block := at >> (level - (h - low))
						node = block*(1<<low-1) + last(low, left, at-block<<(level-(h-low)))
					}
					at *= 2
					if masks[offsets[node]/setBytes][r>>6]>>(r&63)&1 != 0 {
						at++
					}
				}
				if int(a[r]) != at {
					t.Fatalf("height %d: row %d reaches leaf %d, want %d", h, r, a[r], at)
				}
			}
		}
	})
}

func TestValues(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		for height := 1; height <= maxHeight; height++ {
			var index [blockRows]byte
			values := make([]float32, 1<<height)
			var sums [blockRows]float32
			for i := range values {
				values[i] = float32(rng.NormFloat64())
			}
			for i := range index {
				index[i], sums[i] = byte(rng.IntN(1<<height)), float32(rng.NormFloat64())
			}
			laid := l.values(values)
			got := sums
			for _, n := range []int{8, 64, 256, 512} {
				addGeneric(&index[0], &values[0], &sums[0], n)
				l.add[height](&index[0], &laid[0], &got[0], n)
				if !slices.Equal(got[:n], sums[:n]) {
					t.Fatalf("height %d: %d sums differ", height, n)
				}
				got = sums
			}
		}
		var index [blockRows]byte
		var values, sums [blockRows]float64
		for i := range index {
			index[i], values[i], sums[i] = byte(rng.Uint32()), rng.NormFloat64(), rng.NormFloat64()
		}
		got := sums
		for _, n := range []int{8, 256, 512} {
			addGeneric(&index[0], &values[0], &sums[0], n)
			l.double(&index[0], &values[0], &got[0], n)
			if got != sums {
				t.Fatalf("%d sums differ", n)
			}
		}
	})
}

func TestDescend(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		keys := []uint32{0, 1, 5, math.MaxUint32, math.MaxUint32 - 1, 1 << 31}
		for depth := 1; depth <= maxHeight; depth++ {
			trees := together * (1 + rng.IntN(4))
			nodes := make([]uint64, trees<<depth)
			for i := range nodes {
				nodes[i] = uint64(keys[rng.IntN(len(keys))])<<32 | uint64(rng.IntN(len(keys)))
			}
			want, got := make([]uint32, trees), make([]uint32, trees+1)
			descendGeneric(depth, &keys[0], &nodes[0], trees, &want[0])
			l.descend[depth](&keys[0], &nodes[0], trees, &got[0])
			if !slices.Equal(got[:trees], want) || got[trees] != 0 {
				t.Fatalf("depth %d: leaves %v, want %v", depth, got, want)
			}
		}
	})
}

func TestWalk(t *testing.T) {
	each(t, func(t *testing.T, l *Loops, rng *rand.Rand) {
		const columns, count = 5, 600
		nodes, starts := make([]uint64, count), make([]uint32, maxLeaves)
		for i := range nodes {
			value := uint64(math.Float32bits(float32(rng.NormFloat64()))) << 32
			if left := count - i; left > 3 && rng.IntN(3) > 0 {
				value = uint64(rng.IntN(40))<<32 | uint64(1+rng.IntN(min(left-2, 9)))<<16 | uint64(2*rng.IntN(columns))
			}
			nodes[i] = value
		}
		for i := range starts {
			starts[i] = uint32(rng.IntN(count))
		}
		for _, n := range []int{groupRows, 3 * groupRows, blockRows, deepMost * blockRows} {
			groups, index := make([]uint16, n*columns), make([]byte, n)
			for i := range groups {
				groups[i] = []uint16{0, uint16(rng.IntN(40)), missing16}[rng.IntN(3)]
			}
			for g := range n / groupRows {
				clear(groups[g*columns*groupRows:][:groupRows]) // of leaves
			}
			for i := range index {
				index[i] = byte(rng.Uint32())
			}
			want, got := make([]uint32, n), make([]uint32, n+1)
			wantSums, sums := make([]float32, n), make([]float32, n+1)
			walkGeneric(&nodes[0], &starts[0], &index[0], &groups[0], 2*groupRows*columns, n, &want[0], &wantSums[0])
			l.walk(&nodes[0], &starts[0], &index[0], &groups[0], 2*groupRows*columns, n, &got[0], &sums[0])
			if got[n] != 0 || !slices.Equal(sums[:n], wantSums) || sums[n] != 0 {
				t.Fatalf("sums of %d rows are %v, want %v", n, sums, wantSums)
			}
			walkGeneric(&nodes[0], &starts[0], &index[0], &groups[0], 2*groupRows*columns, n, &want[0], nil)
			l.walk(&nodes[0], &starts[0], &index[0], &groups[0], 2*groupRows*columns, n, &got[0], nil)
			if !slices.Equal(got[:n], want) || got[n] != 0 {
				t.Fatalf("%d rows arrive at %v, want %v", n, got, want)
			}
		}
	})
}

// TestSigmoid: scores of all sizes, also those for which the routine ends, have the bits of elementary.Exp, in place and from any score on.
func TestSigmoid(t *testing.T) {
	for _, l := range All() {
		rng := rand.New(rand.NewPCG(8, 8))
		if strings.HasPrefix(l.Name, "avx512") != (l.sigmoid != nil) {
			t.Errorf("%s has a routine: %t; GODEBUG=cpu.fma=off takes it away", l.Name, l.sigmoid != nil)
		}
		odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 700, -700, 700.0000000000001, -700.0000000000001, 709.5, -709.5, 709.79, -709.79, 745.2, -745.2, 1e9, -1e9, 5e-324, 0.34657359027997264, -0.34657359027997264}
		for n := range 70 {
			for _, alpha := range []float64{1, -1, 0.1, 1e5, 0} {
				scores, got := make([]float64, n), make([]float64, n+1)
				for i := range scores {
					scores[i] = rng.NormFloat64() * []float64{1, 30, 1e-9, 400}[rng.IntN(4)]
					if rng.IntN(20) == 0 {
						scores[i] = odd[rng.IntN(len(odd))]
					}
				}
				want := make([]float64, n)
				sigmoidGeneric(scores, want, alpha)
				l.Sigmoid(scores, got, alpha)
				l.Sigmoid(scores, scores, alpha)
				for i := range want {
					if b := math.Float64bits(want[i]); math.Float64bits(got[i]) != b || math.Float64bits(scores[i]) != b {
						t.Fatalf("%s, %d scores, alpha %v, score %d: %v and in place %v, want %v", l.Name, n, alpha, i, got[i], scores[i], want[i])
					}
				}
				if got[n] != 0 {
					t.Fatalf("%s writes behind %d scores", l.Name, n)
				}
			}
		}
		least := []float64{-709.5}
		if l.Sigmoid(least, least, 1); !(math.Abs(least[0]*1.3549863193146328e308-1) <= 1e-14) {
			t.Errorf("%s: the sigmoid of -709.5 is %v", l.Name, least[0])
		}
		if l.sigmoid == nil {
			continue
		}
		got, scores := make([]float64, 1<<16), make([]float64, 1<<16)
		for i := range scores {
			scores[i] = (2*rng.Float64() - 1) * sigmoidLimit
		}
		if n := l.sigmoid(&scores[0], &got[0], len(scores), -1); n != len(scores) {
			t.Errorf("%s: the routine ends before score %v", l.Name, scores[n])
		}
		for i, x := range scores {
			if want := 1 / (1 + math.Exp(-x)); got[i] != want {
				t.Fatalf("%s: sigmoid of %v is %v, want %v", l.Name, x, got[i], want)
			}
		}
	}
}

func BenchmarkSigmoid(b *testing.B) {
	scores, out := make([]float64, 8192), make([]float64, 8192)
	for i := range scores {
		scores[i] = float64(i%64)/16 - 2
	}
	for _, l := range All() {
		b.Run(l.Name, func(b *testing.B) {
			b.SetBytes(int64(8 * len(scores)))
			for b.Loop() {
				l.Sigmoid(scores, out, 1)
			}
		})
	}
}

package plan

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// slow is a card with numbers that are easy to compute with.
var slow = Rates{
	Name: "slow", Processors: 10, Clock: 1000, Memory: 2000, Cache: 4000, Shared: 8000, TF32: 500, F16: 1000, Host: 10,
	Load: 3, Launch: 5, Wait: 7,
}

// near reports whether x is y but for rounding.
func near(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Abs(y) }

// TestIssueShare wants the shares at whole warps, what lies between them between, and the
// last one beyond.
func TestIssueShare(t *testing.T) {
	for _, c := range []struct{ warps, want float64 }{
		{0, 0}, {0.5, 0.10}, {1, 0.20}, {1.5, 0.28}, {2, 0.36}, {2.5, 0.405}, {3, 0.45}, {3.5, 0.475}, {4, 0.50}, {4.25, 0.50}, {16, 0.50},
	} {
		if got := issueShare(c.warps); !near(got, c.want) && !(got == c.want) {
			t.Errorf("%v warps on a scheduler: %v, want %v", c.warps, got, c.want)
		}
	}
}

// TestIssue times kernels of blocks of eight warps, two of which a multiprocessor holds: one
// block has two warps on each scheduler, two have four.
func TestIssue(t *testing.T) {
	const each = 4000 // instructions of a block: a clock of the multiprocessor's four schedulers, a thousand times
	for _, c := range []struct {
		name    string
		blocks  int
		longest float64
		want    float64
	}{
		{"one block", 1, each / 2, 1 / 0.36},
		{"one on every multiprocessor", 10, each / 2, 1 / 0.36},
		{"one more", 11, each / 2, 2 / 0.50},
		{"two on every one", 20, each / 2, 2 / 0.50},
		{"another wave", 21, each / 2, 3 / 0.50},
		{"all alike", 1, each, 1 / 0.36},
		{"one block of eleven with half of all", 11, 5.5 * each, 5.5 / 0.36},
	} {
		g := grid{blocks: c.blocks, warps: 8, resident: 2, processors: slow.Processors}
		if got := issueSeconds(g, each*float64(c.blocks), c.longest, slow); !near(got, c.want) {
			t.Errorf("%s: %v s, want %v", c.name, got, c.want)
		}
	}
}

// TestDrag wants the kernels that a card took longer or shorter for, and no share of others.
func TestDrag(t *testing.T) {
	for kernel, want := range map[string]float64{tensor.KernelForwardResident: 1.3, tensor.KernelMoveWide: 0.71, tensor.KernelBackward: 1, tensor.KernelRoot: 1} {
		if got := dragOf(kernel); got != want {
			t.Errorf("%s: %v, want %v", kernel, got, want)
		}
	}
}

// TestWaves wants the share of a card that works at both sides of a full wave.
func TestWaves(t *testing.T) {
	for _, c := range []struct {
		blocks, busiest, together int
		share                     float64
	}{
		{1, 1, 1, 0.1}, {9, 1, 1, 0.9}, {10, 1, 1, 1}, {11, 2, 2, 0.55}, {20, 2, 2, 1}, {21, 3, 3, 0.7}, {31, 4, 3, 0.775},
	} {
		g := grid{blocks: c.blocks, warps: 4, resident: 3, processors: 10}
		if g.busiest() != c.busiest || g.together() != c.together || !near(g.share(), c.share) {
			t.Errorf("%d blocks: %d on a multiprocessor, %d at once, share %v; want %d, %d, %v", c.blocks, g.busiest(), g.together(), g.share(), c.busiest, c.together, c.share)
		}
	}
}

// TestFit wants what limits the blocks of a multiprocessor at both sides of each limit.
func TestFit(t *testing.T) {
	for _, c := range []struct{ warps, registers, shared, want int }{
		{1, 16, 0, 32}, {2, 16, 0, 32}, {4, 16, 0, 16}, {8, 32, 0, 8}, {32, 32, 0, 2}, // blocks, then warps
		{4, 128, 0, 4}, {4, 129, 0, 3}, {4, 168, 0, 3}, {4, 169, 0, 2}, {8, 128, 0, 2}, {8, 129, 0, 1}, {8, 255, 0, 1}, {8, 256, 0, 1},
		{4, 32, 113 << 10, 2}, {4, 32, 113<<10 + 1, 1}, {4, 32, 227 << 10, 1}, {4, 0, 75 << 10, 3}, {4, 0, 75<<10 + 1, 2},
	} {
		if got := fit(c.warps, c.registers, c.shared); got != c.want {
			t.Errorf("%d warps, %d registers, %d bytes: %d blocks, want %d", c.warps, c.registers, c.shared, got, c.want)
		}
	}
}

// TestSpeeds times a thousand operations and bytes on whole cards and on one multiprocessor.
func TestSpeeds(t *testing.T) {
	whole, one := grid{blocks: 10, warps: 4, resident: 1, processors: 10}, grid{blocks: 1, warps: 4, resident: 1, processors: 10}
	few := grid{blocks: 5, warps: 4, resident: 1, processors: 10} // which can take all of the cache
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"operations", tensorSeconds(whole, 1000, slow), 2},
		{"operations on one", tensorSeconds(one, 1000, slow), 20},
		{"memory", memorySeconds(1000, slow), 0.5},
		{"cache", cacheSeconds(whole, 1000, slow), 0.25},
		{"cache, five of ten", cacheSeconds(few, 1000, slow), 0.25},
		{"cache, one", cacheSeconds(one, 1000, slow), 0.25 / 0.20},
		{"shared", sharedSeconds(whole, 1000, slow), 0.125},
		{"shared, one", sharedSeconds(one, 1000, slow), 1.25},
	} {
		if want := c.want / reach; !near(c.got, want) {
			t.Errorf("%s: %v s, want %v", c.name, c.got, want)
		}
	}
}

// TestLatency wants a kernel's chain once where a multiprocessor holds several blocks, and
// for each block after another where it holds one.
func TestLatency(t *testing.T) {
	chain := float64(chains[tensor.KernelForwardWide]) * slow.Load
	for _, c := range []struct {
		blocks, resident int
		want             float64
	}{{1, 1, 1}, {10, 1, 1}, {11, 1, 2}, {30, 1, 3}, {31, 1, 4}, {1, 2, 1}, {31, 2, 1}} {
		g := grid{blocks: c.blocks, warps: 8, resident: c.resident, processors: 10}
		if got := latencySeconds(g, tensor.KernelForwardWide, slow); !near(got, c.want*chain) {
			t.Errorf("%d blocks, %d at once: %v s, want %v chains of %v", c.blocks, c.resident, got, c.want, chain)
		}
	}
}

// TestEither adds launches that wide tiles make slower, and wants those of the others, with
// nothing left of what was weighed: lists, operands and products that are kept.
func TestEither(t *testing.T) {
	tables := &Tables{Rows: 64, Size: 32, Mixed: true, Processors: 132, valLen: 640, Program: &layers.Program{}}
	tables.Elements = []tensor.Element{{Width: 32, Count: 5, Wide: 1, Formed: tensor.NotKept}}
	tables.Sums = []tensor.Sum{{Elements: 1, Width: 32, Cols: 32}}
	s := &Schedule{Tables: tables, train: true, Lists: []uint32{7}}
	once := Work{Kernel: tensor.KernelStored, List: 0, Blocks: 1, Rows: tensor.RowTile}
	add := func(n int) func() {
		return func() {
			s.Lists = append(s.Lists, make([]uint32, n)...)
			for range n {
				s.Forward = append(s.Forward, Work{Kernel: once.Kernel, List: len(s.Lists) - 1, Blocks: 1, Rows: once.Rows})
			}
		}
	}
	slow := func() {
		s.keep(0)
		s.operandsLen = 99
		add(3)()
	}
	if s.either(&s.Forward, slow, add(2)) {
		t.Fatal("three launches are taken, in place of two")
	}
	s.unkeep([]int{0})
	if len(s.Forward) != 2 || len(s.Lists) != 3 || s.operandsLen != 0 || s.formedLen != 0 || tables.Elements[0].Formed != tensor.NotKept {
		t.Errorf("%d launches, %d words of lists, %d operands, %d floats of products, the first at %d", len(s.Forward), len(s.Lists), s.operandsLen, s.formedLen, tables.Elements[0].Formed)
	}
	if !s.either(&s.Forward, add(2), add(2)) || len(s.Forward) != 4 || len(s.Lists) != 5 {
		t.Errorf("equal times: %d launches, %d words of lists; want the wide ones once", len(s.Forward), len(s.Lists))
	}
	tables.Processors = 1
	if !s.either(&s.Forward, slow, add(2)) || len(s.Forward) != 7 || tables.Elements[0].Formed == tensor.NotKept {
		t.Errorf("one multiprocessor: %d launches", len(s.Forward))
	}
}

// TestHost wants one way to the driver's thread and back.
func TestHost(t *testing.T) {
	if got := hostSeconds(slow); got != 7 {
		t.Errorf("the host takes %v s, want one hop of 7", got)
	}
}

// TestTerms adds launches up: those of its terms that overlap count once, and
// the largest of all names the bound.
func TestTerms(t *testing.T) {
	launch := Terms{Issue: 3, Tensor: 1, Memory: 2, Cache: 4, Shared: 1, Latency: 5, Gaps: 2}
	if got := launch.expected(); got != 4+5+2 {
		t.Errorf("a launch takes %v s, want its longest term, 4, and 7", got)
	}
	for name, term := range map[string]*float64{
		"issue": &launch.Issue, "tensor": &launch.Tensor, "memory": &launch.Memory, "cache": &launch.Cache, "shared": &launch.Shared,
		"latency": &launch.Latency, "launch": &launch.Gaps, "host": &launch.Host,
	} {
		was := *term
		*term = 6
		if got := launch.bound(); got != name {
			t.Errorf("bound by %s, want %s", got, name)
		}
		*term = was
	}
	twice := launch
	twice.add(launch)
	if want := (Terms{Issue: 6, Tensor: 2, Memory: 4, Cache: 8, Shared: 2, Latency: 10, Gaps: 4}); twice != want {
		t.Errorf("two launches are %+v, want %+v", twice, want)
	}
}

// TestWeights wants every kernel of a step to have instructions, a chain of loads and
// registers, and the instructions of trips to be the sum of their parts.
func TestWeights(t *testing.T) {
	for kernel, w := range textWeights {
		if products, others := w.of(trips{1, 1, 1, 1, 1, 1, 1}); !(products+others > 0) || chains[kernel] < 1 || registers[kernel] == [3]int{} {
			t.Errorf("%s: weights %+v, %d loads, registers %v", kernel, w, chains[kernel], registers[kernel])
		}
	}
	if len(chains) != len(textWeights) || len(registers) != len(textWeights) {
		t.Errorf("%d kernels have weights, %d chains, %d registers", len(textWeights), len(chains), len(registers))
	}
	w := weights{block: 1, open: 10, form: 100, wide: 1e3, stage: 1e4, product: 1e5, result: 1e6, exact: 1e7}
	products, others := w.of(trips{blocks: 1, opened: 2, formed: 3, wide: 4, stages: 5, products: 6, results: 7})
	if products != 650_000 || others != 7_004_321 {
		t.Errorf("%v instructions of products, %v others; want 650000, 7004321", products, others)
	}
	if got := sass(true, 10, 100); !near(got, 10*sassOfProducts+100*sassOfOthers) {
		t.Errorf("with matrix instructions %v of the machine", got)
	}
	if got := sass(false, 10, 100); !near(got, 110*sassOfOthers) {
		t.Errorf("without matrix instructions %v of the machine", got)
	}
	if mixed, exact := weightsOf(tensor.KernelForward, 32, true), weightsOf(tensor.KernelForward, 32, false); exact.product != mixed.product+mixed.exact {
		t.Errorf("a product takes %v in float32, %v in mixed precision", exact.product, mixed.product)
	}
}

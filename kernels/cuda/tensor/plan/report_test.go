package plan_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// assembled is what the report of .ci/ptx says of a kernel.
type assembled struct{ blocks, loop, hmma int }

// report reads what CUDA 12.4 makes for sm_90: of the file of a module, "forward_b32_mixed_sm80.ptx", by kernel.
func report(t *testing.T) map[string]map[string]assembled {
	t.Helper()
	text, err := os.ReadFile("../../../ptx/tensor/testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	head := strings.Fields(lines[0])
	files := map[string]map[string]assembled{}
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		field := func(name string) string { return f[slices.Index(head, name)] }
		number := func(name string) int {
			n, err := strconv.Atoi(field(name))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if field("arch") != "sm_90" || field("cuda") != "12.4" {
			continue
		}
		file := field("file")
		if files[file] == nil {
			files[file] = map[string]assembled{}
		}
		files[file][field("kernel")] = assembled{number("blocks"), number("loop"), number("loop_hmma")}
	}
	return files
}

// TestResident compares the blocks that a multiprocessor is taken to hold with the report's.
func TestResident(t *testing.T) {
	files := report(t)
	seen := 0
	for _, v := range []tensor.Variant{{Block: 32, Mixed: true}, {Block: 16, Mixed: true}, {Block: 32}, {Block: 16}, {Block: 8}, {Block: 4}, {Block: 2}, {Block: 1}} {
		name := fmt.Sprintf("b%d", v.Block)
		if v.Mixed {
			name += "_mixed"
		}
		for kernel, got := range plan.Resident(v) {
			a, ok := files[kernel+"_"+name+"_sm80.ptx"][kernel]
			if !ok {
				continue // its text is another variant's
			}
			seen++
			// Variants of small blocks have the registers of the one that takes most.
			if got != a.blocks && !(v.Block < 16 && got < a.blocks) {
				t.Errorf("%s of %s: %d blocks, the report says %d; registers in waves.go want its numbers", kernel, name, got, a.blocks)
			}
		}
	}
	if seen < 40 {
		t.Errorf("the report has %d of the kernels of a step", seen)
	}
}

// hotLoop is the innermost loop of a kernel with most matrix products, as .ci/ptx-report
// finds it in what an assembler makes: its instructions and its products.
func hotLoop(k *ptx.Kernel) (instructions, products int) {
	type place struct{ at, products int }
	begun, closed := map[string]place{}, map[string]bool{}
	var now place
	for i := range k.Body {
		s := &k.Body[i]
		if s.Inst == nil {
			begun[s.Label] = now
			continue
		}
		now.at++
		if s.Inst.Op == "mma" {
			now.products++
		}
		if s.Inst.Op != "bra" {
			continue
		}
		label := s.Inst.Args[0].Symbol
		top, back := begun[label]
		if !back || now.products == top.products {
			continue
		}
		inner := true
		for other := range closed {
			inner = inner && (other == label || begun[other].at <= top.at)
		}
		closed[label] = true
		if n := now.products - top.products; inner && n > products {
			instructions, products = now.at-top.at, n
		}
	}
	return instructions, products
}

// TestSass compares what assemblers make of the loops with matrix products with what they
// are taken to make.
func TestSass(t *testing.T) {
	files := report(t)
	for _, mixed := range []bool{true, false} {
		name := "b32"
		if mixed {
			name += "_mixed"
		}
		seen := 0
		for _, k := range (tensor.Variant{Block: 32, Mixed: mixed}).Module().Kernels {
			n, products := hotLoop(k)
			a, ok := files[k.Name+"_"+name+"_sm80.ptx"][k.Name]
			if products == 0 || !ok {
				continue
			}
			seen++
			if a.hmma != products {
				t.Errorf("%s: %d products in the loop of its text, %d in the machine's", k.Name, products, a.hmma)
			}
			if ratio := float64(a.loop) / float64(n); !(ratio > 0.87*plan.SassOfProducts && ratio < 1.13*plan.SassOfProducts) {
				t.Errorf("%s, mixed %v: %d instructions of %d, %.2f for one; the model takes %v", k.Name, mixed, a.loop, n, ratio, plan.SassOfProducts)
			}
		}
		if seen < 7 {
			t.Errorf("mixed %v: %d kernels with matrix products", mixed, seen)
		}
	}
}

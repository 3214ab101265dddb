package ptx

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// flowText is a kernel with nothing written but %p1 to %p6.
func flowText(body string) string {
	return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n" +
		"mov.pred %p1, 0; mov.pred %p2, 0; mov.pred %p3, 0; mov.pred %p4, 0; mov.pred %p5, 0; mov.pred %p6, 0;\n" + body + "\n}\n"
}

// manyWays leads from X to R on more ways than are kept apart: under no predicate
// on one, and under %p2 and many others on the rest.
func manyWays() string {
	var b strings.Builder
	b.WriteString("X: mov.pred %p7, 0; mov.pred %p8, 0; @%p7 bra S0; @%p8 bra S1; @%p1 bra S2; bra R;\n")
	for i, three := range [][3]int{{3, 4, 5}, {3, 4, 6}, {4, 5, 6}} {
		fmt.Fprintf(&b, "S%d: @!%%p2 bra END;\n", i)
		for _, p := range three {
			fmt.Fprintf(&b, "@%%p%d bra S%d_%d; membar.gl; S%d_%d:\n", p, i, p, i, p)
		}
		b.WriteString("bra R;\n")
	}
	return b.String()
}

// TestFlow says of bodies which register they read too early.
func TestFlow(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"write and read", "mov.u32 %r1, 0; neg.s32 %r2, %r1; ret;", ""},
		{"read alone", "neg.s32 %r2, %r1; ret;", "neg.s32 %r2, %r1;: %r1 is read"},
		{"read by its own write", "add.s32 %r1, %r1, 1; ret;", "%r1 is read"},
		{"first in the text of two", "neg.s32 %r2, %r3; neg.s32 %r2, %r1; ret;", "neg.s32 %r2, %r3;"},
		{"second in the text of two", "neg.s32 %r2, %r1; neg.s32 %r2, %r3; ret;", "neg.s32 %r2, %r1;"},
		{"guard", "@%p7 ret; ret;", "%p7 is read"},
		{"address", "ld.global.u32 %r1, [%d1]; ret;", "%d1 is read"},
		{"vector", "mov.u32 %r1, 0; mov.b64 %d1, {%r1, %r2}; ret;", "%r2 is read"},
		{"vector written", "mov.u64 %d1, 0; mov.b64 {%r1, %r2}, %d1; add.u32 %r1, %r1, %r2; ret;", ""},
		{"stored", "mov.u64 %d1, 0; st.global.u32 [%d1], %r1; ret;", "%r1 is read"},
		{"address is no result", "mov.u32 %r2, 0; red.shared.add.u32 [%r1], %r2; ret;", "%r1 is read"},
		{"unreachable", "bra A; neg.s32 %r2, %r1; A: ret;", ""},
		{"after a trap", "@%p1 bra A; trap; A: mov.u32 %r1, 0; neg.s32 %r1, %r1; ret;", ""},

		{"one side", "@%p1 bra A; mov.u32 %r1, 0; A: neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"other side", "@%p1 bra A; bra B; A: mov.u32 %r1, 0; B: neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"both sides", "@%p1 bra A; mov.u32 %r1, 0; bra B; A: mov.u32 %r1, 1; B: neg.s32 %r2, %r1; ret;", ""},
		{"side that traps", "@%p1 bra A; trap; A: bra B; C: neg.s32 %r2, %r1; ret; B: mov.u32 %r1, 0; bra C;", ""},
		{"loop written before", "mov.u32 %r1, 0; A: add.u32 %r1, %r1, 1; @%p1 bra A; ret;", ""},
		{"loop written in it", "A: neg.s32 %r2, %r1; mov.u32 %r1, 0; @%p1 bra A; ret;", "%r1 is read"},
		{"written in a loop that may be skipped", "A: @%p1 bra B; mov.u32 %r1, 0; bra A; B: neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"back to the start", "mov.u32 %r1, 0; A: neg.s32 %r2, %r1; @%p1 bra A; ret;", ""},
		{"two reads of which one is late", "@%p1 bra A; mov.u32 %r1, 0; neg.s32 %r2, %r1; A: neg.s32 %r3, %r1; ret;", "neg.s32 %r3, %r1;"},

		{"guarded write, guarded read", "@%p1 mov.u32 %r1, 0; @%p1 neg.s32 %r1, %r1; ret;", ""},
		{"negated, too", "@!%p1 mov.u32 %r1, 0; @!%p1 neg.s32 %r1, %r1; ret;", ""},
		{"guarded write, free read", "@%p1 mov.u32 %r1, 0; neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"other guard", "@%p1 mov.u32 %r1, 0; @%p2 neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"other sign", "@%p1 mov.u32 %r1, 0; @!%p1 neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"guard written again", "@%p1 mov.u32 %r1, 0; not.pred %p1, %p1; @%p1 neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"guard written again under a guard", "@%p1 mov.u32 %r1, 0; @%p2 not.pred %p1, %p1; @%p1 neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"another predicate written", "@%p1 mov.u32 %r1, 0; not.pred %p2, %p2; @%p1 neg.s32 %r2, %r1; ret;", ""},
		{"default before", "mov.u32 %r1, 0; @%p1 mov.u32 %r1, 1; neg.s32 %r2, %r1; ret;", ""},
		{"default after", "@%p1 mov.u32 %r1, 1; mov.u32 %r1, 0; neg.s32 %r2, %r1; ret;", ""},
		{"both signs", "@%p1 mov.u32 %r1, 1; @!%p1 mov.u32 %r1, 0; neg.s32 %r2, %r1; ret;", ""},
		{"both signs of two writes of the guard", "@%p1 mov.u32 %r1, 1; not.pred %p1, %p1; @!%p1 mov.u32 %r1, 0; neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"reads after a good one", "@%p1 mov.u32 %r1, 0; @%p1 neg.s32 %r2, %r1; neg.s32 %r3, %r1; ret;", "neg.s32 %r3, %r1;"},
		{"reads in front of the write in the text", "bra B; A: @%p1 neg.s32 %r2, %r1; neg.s32 %r3, %r1; ret; B: @%p1 mov.u32 %r1, 0; bra A;", "neg.s32 %r3, %r1;"},
		{"guarded over a label", "@%p1 mov.u32 %r1, 0; A: @%p1 neg.s32 %r2, %r1; @%p2 bra A; ret;", ""},
		{"guard of a loop changes", "@%p1 mov.u32 %r1, 0; A: @%p1 neg.s32 %r2, %r1; not.pred %p1, %p1; @%p2 bra A; ret;", "%r1 is read"},
		{"guard read before it is written", "@%p7 mov.pred %p7, 1; ret;", "%p7 is read"},
		{"predicate under a guard", "@%p1 mov.pred %p7, 1; @%p7 ret; ret;", "%p7 is read"},
		{"predicate under a guard, both signs", "@%p1 mov.pred %p7, 1; @!%p1 mov.pred %p7, 0; @%p7 ret; ret;", ""},
		{"predicate written under itself", "mov.pred %p7, 0; @%p7 mov.u32 %r1, 0; @%p7 mov.pred %p7, 1; @%p7 neg.s32 %r2, %r1; ret;", "%r1 is read"},

		{"guarded write, branch", "@%p1 mov.u32 %r1, 0; @!%p1 bra A; neg.s32 %r2, %r1; A: ret;", ""},
		{"guarded write, wrong branch", "@%p1 mov.u32 %r1, 0; @%p1 bra A; neg.s32 %r2, %r1; A: ret;", "%r1 is read"},
		{"branch, guarded read", "@!%p1 bra A; mov.u32 %r1, 0; A: @%p1 neg.s32 %r2, %r1; ret;", ""},
		{"branch, guarded read of the other sign", "@!%p1 bra A; mov.u32 %r1, 0; A: @!%p1 neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"two branches of a sign", "@%p1 bra A; mov.u32 %r1, 0; A: @%p1 bra B; neg.s32 %r2, %r1; B: ret;", ""},
		{"two branches of two signs", "@%p1 bra A; mov.u32 %r1, 0; A: @!%p1 bra B; neg.s32 %r2, %r1; B: ret;", "%r1 is read"},
		{"two branches, written between", "@%p1 bra A; mov.u32 %r1, 0; A: not.pred %p1, %p1; @%p1 bra B; neg.s32 %r2, %r1; B: ret;", "%r1 is read"},
		{"branch to the next", "@%p1 bra A; A: @%p1 mov.u32 %r1, 0; neg.s32 %r2, %r1; ret;", "%r1 is read"},
		{"guarded write, two branches of another guard", "@%p2 bra A; mov.u32 %r1, 0; A: @%p1 mov.u32 %r1, 1; @%p2 bra B; neg.s32 %r2, %r1; B: ret;", ""},
		{"many ways of which one is bad", "@%p2 bra W; bra X; W: mov.u32 %r1, 0;\n" + manyWays() + "R: neg.s32 %r2, %r1; END: ret;", "%r1 is read"},
		{"many ways between", "@%p2 mov.u32 %r1, 0;\n" + manyWays() + "R: @%p2 neg.s32 %r2, %r1; END: ret;", ""},
		{"three predicates", "@%p1 mov.u32 %r1, 0; @%p2 mov.u32 %r1, 0; @%p3 mov.u32 %r1, 0; @%p2 neg.s32 %r2, %r1; ret;", ""},
	} {
		err := verifyText(t, flowText(tc.body))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %q: %v; want %q", tc.name, tc.body, err, tc.want)
		}
	}
}

// TestFlowRandom runs random bodies along random ways, with every value of the
// predicates: Verify must refuse all bodies in which a run reads too early. It may
// refuse others, but not most.
func TestFlowRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	bad, good, strict := 0, 0, 0
	for range 1500 {
		body := randomFlow(rng)
		m, err := Parse([]byte(flowText(body)))
		if err != nil {
			t.Fatal(err)
		}
		err = m.Verify()
		early := readsEarly(m.Kernels[0])
		switch {
		case early && err == nil:
			t.Fatalf("accepted, but it reads too early:\n%s", body)
		case early:
			bad++
		case err == nil:
			good++
		default:
			strict++
		}
	}
	if bad < 100 || good < 100 || strict > good {
		t.Errorf("%d bodies refused, %d accepted, %d refused that never read too early", bad, good, strict)
	}
}

// randomPreds is the number of predicates of random bodies.
const randomPreds = 6

// randomFlow is a body with a few writes, reads, and branches.
func randomFlow(rng *rand.Rand) string {
	var b strings.Builder
	labels, preds := rng.IntN(12), 1+rng.IntN(randomPreds)
	guard := func() string {
		if rng.IntN(3) == 0 {
			return ""
		}
		return fmt.Sprintf("@%s%%p%d ", []string{"", "!"}[rng.IntN(2)], 1+rng.IntN(preds))
	}
	for i := range labels + 1 {
		if i > 0 {
			fmt.Fprintf(&b, "L%d:\n", i)
		}
		for range 1 + rng.IntN(4) {
			switch rng.IntN(8) {
			case 0:
				b.WriteString(guard() + "neg.s32 %r2, %r1;\n")
			case 1, 2, 3:
				b.WriteString(guard() + "mov.u32 %r1, 0;\n")
			case 4:
				fmt.Fprintf(&b, "%snot.pred %%p%d, %%p1;\n", guard(), 1+rng.IntN(preds))
			default:
				if labels > 0 {
					fmt.Fprintf(&b, "%sbra L%d;\n", guard(), 1+rng.IntN(labels))
				}
			}
		}
	}
	b.WriteString(guard() + "neg.s32 %r2, %r1;\nret;")
	return b.String()
}

// readsEarly explores all runs of a body of randomFlow; what not gives is open.
func readsEarly(k *Kernel) bool {
	type machine struct {
		at      int
		p       [randomPreds + 1]bool
		written bool
	}
	labels := map[string]int{}
	for i, s := range k.Body {
		if s.Inst == nil {
			labels[s.Label] = i
		}
	}
	var stack []machine
	for bits := range 1 << randomPreds {
		s := machine{at: randomPreds}
		for i := range randomPreds {
			s.p[i+1] = bits>>i&1 != 0
		}
		stack = append(stack, s)
	}
	seen := map[machine]bool{}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		in := k.Body[s.at].Inst
		s.at++
		if in == nil || in.Guard.Class == P && s.p[in.Guard.ID] == in.Negated {
			stack = append(stack, s)
			continue
		}
		switch in.Op {
		case "ret":
			continue
		case "bra":
			s.at = labels[in.Args[0].Symbol]
		case "mov":
			s.written = true
		case "neg":
			if !s.written {
				return true
			}
		case "not":
			other := s
			other.p[in.Args[0].Reg.ID] = !other.p[in.Args[0].Reg.ID]
			stack = append(stack, other)
		}
		stack = append(stack, s)
	}
	return false
}

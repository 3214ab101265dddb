package ptx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// bodyOf parses a body whose words are labels "A:", branches ">A", guarded branches
// "?A", guarded exits "?ret", and other instructions by name.
func bodyOf(t *testing.T, words string) *Kernel {
	t.Helper()
	var b strings.Builder
	b.WriteString(".version 7.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .pred %p<1>;\n")
	for _, w := range strings.Fields(words) {
		switch {
		case strings.HasSuffix(w, ":"):
			b.WriteString(w + "\n")
		case w == "?ret":
			b.WriteString("@%p0 ret;\n")
		case w[0] == '>':
			fmt.Fprintf(&b, "bra %s;\n", w[1:])
		case w[0] == '?':
			b.WriteString("@%p0 bra " + w[1:] + ";\n")
		default:
			fmt.Fprintf(&b, "%s;\n", w)
		}
	}
	m, err := Parse([]byte(b.String() + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Kernels[0]
}

// TestMeets gives for each branch of a body the word at which its threads meet.
func TestMeets(t *testing.T) {
	for _, tc := range []struct {
		name, words string
		want        map[int]int // word of a branch → word
	}{
		{"if", "?A x A: ret", map[int]int{0: 2}},
		{"if else", "?A x >B A: y B: z ret", map[int]int{0: 5, 2: 5}},
		{"if in if", "?A x ?B y B: z A: ret", map[int]int{0: 6, 2: 4}},
		{"loop with the test at its end", "A: x ?A y ret", map[int]int{2: 3}},
		{"loop with the test at its start", "A: ?B x >A B: ret", map[int]int{1: 4, 3: 0}},
		{"break out of a loop", "A: ?B x ?B y >A B: ret", map[int]int{1: 6, 3: 6, 5: 0}},
		{"continue", "A: x ?C y C: z ?A ret", map[int]int{2: 4, 6: 7}},
		{"loop in loop", "A: B: x ?B y ?A z ret", map[int]int{3: 4, 5: 6}},
		{"labels in a row", "?A ?B x A: B: ret", map[int]int{0: 3, 1: 3}},
		{"two entries to a loop", "?B A: x B: y ?A ret", map[int]int{0: 3, 5: 6}},
		{"guarded ret counts as going on", "?A x ?ret y A: ret", map[int]int{0: 4}},
		{"ret on one side", "?A x ret A: y ret", map[int]int{0: 3}},
		{"ret on the other side", "?A x >B A: ret B: y ret", map[int]int{0: 1, 2: 5}},
		{"ret in an if in an if", "?A ?B ret B: x A: y ret", map[int]int{0: 5, 1: 3}},
		{"two ends, more ways to the first", "?A B: ?C x C: ret A: y ?B z ret", map[int]int{0: 1, 2: 4, 8: 1}},
		{"trap on one side", "?A x trap A: y ret", map[int]int{0: 3}},
		{"no way out", "?A B: x >B A: y ret", map[int]int{0: 4, 3: -1}},
		{"never ends", "A: x ?A >A", map[int]int{2: -1, 3: -1}},
		{"branch at the end", "A: x ?A", map[int]int{2: -1}},
		{"label that is not there", "?Z x ret", map[int]int{0: 1}},
		{"label that is there twice", "?A x A: y A: ret", map[int]int{0: 2}},
		{"both ways lead to one place", "?A A: ret", map[int]int{0: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			meets := NewCFG(bodyOf(t, tc.words)).Meets()
			for i, want := range tc.want {
				if got := meets[i]; got != want {
					t.Errorf("%q: threads that part at word %d meet at %d, want %d", tc.words, i, got, want)
				}
			}
		})
	}
	if c := NewCFG(&Kernel{}); len(c.Blocks) != 0 || len(c.Meets()) != 0 {
		t.Errorf("an empty body has blocks %v", c.Blocks)
	}
}

// TestMeetsRandom compares post-dominators of random bodies with their definition.
func TestMeetsRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		labels := 1 + rng.IntN(7)
		var words []string
		for i := range labels {
			words = append(words, fmt.Sprintf("L%d:", i))
			for range rng.IntN(3) {
				words = append(words, []string{"x", "?ret", fmt.Sprintf("?L%d", rng.IntN(labels))}[rng.IntN(3)])
			}
			if w := []string{"", "", "ret", "exit", "trap", fmt.Sprintf(">L%d", rng.IntN(labels))}[rng.IntN(6)]; w != "" {
				words = append(words, w)
			}
		}
		text := strings.Join(words, " ")
		k := bodyOf(t, text)
		c := NewCFG(k)
		meets, want := c.Meets(), meetByDefinition(c)
		for i := range c.Blocks {
			if got := meets[c.Blocks[i].First]; got != want[i] {
				t.Fatalf("%q: block %d of %+v meets at %d, want %d", text, i, c.Blocks, got, want[i])
			}
		}
		if fault := wrongBlocks(k, c); fault != "" {
			t.Fatalf("%q: %s in %+v", text, fault, c.Blocks)
		}
	}
}

// wrongBlocks compares blocks with what each statement does by itself.
func wrongBlocks(k *Kernel, c *CFG) string {
	at := 0
	for i, b := range c.Blocks {
		if b.First != at || b.End <= at {
			return fmt.Sprintf("block %d does not follow on statement %d", i, at)
		}
		for ; at < b.End; at++ {
			s := &k.Body[at]
			fall, taken, exits := at+1, -1, false
			if s.Inst != nil {
				free := s.Inst.Guard.Class == NoClass
				switch op := s.Inst.Op; {
				case op == "bra":
					for j := range k.Body {
						if k.Body[j].Label == s.Inst.Args[0].Symbol {
							taken = j
						}
					}
					if free {
						fall = -1
					}
				case free && (op == "ret" || op == "exit"):
					fall, exits = -1, true
				case free && op == "trap":
					fall = -1
				}
			}
			if fall == len(k.Body) {
				fall, exits = -1, true
			}
			switch {
			case int(c.BlockOf[at]) != i:
				return fmt.Sprintf("statement %d is not in block %d", at, i)
			case s.Inst == nil && at > b.First && k.Body[at-1].Inst != nil:
				return fmt.Sprintf("label %s does not start a block", s.Label)
			case at < b.End-1 && (fall < 0 || taken >= 0):
				return fmt.Sprintf("statement %d does not end its block", at)
			case at == b.End-1 && (b.Exits != exits || !leadsTo(c, b.Fall, fall) || !leadsTo(c, b.Taken, taken)):
				return fmt.Sprintf("block %d should lead to %d and %d, or end: %v", i, fall, taken, exits)
			case at == b.End-1 && fall >= 0 && taken < 0 && k.Body[fall].Inst != nil && s.Inst.Op != "bra":
				return fmt.Sprintf("block %d ends at statement %d for no reason", i, at)
			}
		}
		for _, next := range []int{b.Fall, b.Taken} {
			if next >= 0 && !slices.Contains(c.Blocks[next].Prev, int32(i)) {
				return fmt.Sprintf("block %d does not know that %d leads there", next, i)
			}
		}
	}
	if at != len(k.Body) {
		return fmt.Sprintf("the last statement is %d", at)
	}
	return ""
}

// leadsTo reports whether a block is the one with a statement; -1 is none.
func leadsTo(c *CFG, block, stmt int) bool {
	if stmt < 0 {
		return block == -1
	}
	return block == int(c.BlockOf[stmt])
}

// meetByDefinition finds, for each block, among the blocks without which there is
// no way from it to the end, the one that all others of them come after.
func meetByDefinition(c *CFG) []int {
	leads := func(from, to, without int) bool {
		seen := make([]bool, len(c.Blocks))
		stack := []int{from}
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if i < 0 || i == without || seen[i] {
				continue
			}
			seen[i] = true
			if i == to {
				return true
			}
			stack = append(stack, c.Blocks[i].Fall, c.Blocks[i].Taken)
		}
		return false
	}
	end, most := -1, 0
	for to := range c.Blocks {
		n := 0
		for from := range c.Blocks {
			if leads(from, to, -1) {
				n++
			}
		}
		if c.Blocks[to].Exits && n >= most {
			end, most = to, n
		}
	}
	meets := make([]int, len(c.Blocks))
	for from := range c.Blocks {
		meets[from] = -1
		if from == end || !leads(from, end, -1) {
			continue
		}
		for at := range c.Blocks {
			first := at != from && !leads(from, end, at)
			for other := range c.Blocks {
				if other != from && other != at && !leads(from, end, other) && leads(at, end, other) {
					first = false
				}
			}
			if first {
				meets[from] = c.Blocks[at].First
			}
		}
	}
	return meets
}

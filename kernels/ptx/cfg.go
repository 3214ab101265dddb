package ptx

import "slices"

// Block is a run of statements that is entered at its first and left after its
// last alone.
type Block struct {
	First, End int     // statements First ≤ i < End
	Fall       int     // the block that follows in the text and is reached from here, or -1
	Taken      int     // the block that the last statement branches to, or -1
	Exits      bool    // the last statement ends the thread: ret, exit, or the end of the body
	Prev       []int32 // the blocks that lead here; twice where both ways of a branch do
}

// CFG is the control flow of a kernel. A guarded ret or exit does not end a block;
// a trap leads nowhere.
type CFG struct {
	Blocks  []Block        // in the order of the text; the first is the entry
	BlockOf []int32        // the block of each statement
	Labels  map[string]int // the statement of each label, the first of a name
}

// NewCFG returns the control flow of a kernel. A branch to a label that does not
// exist leads nowhere; Verify refuses it.
func NewCFG(k *Kernel) *CFG {
	c := &CFG{BlockOf: make([]int32, len(k.Body)), Labels: map[string]int{}}
	c.cut(k)
	for i := range c.Blocks {
		c.join(k, i)
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		for _, next := range [2]int{b.Fall, b.Taken} {
			if next >= 0 {
				c.Blocks[next].Prev = append(c.Blocks[next].Prev, int32(i))
			}
		}
	}
	return c
}

// ends reports whether no statement follows in at least some threads.
func (in *Inst) ends() bool {
	switch in.Op {
	case "bra":
		return true
	case "ret", "exit", "trap":
		return in.Guard.Class == NoClass
	}
	return false
}

// cut finds where blocks start.
func (c *CFG) cut(k *Kernel) {
	open := false
	for i := range k.Body {
		s := &k.Body[i]
		// Labels in a row start one block.
		if !open || s.Inst == nil && k.Body[i-1].Inst != nil {
			if n := len(c.Blocks); n > 0 {
				c.Blocks[n-1].End = i
			}
			c.Blocks = append(c.Blocks, Block{First: i, End: len(k.Body), Fall: -1, Taken: -1})
		}
		open = s.Inst == nil || !s.Inst.ends()
		if _, twice := c.Labels[s.Label]; s.Inst == nil && !twice {
			c.Labels[s.Label] = i
		}
		c.BlockOf[i] = int32(len(c.Blocks) - 1)
	}
}

// join sets where block i leads.
func (c *CFG) join(k *Kernel, i int) {
	b := &c.Blocks[i]
	last := k.Body[b.End-1].Inst
	falls := true
	if last != nil && last.ends() {
		falls = last.Guard.Class != NoClass
		b.Exits = last.Op == "ret" || last.Op == "exit"
		if last.Op == "bra" && len(last.Args) == 1 {
			if target, ok := c.Labels[last.Args[0].Symbol]; ok {
				b.Taken = int(c.BlockOf[target])
			}
		}
	}
	if falls && i+1 < len(c.Blocks) {
		b.Fall = i + 1
	}
	b.Exits = b.Exits || falls && i+1 == len(c.Blocks)
}

// Meets returns for each statement where threads that part there, at a branch,
// come together again: the first statement of the block's immediate post-dominator,
// or -1 where there is none.
//
// Threads that have ended need no place to meet the others. So a guarded ret or
// exit counts as continuing, and of several ends one alone counts: that to which
// ways lead from most blocks, the last in the text of such.
//
// The method is the iteration of Cooper, Harvey and Kennedy, "A Simple, Fast
// Dominance Algorithm", 2001, against the flow. It takes time in proportion to
// blocks times ends.
func (c *CFG) Meets() []int {
	var order []int32 // of blocks from which the end is reached, the end last
	for i := range c.Blocks {
		if c.Blocks[i].Exits {
			if o := c.postorder(int32(i)); len(o) >= len(order) {
				order = o
			}
		}
	}
	rank := make([]int, len(c.Blocks)) // in order, from 1; 0 for other blocks
	for i, b := range order {
		rank[b] = i + 1
	}
	after := make([]int, len(c.Blocks)) // the post-dominators so far
	for i := range after {
		after[i] = -1
	}
	if len(order) > 0 {
		root := order[len(order)-1]
		after[root] = int(root)
		for c.refine(order[:len(order)-1], rank, after) {
		}
		after[root] = -1
	}
	meets := make([]int, len(c.BlockOf))
	for i, b := range c.BlockOf {
		meets[i] = -1
		if a := after[b]; a >= 0 {
			meets[i] = c.Blocks[a].First
		}
	}
	return meets
}

// refine takes for each block the first block that its successors have in common
// and reports whether that changed anything.
func (c *CFG) refine(order []int32, rank, after []int) bool {
	changed := false
	for _, i := range slices.Backward(order) {
		found := -1
		for _, n := range [2]int{c.Blocks[i].Fall, c.Blocks[i].Taken} {
			if n < 0 || after[n] < 0 {
				continue
			}
			if found < 0 {
				found = n
			}
			for found != n {
				if rank[found] < rank[n] {
					found = after[found]
				} else {
					n = after[n]
				}
			}
		}
		if after[i] != found {
			after[i], changed = found, true
		}
	}
	return changed
}

// postorder lists the blocks that lead to a block, that one last, each after those
// which a search against the flow finds from it.
func (c *CFG) postorder(root int32) []int32 {
	type step struct {
		block int32
		next  int
	}
	var post []int32
	seen := make([]bool, len(c.Blocks))
	seen[root] = true
	stack := []step{{root, 0}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		prev := c.Blocks[top.block].Prev
		if top.next == len(prev) {
			post = append(post, top.block)
			stack = stack[:len(stack)-1]
			continue
		}
		b := prev[top.next]
		top.next++
		if !seen[b] {
			seen[b] = true
			stack = append(stack, step{b, 0})
		}
	}
	return post
}

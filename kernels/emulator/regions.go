package emulator

import "github.com/pce-engine/pce/kernels/ptx"

// joins says where lanes that part at a branch meet again.
type joins struct {
	of map[int]int  // of the statement of a branch: the statement where they meet
	at map[int]bool // statements where some meet
}

// meetings finds where the lanes of each branch with a guard meet: at its immediate
// post-dominator. Unlike ptx.CFG.Meet it counts one exit only, the one that most of
// the kernel leads to: lanes that leave early must not keep the others from meeting.
func meetings(k *ptx.Kernel) joins {
	c := ptx.NewCFG(k)
	after := postDominators(c)
	j := joins{of: map[int]int{}, at: map[int]bool{}}
	for i, b := range c.Blocks {
		last := k.Body[b.End-1].Inst
		if last == nil || last.Op != "bra" || last.Guard.Class == ptx.NoClass || after[i] < 0 {
			continue
		}
		at := c.Blocks[after[i]].First
		j.of[b.End-1] = at
		j.at[at] = true
	}
	return j
}

// postDominators returns the immediate post-dominator of each block, -1 for none.
// Method: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm".
func postDominators(c *ptx.CFG) []int {
	after, rank := make([]int, len(c.Blocks)), make([]int, len(c.Blocks))
	for i := range after {
		after[i], rank[i] = -1, -1
	}
	var order []int
	for i := range c.Blocks {
		if c.Blocks[i].Exits {
			if o := backwards(c, i); len(o) >= len(order) {
				order = o
			}
		}
	}
	if len(order) == 0 {
		return after
	}
	for i, b := range order {
		rank[b] = i
	}
	root := order[0]
	after[root] = root
	for changed := true; changed; {
		changed = false
		for _, b := range order[1:] {
			best := -1
			for _, to := range [2]int{c.Blocks[b].Fall, c.Blocks[b].Taken} {
				if to < 0 || rank[to] < 0 || after[to] < 0 {
					continue
				}
				if best < 0 {
					best = to
				}
				for a := to; a != best; {
					if rank[a] > rank[best] {
						a = after[a]
					} else {
						best = after[best]
					}
				}
			}
			if after[b] != best {
				after[b], changed = best, true
			}
		}
	}
	after[root] = -1
	return after
}

// backwards lists the blocks that lead to root, in reverse post-order of a search
// against the flow of control.
func backwards(c *ptx.CFG, root int) []int {
	type visit struct{ block, next int }
	seen := make([]bool, len(c.Blocks))
	seen[root] = true
	path := []visit{{root, 0}}
	var post []int
	for len(path) > 0 {
		v := &path[len(path)-1]
		prev := c.Blocks[v.block].Prev
		if v.next == len(prev) {
			post = append(post, v.block)
			path = path[:len(path)-1]
			continue
		}
		b := int(prev[v.next])
		v.next++
		if !seen[b] {
			seen[b] = true
			path = append(path, visit{b, 0})
		}
	}
	for i, j := 0, len(post)-1; i < j; i, j = i+1, j-1 {
		post[i], post[j] = post[j], post[i]
	}
	return post
}

package emulator

import "github.com/pce-engine/pce/kernels/ptx"

// joins says where lanes that part at a branch meet again.
type joins struct {
	of map[int]int  // of the statement of a branch: the statement where they meet
	at map[int]bool // statements where some meet
}

// meetings finds where the lanes of each branch with a guard meet.
func meetings(k *ptx.Kernel) joins {
	j := joins{of: map[int]int{}, at: map[int]bool{}}
	for i, at := range ptx.NewCFG(k).Meets() {
		in := k.Body[i].Inst
		if in == nil || in.Op != "bra" || in.Guard.Class == ptx.NoClass || at < 0 {
			continue
		}
		j.of[i] = at
		j.at[at] = true
	}
	return j
}

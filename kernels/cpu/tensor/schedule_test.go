package tensor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

func plannedFor(t testing.TB, g *circuit.Graph, threads int) *executor {
	t.Helper()
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return planned(layers.Module{Program: r.Program, Rows: 16, Train: true}, opened(t, cpu.Options{Threads: threads, Set: micro.All()[0]}))
}

func bit(int) circuit.Leaf { return circuit.Bernoulli{} }

func chain(t testing.TB, tied bool) *circuit.Graph {
	t.Helper()
	g, err := structures.HMM(structures.HMMOptions{Length: 12, Latents: 32, Tied: tied, Leaf: bit})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func tree(t testing.TB) *circuit.Graph {
	t.Helper()
	shape, err := structures.GridTree(8, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	g, err := structures.HCLT(shape, structures.HCLTOptions{Latents: 32, Leaf: bit})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func image(t testing.TB) *circuit.Graph {
	t.Helper()
	o := structures.DefaultPD()
	o.Shape, o.SplitInterval, o.Latents, o.Leaf = [3]int{4, 4, 1}, 1, 8, bit
	g, err := structures.PD(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// before tells which tasks a schedule makes wait for which.
type before struct {
	x     *executor
	reach []map[int32]bool // by task: all tasks that are done before it starts
}

// ordered checks that a schedule can end: its order has every task once, behind
// all that it waits for. Then no set of waiting tasks can block one another, and
// what waits do not force may happen in either order.
func ordered(t *testing.T, x *executor, s *schedule) *before {
	t.Helper()
	n := len(x.tasks)
	b := &before{x: x, reach: make([]map[int32]bool, n)}
	if len(s.order) != n || len(s.waits) != n {
		t.Fatalf("%d tasks in order and %d with waits, want %d", len(s.order), len(s.waits), n)
	}
	for _, i := range s.order {
		if b.reach[i] != nil {
			t.Fatalf("task %d comes twice", i)
		}
		b.reach[i] = make(map[int32]bool)
		for _, w := range s.waits[i] {
			if b.reach[w] == nil {
				t.Fatalf("task %d comes before task %d, which it waits for", i, w)
			}
			b.reach[i][w] = true
			for k := range b.reach[w] {
				b.reach[i][k] = true
			}
		}
	}
	return b
}

// want fails unless task a is done before task c starts.
func (b *before) want(t *testing.T, why string, a, c int32) {
	t.Helper()
	if a >= 0 && c >= 0 && a != c && !b.reach[c][a] {
		t.Fatalf("%s: task %d (vector %d) may run before task %d (vector %d) is done", why, c, b.x.tasks[c].vec, a, b.x.tasks[a].vec)
	}
}

// checkForward wants each vector after all that it multiplies.
func checkForward(t *testing.T, x *executor) {
	b := ordered(t, x, &x.forwardPlan)
	p := x.prog
	eachUse(p, func(user int32, _ int32, factor int32) {
		b.want(t, "forward", x.taskOf[factor], x.taskOf[user])
	})
}

// eachUse calls do for every vector, element and factor of it.
func eachUse(p *layers.Program, do func(user, element, factor int32)) {
	use := func(user, e int32) {
		for _, f := range p.ElementFactors(e) {
			do(user, e, f)
		}
	}
	for i := range p.Sums {
		for e := p.Sums[i].ElemLo; e < p.Sums[i].ElemHi; e++ {
			use(p.Sums[i].Vector, e)
		}
	}
	for _, s := range p.Stored {
		use(s.Vector, s.Element)
	}
}

// checkBackward wants each vector after all that send it flow, and what adds to
// the same floats in one order; it returns these orders, which may not depend on
// the number of threads.
func checkBackward(t *testing.T, x *executor) [][]int32 {
	b := ordered(t, x, &x.backwardPlan)
	p := x.prog
	users := make([][]int32, len(p.Vectors)) // tasks, by vector
	eachUse(p, func(user, _, factor int32) {
		b.want(t, "backward", x.taskOf[user], x.taskOf[factor])
		users[factor] = append(users[factor], x.taskOf[user])
	})
	var orders [][]int32
	inOrder := func(why string, tasks []int32) {
		slices.Sort(tasks)
		tasks = slices.Compact(tasks)
		slices.SortFunc(tasks, func(i, j int32) int {
			if b.reach[j][i] {
				return -1
			}
			return 1
		})
		for k := 1; k < len(tasks); k++ {
			b.want(t, why, tasks[k-1], tasks[k])
		}
		orders = append(orders, tasks)
	}
	for v := range p.Vectors {
		if p.Vectors[v].Kind != layers.InputVector && len(users[v]) > 1 {
			inOrder("flows of one vector", users[v])
		}
	}
	for o, members := range x.members {
		if len(members) < 2 {
			continue
		}
		var tasks []int32
		for _, v := range members {
			tasks = append(tasks, x.taskOf[v])
		}
		inOrder("sums that share weights", tasks)
		chain := orders[len(orders)-1]
		for k, i := range chain {
			s := x.tasks[i].sum
			if s.first != (k == 0) || s.last != (k == len(chain)-1) || s.owner != int32(o) {
				t.Errorf("place %d of %d in the chain of sum %d has first %v, last %v, owner %d", k, len(chain), o, s.first, s.last, s.owner)
			}
		}
	}
	for i := range p.Inputs { // an owner moves the table: after all users of all that share it
		in := &p.Inputs[i]
		owner := x.taskOf[p.Inputs[in.Owner].Vector]
		for _, u := range users[in.Vector] {
			b.want(t, "inputs that share a table", u, owner)
		}
	}
	return orders
}

// TestSchedules checks the plans of structures and random circuits for one to
// eight threads.
func TestSchedules(t *testing.T) {
	graphs := map[string]*circuit.Graph{"chain": chain(t, false), "tied chain": chain(t, true), "tree": tree(t), "image": image(t)}
	for seed := range uint64(40) {
		g := reference.Random(rand.New(rand.NewPCG(seed, 41)), reference.RandomOptions{Vars: 1 + int(seed%9), Reuse: 0.2 + float64(seed%5)/10})
		graphs[fmt.Sprintf("random %d", seed)] = g
	}
	shared := 0
	for name, g := range graphs {
		t.Run(name, func(t *testing.T) {
			var first [][]int32
			for _, threads := range []int{1, 2, 3, 8} {
				x := plannedFor(t, g, threads)
				checkForward(t, x)
				orders := checkBackward(t, x)
				if first == nil {
					first = orders
					shared += len(orders)
				}
				if !slices.EqualFunc(first, orders, slices.Equal) {
					t.Errorf("%d threads add up in the order %v, one in %v", threads, orders, first)
				}
				rng := rand.New(rand.NewPCG(uint64(threads), 42))
				for range 3 {
					interleave(t, x, &x.forwardPlan, threads, rng)
					interleave(t, x, &x.backwardPlan, threads, rng)
				}
			}
		})
	}
	if shared == 0 {
		t.Error("no circuit adds to the same floats twice; the order of sums was not tested")
	}
}

// TestLockstep sees chains run by all threads together and trees by tasks.
func TestLockstep(t *testing.T) {
	for _, tc := range []struct {
		name  string
		graph *circuit.Graph
		want  bool
	}{{"chain", chain(t, false), true}, {"tied chain", chain(t, true), true}, {"tree", tree(t), false}} {
		x := plannedFor(t, tc.graph, 2)
		if x.forwardPlan.lockstep != tc.want || x.backwardPlan.lockstep != tc.want {
			t.Errorf("%s: lockstep forward %v, backward %v, want %v", tc.name, x.forwardPlan.lockstep, x.backwardPlan.lockstep, tc.want)
		}
		if one := plannedFor(t, tc.graph, 1); one.forwardPlan.lockstep || one.backwardPlan.lockstep {
			t.Errorf("%s: one thread in lockstep with itself", tc.name)
		}
	}
}

// interleave lets threads take tasks from the queue and finish them in random
// order: each task is taken once, after all that it waits for.
func interleave(t *testing.T, x *executor, s *schedule, threads int, rng *rand.Rand) {
	t.Helper()
	q := newQueue(s)
	taken, done := make([]bool, len(x.tasks)), make([]bool, len(x.tasks))
	take := func(i int32) int32 {
		if taken[i] {
			t.Fatalf("task %d is taken twice", i)
		}
		for _, w := range s.waits[i] {
			if !done[w] {
				t.Fatalf("task %d starts before task %d is done", i, w)
			}
		}
		taken[i] = true
		return i
	}
	var running []int32
	for left := len(x.tasks); left > 0; left-- {
		for len(running) < threads && rng.IntN(5) > 0 || len(running) == 0 {
			i, ok := q.pop()
			if !ok {
				if len(running) == 0 {
					t.Fatalf("%d tasks never start", left)
				}
				break
			}
			running = append(running, take(i))
		}
		k := rng.IntN(len(running))
		done[running[k]] = true
		if i := q.finish(running[k]); i >= 0 {
			running[k] = take(i)
		} else {
			running = slices.Delete(running, k, k+1)
		}
	}
	if i, ok := q.pop(); ok {
		t.Fatalf("task %d is left in the queue", i)
	}
}

// TestRun runs plans on real threads, many times: each task once by one thread,
// or once by each in lockstep, after all that it waits for.
func TestRun(t *testing.T) {
	for name, g := range map[string]*circuit.Graph{"tied chain": chain(t, true), "tree": tree(t), "image": image(t)} {
		for _, threads := range []int{1, 2, 3} {
			r, err := compile.Compile(g, compile.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			x := newExecutor(layers.Module{Program: r.Program, Rows: 4, Train: true}, opened(t, cpu.Options{Threads: threads, Set: micro.All()[0]}))
			for pass, s := range map[string]*schedule{"forward": &x.forwardPlan, "backward": &x.backwardPlan} {
				each := int32(1)
				if s.lockstep {
					each = int32(threads)
				}
				for range 20 {
					times := make([]atomic.Int32, len(x.tasks))
					var early atomic.Int32
					x.run(s, func(_ *worker, task *task) {
						i := x.taskOf[task.vec]
						for _, w := range s.waits[i] {
							if times[w].Load() != each {
								early.Add(1)
							}
						}
						times[i].Add(1)
					})
					for i := range times {
						if n := times[i].Load(); n != each {
							t.Fatalf("%s %s, %d threads: task %d was done %d times, want %d", name, pass, threads, i, n, each)
						}
					}
					if n := early.Load(); n > 0 {
						t.Fatalf("%s %s, %d threads: %d tasks started early", name, pass, threads, n)
					}
				}
			}
		}
	}
}

// TestSplit cuts ranges in parts that cover them once, at whole steps.
func TestSplit(t *testing.T) {
	for n := range 70 {
		for parts := 1; parts <= 5; parts++ {
			for _, step := range []int{1, 16, 64} {
				at := 0
				for part := range parts {
					lo, hi := split(n, step, part, parts)
					if lo != at || hi < lo || hi < n && hi%step != 0 {
						t.Fatalf("split(%d, %d, %d, %d) = %d, %d after %d", n, step, part, parts, lo, hi, at)
					}
					at = hi
				}
				if at != n {
					t.Fatalf("split of %d in %d parts ends at %d", n, parts, at)
				}
			}
			at := 0
			for part := range parts {
				lo, hi := splitColumns(n, part, parts)
				if lo != at || hi < n && hi%16 != 0 {
					t.Fatalf("splitColumns(%d, %d, %d) = %d, %d after %d", n, part, parts, lo, hi, at)
				}
				at = hi
			}
			if at != n {
				t.Fatalf("splitColumns of %d in %d parts ends at %d", n, parts, at)
			}
		}
	}
}

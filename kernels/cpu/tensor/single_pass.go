package tensor

import (
	"math"
	"slices"

	"github.com/pce-engine/pce/internal/invariants"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// singlesUp evaluates the rows of the call and sets their log-likelihoods, where ll is not
// nil. With down it sends one count for each possible row down from the root as well.
func (x *executor) singlesUp(ll []float64, down bool) {
	s := x.singles
	s.stale = true
	const tasks = 16
	x.share(tasks, func(_ *worker, i int) {
		s.readTables(x, len(s.tables)*i/tasks, len(s.tables)*(i+1)/tasks)
		s.readWeights(x, len(s.weights)*i/tasks, len(s.weights)*(i+1)/tasks)
	})
	strips := (x.call.rows + s.set.Rows - 1) / s.set.Rows
	n := s.numParts(x.call.rows)
	x.share(n, func(w *worker, i int) {
		if down {
			clear(s.parts[i])
		}
		for strip := strips * i / n; strip < strips*(i+1)/n; strip++ {
			s.strip(x, w, strip*s.set.Rows, s.parts[i], ll, down)
		}
	})
	if down {
		s.add(x, n)
	}
}

// add adds the counts of n parts up.
func (s *singles) add(x *executor, n int) {
	const chunk = 4096
	total := len(s.parts[0])
	x.share((total+chunk-1)/chunk, func(_ *worker, i int) {
		at := i * chunk
		for _, part := range s.parts[1:n] {
			x.set.AddRows(&s.parts[0][at], chunk, &part[at], chunk, 1, min(chunk, total-at))
		}
	})
}

// strip takes the rows from lo on through the circuit.
func (s *singles) strip(x *executor, w *worker, lo int, counts []float32, ll []float64, down bool) {
	k := &w.single
	n := min(s.set.Rows, x.call.rows-lo)
	s.readCodes(x, k, lo, n)
	for i, in := range s.wide {
		s.leaf(x, w, &x.prog.Inputs[in], k.values[2*s.set.Rows*i:], lo, n)
	}
	k.args.Tables, k.args.Weights = &s.tableBits[0], &s.weightBits[0]
	if down {
		k.args.Counts = &counts[0]
	}
	for g := 0; g < len(s.starts)-1; g += groupsAtOnce {
		s.kernel(k, g, s.set.Forward)
	}
	root := k.values[s.place[x.prog.Root]:]
	for i := range n {
		l := logOf(root[i], int32(root[s.set.Rows+i]))
		if ll != nil {
			ll[lo+i] = l
		}
		s.rootFlow[lo+i] = 1
		if math.IsInf(l, -1) {
			s.rootFlow[lo+i] = 0
		}
	}
	if !down {
		return
	}
	copy(k.flows[s.place[x.prog.Root]/2:], s.rootFlow[lo:lo+n])
	for g := (len(s.starts) - 2) / groupsAtOnce * groupsAtOnce; g >= 0; g -= groupsAtOnce {
		s.kernel(k, g, s.set.Backward)
	}
	for i := range s.wide {
		f := k.flows[s.set.Rows*i:][:s.set.Rows]
		copy(s.flows[i*x.rowsMax+lo:], f[:n])
		clear(f)
	}
}

// groupsAtOnce bounds the groups of one call of a kernel, which the garbage collector waits for.
const groupsAtOnce = 4096

// kernel calls one for the groups from first on.
func (s *singles) kernel(k *singleWorker, first int, call func(a *micro.SingleArgs)) {
	k.args.Starts, k.args.Groups = &s.starts[first], min(groupsAtOnce, len(s.starts)-1-first)
	call(&k.args)
}

// logOf returns the natural log of a value.
func logOf(m uint32, e int32) float64 {
	if m == 0 || e == micro.Lost {
		return math.Inf(-1)
	}
	return math.Log(float64(math.Float32frombits(m))) + float64(e)*math.Ln2
}

// readCodes sets the codes of n rows from lo on. Lanes past them have no flows.
func (s *singles) readCodes(x *executor, k *singleWorker, lo, n int) {
	for c := range x.prog.Columns {
		col := &x.prog.Columns[c]
		if col.Codes == 0 || x.prog.Columns[c].Codes+col.Soft >= micro.SingleCodes {
			continue
		}
		codes, to := x.call.codes.from(int(col.Slot)*x.rowsMax+lo), k.codes[int(col.Slot)*s.set.Rows:][:s.set.Rows]
		if codes.wide != nil {
			copy(to, codes.wide[:n])
			continue
		}
		for i, c := range codes.narrow[:n] {
			to[i] = uint32(c)
		}
	}
}

// leaf sets the values of a leaf without a table here in n rows from lo on.
func (s *singles) leaf(x *executor, w *worker, in *layers.Input, values []uint32, lo, n int) {
	m, e := values[:s.set.Rows], values[s.set.Rows:2*s.set.Rows]
	if in.Codes > 0 {
		codes := x.columnCodes(in).from(lo)
		for i := range n {
			at, exp := int64(codes.at(i)), float32(0)
			if in.Exps >= 0 {
				exp = x.call.params[in.Exps+at]
			}
			m[i], e[i] = split32(x.call.params[in.Table+at], exp)
		}
		return
	}
	w.unit = x.unitParams(in, 0, w.unit)
	for i := range n {
		m[i], e[i] = 0, 0
		if l := held(x.logDensity(in, lo+i, 0, w.unit)); !math.IsInf(l, -1) {
			exp := math.Floor(l / math.Ln2)
			m[i], e[i] = split32(float32(math.Exp(l-exp*math.Ln2)), 0)
			e[i] = uint32(micro.AddExponents(int32(e[i]), micro.Exponent(exp)))
		}
	}
}

// split32 returns the bits of m and e with v·2^exp = m·2^e, m from 1 to 2 or 0.
func split32(v, exp float32) (m, e uint32) {
	if v == 0 {
		return 0, 0
	}
	bits, own := math.Float32bits(v), int32(0)
	if bits < 1<<23 { // below 2^-126
		bits, own = math.Float32bits(v*(1<<24)), -24
	}
	own += int32(bits>>23) - 127
	if exp != 0 {
		own = micro.AddExponents(own, micro.Exponent(float64(exp)))
	}
	return bits&(1<<23-1) | 127<<23, uint32(own)
}

// readTables copies the tables lo to hi-1 of leaves of few codes.
func (s *singles) readTables(x *executor, lo, hi int) {
	for i := lo; i < hi; i++ {
		in := &x.prog.Inputs[s.tables[i]]
		to := s.tableBits[2*micro.SingleCodes*i:][:2*micro.SingleCodes]
		for c, v := range x.call.params[in.Table:][:x.prog.TableRows(in)] {
			to[c], to[micro.SingleCodes+c] = split32(v, 0)
		}
	}
}

// readWeights copies the weights lo to hi-1.
func (s *singles) readWeights(x *executor, lo, hi int) {
	for i := lo; i < hi; i++ {
		v, param := float32(1), s.weights[i]
		if param != oneWeight {
			v = 0
			if param != noWeight {
				v = x.call.params[param]
			}
		}
		s.weightBits[2*i], s.weightBits[2*i+1] = split32(v, 0)
	}
}

// singlesDown ends the backward pass of a call: parameters move, flows are added to those of
// the call, or visits are counted.
func (x *executor) singlesDown() {
	s := x.singles
	if x.call.frozen || invariants.Enabled {
		for e, at := range s.edge {
			x.norms[x.prog.Elements[e].First] = s.parts[0][s.leafCounts+at]
		}
	}
	if x.call.frozen {
		return
	}
	const chunk = 64
	n := len(x.owners)
	x.share((n+chunk-1)/chunk, func(w *worker, i int) {
		for k := i * chunk; k < min(n, (i+1)*chunk); k++ {
			if o := &x.owners[k]; o.Sum >= 0 {
				s.moveSum(x, w, o.Sum)
			} else {
				s.moveLeaf(x, w, o.Input)
			}
		}
	})
}

// moveSum moves the weights of an owning sum, or adds its flows to those of the call.
func (s *singles) moveSum(x *executor, w *worker, owner int32) {
	p := x.prog
	sum := &p.Sums[owner]
	n := int(sum.ElemHi - sum.ElemLo)
	counts, norm := w.single.row[:n], float32(0)
	clear(counts)
	for _, v := range x.members[owner] {
		at := s.edge[p.Sums[p.Vectors[v].Def].ElemLo]
		flows := s.parts[0][s.leafCounts+at:][:n]
		for j, c := range flows {
			counts[j] += c
		}
		norm += total(flows)
	}
	norm = x.round(norm)
	if x.call.flows == nil {
		s.moveWeights(x, sum, counts, norm)
		return
	}
	for j, param := range s.weightsOf(sum) {
		if param >= 0 {
			x.set.Quantize(&x.call.flows[param], &counts[j], nil, 1, x.grid)
		}
	}
	x.set.Quantize(&x.call.flows[p.SumNorm(owner)], &norm, nil, 1, x.grid)
}

// applySum moves the weights of an owning sum by the flows of all shards, and clears these.
func (s *singles) applySum(x *executor, w *worker, owner int32, flows []int64) {
	p := x.prog
	sum := &p.Sums[owner]
	counts, norm := w.single.row[:sum.ElemHi-sum.ElemLo], w.grad[:1]
	clear(counts)
	for j, param := range s.weightsOf(sum) {
		if param >= 0 {
			x.counts(counts[j:j+1], flows, int64(param))
		}
	}
	x.counts(norm, flows, p.SumNorm(owner))
	s.moveWeights(x, sum, counts, norm[0])
}

// weightsOf returns the parameters of a sum's weights, -1 for those that it does not list.
func (s *singles) weightsOf(sum *layers.Sum) []int32 {
	return s.weights[s.edge[sum.ElemLo]:][:sum.ElemHi-sum.ElemLo]
}

// moveWeights moves the weights of an owning sum by the counts of its operands, which are
// lost, as micro.Set.UpdatePanel does.
func (s *singles) moveWeights(x *executor, sum *layers.Sum, counts []float32, norm float32) {
	weights := s.weightsOf(sum)
	unit := x.firstUnit(sum.Vector)
	keep, gain, prior := x.call.rule.coefficients(norm, unit, int(x.fanIn[unit]))
	for j, param := range weights {
		if param < 0 || x.call.params[param] == 0 {
			counts[j] = 0
			continue
		}
		old := x.call.params[param]
		t := max(old*keep+x.round(counts[j])*gain+prior, floorWeight)
		x.call.params[param], counts[j] = t, t
	}
	if all := total(counts); all > 0 && !math.IsInf(float64(all), 0) {
		for _, param := range weights {
			if param >= 0 {
				x.call.params[param] *= 1 / all
			}
		}
	}
}

// moveLeaf moves the parameters of an owning leaf, or adds its statistics to the flows of the
// call.
func (s *singles) moveLeaf(x *executor, w *worker, owner int32) {
	p := x.prog
	if s.tableAt[owner] < 0 {
		var fs []leafFlow
		for _, v := range x.inputMembers[owner] {
			in := p.Vectors[v].Def
			fs = append(fs, leafFlow{in, 0, s.flows[s.wideAt[in]*x.rowsMax:][:x.call.rows], 1})
		}
		x.leafStats(w, owner, fs)
		return
	}
	if in := &p.Inputs[owner]; in.Params < 0 && x.call.flows == nil {
		var counts [micro.SingleCodes]float32
		norm := s.leafFlows(x, owner, counts[:in.Codes])
		x.moveTable(in, counts[:in.Codes], norm)
		return
	}
	counts := w.count[:p.Inputs[owner].Codes+1]
	s.leafFlows(x, owner, counts[:len(counts)-1])
	x.leafCounts(w, owner, 0, 1, nil)
}

// leafFlows sets the counts of the codes of an owning leaf that has a table here, and returns
// their sum on the grid.
func (s *singles) leafFlows(x *executor, owner int32, counts []float32) float32 {
	clear(counts)
	for _, v := range x.inputMembers[owner] {
		for c, f := range s.parts[0][s.counted[x.prog.Vectors[v].Def]:][:len(counts)] {
			counts[c] += f
		}
	}
	return x.round(total(counts))
}

// total adds numbers up. The roundings of very many would add up, too: batches of them, as the
// kernels of sums take, are added up with more digits.
func total(list []float32) float32 {
	const batch = 64
	var sum float64
	for part := range slices.Chunk(list, batch) {
		var s float32
		for _, v := range part {
			s += v
		}
		sum += float64(s)
	}
	return float32(sum)
}

// moveTable moves the table of a single leaf by the counts of its codes, as micro.Set.UpdateTable
// does.
func (x *executor) moveTable(in *layers.Input, counts []float32, norm float32) {
	unit := x.firstUnit(in.Vector)
	keep, gain, prior := x.call.rule.coefficients(norm, unit, int(x.fanIn[unit]))
	table := x.call.params[in.Table:][:in.Codes]
	for c, old := range table {
		if old != 0 {
			table[c] = max(old*keep+x.round(counts[c])*gain+prior, floorWeight)
		}
	}
	if gain != 0 || prior != 0 {
		restoreMass(table, 1, len(table), []float32{total(table)})
	}
}

// needValues makes the tasks evaluate the rows that singles have evaluated.
func (x *executor) needValues() {
	if x.singles == nil {
		return
	}
	if x.exps == nil { // see late
		z := x.sizes()
		x.makeTasks(z)
		x.lateBytes = z.tasks(x).total()
		x.dev.Count(x.lateBytes)
	}
	if x.singles.stale {
		x.singles.stale = false
		x.up(make([]float64, x.call.rows))
	}
}

package simplex

import "math/big"

// dictionary expresses basic variables by the others: denominator times the basic
// variable of a row is the sum of the row's entries times the variables of the
// columns, and the row's constant. The last row is the objective, which has no
// variable.
//
// Variables below free are those of the program. The others are the slacks of the
// constraints, which are at least 0, and last the variable of phase one.
type dictionary[T any] struct {
	arithmetic[T]
	free        int
	rows        [][]T // the constant comes last
	basic       []int // the variable of each row
	column      []int // the variable of each column
	denominator T
}

// newDictionary makes the slacks of constraints basic.
func newDictionary[T any](a arithmetic[T], n int, constraints [][]int64) *dictionary[T] {
	d := &dictionary[T]{arithmetic: a, free: n, denominator: a.of(1)}
	for j := range n {
		d.column = append(d.column, j)
	}
	for i, c := range constraints {
		row := make([]T, n+1)
		for j := range row {
			row[j] = a.of(c[j])
		}
		d.rows = append(d.rows, row)
		d.basic = append(d.basic, n+i)
	}
	d.rows = append(d.rows, nil)
	return d
}

// pivot exchanges the variables of row r and column s, whose entry is not 0. It
// reports false, with the dictionary spoilt, where a number does not fit.
func (d *dictionary[T]) pivot(r, s int) bool {
	p := d.rows[r][s]
	same := d.compareProducts(p, d.of(1), d.denominator, d.of(1)) == 0
	for i, row := range d.rows {
		if i == r || row == nil {
			continue
		}
		factor := row[s]
		if same && d.sign(factor) == 0 {
			continue
		}
		for j := range row {
			if j == s {
				continue
			}
			x, ok := d.cross(row[j], p, factor, d.rows[r][j], d.denominator)
			if !ok {
				return false
			}
			row[j] = x
		}
	}
	row := d.rows[r]
	for j := range row {
		if j != s {
			row[j] = d.neg(row[j])
		}
	}
	row[s] = d.denominator
	d.denominator = p
	if d.sign(p) < 0 {
		d.denominator = d.neg(p)
		for _, row := range d.rows {
			for j := range row {
				row[j] = d.neg(row[j])
			}
		}
	}
	d.basic[r], d.column[s] = d.column[s], d.basic[r]
	return true
}

// release makes the free variables basic, as far as a constraint mentions them, so
// that their sign plays no part afterwards.
func (d *dictionary[T]) release() bool {
	for s, v := range d.column {
		if v >= d.free {
			continue
		}
		for r, b := range d.basic {
			if b >= d.free && d.sign(d.rows[r][s]) != 0 {
				if !d.pivot(r, s) {
					return false
				}
				break
			}
		}
	}
	return true
}

// climb maximises the last row from a feasible dictionary. Bland's rule: of the columns
// that raise the objective the one of the least variable enters, of the rows that
// stop it the one of the least variable leaves.
func (d *dictionary[T]) climb() (status Status, ok bool) {
	objective := len(d.rows) - 1
	for {
		enter := -1
		for s, v := range d.column {
			c := d.sign(d.rows[objective][s])
			if v < d.free && c != 0 { // no constraint mentions it
				return Unbounded, true
			}
			if c > 0 && (enter < 0 || v < d.column[enter]) {
				enter = s
			}
		}
		if enter < 0 {
			return Optimal, true
		}
		leave := -1
		last := len(d.column)
		for r, b := range d.basic {
			if b < d.free || d.sign(d.rows[r][enter]) >= 0 {
				continue
			}
			if leave >= 0 {
				order := d.compareProducts(d.rows[r][last], d.neg(d.rows[leave][enter]), d.rows[leave][last], d.neg(d.rows[r][enter]))
				if order > 0 || order == 0 && b > d.basic[leave] {
					continue
				}
			}
			leave = r
		}
		if leave < 0 {
			return Unbounded, true
		}
		if !d.pivot(leave, enter) {
			return 0, false
		}
	}
}

// phaseOne makes the dictionary feasible: it adds a variable to every constraint
// and minimises it.
func (d *dictionary[T]) phaseOne() (status Status, ok bool) {
	last := len(d.column)
	worst := -1
	for r, b := range d.basic {
		if b >= d.free && d.sign(d.rows[r][last]) < 0 && (worst < 0 || d.compareProducts(d.rows[r][last], d.of(1), d.rows[worst][last], d.of(1)) < 0) {
			worst = r
		}
	}
	if worst < 0 {
		return Optimal, true
	}
	artificial := d.free + len(d.basic)
	for r, b := range d.basic {
		x := d.of(0)
		if b >= d.free {
			x = d.denominator
		}
		d.rows[r] = append(d.rows[r][:last:last], x, d.rows[r][last])
	}
	d.column = append(d.column, artificial)
	objective := make([]T, last+2)
	for j := range objective {
		objective[j] = d.of(0)
	}
	objective[last] = d.neg(d.denominator)
	d.rows[len(d.rows)-1] = objective
	if !d.pivot(worst, last) {
		return 0, false
	}
	if _, ok := d.climb(); !ok {
		return 0, false
	}
	if d.sign(d.rows[len(d.rows)-1][last+1]) < 0 {
		return Infeasible, true
	}
	if !d.dropArtificial(artificial) {
		return 0, false
	}
	return Optimal, true
}

// dropArtificial removes the variable of phase one, whose value is 0.
func (d *dictionary[T]) dropArtificial(artificial int) bool {
	for r, b := range d.basic {
		if b != artificial {
			continue
		}
		for s := range d.column { // it began in a column, so some entry of its row is not 0
			if d.sign(d.rows[r][s]) != 0 {
				if !d.pivot(r, s) {
					return false
				}
				break
			}
		}
		break
	}
	for s, v := range d.column {
		if v == artificial {
			for r, row := range d.rows {
				d.rows[r] = append(row[:s:s], row[s+1:]...)
			}
			d.column = append(d.column[:s:s], d.column[s+1:]...)
			break
		}
	}
	return true
}

// setObjective writes the objective in terms of the columns.
func (d *dictionary[T]) setObjective(objective []int64) bool {
	d.rows[len(d.rows)-1] = nil
	sum := make([]T, len(d.column)+1)
	for j := range sum {
		sum[j] = d.of(0)
	}
	add := func(j int, x, c T) bool { // sum[j] += x*c
		var ok bool
		sum[j], ok = d.cross(x, c, d.neg(sum[j]), d.of(1), d.of(1))
		return ok
	}
	for s, v := range d.column {
		if v < d.free && !add(s, d.denominator, d.of(objective[v])) {
			return false
		}
	}
	for r, b := range d.basic {
		if b >= d.free || objective[b] == 0 {
			continue
		}
		for j, x := range d.rows[r] {
			if !add(j, x, d.of(objective[b])) {
				return false
			}
		}
	}
	d.rows[len(d.rows)-1] = sum
	return true
}

// point returns the values of the program's variables.
func (d *dictionary[T]) point() []*big.Rat {
	x := make([]*big.Rat, d.free)
	for j := range x {
		x[j] = new(big.Rat)
	}
	for r, b := range d.basic {
		if b < d.free {
			x[b].SetFrac(d.big(d.rows[r][len(d.column)]), d.big(d.denominator))
		}
	}
	return x
}

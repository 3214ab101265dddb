package rtl

import (
	"math"
	"slices"
)

// table is a function of a few columns: an entry for each combination of their codes and, with
// valid bits, of missing cells.
type table struct {
	columns []int // ascending
	values  []float64
}

// size is the number of codes of a column; a missing cell is the last one, if there are valid bits.
func (d *Datapath) size(column int) int {
	n := len(d.Columns[column].points)
	if d.Marginals {
		n++
	}
	return n
}

// cost is the number of index bits of a table over columns.
func (d *Datapath) cost(columns []int) int {
	n := 0
	for _, v := range columns {
		n += d.width(v)
	}
	return n
}

// at is the entry for an index of a Table over the same columns; 0 for codes that do not occur.
func (t *table) at(d *Datapath, index int) float64 {
	place, stride := 0, 1
	for _, v := range t.columns {
		c := &d.Columns[v]
		code := index & (1<<c.Bits - 1)
		index >>= c.Bits
		valid := true
		if d.Marginals {
			valid = index&1 == 1
			index >>= 1
		}
		switch {
		case !valid:
			code = len(c.points)
		case code >= len(c.points):
			return 0
		}
		place += code * stride
		stride *= d.size(v)
	}
	return t.values[place]
}

// leafTable tabulates an input: 1 for a missing cell. A column whose cells all have one code gives
// a table of no columns.
func (d *Datapath) leafTable(u *unit) *table {
	c := &d.Columns[u.variable]
	t := &table{}
	if c.Bits > 0 || d.Marginals {
		t.columns = []int{u.variable}
	}
	for _, x := range c.points {
		p := u.at(x)
		d.lost = d.lost || p < minNormal && !math.IsInf(u.leaf.LogProb(u.params, x), -1)
		t.values = append(t.values, p)
	}
	if d.Marginals {
		t.values = append(t.values, 1)
	}
	return t
}

// scaled is a table times a number.
func (d *Datapath) scaled(t *table, c float64) *table {
	s := &table{columns: t.columns, values: slices.Clone(t.values)}
	for i := range s.values {
		s.values[i] = d.product(s.values[i], c)
	}
	return s
}

// union lists the columns of either table.
func union(a, b []int) []int {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// together is the cost of the columns of two tables, and how many these are, without memory: of many tables each pair is looked at.
func (d *Datapath) together(a, b []int) (cost, columns int) {
	for ; len(a)+len(b) > 0; columns++ {
		v := 0
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			v, a = a[0], a[1:]
		case len(a) == 0 || b[0] < a[0]:
			v, b = b[0], b[1:]
		default:
			v, a, b = a[0], a[1:], b[1:]
		}
		cost += d.width(v)
	}
	return cost, columns
}

// join is the table of f of the entries of two tables.
func (d *Datapath) join(a, b *table, f func(x, y float64) float64) *table {
	t := &table{columns: union(a.columns, b.columns)}
	// stride of each column of t within a table: 0 where the table does not have it.
	strides := func(s *table) []int {
		list, stride := make([]int, len(t.columns)), 1
		for _, v := range s.columns {
			list[slices.Index(t.columns, v)] = stride
			stride *= d.size(v)
		}
		return list
	}
	as, bs := strides(a), strides(b)
	code := make([]int, len(t.columns))
	i, j := 0, 0
	for {
		t.values = append(t.values, f(a.values[i], b.values[j]))
		k := 0
		for ; k < len(code); k++ {
			code[k]++
			i, j = i+as[k], j+bs[k]
			n := d.size(t.columns[k])
			if code[k] < n {
				break
			}
			code[k] = 0
			i, j = i-n*as[k], j-n*bs[k]
		}
		if k == len(code) {
			return t
		}
	}
}

func (d *Datapath) times(a, b *table) *table {
	return d.join(a, b, d.product)
}

func (d *Datapath) plus(a, b *table) *table {
	return d.join(a, b, func(x, y float64) float64 { return x + y })
}

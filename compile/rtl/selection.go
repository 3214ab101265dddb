package rtl

import "slices"

// deterministic turns a sum of which at most one term is not 0 into a product: each term has a
// table of one column, and no code of the column has two that are not 0. The tables become one, and
// what the terms multiply with is selected by the column's code, after common factors were
// taken out. With valid bits the terms of a missing cell add up, so there are no selections.
func (n *network) deterministic(terms []form) (form, bool) {
	if n.d.Marginals || len(terms) < 2 {
		return form{}, false
	}
	for _, id := range terms[0].tables {
		if columns := n.tables[id].columns; len(columns) == 1 {
			if f, ok := n.selectBy(columns[0], terms); ok {
				return f, true
			}
		}
	}
	return form{}, false
}

// selectBy is deterministic for a column.
func (n *network) selectBy(column int, terms []form) (form, bool) {
	codes := n.d.size(column)
	mass := &table{columns: []int{column}, values: make([]float64, codes)}
	choose := make([]int32, codes)
	owned := make([]bool, codes)
	rest := make([]form, len(terms))
	for k, f := range terms {
		at := slices.IndexFunc(f.tables, func(id int32) bool { return slices.Equal(n.tables[id].columns, mass.columns) })
		if at < 0 {
			return form{}, false
		}
		for code, x := range n.tables[f.tables[at]].values {
			if x == 0 {
				continue
			}
			if owned[code] {
				return form{}, false
			}
			owned[code], choose[code], mass.values[code] = true, int32(k), n.d.product(x, f.scale)
		}
		rest[k] = form{scale: 1, tables: slices.Delete(slices.Clone(f.tables), at, at+1), args: slices.Clone(f.args)}
	}
	f := form{scale: 1, tables: []int32{n.table(mass)}}
	f.args = commonArgs(rest)
	for k := range rest {
		rest[k].args = without(rest[k].args, f.args)
	}
	f.tables = append(f.tables, n.mergeTables(column, choose, rest)...)
	f.args = append(f.args, n.selections(column, choose, rest)...)
	return f, true
}

// mergeTables takes tables over the same columns out of the alternatives of a selection: where
// the columns fit a table with the selecting one, one table chooses by itself.
func (n *network) mergeTables(column int, choose []int32, rest []form) (merged []int32) {
	one := &table{values: []float64{1}}
	for k := range rest {
		for _, id := range slices.Clone(rest[k].tables) {
			if !slices.Contains(rest[k].tables, id) {
				continue // taken out by an earlier turn
			}
			columns := n.tables[id].columns
			all := union([]int{column}, columns)
			if n.d.cost(all) > n.bits {
				continue
			}
			parts := make([]*table, len(rest))
			for j := range rest {
				parts[j] = one
				rest[j].tables = slices.DeleteFunc(rest[j].tables, func(id int32) bool {
					t := n.tables[id]
					if !slices.Equal(t.columns, columns) {
						return false
					}
					parts[j] = n.d.times(parts[j], t)
					return true
				})
			}
			merged = append(merged, n.table(n.chosen(column, choose, parts)))
		}
	}
	return merged
}

// chosen is the table that has, for each code of a column, the entries of the part that the
// code chooses.
func (n *network) chosen(column int, choose []int32, parts []*table) *table {
	var all *table
	for k, part := range parts {
		mask := &table{columns: []int{column}, values: make([]float64, len(choose))}
		for code, c := range choose {
			if int(c) == k {
				mask.values[code] = 1
			}
		}
		t := n.d.times(mask, part)
		if all == nil {
			all = t
		} else {
			all = n.d.plus(all, t)
		}
	}
	return all
}

// selections pairs what is left of the alternatives, factor by factor, so that a multiplication of
// chosen factors takes the place of a choice among multiplications. An alternative with fewer
// factors has ones.
func (n *network) selections(column int, choose []int32, rest []form) (nodes []int32) {
	most := 0
	for k := range rest {
		slices.Sort(rest[k].args)
		most = max(most, len(rest[k].tables)+len(rest[k].args))
	}
	for i := range most {
		x := netNode{kind: selection, column: column, choose: choose}
		for _, f := range rest {
			one := form{scale: 1}
			if i < len(f.args) {
				one.args = []int32{f.args[i]}
			} else if k := i - len(f.args); k < len(f.tables) {
				one.tables = []int32{f.tables[k]}
			}
			x.forms = append(x.forms, one)
		}
		nodes = append(nodes, n.node(x))
	}
	return nodes
}

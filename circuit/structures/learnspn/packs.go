package learnspn

// maxPackCells bounds the cells of a pack: eight columns of two codes. With few rows there are
// fewer, because the sums of all cells are computed in every round of EM.
const maxPackCells = 256

// discreteColumn is a column of a finite domain in a mixture.
type discreteColumn struct {
	bins  []int32 // [rows], missing or 0..count-1
	count int
	digit int // values in a pack: count, and one more if a cell is missing
	first int // row of the mixture's table of bin 0
}

// pack is some neighbouring discrete columns, whose cell is a number with a digit for each of them,
// the first one the lowest.
type pack struct {
	columns []discreteColumn
	first   int // place of cell 0
	cells   int
}

// addDiscrete appends a column to those of a mixture.
func (m *mixture) addDiscrete(s slice, v int) {
	x := discreteColumn{bins: make([]int32, len(s.rows)), count: s.all[v].count, digit: s.all[v].count}
	if last := len(m.discrete) - 1; last >= 0 {
		x.first = m.discrete[last].first + m.discrete[last].count
	}
	for i, r := range s.rows {
		if x.bins[i] = s.all[v].bins[r]; x.bins[i] == missing {
			x.digit = x.count + 1
		}
	}
	m.discrete = append(m.discrete, x)
}

// layPacks packs the discrete columns and fills in the cells of all rows.
func (m *mixture) layPacks() {
	limit := min(max(m.rows/8, 1), maxPackCells)
	bins, places := 0, 0
	for j, x := range m.discrete {
		last := len(m.packs) - 1
		if last < 0 || m.packs[last].cells*x.digit > limit {
			m.packs = append(m.packs, pack{columns: m.discrete[j:j:len(m.discrete)], first: places, cells: 1})
			last++
		}
		p := &m.packs[last]
		p.columns = append(p.columns, x)
		p.cells *= x.digit
		places = p.first + p.cells
		bins += x.count
	}
	m.table = make([]float64, (bins+1)*m.stride)
	m.sums, m.counts = make([]float64, places*m.stride), make([]float64, places*m.stride)
	m.cell = make([]int32, m.rows*len(m.packs))
	for g, p := range m.packs {
		for i := range m.rows {
			m.cell[i*len(m.packs)+g] = int32(p.first)
		}
		weight := 1
		for _, x := range p.columns {
			for i, b := range x.bins {
				if b == missing {
					b = int32(x.count)
				}
				m.cell[i*len(m.packs)+g] += b * int32(weight)
			}
			weight *= x.digit
		}
	}
}

// merge makes equal rows one. It looks a row up in a table of all that the packs can say, so it
// leaves rows as they are where that is much more than there are rows, or where there are numbers.
func (m *mixture) merge() {
	possible, limit := 1, 32*m.rows
	for _, p := range m.packs {
		possible = min(possible*p.cells, limit+1)
	}
	m.distinct = make([]int32, m.rows)
	if m.numbers > 0 || possible > limit {
		m.times, m.cluster = make([]float64, m.rows), make([]int32, m.rows)
		for i := range m.times {
			m.times[i], m.distinct[i] = 1, int32(i)
		}
		m.layPlain(m.distinct)
		return
	}
	number := make([]int32, possible) // of a distinct row, counted from 1
	d := len(m.packs)
	var firsts []int32 // the row from which each distinct row is
	for i := range m.rows {
		cells, at := m.cell[i*d:][:d], 0
		for g, p := range m.packs {
			at = at*p.cells + int(cells[g]) - p.first
		}
		if number[at] == 0 {
			copy(m.cell[len(m.times)*d:], cells)
			m.times, firsts = append(m.times, 0), append(firsts, int32(i))
			number[at] = int32(len(m.times))
		}
		m.distinct[i] = number[at] - 1
		m.times[number[at]-1]++
	}
	m.cluster, m.cell = make([]int32, len(m.times)), m.cell[:len(m.times)*d]
	m.layPlain(firsts)
}

// layPlain fills in the plain cells of the distinct rows, which are those of some rows.
func (m *mixture) layPlain(rows []int32) {
	none := int32(len(m.table)/m.stride - 1)
	m.plain = make([]int32, 0, len(rows)*len(m.discrete))
	for _, r := range rows {
		for _, x := range m.discrete {
			at := none
			if b := x.bins[r]; b != missing {
				at = int32(x.first) + b
			}
			m.plain = append(m.plain, at)
		}
	}
}

// addUp computes the sums of all cells from the table of the bins. A missing cell adds nothing.
func (m *mixture) addUp() {
	for _, p := range m.packs {
		sums := m.sums[p.first*m.stride:][:p.cells*m.stride]
		clear(sums[:m.stride])
		size := m.stride // of the cells of the columns so far
		for _, x := range p.columns {
			for b := x.digit - 1; b >= 0; b-- { // bin 0 last: the others start from its place
				to := sums[b*size:][:size]
				copy(to, sums[:size])
				if b == x.count {
					continue
				}
				bin := m.table[(x.first+b)*m.stride:][:m.stride]
				for at := 0; at < size; at += m.stride {
					addTo(to[at:], bin)
				}
			}
			size *= x.digit
		}
	}
}

// takeApart computes how many rows of each cluster have each bin, in the table, from the counts of
// the cells, which it overwrites.
func (m *mixture) takeApart() {
	clear(m.table)
	for _, p := range m.packs {
		counts := m.counts[p.first*m.stride:][:p.cells*m.stride]
		for j := len(p.columns) - 1; j >= 0; j-- {
			x := &p.columns[j]
			size := len(counts) / x.digit // of the cells of the columns before
			for b := range x.digit {
				from := counts[b*size:][:size]
				if b < x.count {
					bin := m.table[(x.first+b)*m.stride:][:m.stride]
					for at := 0; at < size; at += m.stride {
						addTo(bin, from[at:])
					}
				}
				if b > 0 {
					addTo(counts, from)
				}
			}
			counts = counts[:size]
		}
	}
}

// addTo adds numbers, whose count is a multiple of four, to the first ones of dst, or as many as dst
// has of them.
func addTo(dst, x []float64) {
	for n := min(len(dst), len(x)); n >= 4; n -= 4 {
		d, y := (*[4]float64)(dst), (*[4]float64)(x)
		d[0], d[1], d[2], d[3] = d[0]+y[0], d[1]+y[1], d[2]+y[2], d[3]+y[3]
		dst, x = dst[4:], x[4:]
	}
}

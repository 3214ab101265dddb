package plan

import (
	"cmp"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// outputs is the most units that a block of threads of a kernel on sums computes.
const outputs = 64

// Tables are what the kernels read of a program, as records of package tensor.
type Tables struct {
	Program *layers.Program
	Rows    int // R
	Size    int // S
	Shared  int // bytes of shared memory that a block of threads may have
	Mixed   bool
	Queries bool // for Posteriors and Maximise

	Processors int // multiprocessors of the card

	Factors   []tensor.Factor
	Elements  []tensor.Element
	Sums      []tensor.Sum   // the program's sums, then its stored products
	Groups    []tensor.Group // by sum; then, in a Schedule, the wide ones made of them
	Steps     []tensor.Step
	Columns   []tensor.Column // by sum; then, in a Schedule, the wide ones made of them
	RowSteps  []tensor.RowStep
	Tiles     []tensor.Tile   // by owner
	Members   []tensor.Member // of tiles; then, in a Schedule, of patches
	Patches   []tensor.Patch  // by owner, in a Schedule alone
	Owners    []tensor.Owner
	OwnerSums []uint32
	Inputs    []tensor.Input
	Uses      []tensor.Use
	Variables []tensor.Variable // columns; these and leaves for queries alone
	Leaves    []tensor.Leaf     // inputs, by column
	Constants []float64

	OwnerTiles   []int    // owner → its tiles
	Slot         []uint64 // vector → its first float in val; NoSlot for tabulated inputs
	Taken        []uint32 // vector → its first number in taken: functions first, in order
	valLen       int64
	keptLen      int64
	countsLen    int64
	modes        []uint32 // input → its first word in modes, which are only queries'
	modesLen     int64
	users        [][]int32                  // vector → the elements that multiply it
	wide, spread []bool                     // layers.Program.Wide
	ownerOf      []uint32                   // sum → owner
	sharers      map[uint32][]tensor.Member // edge block that sums share → its places
	Pitch        int                        // of scratch memory for rows in log space: the widest sum or vector
}

// NoSlot is the slot of a vector that keeps no values.
const NoSlot = ^uint64(0)

// align is the number of floats that places in val and kept are multiples of.
const align = 64

// NewTables lowers a program for launches of up to m.Rows rows. What kernels cannot
// index with that many is an error.
func NewTables(m layers.Module) (*Tables, error) {
	if err := checkRows(m.Rows); err != nil {
		return nil, err
	}
	p := m.Program
	t := &Tables{Program: p, Rows: m.Rows, Size: p.BlockSize, Shared: mostShared, Processors: hopper.Processors, Mixed: Variant(m, 8, 0).Mixed, Queries: m.Queries}
	t.place()
	t.placeModes()
	t.makeElements()
	t.makeSums()
	edges := readEdges(p)
	t.makeGroups(edges)
	t.makeColumns(edges)
	t.makeTiles()
	if err := t.makeInputs(m.Scales, m.Train); err != nil {
		return nil, err
	}
	if m.Queries {
		t.makeVariables()
	}
	if err := t.checkIndices(); err != nil {
		return nil, err
	}
	return t, nil
}

// place gives every vector its place in val and finds who reads it.
func (t *Tables) place() {
	p := t.Program
	t.Slot = make([]uint64, len(p.Vectors))
	t.placeTaken()
	t.users = make([][]int32, len(p.Vectors))
	t.wide, t.spread = p.Wide(tensor.BareFactors)
	for v := range p.Vectors {
		t.Slot[v] = NoSlot
		if !p.Tabulated(int32(v)) {
			t.Pitch = max(t.Pitch, (p.Width(int32(v))+3)&^3)
			t.Slot[v] = uint64(t.valLen)
			t.valLen += t.span(p.Width(int32(v)))
			if t.spread[v] {
				t.valLen += t.span(p.Width(int32(v)))
			}
		}
	}
	for e := range p.Elements {
		for _, f := range p.ElementFactors(int32(e)) {
			t.users[f] = append(t.users[f], int32(e))
		}
	}
}

// span is the floats of all rows of a width, aligned.
func (t *Tables) span(width int) int64 {
	n := int64(width) * int64(t.Rows)
	return (n + align - 1) / align * align
}

// gathered reports whether the flow of a vector is added up from elements that
// keep theirs.
func (t *Tables) gathered(v int32) bool {
	return t.Program.Vectors[v].Kind == layers.StoredVector ||
		t.Program.Vectors[v].Kind == layers.SumVector && (len(t.users[v]) != 1 || v == t.Program.Root)
}

func (t *Tables) makeElements() {
	p := t.Program
	for id := range p.Elements {
		e := &p.Elements[id]
		out := tensor.Element{
			Kept: uint64(t.keptLen), Factor: uint32(len(t.Factors)), Width: uint32(int(e.Count) * t.Size), Formed: tensor.NotKept,
		}
		if t.wide[id] {
			out.Wide = 1
		}
		for _, f := range p.ElementFactors(int32(id)) {
			v := &p.Vectors[f]
			out.Units = uint32(v.Units)
			fc := tensor.Factor{Kind: tensor.StoredFactor, Base: t.Slot[f], At: uint32(int(f) * t.Rows)}
			if v.Kind == layers.InputVector {
				in := &p.Inputs[v.Def]
				if in.Codes > 0 {
					fc = tensor.Factor{Kind: tensor.TableFactor, Base: uint64(in.Table), At: t.CodesAt(in), Modes: t.modes[v.Def]}
				}
				fc.Exps = t.ownExps(in)
			} else if !t.gathered(f) {
				fc.Down = tensor.DownRatio
			}
			fc.Taken = t.Taken[f]
			t.Factors = append(t.Factors, fc)
			out.Count++
		}
		t.keptLen += t.span(int(out.Width))
		t.Elements = append(t.Elements, out)
	}
}

// CodesAt is the place of the first cell of an input's column in codes or values.
func (t *Tables) CodesAt(in *layers.Input) uint32 {
	return uint32(int(t.Program.Columns[in.Column].Slot) * t.Rows)
}

func (t *Tables) makeSums() {
	p := t.Program
	for i := range p.Sums {
		s := &p.Sums[i]
		sum := t.sum(s.Vector, s.ElemLo, s.ElemHi)
		sum.OwnerUnit = t.firstUnit(p.Sums[s.Owner].Vector)
		t.Sums = append(t.Sums, sum)
	}
	for i := range p.Stored {
		s := &p.Stored[i]
		t.Sums = append(t.Sums, t.sum(s.Vector, s.Element, s.Element+1))
	}
	t.ownerOf = make([]uint32, len(p.Sums))
	for i := range p.Sums {
		if p.Sums[i].Owner == int32(i) {
			v := p.Sums[i].Vector
			t.ownerOf[i] = uint32(len(t.Owners))
			t.Owners = append(t.Owners, tensor.Owner{Unit: t.firstUnit(v), Width: uint32(p.Width(v))})
		}
		t.ownerOf[i] = t.ownerOf[p.Sums[i].Owner] // owners stand before those that share with them
		t.Owners[t.ownerOf[i]].Members++
	}
	at := uint32(0)
	for i := range t.Owners {
		t.Owners[i].Member = at
		at += t.Owners[i].Members
		t.Owners[i].Members = 0
	}
	t.OwnerSums = make([]uint32, at)
	for i := range p.Sums {
		o := &t.Owners[t.ownerOf[i]]
		t.OwnerSums[o.Member+o.Members] = uint32(i)
		o.Members++
	}
}

func (t *Tables) firstUnit(v int32) uint32 {
	return uint32(int(t.Program.Vectors[v].First) * t.Size)
}

// sum makes the record of a sum or a stored product without its groups.
func (t *Tables) sum(v, lo, hi int32) tensor.Sum {
	out := tensor.Sum{
		Val: t.Slot[v], Exp: uint32(int(v) * t.Rows), Width: uint32(t.Program.Width(v)), Units: uint32(t.Program.Vectors[v].Units),
		Element: uint32(lo), Elements: uint32(hi - lo), Unit: t.firstUnit(v), OwnerUnit: t.firstUnit(v),
		Taken: t.Taken[v],
	}
	for e := lo; e < hi; e++ {
		out.Cols += t.Elements[e].Width
	}
	t.Pitch = max(t.Pitch, (int(out.Cols)+3)&^3)
	if v == t.Program.Root {
		out.Root = 1
	}
	out.User, out.Users = t.use(v, 0)
	return out
}

// use lists the elements that multiply a vector.
func (t *Tables) use(v int32, at uint32) (first, n uint32) {
	first = uint32(len(t.Uses))
	for _, e := range t.users[v] {
		t.Uses = append(t.Uses, tensor.Use{Kept: t.Elements[e].Kept, Width: t.Elements[e].Width, At: at})
	}
	return first, uint32(len(t.users[v]))
}

// edge is one edge block: output units from row on read a column block.
type edge struct {
	row, param uint32
	element    int32
	column     uint32 // first unit in the element
}

// readEdges returns the edge blocks of every sum, from the partitions of the
// layers, by row block and then in the order of the partition.
func readEdges(p *layers.Program) [][]edge {
	edges := make([][]edge, len(p.Sums))
	sumOf := make([]int32, p.NodeBlocks)
	elemOf := make([]int32, p.ElementBlocks)
	for i := range p.Sums {
		v := &p.Vectors[p.Sums[i].Vector]
		for b := range v.Count {
			sumOf[v.First+b] = int32(i)
		}
	}
	for e := range p.Elements {
		for b := range p.Elements[e].Count {
			elemOf[p.Elements[e].First+b] = int32(e)
		}
	}
	size := int32(p.BlockSize)
	for l := range p.Layers {
		for _, q := range p.Layers[l].Sums {
			for i, n := range q.NodeIDs {
				s := sumOf[n]
				row := (n - p.Vectors[p.Sums[s].Vector].First) * size
				for k := i * q.MaxChildren; k < (i+1)*q.MaxChildren && q.ChildIDs[k] > 0; k++ {
					e := elemOf[q.ChildIDs[k]]
					edges[s] = append(edges[s], edge{
						uint32(row), uint32(q.ParamIDs[k]), e, uint32((q.ChildIDs[k] - p.Elements[e].First) * size),
					})
				}
			}
		}
	}
	for _, es := range edges {
		slices.SortStableFunc(es, func(a, b edge) int { return cmp.Compare(a.row, b.row) })
	}
	return edges
}

// runs cuts a list into runs of equal keys.
func runs[E any, K comparable](list []E, key func(E) K) [][]E {
	var out [][]E
	for lo := 0; lo < len(list); {
		hi := lo + 1
		for hi < len(list) && key(list[hi]) == key(list[lo]) {
			hi++
		}
		out = append(out, list[lo:hi])
		lo = hi
	}
	return out
}

func (t *Tables) makeGroups(edges [][]edge) {
	for s := range edges {
		t.Sums[s].Group = uint32(len(t.Groups))
		rows := runs(edges[s], func(e edge) uint32 { return e.row })
		for i := 0; i < len(rows); {
			g := tensor.Group{Sum: uint32(s), Row: rows[i][0].row, Blocks: 1, Step: uint32(len(t.Steps)), Steps: uint32(len(rows[i]))}
			for int(g.Blocks) < t.mostBlocks() && i+int(g.Blocks) < len(rows) && follows(rows[i], rows[i+int(g.Blocks)], g.Blocks, t.Size) {
				g.Blocks++
			}
			for _, e := range rows[i] {
				before := t.Program.Elements[e.element].First - t.Program.Elements[t.Sums[s].Element].First // blocks of earlier elements
				t.Steps = append(t.Steps, tensor.Step{
					Element: uint32(e.element), Column: e.column, Param: e.param, At: uint32(int(before)*t.Size) + e.column,
				})
			}
			t.Groups = append(t.Groups, g)
			i += int(g.Blocks)
		}
		t.Sums[s].Groups = uint32(len(t.Groups)) - t.Sums[s].Group
	}
}

func (t *Tables) mostBlocks() int { return max(1, outputs/t.Size) }

// follows reports whether a row block reads what the first one of a group reads,
// n edge blocks further on.
func follows(first, next []edge, n uint32, size int) bool {
	if len(first) != len(next) || next[0].row != first[0].row+n*uint32(size) {
		return false
	}
	for i, a := range first {
		b := next[i]
		if b.element != a.element || b.column != a.column || b.param != a.param+n {
			return false
		}
	}
	return true
}

func (t *Tables) makeColumns(edges [][]edge) {
	for s := range edges {
		t.Sums[s].Column = uint32(len(t.Columns))
		byColumn := slices.Clone(edges[s])
		slices.SortStableFunc(byColumn, func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.element, b.element), cmp.Compare(a.column, b.column), cmp.Compare(a.row, b.row))
		})
		cols := runs(byColumn, func(e edge) [2]uint32 { return [2]uint32{uint32(e.element), e.column} })
		for i := 0; i < len(cols); {
			c := tensor.Column{
				Sum: uint32(s), Element: uint32(cols[i][0].element), Column: cols[i][0].column,
				Blocks: 1, Step: uint32(len(t.RowSteps)), Steps: uint32(len(cols[i])),
			}
			for int(c.Blocks) < t.mostBlocks() && i+int(c.Blocks) < len(cols) && t.beside(&c, cols[i], cols[i+int(c.Blocks)]) {
				c.Blocks++
			}
			for _, e := range cols[i] {
				t.RowSteps = append(t.RowSteps, tensor.RowStep{Row: e.row, Param: e.param})
			}
			t.Columns = append(t.Columns, c)
			i += int(c.Blocks)
		}
		t.Sums[s].Columns = uint32(len(t.Columns)) - t.Sums[s].Column
	}
}

// beside reports whether a column block continues with a column, whose stride it
// sets if it is the second.
func (t *Tables) beside(c *tensor.Column, first, next []edge) bool {
	a, b := first[0], next[0]
	if a.element != b.element || b.column != a.column+c.Blocks*uint32(t.Size) || len(first) != len(next) || b.param < a.param {
		return false
	}
	stride := c.Stride
	if c.Blocks == 1 {
		stride = b.param - a.param
	}
	for i := range first {
		if next[i].row != first[i].row || next[i].param != first[i].param+c.Blocks*stride {
			return false
		}
	}
	c.Stride = stride
	return true
}

// makeTiles cuts the weights of the owners and finds who shares them.
func (t *Tables) makeTiles() {
	p := t.Program
	t.sharers = make(map[uint32][]tensor.Member)
	each := func(sum int, do func(param, row uint32, m tensor.Member)) {
		s := &t.Sums[sum]
		for _, c := range t.Columns[s.Column : s.Column+s.Columns] {
			for b := range c.Blocks {
				for _, r := range t.RowSteps[c.Step : c.Step+c.Steps] {
					do(r.Param+b*c.Stride, r.Row, tensor.Member{Sum: uint32(sum), Element: c.Element, Column: c.Column + b*uint32(t.Size)})
				}
			}
		}
	}
	for i := range p.Sums {
		if t.Owners[t.ownerOf[i]].Members == 1 {
			continue // noted as the tile is made
		}
		each(i, func(param, _ uint32, m tensor.Member) { t.sharers[param] = append(t.sharers[param], m) })
	}
	for i := range p.Sums {
		if p.Sums[i].Owner != int32(i) {
			continue
		}
		unit, first := t.Sums[i].Unit, len(t.Tiles)
		var tile *tensor.Tile
		var last tensor.Member
		each(i, func(param, row uint32, m tensor.Member) {
			if tile != nil && m == last && param == tile.Param+tile.Blocks && row == tile.Row+tile.Blocks*uint32(t.Size) && int(tile.Blocks) < t.mostBlocks() {
				tile.Blocks++
				return
			}
			ms := t.sharers[param]
			if ms == nil {
				ms = []tensor.Member{m}
			}
			t.Tiles = append(t.Tiles, tensor.Tile{
				Row: row, Blocks: 1, Param: param, Unit: unit + row, Member: uint32(len(t.Members)), Members: uint32(len(ms)),
			})
			t.Members = append(t.Members, ms...)
			tile, last = &t.Tiles[len(t.Tiles)-1], m
		})
		t.OwnerTiles = append(t.OwnerTiles, len(t.Tiles)-first)
	}
}

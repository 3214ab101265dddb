package tensor_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// level is a set of sums over stored vectors and tables, as tables and as what a
// test needs to compute the same in float64.
type level struct {
	size, rows, cap int // S, rows of a launch, rows of the buffers
	mixed           bool
	rng             *rand.Rand

	params, val, ratio, kept []float32
	codes                    []uint16
	exp                      []int32
	bad, badRows             []uint32

	factors  []tensor.Factor
	elements []tensor.Element
	sums     []tensor.Sum
	groups   []tensor.Group
	steps    []tensor.Step
	columns  []tensor.Column
	rowSteps []tensor.RowStep
	tiles    []tensor.Tile
	members  []tensor.Member
	patches  []tensor.Patch
	uses     []tensor.Use

	weights  [][]weight // of each sum
	owner    []int      // of each sum: another whose weights it has, or -1
	units    int        // of the sums
	controls []byte
	modes    []uint32          // of tables, after fill
	more     map[string][]byte // further arguments, by name
}

// weight is a weight of a sum that a block of the program holds.
type weight struct{ unit, element, column, param int }

func newLevel(size, rows int, seed uint64) *level {
	return &level{
		size: size, rows: rows, cap: rows + 5, rng: rand.New(rand.NewPCG(seed, 7)),
		bad: make([]uint32, rows+5), badRows: make([]uint32, rows+6), more: map[string][]byte{},
	}
}

// room makes s longer by n, aligned to 64 numbers, and returns where they start.
func room[T any](s *[]T, n int, fill T) int {
	for len(*s)%64 != 0 {
		*s = append(*s, fill)
	}
	at := len(*s)
	for range n {
		*s = append(*s, fill)
	}
	return at
}

var poison = float32(math.NaN())

// vector adds a stored vector with random mantissas, and returns it as a factor.
func (l *level) vector(width, units int) tensor.Factor {
	at := room(&l.val, l.cap*width, poison)
	room(&l.ratio, 0, poison)
	for len(l.ratio) < len(l.val) {
		l.ratio = append(l.ratio, poison)
	}
	e := room(&l.exp, l.cap, 0)
	for r := range l.cap {
		l.exp[e+r] = int32(l.rng.IntN(20) - 10)
		for u := range width {
			x := l.rng.Float32() + 0.01
			if u >= units {
				x = 0
			}
			l.val[at+r*width+u] = x
		}
	}
	return tensor.Factor{Base: uint64(at), At: uint32(e)}
}

// table adds a table of 5 codes and a column of codes.
func (l *level) table(width, units int) tensor.Factor {
	at := room(&l.params, 6*width, 0)
	c := room(&l.codes, l.cap, 0)
	for i := range 6 {
		for u := range units {
			l.params[at+i*width+u] = l.rng.Float32()*0.3 + 0.01
		}
	}
	for r := range l.cap {
		l.codes[c+r] = uint16(l.rng.IntN(6))
	}
	return tensor.Factor{Base: uint64(at), Kind: tensor.TableFactor, At: uint32(c)}
}

// element adds an element of n stored vectors and m tables.
func (l *level) element(width, units, n, m int) int {
	first := len(l.factors)
	for range n {
		l.factors = append(l.factors, l.vector(width, units))
	}
	for range m {
		l.factors = append(l.factors, l.table(width, units))
	}
	kept := room(&l.kept, l.cap*width, poison)
	l.elements = append(l.elements, tensor.Element{
		Kept: uint64(kept), Factor: uint32(first), Count: uint32(n + m), Width: uint32(width), Units: uint32(units), Formed: tensor.NotKept,
	})
	return len(l.elements) - 1
}

// band is a run of row blocks that read the same column blocks of a sum.
type band struct {
	blocks int
	reads  func(element, block int) bool
}

// sum adds a sum over the last n elements. Weights are those of the sum owner, of
// the same shape, if that is not -1.
func (l *level) sum(units, n, owner int, bands ...band) int {
	s := l.size
	blocks := 0
	for _, b := range bands {
		blocks += b.blocks
	}
	out := l.vector(blocks*s, 0)
	for i := range l.cap * blocks * s {
		l.val[int(out.Base)+i] = poison
	}
	id, first := len(l.sums), len(l.elements)-n
	sum := tensor.Sum{
		Val: out.Base, Exp: out.At, Width: uint32(blocks * s), Units: uint32(units), Element: uint32(first), Elements: uint32(n),
		Group: uint32(len(l.groups)), Column: uint32(len(l.columns)),
	}
	for _, e := range l.elements[first:] {
		sum.Cols += e.Width
	}
	var weights []weight
	if owner >= 0 {
		weights = l.weights[owner]
	}
	took := 0
	row := 0
	for _, b := range bands {
		var cols []tensor.Step
		before := uint32(0)
		for e := range n {
			for c := range int(l.elements[first+e].Width) / s {
				if b.reads == nil || b.reads(e, c) {
					cols = append(cols, tensor.Step{Element: uint32(first + e), Column: uint32(c * s), At: before + uint32(c*s)})
				}
			}
			before += l.elements[first+e].Width
		}
		var base int
		if owner >= 0 {
			base = weights[took].param / (s * s)
		} else {
			base = room(&l.params, len(cols)*b.blocks*s*s, 0)
			if pad := (s*s - base%(s*s)) % (s * s); pad > 0 {
				for range pad {
					l.params = append(l.params, 0)
				}
				base += pad
			}
			base /= s * s
		}
		for i := range cols {
			for o := range b.blocks * s {
				for c := range s {
					w := weight{row*s + o, int(cols[i].Element) - first, int(cols[i].Column) + c, (base+i*b.blocks)*s*s + o*s + c}
					took++
					if owner >= 0 {
						continue
					}
					weights = append(weights, w)
					if w.unit < units && w.column < int(l.elements[first+w.element].Units) && (i+c == 0 || l.rng.IntN(9) > 0) {
						l.params[w.param] = l.rng.Float32() / float32(int(sum.Cols)) * 2
					}
				}
			}
		}
		most := max(1, 64/s)
		for from := 0; from < b.blocks; from += most {
			g := tensor.Group{Sum: uint32(id), Row: uint32((row + from) * s), Blocks: uint32(min(most, b.blocks-from)), Step: uint32(len(l.steps)), Steps: uint32(len(cols))}
			for i, c := range cols {
				c.Param = uint32(base + i*b.blocks + from)
				l.steps = append(l.steps, c)
				if owner < 0 {
					l.tiles = append(l.tiles, tensor.Tile{
						Row: g.Row, Blocks: g.Blocks, Param: c.Param, Unit: uint32(l.units) + g.Row, Member: uint32(len(l.members)), Members: 1,
					})
					l.members = append(l.members, tensor.Member{Sum: uint32(id), Element: c.Element, Column: c.Column})
				}
			}
			l.groups = append(l.groups, g)
		}
		l.addColumns(id, cols, base, b.blocks, row)
		row += b.blocks
	}
	sum.Groups = uint32(len(l.groups)) - sum.Group
	sum.Columns = uint32(len(l.columns)) - sum.Column
	l.units += blocks * s
	l.sums = append(l.sums, sum)
	l.weights = append(l.weights, weights)
	l.owner = append(l.owner, owner)
	return id
}

// addColumns adds the columns of a band, whose column blocks no other band reads.
func (l *level) addColumns(id int, cols []tensor.Step, base, blocks, row int) {
	s := l.size
	for i := 0; i < len(cols); {
		n := 1
		for i+n < len(cols) && (n+1)*s <= 64 && cols[i+n].Element == cols[i].Element && int(cols[i+n].Column) == int(cols[i].Column)+n*s {
			n++
		}
		l.columns = append(l.columns, tensor.Column{
			Sum: uint32(id), Element: cols[i].Element, Column: cols[i].Column, Blocks: uint32(n),
			Step: uint32(len(l.rowSteps)), Steps: uint32(blocks), Stride: uint32(blocks),
		})
		for b := range blocks {
			l.rowSteps = append(l.rowSteps, tensor.RowStep{Row: uint32((row + b) * s), Param: uint32(base + i*blocks + b)})
		}
		i += n
	}
}

// tie makes sum twin, of the same shape, a member of all tiles of sum owner.
func (l *level) tie(owner, twin int) {
	var members []tensor.Member
	shift := l.sums[twin].Element - l.sums[owner].Element
	for i := range l.tiles {
		t := &l.tiles[i]
		old := l.members[t.Member : t.Member+t.Members]
		t.Member = uint32(len(members))
		members = append(members, old...)
		if old[0].Sum == uint32(owner) {
			t.Members++
			members = append(members, tensor.Member{Sum: uint32(twin), Element: old[0].Element + shift, Column: old[0].Column})
		}
	}
	l.members = members
}

// cut makes the patches of up to edge units and columns.
func (l *level) cut(edge int) {
	l.patches = nil
	most := uint32(edge / l.size)
	for id, s := range l.sums {
		if l.owner[id] >= 0 {
			continue
		}
		unit := 0
		for _, before := range l.sums[:id] {
			unit += int(before.Width)
		}
		for _, c := range l.merged(id) {
			for at := uint32(0); at < c.Blocks; at += most {
				p := tensor.Patch{
					Columns: min(most, c.Blocks-at), Stride: c.Stride, Shift: at * c.Stride, Unit: uint32(unit),
					Member: uint32(len(l.members)), Members: 1,
				}
				m := tensor.Member{Sum: uint32(id), Element: c.Element, Column: c.Column + at*uint32(l.size)}
				l.members = append(l.members, m)
				for twin, owner := range l.owner {
					if owner == id {
						p.Members++
						l.members = append(l.members, tensor.Member{
							Sum: uint32(twin), Element: m.Element + l.sums[twin].Element - s.Element, Column: m.Column,
						})
					}
				}
				for step := uint32(0); step < c.Steps; step += most {
					p.Step, p.Steps = c.Step+step, min(most, c.Steps-step)
					l.patches = append(l.patches, p)
				}
			}
		}
	}
}

// merged returns the columns of a sum, those side by side in one.
func (l *level) merged(id int) (list []tensor.Column) {
	s := &l.sums[id]
	for _, c := range l.columns[s.Column : s.Column+s.Columns] {
		if n := len(list) - 1; n >= 0 && list[n].Element == c.Element && c.Column == list[n].Column+list[n].Blocks*uint32(l.size) && c.Steps == list[n].Steps {
			list[n].Blocks += c.Blocks
			continue
		}
		list = append(list, c)
	}
	return list
}

// words encodes a table.
func words[T any](records []T, size int) []byte {
	var b []byte
	for _, r := range records {
		b = append(b, tensor.Words(r, size)...)
	}
	return b
}

func raw(x any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err)
	}
	return b
}

// run launches a kernel once for the entries of list, and reads back what kernels
// write. The card takes warps and blocks in any order, looks for races, and cuts sums
// of matrix instructions most.
func (l *level) run(t *testing.T, name string, list []uint32, y int) {
	t.Helper()
	if l.controls == nil {
		l.controls = make([]byte, tensor.ControlSize)
	}
	binary.LittleEndian.PutUint32(l.controls, uint32(l.rows))
	args := map[string][]byte{
		tensor.ArgControl: l.controls, tensor.ArgParams: raw(l.params), tensor.ArgCodes: raw(l.codes), tensor.ArgVal: raw(l.val),
		tensor.ArgExp: raw(l.exp), tensor.ArgRatio: raw(l.ratio), tensor.ArgKept: raw(l.kept), tensor.ArgBad: raw(l.bad),
		tensor.ArgBadRows: raw(l.badRows), tensor.ArgFactors: words(l.factors, tensor.FactorSize),
		tensor.ArgElements: words(l.elements, tensor.ElementSize), tensor.ArgSums: words(l.sums, tensor.SumSize),
		tensor.ArgGroups: words(l.groups, tensor.GroupSize), tensor.ArgSteps: words(l.steps, tensor.StepSize),
		tensor.ArgColumns: words(l.columns, tensor.ColumnSize), tensor.ArgRowSteps: words(l.rowSteps, tensor.RowStepSize),
		tensor.ArgTiles: words(l.tiles, tensor.TileSize), tensor.ArgMembers: words(l.members, tensor.MemberSize),
		tensor.ArgPatches: words(l.patches, tensor.PatchSize), tensor.ArgUses: words(l.uses, tensor.UseSize), tensor.ArgList: raw(list),
	}
	for name, b := range l.more {
		args[name] = b
	}
	kernel, text := printed(t, kernelSet{tensor.Variant{Block: l.size, Mixed: l.mixed, Major: 8}, "sums"}, name)
	card := emulator.New(emulator.Options{Seed: 5, Races: true, MMA: emulator.MMA{Group: 8, ExtraBits: 1}})
	defer card.Close()
	stream, err := card.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := card.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	shared, words := 0, 1
	if name == tensor.KernelForwardResident {
		for _, s := range l.sums {
			shared = max(shared, tensor.Variant{Block: l.size}.ResidentBytes(int(s.Cols)))
		}
		words = 2
	}
	for _, p := range l.patches {
		switch {
		case p.Members == 1:
		case name == tensor.KernelMove || name == tensor.KernelCount:
			shared = tensor.PatchTotals(tensor.NarrowPatch)
		case name == tensor.KernelMoveWide || name == tensor.KernelCountWide:
			shared = tensor.PatchTotals(tensor.WidePatch)
		}
	}
	switch name {
	case tensor.KernelBackwardWide:
		shared = tensor.WideShared
	case tensor.KernelFit:
		words = 2
	case tensor.KernelForwardWide:
		shared, words = tensor.ForwardWideShared, 2
	}
	f, _, err := card.Function(loaded, name, shared)
	if err != nil {
		t.Fatal(err)
	}
	launch := cuda.Launch{Function: f, Grid: [3]int{len(list) / words, y, 1}, Shared: shared}
	at := map[string]cuda.Ptr{}
	launch.Block = kernel.Threads
	for _, p := range kernel.Params {
		b := args[p.Name]
		ptr, err := card.Alloc(int64(max(len(b), 1)))
		if err == nil {
			err = card.CopyIn(ptr, b, stream)
		}
		if err != nil {
			t.Fatal(err)
		}
		at[p.Name] = ptr
		launch.Args = append(launch.Args, uint64(ptr))
	}
	if err := card.Launch(launch, stream); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]any{
		tensor.ArgParams: l.params, tensor.ArgVal: l.val, tensor.ArgExp: l.exp, tensor.ArgRatio: l.ratio,
		tensor.ArgKept: l.kept, tensor.ArgBad: l.bad,
	} {
		if ptr, ok := at[name]; ok && len(args[name]) > 0 {
			if err := errors.Join(card.CopyOut(args[name], ptr, stream), card.Wait(stream)); err != nil {
				t.Fatal(err)
			}
			if _, err := binary.Decode(args[name], binary.LittleEndian, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, b := range l.more {
		if ptr, ok := at[name]; ok {
			if err := errors.Join(card.CopyOut(b, ptr, stream), card.Wait(stream)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// operand is the mantissa of a product of an element in float64, with the
// exponents of its factors.
func (l *level) operand(element, row, unit int) (value float64, exp int) {
	e := &l.elements[element]
	value = 1
	for _, f := range l.factors[e.Factor : e.Factor+e.Count] {
		if f.Kind == tensor.TableFactor {
			code := l.codes[int(f.At)+row]
			if len(l.modes) > 0 && uint32(code) == l.modes[f.Modes] {
				value *= float64(math.Float32frombits(l.modes[int(f.Modes)+tensor.ModesHead+unit]))
			} else {
				value *= float64(l.params[int(f.Base)+int(code)*int(e.Width)+unit])
			}
			continue
		}
		value *= float64(l.val[int(f.Base)+row*int(e.Width)+unit])
		exp += int(l.exp[int(f.At)+row])
	}
	return value, exp
}

// tiles64 is the number of row tiles of a launch.
func (l *level) tiles64() int { return (l.rows + tensor.RowTile - 1) / tensor.RowTile }

// upTo returns 0..n-1.
func upTo(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}

// noise is by what share a sum of products may differ from one in float64: with
// mixed precision, each of two factors by 2^-11 of it.
func (l *level) noise() float64 {
	if l.mixed {
		return 1.001 * 2 * 0x1p-11
	}
	return 1e-6
}

// near reports whether x is y but for a share of tol.
func near(x, y, tol float64) bool { return math.Abs(x-y) <= tol*math.Abs(y) }

// sizes are those of blocks that tests try. Short tests try the smallest, one below the size
// from which kernels multiply with matrix instructions, and one above it.
func sizes() []int {
	if testing.Short() {
		return []int{1, 8, 32}
	}
	return []int{1, 2, 4, 8, 16, 32}
}

// eachShape runs a test for blocks of several sizes and levels of several shapes, in
// both precisions.
func eachShape(t *testing.T, do func(t *testing.T, l *level)) {
	for _, size := range sizes() {
		for _, rows := range []int{1, 135} {
			if testing.Short() && rows > 1 && size == 32 {
				continue // takes as long as all others; the rows in half precision are more than a tile, too
			}
			shape(t, size, rows, false, do)
		}
		if size >= 16 {
			shape(t, size, 90, true, do)
		}
	}
}

// shape runs a test for a level of many shapes.
func shape(t *testing.T, size, rows int, mixed bool, do func(t *testing.T, l *level)) {
	name := fmt.Sprintf("size=%d/rows=%d", size, rows)
	if mixed {
		name += "/mixed"
	}
	t.Run(name, func(t *testing.T) {
		l := newLevel(size, rows, uint64(size))
		l.mixed = mixed
		l.element(3*size, 3*size-size/2, 1, 1)
		l.sum(5*size-size/3, 1, -1, band{blocks: 5}) // one element, several groups where S ≥ 16
		l.element(size, size, 2, 1)
		l.element(2*size, 2*size, 2, 0)
		l.element(3*size, 3*size, 4, 2)
		l.sum(3*size, 3, -1, // bands that read different columns, in an order of its own
			band{blocks: 1, reads: func(e, c int) bool { return e != 1 && c != 1 }},
			band{blocks: 2, reads: func(e, c int) bool { return e == 1 || c == 1 }})
		l.element(size, max(size-3, 1), 1, 0)
		l.sum(1, 1, -1, band{blocks: 1})
		l.element(3*size, 3*size-size/2, 2, 0)
		l.sum(5*size-size/3, 1, 0, band{blocks: 5})
		l.tie(0, 3)
		l.element(size, size, 1, 0)
		l.sum(size, 1, -1, band{blocks: 1}, band{blocks: 1, reads: func(int, int) bool { return false }}) // padding alone
		do(t, l)
	})
}

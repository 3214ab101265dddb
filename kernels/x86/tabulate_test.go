package x86

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

// TestTabulated computes values that come from one byte of a row, from several, and from bytes and numbers, in both layouts, and
// for rows that fill no group. How many of them are looked up by a byte is part of each form.
func TestTabulated(t *testing.T) {
	needCode(t)
	const vars, rows = 5, 2048 + 3 // each byte in some row
	type form struct {
		name   string
		looked int
		build  func(b *simt.Builder, c *bytesCase) []simt.Value
	}
	forms := []form{
		{"leaves of a byte", 3, func(_ *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(c.number(1), 256), c.look(c.number(1), 256), c.look(c.number(0), 256)}
		}},
		{"beyond a table", 2, func(_ *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(c.number(4), 40), c.look(c.number(4), 255)}
		}},
		{"bins of codes", 3, func(b *simt.Builder, c *bytesCase) []simt.Value {
			bin := c.bins(b.Binary(simt.And, b.Binary(simt.Add, c.number(2), b.Int(simt.I32, 1)), b.Int(simt.I32, 255)))
			return []simt.Value{c.look(bin, 12), c.look(bin, 40), c.look(bin, 3)} // a small table that a large one leads to
		}},
		{"many small leaves of a bin", 1, func(b *simt.Builder, c *bytesCase) (list []simt.Value) {
			bin := c.bins(b.Binary(simt.Add, c.number(2), b.Int(simt.I32, 1)))
			for range 6 {
				list = append(list, c.look(bin, 4))
			}
			return append(list, c.twice(c.look(bin, 3)))
		}},
		{"many large leaves of a bin", 6, func(_ *simt.Builder, c *bytesCase) (list []simt.Value) {
			bin := c.bins(c.number(2))
			for range 6 {
				list = append(list, c.look(bin, 40))
			}
			return list
		}},
		{"small tables", 0, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(b.Binary(simt.Min, c.number(2), b.Int(simt.I32, 7)), 8)}
		}},
		{"weighted", 1, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.twice(c.look(c.number(3), 100))}
		}},
		{"read itself and weighted", 1, func(b *simt.Builder, c *bytesCase) []simt.Value {
			x := c.look(c.number(3), 100)
			return []simt.Value{x, c.twice(x)}
		}},
		{"a mixture of leaves", 1, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{b.Select(b.Binary(simt.Lt, c.number(3), b.Int(simt.I32, 9)), c.look(c.number(3), 100), c.look(c.number(3), 70))}
		}},
		{"where another byte is small", 2, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{b.Select(b.Binary(simt.Lt, c.number(0), b.Int(simt.I32, 99)), c.look(c.number(3), 100), c.look(c.number(3), 70))}
		}},
		{"two bytes", 0, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(b.Binary(simt.Add, c.number(0), c.number(1)), 300)}
		}},
		{"a byte and a number", 0, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(b.Binary(simt.Xor, c.number(0), c.other()), 300)}
		}},
		{"an element at a byte", 0, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(b.LoadAt(c.several, c.number(0)), 300)}
		}},
		{"a bin of two bytes", 2, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return []simt.Value{c.look(b.Binary(simt.Add, c.bins(c.number(0)), c.bins(c.number(1))), 70)}
		}},
		{"in a branch", 1, func(b *simt.Builder, c *bytesCase) []simt.Value {
			x := c.look(c.number(2), 100)
			return b.If(b.Binary(simt.Lt, c.number(1), b.Int(simt.I32, 128)),
				func() []simt.Value { return []simt.Value{c.look(c.number(2), 99)} },
				func() []simt.Value { return []simt.Value{x} })
		}},
		{"255 and 256 elements in a branch", 0, func(b *simt.Builder, c *bytesCase) []simt.Value {
			return b.If(b.Binary(simt.Lt, c.number(1), b.Int(simt.I32, 128)),
				func() []simt.Value { return []simt.Value{c.look(c.number(2), 255)} },
				func() []simt.Value { return []simt.Value{c.look(c.number(2), 256)} })
		}},
		{"truth", 0, func(b *simt.Builder, c *bytesCase) []simt.Value {
			low := b.Binary(simt.Lt, c.bins(c.number(2)), b.Int(simt.I32, 20))
			return []simt.Value{b.Select(low, c.look(c.other(), 60), c.look(c.other(), 50))}
		}},
	}
	for _, f := range forms {
		for _, typ := range []simt.Type{simt.F32, simt.F64, simt.I32, simt.U8} {
			for _, layout := range []simt.Layout{simt.Rows, simt.Columns} {
				name := fmt.Sprintf("%s, %v by %v", f.name, typ, layout)
				rng := rand.New(rand.NewPCG(3, uint64(typ)))
				b := simt.NewBuilder("bytes")
				c := &bytesCase{Builder: b, rng: rng, typ: typ, code: b.Input("by_byte", simt.U8, layout, vars), extra: b.Input("extra", simt.I32, simt.Columns, 1), several: b.Input("several", simt.I32, simt.Rows, 3)}
				list := f.build(b, c)
				out := b.Output("by_byte_0", typ, simt.Columns, len(list))
				for k, v := range list {
					b.Store(out, k, v)
				}
				m := module(t, b)
				m.Tables[0].Name = "value_0" // a name that the pass would like to have
				for _, s := range []shape{avx2, avx2q} {
					if s.lanes != shapeOf(m, avx2.name).lanes {
						continue
					}
					to := tabulated(m, s)
					if err := to.Verify(); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if looked := len(to.Tables) - len(m.Tables); looked != f.looked || looked == 0 != (to == m) {
						t.Errorf("%s: %d values are looked up by a byte, want %d", name, looked, f.looked)
					}
					if f.looked > 0 {
						checkLooked(t, name, to, s)
					}
				}
				for _, set := range sets() {
					if !sameAs(t, rng, m, set, Options{}, rows, 0, rows) {
						t.Fatalf("%s, %s", set, name)
					}
				}
			}
		}
	}
}

// checkLooked checks that nothing is left of what a table has in its place, and that code loads the bytes as indices.
func checkLooked(t *testing.T, name string, m *simt.Module, s shape) {
	t.Helper()
	reads := make([]bool, len(m.Types))
	for i := range m.Body {
		m.Body[i].Reads(func(v simt.Value) { reads[v] = true })
	}
	for _, in := range m.Body {
		if in.Out != simt.None && !reads[in.Out] && in.Op != simt.Const {
			t.Errorf("%s: nothing reads the result of %v", name, in.Op)
		}
	}
	if !slices.ContainsFunc(lower(m, s).one.nodes, func(n node) bool { return n.kind == fetch && n.hasAt }) {
		t.Errorf("%s: no table is looked up by bytes in memory", name)
	}
}

// bytesCase builds a form of TestTabulated.
type bytesCase struct {
	*simt.Builder
	rng                  *rand.Rand
	typ                  simt.Type
	code, extra, several int
}

// number is a byte of the row.
func (c *bytesCase) number(column int) simt.Value { return c.Convert(simt.I32, c.Load(c.code, column)) }

// other is a number of the row.
func (c *bytesCase) other() simt.Value { return c.Load(c.extra, 0) }

func (c *bytesCase) table(typ simt.Type, n, below int) int {
	bits := make([]uint64, n)
	for i := range bits {
		if bits[i] = c.rng.Uint64N(uint64(below)); wide(typ) {
			bits[i] |= bits[i] << 40
		}
	}
	return c.Table(typ, bits)
}

// look looks up in a table of some elements.
func (c *bytesCase) look(index simt.Value, n int) simt.Value {
	return c.Gather(c.table(c.typ, n, 200), index)
}

// bins looks up a number below 45.
func (c *bytesCase) bins(index simt.Value) simt.Value {
	return c.Gather(c.table(simt.I32, 130, 45), index)
}

// twice is a result that is not that of a lookup.
func (c *bytesCase) twice(v simt.Value) simt.Value {
	if c.typ == simt.U8 {
		return c.Convert(simt.U8, c.Binary(simt.Add, c.Convert(simt.I32, v), c.Int(simt.I32, 100)))
	}
	return c.Binary(simt.Add, v, v)
}

// TestTabulatedRoom has more leaves than the tables that are made may take.
func TestTabulatedRoom(t *testing.T) {
	needCode(t)
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		rng := rand.New(rand.NewPCG(3, 5))
		b := simt.NewBuilder("many leaves")
		room := maxTabulated / (256 * typ.Bits() / 8)
		code, out := b.Input("code", simt.U8, simt.Columns, 1), b.Output("sum", typ, simt.Columns, 1)
		other := b.Input("other", typ, simt.Columns, 1)
		sum := b.Load(other, 0)
		for range room + 5 {
			bits := make([]uint64, 50)
			for k := range bits {
				bits[k] = simt.FloatBits(typ, rng.Float64())
			}
			sum = b.Binary(simt.Add, sum, b.Gather(b.Table(typ, bits), b.Convert(simt.I32, b.Load(code, 0))))
		}
		b.Store(out, 0, sum)
		m := module(t, b)
		if n := len(tabulated(m, shapeOf(m, avx2.name)).Tables) - len(m.Tables); n != room {
			t.Errorf("%v: %d of %d leaves are looked up by a byte, want %d", typ, n, room+5, room)
		}
		same(t, rng, m, 515, 0, 515)
	}
}

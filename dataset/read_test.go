package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset/ndarray"
)

// TestPlain reads arrays of every type of element with cells on both sides of every limit, by the way of rows that are numbers of their
// columns and by that of any cells, and wants the same batches and the same errors.
func TestPlain(t *testing.T) {
	labels := []string{"2", "0", "1"} // whose codes are not the numbers
	schema := func(columns ...Column) *Schema { return &Schema{Columns: columns} }
	three, many, wide := Column{Kind: Discrete, Categories: 3}, Column{Kind: Discrete, Categories: MaxNarrow}, Column{Kind: Discrete, Categories: MaxNarrow + 1}
	number, scaled := Column{Kind: Continuous}, Column{Kind: Continuous, Offset: 1, Scale: 2}
	cells := []float64{
		0, 1, 2, 3, -1, 0.5, 255, 256, 65534, 65535, 65536, math.Copysign(0, -1), 1e9, -1e9, 1 << 40, math.MaxFloat32, -math.MaxFloat32, 2 * math.MaxFloat32, 1e300,
		math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1),
	}
	read := func(array []byte, s *Schema, opts Options, numbers bool) string {
		t.Helper()
		opts.Schema = s
		open := func(context.Context, string, *Options) (Records, error) {
			r, err := ndarray.OpenNPY(bytes.NewReader(array))
			if err != nil {
				t.Fatal(err)
			}
			return &arrayRecords{path: "rows.npy", file: io.NopCloser(nil), r: r, row: make([]float64, r.Columns())}, nil
		}
		rd, err := openRecords(t.Context(), file{path: "rows.npy", format: Format{Open: open}}, s, &opts)
		if err != nil {
			return err.Error()
		}
		defer rd.Close()
		r := rd.(*recordReader)
		if r.numbers == nil {
			t.Fatal("the rows of an array are not numbers")
		}
		if !numbers {
			r.numbers = nil
		}
		var out bytes.Buffer
		for b := new(Batch); ; {
			err := r.Read(t.Context(), b, 2)
			if err != nil {
				fmt.Fprintln(&out, err)
			}
			if err == io.EOF {
				return out.String()
			}
			for v := range b.Columns {
				fmt.Fprintln(&out, b.Rows, b.Columns[v].Codes, b.Columns[v].Values)
			}
			if err != nil {
				return out.String()
			}
		}
	}
	types := []ndarray.DType{
		{Kind: 'f', Size: 8}, {Kind: 'f', Size: 4}, {Kind: 'f', Size: 4, BigEndian: true}, {Kind: 'u', Size: 1}, {Kind: 'i', Size: 1}, {Kind: 'b', Size: 1}, {Kind: 'u', Size: 2}, {Kind: 'i', Size: 4},
	}
	for _, d := range types {
		for _, s := range []*Schema{schema(three, number), schema(number, three), schema(many, scaled), schema(wide, three), schema(Column{Kind: Discrete, Categories: 3, Labels: labels}, number), schema(scaled, number), schema(three, three)} {
			for _, opts := range []Options{{}, {NoMissing: true}, {Types: map[string]Type{"1": {Skip: true}}}} {
				s := s
				if opts.Types != nil {
					s = schema(s.Columns[1])
				}
				for _, x := range cells {
					for place := range 6 { // of three rows of two
						var all bytes.Buffer
						if err := ndarray.WriteNPYHeader(&all, d, 3, 2); err != nil {
							t.Fatal(err)
						}
						for i := range 6 {
							cell := float64(i % 2)
							if i == place {
								cell = x
							}
							all.Write(element(d, cell))
						}
						if got, want := read(all.Bytes(), s, opts, true), read(all.Bytes(), s, opts, false); got != want {
							t.Fatalf("%v in %v at %d, columns %+v:\n%s\nwant\n%s", x, d, place, s.Columns, got, want)
						}
					}
				}
			}
		}
	}
}

// element is a number as an array has it.
func element(d ndarray.DType, x float64) []byte {
	var order binary.AppendByteOrder = binary.LittleEndian
	if d.BigEndian {
		order = binary.BigEndian
	}
	switch {
	case d.Kind == 'f' && d.Size == 8:
		return order.AppendUint64(nil, math.Float64bits(x))
	case d.Kind == 'f':
		return order.AppendUint32(nil, math.Float32bits(float32(x)))
	case d.Size == 4:
		return order.AppendUint32(nil, uint32(int64(x)))
	case d.Size == 2:
		return order.AppendUint16(nil, uint16(int64(x)))
	}
	return []byte{byte(int64(x))}
}

// TestManyColumns matches the names of a wide table with those of a schema, of which it has every other one in another order.
// Each is looked up: comparing it with all others takes minutes.
func TestManyColumns(t *testing.T) {
	const n = 1 << 17
	s := &Schema{Columns: make([]Column, n)}
	var names, row []string
	for i := range s.Columns {
		s.Columns[i] = Column{Name: fmt.Sprintf("column %06d", n-i), Categories: 8}
	}
	for i := n - 1; i > 0; i -= 2 {
		names, row = append(names, s.Columns[i].Name), append(row, fmt.Sprint(i%8))
	}
	path := save(t, "a.csv", []byte(strings.Join(names, ",")+"\n"+strings.Join(row, ",")+"\n"))
	src, err := Open(t.Context(), path, Options{Schema: s, Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &Batch{}
	if err := src.Gather(t.Context(), b, []int{0}); err != nil {
		t.Fatal(err)
	}
	for i := range b.Columns {
		if want := map[bool]int{true: i % 8, false: Missing}[i%2 == 1]; b.Columns[i].Codes.At(0) != want {
			t.Fatalf("column %d has code %d, want %d", i, b.Columns[i].Codes.At(0), want)
		}
	}
}

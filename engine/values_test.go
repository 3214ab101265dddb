package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine/lanes"
)

// TestAsValues compares cells of each kind with what they are one by one, and wants the first
// infinite value, wherever it is.
func TestAsValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	out := make([]float32, 3)
	same := func(what string, want ...float32) {
		t.Helper()
		for i, x := range want {
			if out[i] != x && (x == x || out[i] == out[i]) {
				t.Errorf("%s: %v, want %v", what, out, want)
			}
		}
	}
	narrow := dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{9, 0, 65535, 65534}}}
	if bad := asValues(&narrow, 1, out); bad != -1 {
		t.Errorf("narrow codes: row %d is infinite", bad)
	}
	same("narrow codes", 0, nan, 65534)
	wide := dataset.Cells{Codes: dataset.Codes{Wide: []uint32{9, 65535, math.MaxUint32, 1 << 24}}}
	if bad := asValues(&wide, 1, out); bad != -1 {
		t.Errorf("wide codes: row %d is infinite", bad)
	}
	same("wide codes", 65535, nan, 1<<24)
	large := []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 0, nan, float32(math.Copysign(0, -1)), math.Float32frombits(0xffc00001), 1e9}
	out = make([]float32, len(large))
	if bad := asValues(&dataset.Cells{Values: large}, 0, out); bad != -1 {
		t.Errorf("row %d of %v is infinite", bad, large)
	}
	same("values", large...)
	for _, x := range []float32{inf, -inf} {
		for i := range large {
			cells := dataset.Cells{Values: append([]float32{inf}, large...)}
			cells.Values[1+i] = x
			if bad := asValues(&cells, 1, out); bad != i {
				t.Errorf("%v at %d is found at %d", x, i, bad)
			}
		}
	}

	for n := range 20 { // whole words and what is left of them
		for i := range n {
			values := make([]float32, n)
			for k := range values {
				values[k] = []float32{1, -1, nan, math.MaxFloat32, 0, math.SmallestNonzeroFloat32}[(i+k)%6]
			}
			if hasInfinite(values) {
				t.Errorf("%v has an infinite value", values)
			}
			values[i] = -inf
			if !hasInfinite(values) {
				t.Errorf("%v has no infinite value", values)
			}
		}
	}
}

// TestCells puts cells on both sides of every limit at every place of a column, as codes and as numbers, for modules of bytes and of
// float32, and wants those that the column cannot have to be refused, by row and in words, and the others to be what modules read.
func TestCells(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	discrete := func(n int) *dataset.Column { return &dataset.Column{Kind: dataset.Discrete, Categories: n} }
	number := &dataset.Column{Kind: dataset.Continuous}
	code := func(c uint16) dataset.Cells { return dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{c}}} }
	wide := func(c uint32) dataset.Cells { return dataset.Cells{Codes: dataset.Codes{Wide: []uint32{c}}} }
	value := func(x float32) dataset.Cells { return dataset.Cells{Values: []float32{x}} }
	for _, c := range []struct {
		cell dataset.Cells
		col  *dataset.Column
		want byte   // for modules of bytes
		bad  string // what the error says
	}{
		{code(0), discrete(4), 0, ""},
		{code(3), discrete(4), 3, ""},
		{code(4), discrete(4), 0, "4 is not a category (want 0..3)"},
		{code(65534), discrete(4), 0, "65534 is not a category"},
		{code(65535), discrete(4), lanes.Missing, ""},
		{code(254), discrete(255), 254, ""},
		{code(255), discrete(255), 0, "255 is not a category"},
		{code(999), discrete(1000), lanes.Outside, ""},
		{code(1000), discrete(1000), 0, "1000 is not a category"},
		{code(65534), discrete(1 << 16), lanes.Outside, ""},
		{code(300), number, lanes.Outside, ""},
		{code(65534), number, lanes.Outside, ""},
		{wide(3), discrete(4), 3, ""},
		{wide(4), discrete(4), 0, "4 is not a category"},
		{wide(255), discrete(70000), lanes.Outside, ""},
		{wide(69999), discrete(70000), lanes.Outside, ""},
		{wide(70000), discrete(70000), 0, "70000 is not a category"},
		{wide(math.MaxUint32), discrete(70000), lanes.Missing, ""},
		{value(0), discrete(4), 0, ""},
		{value(float32(math.Copysign(0, -1))), discrete(4), 0, ""},
		{value(3), discrete(4), 3, ""},
		{value(nan), discrete(4), lanes.Missing, ""},
		{value(4), discrete(4), 0, "4 is not a category"},
		{value(-1), discrete(4), 0, "-1 is not a category"},
		{value(0.5), discrete(4), 0, "0.5 is not a category"},
		{value(3e9), discrete(4), 0, "3e+09 is not a category"},
		{value(inf), discrete(4), 0, "infinite value"},
		{value(254), discrete(255), 254, ""},
		{value(254), discrete(254), 0, "254 is not a category"},
		{value(255), discrete(256), lanes.Outside, ""},
		{value(256), discrete(256), 0, "256 is not a category"},
		{value(299), discrete(300), lanes.Outside, ""},
		{value(299.5), discrete(300), 0, "299.5 is not a category"},
		{value(300), discrete(300), 0, "300 is not a category"},
		{value(1<<24 - 1), discrete(1 << 24), lanes.Outside, ""},
		{value(1 << 24), discrete(1 << 24), 0, "is not a category"},
		{value(nan), discrete(300), lanes.Missing, ""},
		{value(-0.5), number, lanes.Outside, ""},
		{value(0.5), number, 0, ""},
		{value(253.9), number, 253, ""},
		{value(254), number, lanes.Outside, ""},
		{value(1e9), number, lanes.Outside, ""},
		{value(nan), number, lanes.Missing, ""},
		{value(inf), number, 0, "infinite value"},
		{value(-inf), number, 0, "infinite value"},
	} {
		for _, rows := range []int{1, 31, 32, 33, 70} {
			for at := range rows {
				var column dataset.Cells // the first cell is a row before
				switch {
				case c.cell.Codes.Narrow != nil:
					column.Codes.Narrow = slices.Repeat([]uint16{1}, rows+1)
					column.Codes.Narrow[at+1] = c.cell.Codes.Narrow[0]
				case c.cell.Codes.Wide != nil:
					column.Codes.Wide = slices.Repeat([]uint32{1}, rows+1)
					column.Codes.Wide[at+1] = c.cell.Codes.Wide[0]
				default:
					column.Values = slices.Repeat([]float32{1}, rows+1)
					column.Values[at+1] = c.cell.Values[0]
				}
				bytes, values := make([]byte, rows), make([]float32, rows)
				for _, fine := range []bool{toBytes(bytes, &column, 1, c.col), toValues(values, &column, 1, c.col)} {
					if fine != (c.bad == "") {
						t.Fatalf("%+v at %d of %d in %+v: taken is %v", c.cell, at, rows, *c.col, fine)
					}
				}
				if c.bad != "" {
					if err := refused(&column, 1, rows, 7, c.col); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("row %d, variable 7, both counted from 0: ", at+1)) || !strings.Contains(err.Error(), c.bad) {
						t.Fatalf("%+v at %d of %d in %+v: %v, want %q", c.cell, at, rows, *c.col, err, c.bad)
					}
					continue
				}
				for i := range bytes {
					want, number := byte(1), float32(1)
					if i == at {
						want = c.want
						if number = nan; !c.cell.IsMissing(0) {
							if c.cell.Discrete() {
								number = float32(c.cell.Codes.At(0))
							} else {
								number = c.cell.Values[0]
							}
						}
					}
					if bytes[i] != want || values[i] != number && (values[i] == values[i] || number == number) {
						t.Fatalf("%+v at %d of %d in %+v: cell %d is byte %d and value %v, want %d and %v", c.cell, at, rows, *c.col, i, bytes[i], values[i], want, number)
					}
				}
			}
		}
	}
}

package codec

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// TestCodecText restores texts of all kinds, and counts what is coded as rows.
func TestCodecText(t *testing.T) {
	m := exactModel(t)
	const row = "grey,1,2,3,4,1,0"
	for _, tc := range []struct {
		name, content  string
		rows, literals int64
	}{
		{"one row", row + "\n", 1, 0},
		{"without its end", row, 1, 0},
		{"without its end, with semicolons", strings.ReplaceAll(row, ",", ";"), 1, 0},
		{"seven rows and a piece", strings.Repeat(row+"\n", 7) + row[:5], 7, 1},
		{"lines that end in CR", strings.Repeat(row+"\r", 9), 9, 0},
		{"mixed ends", row + "\r\n" + row + "\n" + row + "\r\n", 1, 1},
		{"one line that ends in CR LF", strings.Repeat(row+"\n", 5) + row + "\r\n" + strings.Repeat(row+"\n", 9), 14, 1},
		{"one line that ends in LF", strings.Repeat(row+"\r\n", 5) + row + "\n" + strings.Repeat(row+"\r\n", 9), 13, 1},
		{"one line of many that ends in CR", strings.Repeat(row+"\n", 5) + row + "\r" + strings.Repeat(row+"\n", 9), 13, 1},
		{"one line that ends in LF, of such in CR", strings.Repeat(row+"\r", 5) + row + "\n" + strings.Repeat(row+"\r", 9), 13, 1},
		{"blank lines", "\n\n" + row + "\n\n", 1, 3},
		{"codes at both ends of their range", "clear,0,0,0,0,1,0\n\"rain, heavy\",1,6,8,31,x,4\n", 2, 0},
		{"codes beyond", row + "\nclear,2,0,0,0,1,0\nclear,0,7,0,0,1,0\nclear,0,0,9,0,1,0\nclear,0,0,0,32,1,0\nclear,0,0,0,0,1,5\nclear,0,0,0,0,2,0\n", 1, 6},
		{"too many cells, too few", row + "\n" + row + ",1\ngrey,1,2,3,4,1\n", 1, 2},
		{"signs, spaces, zeros", row + "\ngrey,+1,2,3,4,1,0\ngrey, 1,2,3,4,1,0\ngrey,01,2,3,4,1,0\ngrey,1.0,2,3,4,1,0\n", 1, 4},
		{"quotes that are not needed", row + "\n\"grey\",1,2,3,4,1,0\n", 1, 1},
		{"a quote that does not end", row + "\n\"grey,1,2,3,4,1,0\n", 1, 1},
		{"spaces after commas", strings.ReplaceAll(strings.Repeat(row+"\n", 3), ",", ", "), 3, 0},
		{"all quoted", "\"grey\",\"1\",\"2\",\"3\",\"4\",\"1\",\"0\"\n", 1, 0},
		{"texts quoted", "\"grey\",1,2,3,4,\"x\",0\n\"grey\",1,2,3,4,2.5,NA\n", 2, 0},
		{"missing in all ways", "?,NA,NaN,nan,null,lost,\n,,,,,,\n", 2, 0},
		{"the mark is a label", "x,1,2,3,4,x,0\n" + row + "\n", 1, 1},
		{"one column", "day\n1\nx\n\n?\n", 3, 1},
		{"names quoted for no need", "\"day\",sky\n1,grey\n", 1, 0},
		{"names with a stranger", "day,moon\n1,3\n" + row + "\n", 1, 2},
		{"a name twice", "day,day\n1,1\n" + row + "\n", 1, 2},
		{"bytes that are not text", row + "\n\xff\x00\xfe\n", 1, 1},
		{"a byte order mark", "\ufeff" + row + "\n" + row + "\n", 1, 1},
		{"a byte order mark before names", "\ufeff\"day\",sky\r\n1,grey\r\n", 1, 0},
		{"a byte order mark before a row of one column", "day\n1\n\ufeff1\n", 1, 1},
		{"a line longer than a record", row + "\n" + strings.Repeat("7", recordBytes+9) + "\n" + row + "\n", 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, stats := roundTrip(t, m, []byte(tc.content))
			if stats.Rows != tc.rows || stats.Literals != tc.literals {
				t.Errorf("%d rows and %d literals, want %d and %d; the first literal: %s", stats.Rows, stats.Literals, tc.rows, tc.literals, stats.Problem)
			}
		})
	}
	for _, content := range []string{"", "\n", "sky,day", "sky,day\n", "moon\n3\n", "PAR1 and more"} {
		if _, err := m.Compress(context.Background(), new(bytes.Buffer), strings.NewReader(content)); !errors.Is(err, ErrRows) || strings.HasSuffix(err.Error(), ": ") {
			t.Errorf("%q: %v, want no rows, and why", content, err)
		}
	}
}

// TestCodecUTF16: a table in UTF-16, which the other commands read, is refused with what it is, in either order of bytes.
func TestCodecUTF16(t *testing.T) {
	m := exactModel(t)
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, text := range []string{"\ufeffgrey,1,2,3,4,1,0\r\n", "grey,1,2,3,4,1,0\ngrey,1,2,3,4,1,0\n", "day\n1\n2\n", "\ufeffday;sky\r1;grey\r"} {
			var content []byte
			for _, unit := range utf16.Encode([]rune(text)) {
				content = order.AppendUint16(content, unit)
			}
			if _, err := m.Compress(t.Context(), new(bytes.Buffer), bytes.NewReader(content)); !errors.Is(err, ErrRows) || !strings.Contains(err.Error(), "UTF-16") {
				t.Errorf("%q, %v: %v", text, order, err)
			}
		}
	}
}

// TestCodecWideLines finds names and delimiter of a table whose lines are longer than what is looked at of others.
func TestCodecWideLines(t *testing.T) {
	const columns = 30
	g, s := &circuit.Graph{NumVars: columns, Root: columns}, &dataset.Schema{}
	product := circuit.Node{Kind: circuit.Product, Units: 1}
	long := strings.Repeat("x", 3000)
	var names, cells []string
	for v := range columns {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Categorical{Categories: 2}})
		product.Children = append(product.Children, circuit.NodeID(v))
		name := fmt.Sprint(long, v)
		s.Columns = append(s.Columns, dataset.Column{Name: name, Categories: 2, Labels: []string{long, "y" + long}})
		names, cells = append([]string{name}, names...), append(cells, long)
	}
	g.Nodes = append(g.Nodes, product)
	even := func(_ circuit.NodeID, dst []float32) error {
		copy(dst, []float32{0.5, 0.5})
		return nil
	}
	m, err := New(g, even, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range lineEnds {
		content := strings.Join(names, ";") + end + strings.Repeat(strings.Join(cells, ";")+end, 5)
		if _, stats := roundTrip(t, m, []byte(content)); stats.Rows != 5 || stats.Literals != 0 {
			t.Errorf("line ends %q: %d rows and %d literals, want 5 and none: %s", end, stats.Rows, stats.Literals, stats.Problem)
		}
	}
}

// TestCodecArrays restores arrays of whole numbers of all widths, and such that are cut.
func TestCodecArrays(t *testing.T) {
	m := exactModel(t)
	row := []byte{1, 1, 2, 3, 4, 1, 0}
	numbers := *m.schema // whose labels are numbers
	numbers.Columns = append([]dataset.Column(nil), m.schema.Columns...)
	numbers.Columns[0].Labels = []string{"7", "1", "300"}
	numbers.Columns[5].Labels = nil
	m, err := New(m.graph, exactParams(m.graph), &numbers)
	if err != nil {
		t.Fatal(err)
	}
	npy := func(descr string) []byte {
		head := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (9, 7), }"
		return fmt.Appendf(nil, "\x93NUMPY\x01\x00\x48\x00%-71s\n", head)
	}
	wide := func(width int, big bool) (out []byte) {
		for _, x := range row {
			cell := make([]byte, width)
			if cell[0] = x; big {
				cell[0], cell[width-1] = 0, x
			}
			out = append(out, cell...)
		}
		return out
	}
	for _, tc := range []struct {
		name    string
		content []byte
		rows    int64
	}{
		{"idx of bytes", append([]byte{0, 0, 8, 2, 0, 0, 0, 9, 0, 0, 0, 7}, bytes.Repeat(row, 9)...), 9},
		{"idx of 4 bytes", append([]byte{0, 0, 12, 3, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 7}, bytes.Repeat(wide(4, true), 9)...), 9},
		{"npy of bytes", append(npy("|u1"), bytes.Repeat(row, 9)...), 9},
		{"npy of 2 bytes", append(npy("<u2"), bytes.Repeat(wide(2, false), 9)...), 9},
		{"npy of 4 bytes, the highest first", append(npy(">i4"), bytes.Repeat(wide(4, true), 9)...), 9},
		{"npy of int64", append(npy("<i8"), bytes.Repeat(wide(8, false), 9)...), 9},
		{"npy of uint64, the highest first", append(npy(">u8"), bytes.Repeat(wide(8, true), 9)...), 9},
		{"npy of uint64, beyond int64", append(append(npy("<u8"), wide(8, false)...), bytes.Repeat([]byte{0xff}, 56)...), 1},
		{"npy of bool", append(npy("|b1"), bytes.Repeat([]byte{1, 0, 1, 0, 1, 1, 0}, 9)...), 9},
		{"a header in another order", append([]byte("\x93NUMPY\x02\x00\x36\x00\x00\x00{\"shape\": (9, 7),'fortran_order':False,'descr':\"<u2\"}\n"), bytes.Repeat(wide(2, false), 9)...), 9},
		{"cut", append(npy("|u1"), bytes.Repeat(row, 9)[:60]...), 8},
		{"more rows than the header has", append(npy("|u1"), bytes.Repeat(row, 12)...), 9},
		{"a byte behind the array", append(append(npy("|u1"), bytes.Repeat(row, 9)...), 1), 9},
		{"a label that is not there", append(append(npy("|u1"), row...), 2, 1, 2, 3, 4, 1, 0), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, stats := roundTrip(t, m, tc.content); stats.Rows != tc.rows {
				t.Errorf("%d rows, want %d: %s", stats.Rows, tc.rows, stats.Problem)
			}
		})
	}
	for _, tc := range []struct {
		content []byte
		says    string
	}{
		{append(npy("<f8"), bytes.Repeat(wide(8, false), 9)...), "floating-point numbers (f8); save it as whole numbers"},
		{append([]byte{0, 0, 13, 2, 0, 0, 0, 9, 0, 0, 0, 7}, bytes.Repeat(wide(4, true), 9)...), "floating-point numbers (f4); save it as whole numbers"},
		{append(bytes.Replace(npy("|u1"), []byte("False"), []byte("True "), 1), bytes.Repeat(row, 9)...), "Fortran order; save it in C order"},
		{append([]byte{0, 0, 8, 2, 0, 0, 0, 7, 0, 0, 0, 9}, bytes.Repeat(row, 9)...), "the rows of the array have 9 numbers, those of the model 7"},
		{append([]byte{0, 0, 8, 1, 0, 0, 0, 63}, bytes.Repeat(row, 9)...), "the rows of the array have 1 numbers, those of the model 7"},
		{append([]byte{0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 7}, row...), "it follows the 0 rows that the header of the array promises"},
		{npy("<c8"), `elements of type "<c8"`},
		{npy("|u1"), "it has a header alone; give a file with at least one row"},
		{[]byte{0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 7}, "it has a header alone; give a file with at least one row"},
		{npy("|u1")[:40], "ends in its header"},
		{[]byte{0, 0, 8, 2, 0, 0, 0, 9, 0, 0}, "ends in its header"},
	} {
		if _, err := m.Compress(context.Background(), new(bytes.Buffer), bytes.NewReader(tc.content)); !errors.Is(err, ErrRows) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: %v, want %q", clip(tc.content), err, tc.says)
		}
	}
}

// TestCodecArrayLabels codes arrays of columns with labels as the rows of a table that mean the
// same: the code of a text, and the number that a label spells if all of them are numbers.
func TestCodecArrayLabels(t *testing.T) {
	m := exactModel(t)
	s := *m.schema
	s.Columns = append([]dataset.Column(nil), m.schema.Columns...)
	s.Columns[1].Labels = []string{"-1", "1.0"}
	s.Columns[4].Labels = make([]string, 32) // halves: an array has every other one of them
	for i := range s.Columns[4].Labels {
		s.Columns[4].Labels[i] = fmt.Sprint(float64(i) / 2)
	}
	m, err := New(m.graph, exactParams(m.graph), &s)
	if err != nil {
		t.Fatal(err)
	}
	_, text := roundTrip(t, m, []byte(strings.Repeat("\"rain, heavy\",-1,2,3,15,x,0\ngrey,1.0,0,1,0,2.5,4\n", 40)))
	head := fmt.Appendf(nil, "\x93NUMPY\x01\x00\x48\x00%-71s\n", "{'descr': '<i2', 'fortran_order': False, 'shape': (80, 7), }")
	rows := []byte{2, 0, 0xff, 0xff, 2, 0, 3, 0, 15, 0, 2, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 4, 0}
	_, array := roundTrip(t, m, append(bytes.Clone(head), bytes.Repeat(rows, 40)...))
	if text.Rows != 80 || array.Rows != 80 || array.Stored-text.Stored > int64(len(head)+1) {
		t.Errorf("%d rows of an array take %d bytes and %d of a table %d; the first that is not a row: %s", array.Rows, array.Stored, text.Rows, text.Stored, array.Problem)
	}
	for _, number := range []byte{3, 0xfe} { // neither a code of texts nor a number of labels
		for cell := range 2 {
			bad := bytes.Clone(rows[:14])
			bad[2*cell] = number
			if _, stats := roundTrip(t, m, append(append(bytes.Clone(head), rows...), bad...)); stats.Rows != 2 || stats.Literals != 1 {
				t.Errorf("%d in cell %d: %d rows and %d literals, want 2 and 1", number, cell, stats.Rows, stats.Literals)
			}
		}
	}
}

// TestCodecArraySharedLabels codes an array whose columns have one list of labels, as those of an image have.
func TestCodecArraySharedLabels(t *testing.T) {
	g := &circuit.Graph{NumVars: 3, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Input, Units: 1, Var: 2, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1, 2}},
	}}
	even := func(_ circuit.NodeID, dst []float32) error {
		copy(dst, []float32{0.5, 0.5})
		return nil
	}
	column := dataset.Column{Categories: 2, Labels: []string{"9", "200"}}
	m, err := New(g, even, &dataset.Schema{Columns: []dataset.Column{column, column, column}})
	if err != nil {
		t.Fatal(err)
	}
	content := []byte{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 9, 200, 9, 200, 9, 200}
	if _, stats := roundTrip(t, m, content); stats.Rows != 2 || stats.Literals != 0 {
		t.Errorf("%d rows and %d literals, want 2 and none: %s", stats.Rows, stats.Literals, stats.Problem)
	}
}

// TestCodecCharacters restores a text whose rows are windows of characters.
func TestCodecCharacters(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: circuit.Categorical{Categories: 4}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Categorical{Categories: 4}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	even := func(_ circuit.NodeID, dst []float32) error {
		copy(dst, []float32{0.25, 0.25, 0.25, 0.25})
		return nil
	}
	labels := []string{"<unk>", "a", "é", "\n"}
	m, err := New(g, even, &dataset.Schema{Unit: dataset.Char, Columns: []dataset.Column{{Categories: 4, Labels: labels}, {Categories: 4, Labels: labels}}})
	if err != nil {
		t.Fatal(err)
	}
	for content, rows := range map[string]int64{"aéa\n": 2, "aéa\na": 2, "aab\u4e16\naé\xe4": 2, "éa\xff\xfeaa": 2} {
		if _, stats := roundTrip(t, m, []byte(content)); stats.Rows != rows {
			t.Errorf("%q has %d rows, want %d: %s", content, stats.Rows, rows, stats.Problem)
		}
	}
}

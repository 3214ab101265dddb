package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// wide returns a text in UTF-16.
func wide(text string, order binary.AppendByteOrder, mark bool) string {
	var b []byte
	if mark {
		b = order.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestTables reads one table as programs write it: other delimiters, line ends,
// encodings and marks of missing cells.
func TestTables(t *testing.T) {
	const plain = "age,city,income\n40,Paris,1.5\n17,Köln,NA\nnull,\"Paris\",-2\n"
	const want = "age:41 city:Köln|Paris income:real 40,1,1.5 17,0,- -,1,-2"
	semicolons, tabs := strings.ReplaceAll(plain, ",", ";"), strings.ReplaceAll(plain, ",", "\t")
	cr := func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	le, be := binary.LittleEndian, binary.BigEndian
	for name, in := range map[string]string{
		"plain":                          plain,
		"semicolons":                     semicolons,
		"tabs":                           tabs,
		"CR LF":                          crlf(plain),
		"CR":                             cr(plain),
		"CR without a last one":          strings.TrimSuffix(cr(plain), "\r"),
		"CR CR LF":                       strings.ReplaceAll(plain, "\n", "\r\r\n"),
		"semicolons and CR":              cr(semicolons),
		"tabs and CR LF":                 crlf(tabs),
		"byte order mark":                "\ufeff" + semicolons,
		"a line that names semicolons":   "sep=;\n" + semicolons,
		"a line that names commas":       crlf("SEP=,\n" + plain),
		"a line that names tabs, and CR": cr("sep=\t\n" + tabs),
		"a named semicolon and a mark":   "\ufeffsep=;\n" + semicolons,
		"a named semicolon in UTF-16":    wide(crlf("sep=;\n"+semicolons), le, true),
		"UTF-16 LE":                      wide(plain, le, true),
		"UTF-16 BE":                      wide(tabs, be, true),
		"UTF-16 LE without a mark":       wide(crlf(plain), le, false),
		"UTF-16 BE without a mark":       wide(cr(semicolons), be, false),
		"UTF-16 with tabs, from a sheet": wide(crlf(tabs), le, true),
	} {
		for _, file := range []string{"a.csv", "a.tsv", "a.csv.gz"} {
			t.Run(name+"/"+file, func(t *testing.T) {
				content := []byte(in)
				if file == "a.csv.gz" {
					content = packed(t, in)
				}
				path := save(t, file, content)
				src, err := Open(context.Background(), path, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got := show(t, src); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				again, err := Open(context.Background(), path, Options{Schema: src.Schema()})
				if err != nil {
					t.Fatal(err)
				}
				if got := show(t, again); got != want {
					t.Errorf("with its schema\ngot  %s\nwant %s", got, want)
				}
			})
		}
	}
}

// TestDialect decides between delimiters.
func TestDialect(t *testing.T) {
	wideRow := strings.Repeat("1;", sniffBytes) + "1"
	for _, tt := range []struct{ name, file, in, want string }{
		{"commas within semicolons", "a.csv", "a;b\nx, y;1\nz;0\n", "a:x, y|z b:2 0,1 1,0"},
		{"semicolons within commas", "a.csv", "a,b\n1,x;y\n0,z\n", "a:2 b:x;y|z 1,0 0,1"},
		{"quoted delimiters", "a.csv", "a;b\n\"x;y\";1\n\"x;y\";0\n", "a:x;y b:2 0,1 0,0"},
		{"a comma above quoted cells", "a.csv", "name;size, cm\n\"x\";1\n\"y\";0\n", "name:x|y size, cm:2 0,1 1,0"},
		{"a comma above quoted cells, and tabs", "a.csv", "name\tsize, cm\n\"x\"\t1\n\"y\"\t0\n", "name:x|y size, cm:2 0,1 1,0"},
		{"a semicolon above quoted cells", "a.csv", "name,a;b\n\"x\",1\n\"y\",0\n", "name:x|y a;b:2 0,1 1,0"},
		{"a tab within commas", "a.tsv", "name,a\tb\n\"x\",1\n\"y\",0\n", "name:x|y a\tb:2 0,1 1,0"},
		{"one column", "a.csv", "1\n0\n", ":2 1 0"},
		{"one column of texts with blanks", "a.csv", "a b\nb c\na b\n", ":a b|b c 0 1 0"},
		{"a semicolon in one of two rows", "a.csv", "x\nx;y\nx\n", ":x|x;y 0 1 0"},
		{"one row", "a.csv", "3;4", ":4 :5 3,4"},
		{"one row and no more", "a.tsv", "3,4\n", ":4 :5 3,4"},
		{"an empty last cell", "a.tsv", "1\t\n0\t1\n\t\n", ":2 :2 1,- 0,1 -,-"},
		{"named semicolons", "a.csv", "sep=;\na;b\n1;0\n", "a:2 b:2 1,0"},
		{"named semicolons beside commas", "a.csv", "sep=;\na,b;c\nx,y;1\nx,y;0\n", "a,b:x,y c:2 0,1 0,0"},
		{"a name of more", "a.csv", "sep=;;\n1;0;1\n", "sep=:2 :2 :2 1,0,1"},
		{"semicolons in .data", "a.data", "0;1\n1;1\n", ":2 :2 0,1 1,1"},
		{"a row longer than what is looked at", "a.csv", wideRow, fmt.Sprint(sniffBytes + 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src, err := Open(context.Background(), save(t, tt.file, []byte(tt.in)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(len(src.Schema().Columns))
			if len(tt.want) != len(got) || strings.Contains(tt.want, ":") {
				got = show(t, src)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestSeparatorLines counts the line that names a delimiter.
func TestSeparatorLines(t *testing.T) {
	for in, want := range map[string]string{"sep=;\na;b\n1;0\n1\n": "a.csv:4:2: row has 1 cells", "sep=;\n": "a.csv: is empty"} {
		if _, err := Open(t.Context(), save(t, "a.csv", []byte(in)), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", in, err, want)
		}
	}
}

// TestRefusedTables wants what cannot be read as it is meant to be refused with
// its name.
func TestRefusedTables(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"decimal commas", "a;b\n1,5;2\n3,25;1\n", `a.csv:2:1: "1,5" has a comma where numbers have a decimal point; write points, or set the column's type to label`},
		{"decimal commas everywhere", "1,5;2,5\n3,5;1,5\n", `a.csv:2:1: "3,5" has a comma where numbers have a decimal point; write points, or set the column's type to label`},
		{"thousands", "a;b\n1;1,234,567\n", `a.csv:2:2: "1,234,567" has a comma where numbers have a decimal point; write points, or set the column's type to label`},
		{"Latin-1 text", "a,b\n1,K\xf6ln\n", `a.csv:2:2: "K\xf6ln" is not UTF-8; convert the file, as with iconv -f latin1 -t utf-8`},
		{"Latin-1 header", "a,gr\xf6sse\n1,2\n", `a.csv: the header has "gr\xf6sse", which is not UTF-8; convert the file, as with iconv -f latin1 -t utf-8`},
		{"UTF-32", "\xff\xfe\x00\x001\x00\x00\x00", "a.csv: is UTF-32; convert it to UTF-8"},
		{"binary", "PK\x03\x04\x14\x00\x00\x00\x08\x00\x21\x00", "a.csv: holds zero bytes; if it is a table in text, convert it to UTF-8"},
		{"half a character", wide("a,b\n1,2\n", binary.LittleEndian, true) + "3", "a.csv: after line 2: the text is not valid UTF-16; convert it to UTF-8; the file may be damaged"},
		{"half a pair", wide("a,b\n1,", binary.BigEndian, true) + "\xd8\x00\x00x\x00\n", "a.csv: after line 1: the text is not valid UTF-16; convert it to UTF-8; the file may be damaged"},
		{"mixed line ends", "a,b\n1,2\r3,4\n", "a.csv:2:2: line ends are written in several ways (CR and LF); write all of them as LF"},
		{"mixed line ends between semicolons", "a;b, c\n1;2\n1;2\r3\n", "a.csv:3:2: line ends are written in several ways (CR and LF); write all of them as LF"},
		{"a bad quote between semicolons", "a;b\n1;\"x\"\n2;\"x\" y\n1;\"x\"\n", "a.csv:3:2: text after a closing quote; write a quote within quotes twice"},
		{"a bad quote below decimal commas", "a;b\n1,5;2\n1;\"x\" y\n", `a.csv:2:1: "1,5" has a comma where numbers have a decimal point; write points, or set the column's type to label`},
		{"two names", "a;a\n1;2\n", `a.csv: two columns are named "a"; rename or remove one`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := save(t, "a.csv", []byte(tt.in))
			_, err := Open(context.Background(), path, Options{})
			if err == nil {
				t.Fatal("no error")
			}
			if got := message(t, err, path); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestMarks wants the customary marks to be missing unless they are labels, and
// further marks to stay with the schema.
func TestMarks(t *testing.T) {
	ctx := context.Background()
	in := "a,b\nNA,n/a\nN/A,null\nNull,?\nNaN,NULL\n,nan\n2,x\n-1,none\n1,y\n"
	path := save(t, "a.csv", []byte(in))
	src, err := Open(ctx, path, Options{Missing: []string{"-1", "none", "-1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := "a:3 b:x|y -,- -,- -,- -,- -,- 2,0 -,- 1,1"
	if got := show(t, src); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	s := src.Schema()
	text, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s = new(Schema)
	if err := s.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Missing, []string{"-1", "none"}) {
		t.Errorf("the schema's marks are %q", s.Missing)
	}
	again, err := Open(ctx, path, Options{Schema: s, Missing: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, again), strings.Replace(want, "2,0", "2,-", 1); got != want {
		t.Errorf("with another mark\ngot  %s\nwant %s", got, want)
	}
	if got := again.Schema().Missing; !slices.Equal(got, []string{"-1", "none", "x"}) || len(s.Missing) != 2 {
		t.Errorf("marks %q, of the schema %q", got, s.Missing)
	}

	labels := &Schema{Columns: []Column{{Categories: 3, Labels: []string{"?", "NA", "b"}}}}
	src, err = Open(ctx, save(t, "b.csv", []byte("NA\nna\n?\nb\n\"\"\n")), Options{Schema: labels})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, src), ":?|NA|b 1 - 0 2 -"; got != want {
		t.Errorf("marks that are labels\ngot  %s\nwant %s", got, want)
	}
	src, err = Open(ctx, save(t, "b.csv", []byte("NA\nb\n")), Options{Schema: labels, Missing: []string{"NA"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, src), ":?|NA|b - 2"; got != want {
		t.Errorf("a label that is set to be a mark\ngot  %s\nwant %s", got, want)
	}
}

// TestPartial reads files that lack columns of a schema.
func TestPartial(t *testing.T) {
	model := &Schema{Columns: []Column{
		{Name: "age", Kind: Continuous}, {Name: "city", Categories: 2, Labels: []string{"Köln", "Paris"}}, {Name: "income", Kind: Continuous}, {Name: "7", Categories: 9},
	}}
	for _, tt := range []struct{ name, in, want string }{
		{"two of four", "age,city\n40,Paris\n", "40,1,-,-"},
		{"in another order", "city,age\nParis,40\n", "40,1,-,-"},
		{"by semicolons", "city;age\nParis;40\n;3\n", "40,1,-,- 3,-,-,-"},
		{"one, whose name is a number", "7\n8\n", "-,-,-,8"},
		{"an unknown one", "age,town\n40,Paris\n", `-:1:2: the header has "town", which is not a variable of the model; remove the column or set its type to skip`},
		{"only unknown ones", "town\nRome\n", `-:1:1: the header has "town", which is not a variable of the model; remove the column or set its type to skip`},
		{"one twice", "age,age\n40,41\n", `-:1:2: the header has "age" twice; remove one of the columns`},
		{"without names", "40,Paris\n", `-:1:1: row has 2 cells for 4 variables; give one cell per variable`},
		{"no rows", "age\n", "-: has no rows; give a file with at least one"},
		{"nothing", "", "-: is empty; give a file with at least one row"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []string
			o := Options{Schema: model, Partial: true, Stdin: iotest.OneByteReader(strings.NewReader(tt.in)), Warn: func(w string) { warnings = append(warnings, w) }}
			src, err := Open(context.Background(), "-", o)
			got := ""
			if err != nil {
				got = message(t, err, "./-")
			} else {
				got = strings.Join(strings.Split(show(t, src), " ")[len(model.Columns):], " ")
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if err == nil && (len(warnings) != 1 || !strings.Contains(warnings[0], `the header lacks "`)) {
				t.Errorf("warnings %q", warnings)
			}
			if err != nil {
				return
			}
			// Rows that a model is trained with have all columns.
			_, err = Open(context.Background(), save(t, "a.csv", []byte(tt.in)), Options{Schema: model})
			if err == nil || !strings.Contains(err.Error(), "the header lacks") {
				t.Errorf("without Partial: %v", err)
			}
		})
	}
	if _, err := Open(context.Background(), "-", Options{Stdin: strings.NewReader("1,2\n")}); !errors.Is(err, ErrSetting) {
		t.Errorf("standard input without a schema: %v", err)
	}
	if _, err := Open(context.Background(), "-", Options{Schema: model}); !errors.Is(err, ErrSetting) {
		t.Errorf("no standard input: %v", err)
	}
}

// TestSkippedVariables names columns that the types skip although they are a model's variables, and not as
// columns that the header lacks.
func TestSkippedVariables(t *testing.T) {
	s := &Schema{Columns: []Column{{Name: "a", Kind: Continuous}, {Name: "b", Kind: Continuous}, {Name: "c", Kind: Continuous}}}
	path := save(t, "a.csv", []byte("a,b\n1,2\n"))
	var warnings []string
	o := Options{Schema: s, Partial: true, Types: map[string]Type{"a": {Skip: true}}, Warn: func(w string) { warnings = append(warnings, w) }}
	want := []string{path + `: the types skip "a"; they are missing in every row`, path + `: the header lacks "c"; they are missing in every row`}
	if src, err := Open(context.Background(), path, o); err != nil || !slices.Equal(warnings, want) {
		t.Errorf("%v, warnings %q, want %q", err, warnings, want)
	} else if got := show(t, src); !strings.HasSuffix(got, " -,2,-") {
		t.Errorf("rows %s", got)
	}
	o.Partial = false
	if _, err := Open(context.Background(), path, o); err == nil || !strings.Contains(err.Error(), `"a" is set to be skipped, and a variable of the model; drop the type`) {
		t.Errorf("without Partial: %v", err)
	}
}

// TestUnnamedColumns reads a header with columns that have no name.
func TestUnnamedColumns(t *testing.T) {
	src, err := Open(context.Background(), save(t, "a.csv", []byte(",a,\n1,2,3\n")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, src), ":2 a:3 :4 1,2,3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestKeys wants a warning of columns that identify rows, and of no others.
func TestKeys(t *testing.T) {
	table := func(rows int, cell func(i int) string) string {
		var b strings.Builder
		b.WriteString("id,x\n")
		for i := range rows {
			fmt.Fprintf(&b, "%s,%d\n", cell(i), i%3)
		}
		return b.String()
	}
	number := func(i int) string { return fmt.Sprint(1000 + 7*i) }
	for _, tt := range []struct {
		name  string
		files []string
		opts  Options
		want  string
	}{
		{"codes", []string{table(50, number)}, Options{}, `"id" holds 50 whole numbers that are all different; if they only name the rows, set its type to skip`},
		{"large numbers", []string{table(20_000, number)}, Options{}, `"id" holds 20000 whole numbers that are nearly all different; if they only name the rows, set its type to skip`},
		{"texts", []string{table(50, func(i int) string { return fmt.Sprintf("row %d", i) })}, Options{}, `"id" holds 50 texts that are all different; if they only name the rows, set its type to skip`},
		{"numbers and texts", []string{table(50, func(i int) string { return fmt.Sprintf("%d%.*s", i, i%2, "b") })}, Options{}, `"id" holds 50 texts that are all different; if they only name the rows, set its type to skip`},
		{"over two files", []string{table(20, number), table(50, func(i int) string { return number(i + 20) })}, Options{}, `"id" holds 70 whole numbers that are all different; if they only name the rows, set its type to skip`},
		{"the same in two files", []string{table(20, number), table(50, number)}, Options{}, ``},
		{"the same texts in two files", []string{table(20, func(i int) string { return fmt.Sprintf("row %d", i) }), table(30, func(i int) string { return fmt.Sprintf("row %d", i) })}, Options{}, ``},
		{"just enough rows", []string{table(10, number)}, Options{}, `"id" holds 10 whole numbers that are all different; if they only name the rows, set its type to skip`},
		{"few rows", []string{table(9, number)}, Options{}, ``},
		{"one number twice", []string{table(50, number) + "1000,1\n"}, Options{}, ``},
		{"measures", []string{table(50, func(i int) string { return fmt.Sprint(float64(i) + 0.5) })}, Options{}, ``},
		{"a column whose type is set", []string{table(50, number)}, Options{Types: map[string]Type{"id": {Kind: Continuous}}}, ``},
		{"a column that is skipped", []string{table(50, number)}, Options{Types: map[string]Type{"id": {Skip: true}}}, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var paths, warnings []string
			for i, in := range tt.files {
				paths = append(paths, save(t, fmt.Sprintf("%d.csv", i), []byte(in)))
			}
			tt.opts.Warn = func(w string) { warnings = append(warnings, w) }
			if _, err := OpenAll(context.Background(), paths, tt.opts); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(warnings, "|")
			if tt.want != "" {
				tt.want = strings.Join(paths, ", ") + ": " + tt.want
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestWarnOfEmpty warns of columns that have no cell in any file, unless their type is set. A file without a cell of a column says
// nothing about its numbers, such as that one is 0.
func TestWarnOfEmpty(t *testing.T) {
	first, second := "a,b,c,d\n1,?,,x\n2,NA,,y\n", "a,b,c,d\n0,,3,x\n"
	const one, more = `"b" has no observed cell to learn from; set its type to skip to leave it out`,
		`2 columns have no observed cell to learn from, the first is "b"; set their types to skip to leave them out`
	for _, tt := range []struct {
		files []string
		opts  Options
		want  string
	}{
		{[]string{first}, Options{}, more},
		{[]string{first, second}, Options{}, one},
		{[]string{second, first}, Options{Missing: []string{"x", "y"}}, more},
		{[]string{first}, Options{Types: map[string]Type{"b": {Skip: true}, "c": {Kind: Continuous}}}, ``},
		{[]string{second}, Options{}, one},
		{[]string{"a,b\n0,1\n"}, Options{}, ``},
		{[]string{"a\n1000000.5\n1000001.5\n1000003.5\n", "a\n?\n"}, Options{}, ``},
	} {
		var paths []string
		for i, in := range tt.files {
			paths = append(paths, save(t, fmt.Sprintf("%d.csv", i), []byte(in)))
		}
		got := ""
		tt.opts.Warn = func(w string) { got += strings.TrimPrefix(w, strings.Join(paths, ", ")+": ") }
		if _, err := OpenAll(t.Context(), paths, tt.opts); err != nil || got != tt.want {
			t.Errorf("%q: %v, warned %q, want %q", tt.files, err, got, tt.want)
		}
	}
}

// TestSample wants a sample to keep its numbers, and to meet again what it keeps.
func TestSample(t *testing.T) {
	var s sample
	for i := range 10_000 {
		if s.add(float64(i)*1.25-5e3, 100) {
			t.Fatalf("%d was there", i)
		}
	}
	kept := s.values()
	if len(kept) < 40 || len(kept) > 100 || len(kept) != s.len {
		t.Fatalf("%d numbers kept, it says %d", len(kept), s.len)
	}
	for _, x := range kept {
		if i := (x + 5e3) / 1.25; i != math.Trunc(i) || i < 0 || i >= 10_000 {
			t.Errorf("%v was never added", x)
		}
		if !s.add(x, 100) {
			t.Errorf("%v is not met again", x)
		}
	}
	var zeros sample
	if zeros.add(0, 8) || !zeros.add(math.Copysign(0, -1), 8) {
		t.Error("0 and -0 differ")
	}
	for _, x := range []float64{0, 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1.7e9} {
		if h := hash(x); h == 0 || unhash(h) != x {
			t.Errorf("%v has the hash %#x, of %v", x, h, unhash(h))
		}
	}
}

func FuzzUTF16(f *testing.F) {
	f.Add("a,b\n1,ö\n", true)
	f.Add("\U0001f600;x", false)
	f.Fuzz(func(t *testing.T, text string, big bool) {
		text = string([]rune(strings.ToValidUTF8(text, "")))
		var order binary.AppendByteOrder = binary.LittleEndian
		if big {
			order = binary.BigEndian
		}
		in := wide(text, order, false)
		out, err := io.ReadAll(iotest.OneByteReader(newUTF16(strings.NewReader(in), big)))
		if err != nil || !bytes.Equal(out, []byte(text)) {
			t.Fatalf("%q: %q, %v", text, out, err)
		}
	})
}

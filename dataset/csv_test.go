package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// save writes a file and goes to its folder, so that messages have short names.
func save(t testing.TB, name string, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func packed(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// show prints a source: its columns, then its rows, missing cells as "-".
func show(t testing.TB, src Source) string {
	t.Helper()
	var out []string
	for _, c := range src.Schema().Columns {
		s := c.Name + ":"
		switch {
		case c.Kind == Continuous:
			s += "real"
		case c.Labels != nil:
			s += strings.Join(c.Labels, "|")
		default:
			s += fmt.Sprint(c.Categories)
		}
		out = append(out, s)
	}
	b := new(Batch)
	if err := src.Gather(context.Background(), b, span(0, src.Rows())); err != nil {
		t.Fatal(err)
	}
	for r := range b.Rows {
		var cells []string
		for i, c := range b.Columns {
			switch {
			case c.IsMissing(r):
				cells = append(cells, "-")
			case c.Discrete():
				cells = append(cells, fmt.Sprint(c.Codes.At(r)))
			default:
				cells = append(cells, string(src.Schema().Columns[i].appendNumber(nil, c.Values[r])))
			}
		}
		out = append(out, strings.Join(cells, ","))
	}
	return strings.Join(out, " ")
}

// TestNamesThatAreNumbers warns of a first row that is read as a row, as it has numbers, and has the only text of a column of numbers.
func TestNamesThatAreNumbers(t *testing.T) {
	const warning = `: the first row has "age" above numbers, and numbers itself, so that it is read as a row; if it names the columns, set data.header to yes`
	const years = "age,2019,2020\n30,1.5,2.5\n31,3.5,1.25\n"
	for _, tt := range []struct {
		in   string
		opts Options
		want string
	}{
		{years, Options{}, warning},
		{years, Options{Header: HeaderAuto}, warning},
		{years, Options{Header: HeaderYes}, ""},
		{years, Options{Header: HeaderNo}, ""},
		{years, Options{Types: map[string]Type{"1": {Labels: true}}}, ""},
		{"age,pet\n30,cat\n31,dog\n", Options{}, ""},
		{"age,1\n30,2\nold,3\n", Options{}, ""},
		{"30,1\nold,2\n31,3\n", Options{}, ""},
		{"none,1\n30,2\nnone,3\n", Options{}, ""},
	} {
		path, got := save(t, "a.csv", []byte(tt.in)), ""
		tt.opts.Warn = func(w string) { got += strings.TrimPrefix(w, path) }
		if _, err := Open(t.Context(), path, tt.opts); err != nil || got != tt.want {
			t.Errorf("%q, header %q: %v, warned %q, want %q", tt.in, tt.opts.Header, err, got, tt.want)
		}
	}
	const counted = ": the first row counts the columns, as tables without names are written by some programs, and is read as a row; if it names the columns, set data.header to yes"
	for _, tt := range []struct {
		in   string
		opts Options
		want string
	}{
		{"0,1,2,3\n5,5,5,5\n", Options{}, counted},
		{"1,2,3,4\n5,x,5,5\n", Options{}, counted},
		{"1,2,3,4\n5,5,5,5\n", Options{Header: HeaderYes}, ""},
		{"1,2,3,4\n5,5,5,5\n", Options{Header: HeaderNo}, ""},
		{"1,2,3,5\n5,5,5,5\n", Options{}, ""},
		{"0,1,2\n5,5,5\n", Options{}, ""},
		{"0,1,2,3\n5,5,5,5\n", Options{Schema: &Schema{Columns: make([]Column, 4)}, Partial: true}, counted},
	} {
		if tt.opts.Schema != nil {
			for i := range tt.opts.Schema.Columns {
				tt.opts.Schema.Columns[i].Kind = Continuous
			}
		}
		path, got := save(t, "a.csv", []byte(tt.in)), ""
		tt.opts.Warn = func(w string) { got += strings.TrimPrefix(w, path) }
		if _, err := Open(t.Context(), path, tt.opts); err != nil || got != tt.want {
			t.Errorf("%q, header %q: %v, warned %q, want %q", tt.in, tt.opts.Header, err, got, tt.want)
		}
	}
	const counts = ": the first row counts years, from %s to %s, and is read as a row; if it names the columns, set data.header to yes"
	for in, want := range map[string]string{
		"2019,2020,2021\n1,2,3\n": fmt.Sprintf(counts, "2019", "2021"), "2010,2005,2000,1995\n1,2,3,4\n": fmt.Sprintf(counts, "2010", "1995"),
		"2019,2020\n1,2\n": "", "2019,2020,2022\n1,2,3\n": "", "2020,2020,2020\n1,2,3\n": "", "2999,3000,3001\n1,2,3\n": "", "2019.5,2020.5,2021.5\n1,2,3\n": "", "2019\n1\n": "",
	} {
		path, got := save(t, "a.csv", []byte(in)), ""
		if _, err := Open(t.Context(), path, Options{Warn: func(w string) { got += strings.TrimPrefix(w, path) }}); err != nil || got != want {
			t.Errorf("%q: %v, warned %q, want %q", in, err, got, want)
		}
	}
	const moved = ": the first row has the names of all columns in another order, and is read as a row, since they are numbers; if it names the columns, set data.header to yes"
	named := func(names ...string) *Schema {
		s := &Schema{}
		for _, name := range names {
			s.Columns = append(s.Columns, Column{Name: name, Kind: Continuous})
		}
		return s
	}
	for _, tt := range []struct {
		in   string
		opts Options
		rows int
		want string
	}{
		{"2,0,1\n7,8,9\n", Options{Schema: named("0", "1", "2")}, 2, moved},
		{"2,0,1\n7,8,9\n", Options{Schema: named("0", "1", "2"), Header: HeaderYes}, 1, ""},
		{"0,1,2\n7,8,9\n", Options{Schema: named("0", "1", "2")}, 1, ""},
		{"2,0,0\n7,8,9\n", Options{Schema: named("0", "1", "2")}, 2, ""},
		{"1,0\n7,8\n", Options{Schema: named("0", "1")}, 2, ""},
	} {
		path, got := save(t, "a.csv", []byte(tt.in)), ""
		tt.opts.Warn = func(w string) { got += strings.TrimPrefix(w, path) }
		src, err := Open(t.Context(), path, tt.opts)
		if err != nil || src.Rows() != tt.rows || got != tt.want {
			t.Errorf("%q, header %q: %v, warned %q, want %q and %d rows", tt.in, tt.opts.Header, err, got, tt.want, tt.rows)
		}
	}
}

func TestCSV(t *testing.T) {
	label, real := Type{Labels: true}, Type{Kind: Continuous}
	for _, tt := range []struct {
		name, in, want string
		opts           Options
	}{
		{"codes", "0,1\n1,4\n", ":2 :5 0,1 1,4", Options{}},
		{"no end of line", "0,1\r\n1,4", ":2 :5 0,1 1,4", Options{}},
		{"header", "a,b\n0,1\n1,4\n", "a:2 b:5 0,1 1,4", Options{}},
		{"byte order mark", "\xef\xbb\xbf0,1\n", ":2 :2 0,1", Options{}},
		{"header of texts over texts", "c,d\nx,y\nx,z\n", "c:x d:y|z 0,0 0,1", Options{}},
		{"texts that come again are data", "x,y\nx,z\n", ":x :y|z 0,0 0,1", Options{}},
		{"a missing cell above numbers", "red,\nblue,3\nred,4\n", ":blue|red :5 1,- 0,3 1,4", Options{}},
		{"an index without a name", ",city\n0,Oslo\n1,Rome\n2,Oslo\n", ":3 city:Oslo|Rome 0,0 1,1 2,0", Options{}},
		{"header is set", "1,2\n0,1\n", "1:2 2:2 0,1", Options{Header: HeaderYes}},
		{"no header is set", "a\nb\n", ":a|b 0 1", Options{Header: HeaderNo}},
		{"missing", "a,b,c\n,?,1\nNaN,2,nAn\n1,nan,2.5\n", "a:2 b:3 c:real -,-,1 -,2,- 1,-,2.5", Options{}},
		{"own marks with blanks", "a,b\n-1, - \n3,x\n\" - \",x\n", "a:4 b:x -,- 3,0 -,0", Options{Missing: []string{" - ", "-1\t"}}},
		{"own marks", "a,b\n-1,x\n3,NA\n", "a:4 b:x -,0 3,-", Options{Missing: []string{"NA", "-1"}}},
		{"reals", "1.5\n-2e-3\n+7\n", ":real 1.5 -0.002 7", Options{}},
		{"whole numbers written as reals", "1.0\n\n0.0\n", ":2 1 0", Options{}},
		{"large counts are real", "4095\n4096\n", ":real 4095 4096", Options{}},
		{"numbers among texts are labels", "n\n1\n2\n3+\n", "n:1|2|3+ 0 1 2", Options{}},
		{"constant column", "0\n0\n", ":2 0 0", Options{}},
		{"quotes", "a,b\n\"x, \"\"y\"\"\",1\n\"two\nlines\", 2 \n", "a:two\nlines|x, \"y\" b:3 1,1 0,2", Options{}},
		{"texts with commas", "n\n\"1,234\"\n\"x,1\"\n", "n:1,234|x,1 0 1", Options{}},
		{"numbers with commas that are labels", "n\n\"1,2\"\n3\n", "n:1,2|3 0 1", Options{Types: map[string]Type{"n": label}}},
		{"types by name", "a,b,c\n1,2,3\n3,4,3\n", "a:real b:2|4 1,0 3,1", Options{Types: map[string]Type{"a": real, "b": label, "c": {Skip: true}}}},
		{"types by number and star", "1,2\n3,4\n", ":9 :real 1,2 3,4", Options{Types: map[string]Type{"1": {Categories: 9}, "*": real}}},
		{"types by names that are numbers", "0,1,2\n1,2,3\n3,4,3\n", "0:4 2:9 1,3 3,3", Options{Header: HeaderYes, Types: map[string]Type{"1": {Skip: true}, "3": {Categories: 9}}}},
		{"numbers among texts below numbers", "0,1,2\nx,0.5,3\n7,1.5,0\n", "0:7|x 1:real 2:4 1,0.5,3 0,1.5,0", Options{Header: HeaderYes}},
		{"image", "1,2,3,4\n", ":2 :3 :4 :5 1,2,3,4", Options{Image: [3]int{2, 2, 1}}},
	} {
		for _, zip := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/gzip=%v", tt.name, zip), func(t *testing.T) {
				path := save(t, "a.csv", []byte(tt.in))
				if zip {
					path = save(t, "a.csv.gz", packed(t, tt.in))
				}
				src, err := Open(context.Background(), path, tt.opts)
				if err != nil {
					t.Fatal(err)
				}
				if got := show(t, src); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if src.Schema().Image != tt.opts.Image {
					t.Errorf("image %v", src.Schema().Image)
				}
				// The schema that was found reads the file it was found in.
				tt.opts.Schema = src.Schema()
				again, err := Open(context.Background(), path, tt.opts)
				if err != nil {
					t.Fatal(err)
				}
				if got := show(t, again); got != tt.want {
					t.Errorf("with its schema\ngot  %s\nwant %s", got, tt.want)
				}
			})
		}
	}
}

func TestCSVUnderSchema(t *testing.T) {
	model := &Schema{Columns: []Column{{Name: "a", Categories: 3}, {Name: "b", Kind: Continuous}, {Name: "c", Categories: 2, Labels: []string{"no", "yes"}}}}
	nameless := &Schema{Columns: []Column{{Categories: 3}, {Kind: Continuous}}}
	texts := &Schema{Columns: []Column{{Name: "p", Categories: 2, Labels: []string{"p", "q"}}}}
	for _, tt := range []struct {
		name   string
		schema *Schema
		in     string
		opts   Options
		want   string // rows, or the error after the name of the folder
	}{
		{"by place", model, "0,1.5,no\n,,\n", Options{}, "0,1.5,0 -,-,-"},
		{"by name", model, "c,a,b\nyes,2,7\n", Options{}, "2,7,1"},
		{"by name without one that is skipped", model, "c,id,a,b\nyes,x,2,7\n", Options{Types: map[string]Type{"id": {Skip: true}}}, "2,7,1"},
		{"header over a model without names", nameless, "x,y\n2,3\n", Options{}, "2,3"},
		{"a row that is data and could be names", texts, "q\np\n", Options{}, "1 0"},
		{"wider cells", model, "3,1,no\n", Options{}, `a.csv:1:1: 3 is out of range for "a", whose categories are 0 to 2; fix the cell or give the column more categories when training`},
		{"negative", model, "1,1,no\n-1,1,no\n", Options{}, `a.csv:2:1: -1 is out of range for "a", whose categories are 0 to 2; fix the cell or give the column more categories when training`},
		{"fraction", model, "0.5,1,no\n", Options{}, `a.csv:1:1: 0.5 is out of range for "a", whose categories are 0 to 2; fix the cell or give the column more categories when training`},
		{"unknown label", model, "a,b,c\n1,2,maybe\n", Options{}, `a.csv:2:3: "maybe" is not a category of "c"; it has "no", "yes"`},
		{"unknown label in the first row", texts, "r\np\n", Options{}, `a.csv:1:1: "r" is not a category of "p"; it has "p", "q"`},
		{"text", model, "1,inf,no\n", Options{}, `a.csv:1:2: "inf" is not a number, and "b" is continuous; fix the cell or list the text as a missing mark`},
		{"too large", model, "1,1e39,no\n", Options{}, `a.csv:1:2: 1e+39 is beyond ±3.4e38; scale "b"`},
		{"far too large", model, "1,-1e999,no\n", Options{}, `a.csv:1:2: -Inf is beyond ±3.4e38; scale "b"`},
		{"too few cells", model, "1,2\n", Options{}, `a.csv:1:1: row has 2 cells for 3 variables; give one cell per variable`},
		{"column too many", model, "a,b,c,d\n1,2,no,4\n", Options{}, `a.csv:1:4: the header has "d", which is not a variable of the model; remove the column or set its type to skip`},
		{"column twice", model, "a,b,c,a\n1,2,no,4\n", Options{}, `a.csv:1:4: the header has "a" twice; remove one of the columns`},
		{"column absent", model, "a,c\n1,no\n", Options{}, `a.csv: the header lacks "b"; add the columns`},
		{"missing cell", model, "1,2,no\n1,?,no\n", Options{NoMissing: true}, `a.csv:2:2: cell of "b" is missing; fill it or allow missing cells`},
		{"only a header", model, "a,b,c\n", Options{}, `a.csv: has no rows; give a file with at least one`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := save(t, "a.csv", []byte(tt.in))
			tt.opts.Schema = tt.schema
			src, err := Open(context.Background(), path, tt.opts)
			got := ""
			if err != nil {
				got = message(t, err, path)
			} else {
				rows := strings.Split(show(t, src), " ")
				got = strings.Join(rows[len(tt.schema.Columns):], " ")
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// message returns an error's text without the sentinel's and the folder.
func message(t *testing.T, err error, path string) string {
	t.Helper()
	if !errors.Is(err, ErrFormat) {
		t.Errorf("%v does not match ErrFormat", err)
	}
	s := strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), "")
	if strings.Contains(s, "\n") {
		t.Errorf("error of several lines: %q", s)
	}
	return strings.TrimPrefix(s, "dataset: bad data: ")
}

func TestBadCSV(t *testing.T) {
	for _, tt := range []struct {
		file, in string
		opts     Options
		want     string
	}{
		{"a.csv", "", Options{}, "a.csv: is empty; give a file with at least one row"},
		{"a.csv", "\n\n", Options{}, "a.csv: is empty; give a file with at least one row"},
		{"a.csv", "a,b\n", Options{Header: HeaderYes}, "a.csv: has no rows; give a file with at least one"},
		{"a.csv", "1,2\n3\n", Options{}, "a.csv:2:2: row has 1 cells, the first row has 2; add or remove cells, or quote those that hold the delimiter"},
		{"a.csv", "1,2\n3,4,5\n", Options{}, "a.csv:2:3: row has 3 cells, the first row has 2; add or remove cells, or quote those that hold the delimiter"},
		{"a.csv", "1,2\n3,\"4\n5,6\n", Options{}, "a.csv:2:2: a quote is opened and never closed"},
		{"a.csv", "1,2\n3,\"4\"5\n", Options{}, "a.csv:2:2: text after a closing quote; write a quote within quotes twice"},
		{"a.csv", "1.5\nx\n", Options{}, `a.csv:2:1: "x" is not a number like 1.5 (` + "a.csv:1:1" + `); fix the cell or list the text as a missing mark`},
		{"a.csv", "a\nx\n1.5\n", Options{Header: HeaderYes}, `a.csv:3:1: 1.5 is a number in a column of texts (a.csv:2:1: "x"); fix the cell or set the column's type to label`},
		{"a.csv", "x,2019\n-1.5,3\n", Options{}, `a.csv:2:1: -1.5 is a number in a column of texts (a.csv:1:1: "x"); if the first row names the columns, set data.header to yes, else fix the cell or set the column's type to label`},
		{"a.csv", "x,2019\n-1.5,3\n", Options{Header: HeaderNo}, `a.csv:2:1: -1.5 is a number in a column of texts (a.csv:1:1: "x"); fix the cell or set the column's type to label`},
		{"a.csv", "x,y\nfoo,3\n-1.5,3\n", Options{}, `a.csv:3:1: -1.5 is a number in a column of texts (a.csv:2:1: "foo"); fix the cell or set the column's type to label`},
		{"a.csv", "x,2019\nx,3\n-1.5,3\n", Options{}, `a.csv:3:1: -1.5 is a number in a column of texts (a.csv:1:1: "x"); fix the cell or set the column's type to label`},
		{"a.csv", "n,m\n\"1,234\",2\n567,3\n", Options{}, `a.csv:2:1: "1,234" has a comma, as all texts of its column are numbers with commas; write numbers with a decimal point and nothing between thousands, or set the column's type to label`},
		{"a.csv", "\"1,5\"\n\"2,5\"\n", Options{}, `a.csv:2:1: "2,5" has a comma, as all texts of its column are numbers with commas; write numbers with a decimal point and nothing between thousands, or set the column's type to label`},
		{"a.csv", "1e39\n", Options{}, "a.csv:1:1: 1e+39 is beyond ±3.4e38; scale the column"},
		{"a.csv", "1\nx\n", Options{Types: map[string]Type{"1": {Kind: Continuous}}}, `a.csv:2:1: "x" is not a number, and the column is set to be continuous; fix the cell or list the text as a missing mark`},
		{"a.csv", "1\n2.5\n", Options{Types: map[string]Type{"*": {}}}, "a.csv:2:1: 2.5 is not a code (want 0..16777215), and the column is set to be discrete"},
		{"a.csv", "1\n7\n", Options{Types: map[string]Type{"*": {Categories: 4}}}, "a.csv: column 1 holds the code 7 and is set to have 4 categories; give it more"},
		{"a.csv", "1\n", Options{Types: map[string]Type{"*": {Skip: true}}}, "a.csv: all columns are skipped; leave at least one"},
		{"a.csv", "a,a\n1,2\n", Options{}, `a.csv: two columns are named "a"; rename or remove one`},
		{"a.data", "0,1\n0,1.5\n", Options{}, `a.data:2:2: "1.5" is not a whole number from 0 to 16777215, as .data files hold; name other files .csv`},
		{"a.data", "a,b\n0,1\n", Options{}, `a.data:1:1: "a" is not a whole number from 0 to 16777215, as .data files hold; name other files .csv`},
		{"a.data", "0,-1\n", Options{}, `a.data:1:2: "-1" is not a whole number from 0 to 16777215, as .data files hold; name other files .csv`},
		{"a.data", "16777216\n", Options{}, `a.data:1:1: "16777216" is not a whole number from 0 to 16777215, as .data files hold; name other files .csv`},
		{"a.csv", strings.Repeat("x", 5000) + "\ny\n", Options{Header: HeaderNo}, "a.csv:1:1: text of 5000 bytes; a category's label has at most 4096"},
		{"a.csv.gz", "\x1f\x8b\x00", Options{}, "a.csv.gz: is damaged: unexpected EOF"},
	} {
		t.Run(fmt.Sprintf("%.20q", tt.in), func(t *testing.T) {
			path := save(t, tt.file, []byte(tt.in))
			_, err := Open(context.Background(), path, tt.opts)
			if err == nil {
				t.Fatal("no error")
			}
			if got := message(t, err, path); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			r, err2 := OpenReader(context.Background(), path, tt.opts)
			if err2 == nil {
				t.Error("OpenReader has no error")
				r.Close()
			}
		})
	}
}

func TestDamagedGzip(t *testing.T) {
	z := packed(t, strings.Repeat("0,1\n", 1000))
	path := save(t, "a.csv.gz", z[:len(z)-6])
	_, err := Open(context.Background(), path, Options{})
	if err == nil {
		t.Fatal("no error")
	}
	want := "a.csv.gz: after line 1000: unexpected EOF; the file may be damaged"
	if got := message(t, err, path); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDataShareOneDomain(t *testing.T) {
	src, err := Open(context.Background(), save(t, "a.data", []byte("0,1\n0,4\n?,\n")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, src), ":5 :5 0,1 0,4 -,-"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// What is set for a column holds.
	src, err = Open(context.Background(), save(t, "a.data", []byte("0,1,0\n0,4,2\n?,,1\n")), Options{Types: map[string]Type{"1": {Categories: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, src), ":2 :5 :5 0,1,0 0,4,2 -,-,1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBadSettings(t *testing.T) {
	path := save(t, "a.csv", []byte("a,b\n1,2\n"))
	unknown, text := save(t, "a.doc", []byte("x")), save(t, "a.txt", []byte("x"))
	for _, tt := range []struct {
		path string
		opts Options
		want string
	}{
		{path, Options{Header: "maybe"}, `header "maybe"; write auto, yes or no`},
		{path, Options{Types: map[string]Type{"age": {}}}, `a type is set for column "age", and there is none; write a name of the header, a number from 1 to 2, or *`},
		{path, Options{Types: map[string]Type{"01": {}}}, `a type is set for column "01", and there is none; write a name of the header, a number from 1 to 2, or *`},
		{path, Options{Types: map[string]Type{"+2": {}}}, `a type is set for column "+2", and there is none; write a name of the header, a number from 1 to 2, or *`},
		{path, Options{Types: map[string]Type{"b": {}, "2": {Skip: true}}}, `types are set for column "b" and for number 2, which is the same one; keep one`},
		{path, Options{Image: [3]int{2, 2, 1}}, `image shape [2 2 1] does not have 2 values`},
		{path, Options{Text: Text{Unit: "line"}}, `text unit "line"; write char or word`},
		{path, Options{Text: Text{Vocabulary: 1}}, "text length 0, vocabulary 1, bytes 0; length takes 1 to 1048576, vocabulary 2 to 16777216"},
		{unknown, Options{}, unknown + ": unknown kind of file; its name ends in one of .csv .data .idx .npy .tsv .txt, or .gz after it"},
		{"builtin:random?rows=2&vars=2&categories=2", Options{Types: map[string]Type{"nosuch": {}}}, "builtin:random?rows=2&vars=2&categories=2: types are set for columns, and only those of tables take types; leave them out"},
		{text, Options{Types: map[string]Type{"1": {Skip: true}}}, text + ": types are set for columns, and only those of tables take types; leave them out"},
		{"builtin:letters/all", Options{}, "builtin:letters/all: no such source; there are builtin:random?rows=512&vars=784&categories=256&seed=1"},
		{"builtin:", Options{}, "builtin:: no such source; there are builtin:random?rows=512&vars=784&categories=256&seed=1"},
		{"builtin:random/train", Options{}, "builtin:random/train: no such source; there are builtin:random?rows=512&vars=784&categories=256&seed=1"},
	} {
		_, err := Open(context.Background(), tt.path, tt.opts)
		if want := "dataset: bad setting: " + tt.want; err == nil || err.Error() != want || !errors.Is(err, ErrSetting) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := Open(context.Background(), path+"x", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := OpenAll(context.Background(), nil, Options{}); !errors.Is(err, ErrSetting) {
		t.Errorf("no path: %v", err)
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,x\n2,y\n", "1,2\n,?\n", "\"q\"\"\n\",1e5\n", "x\nx\n", "\xef\xbb\xbf1\r\n\r\n2", "\ufeff/\n\ufeff"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, data bool) {
		name := "a.csv"
		if data {
			name = "a.data"
		}
		path := save(t, name, in)
		src, err := Open(context.Background(), path, Options{MaxBytes: 1 << 24})
		if err != nil {
			if !errors.Is(err, ErrFormat) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		want := show(t, src)
		// What is written reads back as the same rows.
		var out bytes.Buffer
		w, err := NewWriter(&out, "b.csv", src.Schema(), src.Rows())
		if err != nil {
			t.Fatal(err)
		}
		b := new(Batch)
		if err := src.Gather(context.Background(), b, span(0, src.Rows())); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(b), w.Close()); err != nil {
			t.Fatal(err)
		}
		back, err := Open(context.Background(), save(t, "b.csv", out.Bytes()), Options{Schema: src.Schema(), Header: HeaderNo})
		if err != nil {
			t.Fatalf("%q written as %q: %v", in, out.Bytes(), err)
		}
		if got := show(t, back); got != want {
			t.Fatalf("%q written as %q\ngot  %s\nwant %s", in, out.Bytes(), got, want)
		}
	})
}

// TestCommasOfFiles takes texts that are numbers with commas for categories where another file has other texts in their column, and refuses
// them where none has, also beside numbers of another file.
func TestCommasOfFiles(t *testing.T) {
	commas, mixed := save(t, "commas.csv", []byte("n\n\"1,2\"\n\"3,4\"\n")), save(t, "mixed.csv", []byte("n\n\"1,2\"\n5\n"))
	texts, numbers := save(t, "texts.csv", []byte("n\nx\n\"1,2\"\n")), save(t, "numbers.csv", []byte("n\n6\n7\n"))
	for _, tt := range []struct {
		paths []string
		fine  bool
	}{
		{[]string{commas, texts}, true}, {[]string{texts, commas}, true}, {[]string{texts, mixed}, true},
		{[]string{commas, mixed}, false}, {[]string{mixed, commas}, false}, {[]string{commas, numbers}, false}, {[]string{numbers, mixed}, false},
	} {
		_, err := OpenAll(t.Context(), tt.paths, Options{Header: HeaderYes})
		if refused := errors.Is(err, ErrFormat) && strings.Contains(err.Error(), "has a comma, as all texts of its column are numbers with commas"); refused == tt.fine || !refused && err != nil {
			t.Errorf("%q: %v", tt.paths, err)
		}
	}
}

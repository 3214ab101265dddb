package fields

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// scan returns all records of a text, "|" between cells, with their lines.
func scan(in string) (out []string, err error) {
	return scanAs(in, Dialect{Delimiter: ','})
}

func scanAs(in string, d Dialect) (out []string, err error) {
	s := NewScanner(strings.NewReader(in), d)
	for {
		cells, err := s.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		var text []string
		for _, c := range cells {
			text = append(text, string(c))
		}
		out = append(out, fmt.Sprintf("%d:%s", s.Line(), strings.Join(text, "|")))
	}
}

func TestScanner(t *testing.T) {
	long := strings.Repeat("x", 200_000) // more than the reader's buffer
	for _, tt := range []struct{ in, want string }{
		{"", "[]"},
		{"a", "[1:a]"},
		{"a,b\n,\n", "[1:a|b 2:|]"},
		{"a\r\n\r\n \nb", "[1:a 4:b]"},
		{" a , b\t\n", "[1:a|b]"},
		{"\xef\xbb\xbf\"a\"\n", "[1:a]"},
		{"\"a,\"\"b\"\"\" , c\n", "[1:a,\"b\"|c]"},
		{"1,\"a\nb\r\nc\",2\n3\n", "[1:1|a\nb\nc|2 4:3]"},
		{"a\"b,c\n", "[1:a\"b|c]"},
		{"\"\",\"\"", "[1:|]"},
		{"\"a\",", "[1:a|]"},
		{long + "," + long + "\nb", "[1:" + long + "|" + long + " 2:b]"},
		{"\"a", "[] 1:1: a quote is opened and never closed"},
		{"x\n1,\"a\"b", "[1:x] 2:2: text after a closing quote; write a quote within quotes twice"},
	} {
		got, err := scan(tt.in)
		text := fmt.Sprint(got)
		if err != nil {
			text += " " + err.Error()
		}
		if text != tt.want {
			t.Errorf("%.60q\ngot  %.100q\nwant %.100q", tt.in, text, tt.want)
		}
	}
}

// TestDialects reads the same records under every dialect.
func TestDialects(t *testing.T) {
	for _, tt := range []struct {
		d        Dialect
		in, want string
	}{
		{Dialect{Delimiter: ';'}, "a;\"b;c\" ; d\n;;\n", "[1:a|b;c|d 2:||]"},
		{Dialect{Delimiter: '\t'}, "a\tb c\t\n\t\t\n\n", "[1:a|b c| 2:||]"},
		{Dialect{Delimiter: '\t'}, "1\t\t\"a\"\t\"b\" \tc\n", "[1:1||a|b|c]"},
		{Dialect{Delimiter: ',', CR: true}, "a,b\r1,2\r\r3,\"4\r5\"", "[1:a|b 2:1|2 4:3|4\n5]"},
		{Dialect{Delimiter: ',', CR: true}, "a,b\r1,2\n3,4\r", "[1:a|b] 2:2: line ends are written in several ways (CR and LF); write all of them as LF"},
		{Dialect{Delimiter: ','}, "a,b\n1,2\r3,4\n", "[1:a|b] 2:2: line ends are written in several ways (CR and LF); write all of them as LF"},
		{Dialect{Delimiter: ','}, "a,b\r\r\n\"x\ry\",2\r\r\n", "[1:a|b 2:x\ry|2]"},
	} {
		got, err := scanAs(tt.in, tt.d)
		text := fmt.Sprint(got)
		if err != nil {
			text += " " + err.Error()
		}
		if text != tt.want {
			t.Errorf("%q\ngot  %q\nwant %q", tt.in, text, tt.want)
		}
	}
}

// endless is a file of one byte, again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestScannerLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("lines as long as a scanner takes; without -short")
	}
	for want, r := range map[string]io.Reader{
		"1:1: line is longer than 64 MiB; is this a text file?":                     endless('x'),
		"1:1: row is longer than 64 MiB; is a closing quote missing?":               io.MultiReader(strings.NewReader("\"\n"), lines{}),
		"1:1048577: more than 1048576 cells in a row; is this the right delimiter?": strings.NewReader(strings.Repeat(",", MaxCells+5)),
	} {
		_, err := NewScanner(r, Dialect{Delimiter: ','}).Next()
		var e *Error
		if !errors.As(err, &e) || e.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLongestRecords reads lines and rows as long as they may be, and refuses longer
// ones. The bound on a line is held to its blocks of 64 KiB.
func TestLongestRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("lines as long as a scanner takes; without -short")
	}
	line := func(bytes int64) io.Reader { return io.LimitReader(endless('x'), bytes) }
	full := strings.Repeat(strings.Repeat("x", 1<<16-1)+"\n", 1024)
	quoted := func(last int64) io.Reader { // lines of 64 MiB less 1 KiB in all, and a last one with the quote
		return io.MultiReader(strings.NewReader("\"\n"), strings.NewReader(full), line(last-1), strings.NewReader("\"\n"))
	}
	for _, tc := range []struct {
		name string
		r    io.Reader
		want string
	}{
		{"the longest line", line(MaxRecordBytes), ""},
		{"a longer line", line(MaxRecordBytes + 3<<16), "line is longer than 64 MiB"},
		{"the longest row", quoted(1024), ""},
		{"a longer row", quoted(1025), "row is longer than 64 MiB"},
	} {
		cells, err := NewScanner(tc.r, Dialect{Delimiter: ','}).Next()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		if err == nil && (len(cells) != 1 || len(cells[0]) < MaxRecordBytes) {
			t.Errorf("%s: %d cells", tc.name, len(cells))
		}
	}
}

// lines is an endless file of lines of 1,000 bytes.
type lines struct{}

func (lines) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
		if i%1000 == 999 {
			p[i] = '\n'
		}
	}
	return len(p), nil
}

func FuzzScanner(f *testing.F) {
	f.Add("a,\"b\"\"\n\",c\r\n\n1,2")
	f.Add("\xef\xbb\xbf\"\",\"x\" ,\ty")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := scan(in)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		// Without quotes, a record is its line and a cell ends at a delimiter.
		if !strings.Contains(in, `"`) {
			n := 0
			for _, line := range strings.Split(strings.TrimPrefix(in, "\xef\xbb\xbf"), "\n") {
				if strings.Trim(strings.TrimRight(line, "\r"), " \t") != "" {
					n++
				}
			}
			if len(got) != n {
				t.Fatalf("%q: %d records, want %d", in, len(got), n)
			}
		}
	})
}

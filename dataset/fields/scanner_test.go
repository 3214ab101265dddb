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
	s := NewScanner(strings.NewReader(in), ',')
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

// endless is a file of one byte, again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestScannerLimits(t *testing.T) {
	for want, r := range map[string]io.Reader{
		"1:1: line is longer than 64 MiB; is this a text file?":                     endless('x'),
		"1:1: row is longer than 64 MiB; is a closing quote missing?":               io.MultiReader(strings.NewReader("\"\n"), lines{}),
		"1:1048577: more than 1048576 cells in a row; is this the right delimiter?": strings.NewReader(strings.Repeat(",", MaxCells+5)),
	} {
		_, err := NewScanner(r, ',').Next()
		var e *Error
		if !errors.As(err, &e) || e.Error() != want {
			t.Errorf("got %v, want %s", err, want)
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
				if strings.TrimSpace(strings.TrimSuffix(line, "\r")) != "" {
					n++
				}
			}
			if len(got) != n {
				t.Fatalf("%q: %d records, want %d", in, len(got), n)
			}
		}
	})
}

package dataset

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// spell prints the windows of a text source.
func spell(t testing.TB, src Source) string {
	t.Helper()
	b := new(Batch)
	if err := src.Gather(context.Background(), b, span(0, src.Rows())); err != nil {
		t.Fatal(err)
	}
	var out []string
	for r := range b.Rows {
		var tokens []string
		for i, c := range b.Columns {
			tokens = append(tokens, src.Schema().Columns[i].Labels[c.Codes.At(r)])
		}
		out = append(out, strings.Join(tokens, "."))
	}
	return strings.Join(out, " ")
}

func TestText(t *testing.T) {
	for _, tt := range []struct {
		name, train, test string
		text              Text
		vocabulary, want  string
		wantTest          string
	}{
		{"characters", "abab\nc", "éab?", Text{Length: 2}, "<unk>,a,b,\n,c", "a.b a.b \n.c", "<unk>.a b.<unk>"},
		{"words", " to be\nor  not\tto be that", "to\nbe <unk>\nor else ", Text{Unit: Word, Length: 3, Vocabulary: 4}, "<unk>,be,to,not", "to.be.<unk> not.to.be", "to.be.<unk>"},
		{"a bound on bytes", "abcdef", "abcdef", Text{Length: 2, MaxBytes: 5}, "<unk>,a,b,c,d,e", "a.b c.d", "a.b c.d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src, err := Open(context.Background(), save(t, "a.txt", []byte(tt.train)), Options{Text: tt.text})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(src.Schema().Columns[0].Labels, ","); got != tt.vocabulary {
				t.Errorf("vocabulary %q, want %q", got, tt.vocabulary)
			}
			if got := spell(t, src); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			test, err := Open(context.Background(), save(t, "b.txt.gz", packed(t, tt.test)), Options{Schema: src.Schema(), Text: Text{MaxBytes: tt.text.MaxBytes}})
			if err != nil {
				t.Fatal(err)
			}
			if got := spell(t, test); got != tt.wantTest {
				t.Errorf("test: got %q, want %q", got, tt.wantTest)
			}
		})
	}
}

// TestTextMarks reads tokens that are marks of missing cells as these, when they are told and under the schema that keeps them.
func TestTextMarks(t *testing.T) {
	for _, tt := range []struct {
		in, mark, want string
		text           Text
	}{
		{"ab_b_a", "_", ":<unk>|a|b :<unk>|a|b :<unk>|a|b 1,2,- 2,-,1", Text{Length: 3}},
		{"to [gap] be to [gap] do", "[gap]", ":<unk>|to|be :<unk>|to|be :<unk>|to|be 1,-,2 1,-,0", Text{Length: 3, Unit: Word, Vocabulary: 3}},
	} {
		path := save(t, "a.txt", []byte(tt.in))
		opts := Options{Text: tt.text, Missing: []string{tt.mark}}
		for range 2 {
			src, err := Open(t.Context(), path, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(t, src); got != tt.want {
				t.Errorf("%q: %s, want %s", tt.in, got, tt.want)
			}
			opts = Options{Schema: src.Schema()}
		}
	}
}

func TestBadText(t *testing.T) {
	table := &Schema{Columns: []Column{{Categories: 3}}}
	src, err := Open(t.Context(), save(t, "b.txt", []byte("abab")), Options{Text: Text{Length: 2}})
	if err != nil {
		t.Fatal(err)
	}
	tokens := src.Schema()
	for _, tt := range []struct {
		in   string
		opts Options
		want string
	}{
		{"ab", Options{}, "a.txt: has no rows; a row takes 32 tokens: give more text, or set fewer tokens for a row (data.text.length in a config)"},
		{"", Options{Text: Text{Length: 1}}, "a.txt: has no rows; give a file with at least one"},
		{"a", Options{Schema: tokens}, "a.txt: has no rows; a row takes 2 tokens: give more text"},
		{"a\nb\x00", Options{}, "a.txt:2: holds a zero byte; is this a text file?"},
		{"ab\na_", Options{Text: Text{Length: 1}, Missing: []string{"_"}, NoMissing: true}, `a.txt:2: "_" marks a missing cell; fill it or allow missing cells`},
		{strings.Repeat("x", 4097), Options{Text: Text{Unit: Word}}, "a.txt:1: word of more than 4096 bytes; is this a text file?"},
		{"abc", Options{Schema: table}, "data: is text, and the model's variables are not tokens; give a table of 1 columns"},
	} {
		path := save(t, "a.txt", []byte(tt.in))
		_, err := Open(context.Background(), path, tt.opts)
		if err == nil {
			t.Fatalf("%.10q: no error", tt.in)
		}
		if got := message(t, err, path); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestLongestWord reads a word of as many bytes as one may have.
func TestLongestWord(t *testing.T) {
	word := strings.Repeat("x", 4096)
	src, err := Open(t.Context(), save(t, "a.txt", []byte(word)), Options{Text: Text{Unit: Word, Length: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if labels := src.Schema().Columns[0].Labels; !slices.Contains(labels, word) {
		t.Errorf("a vocabulary of %d words lacks the one of %d bytes", len(labels), len(word))
	}
}

// TestDifferentWords counts as many different words as there may be, and refuses
// one more at its line.
func TestDifferentWords(t *testing.T) {
	path := save(t, "a.txt", []byte("one two one\nthree two\nfour"))
	for most, want := range map[int]string{4: "", 3: "a.txt:3: more than 3 different words; use fewer files or the unit char"} {
		counts := map[string]int{}
		err := countTokens(t.Context(), path, Word, nil, &Options{}, counts, most)
		got := ""
		if err != nil {
			got = message(t, err, path)
		}
		if got != want || len(counts) != most || counts["one"] != 2 || counts["two"] != 2 {
			t.Errorf("at most %d words: %q and counts %v; want %q", most, got, counts, want)
		}
	}
}

func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"src/a.go":       "aabb",
		"src/deep/b.go":  "cc",
		"src/deep/c.txt": "dd",
		"src/deep/d.png": "\x00",
		"csv/1.csv":      "a,b,c\n0,x,1\n",
		"csv/2.csv.gz":   "c,b,a\n1.5,y,3\n",
		"bad/1.csv":      "a,b,c\n0,1,1\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		data := []byte(content)
		if strings.HasSuffix(name, ".gz") {
			data = packed(t, content)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chars := Options{Text: Text{Unit: Char, Length: 2}}
	for path, want := range map[string]string{
		"src/**/*.go":  "a.a b.b c.c",
		"src/*.go":     "a.a b.b",
		"src/**/*.txt": "d.d",
	} {
		src, err := Open(context.Background(), filepath.Join(dir, filepath.FromSlash(path)), chars)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if got := spell(t, src); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	// A folder without a text unit: only files of known formats.
	src, err := Open(context.Background(), filepath.Join(dir, "src"), Options{Text: Text{Length: 2}})
	if err != nil || spell(t, src) != "d.d" {
		t.Errorf("folder: %v", err)
	}
	want := "a:4 b:x|y c:real 0,0,1 3,1,1.5"
	src, err = Open(context.Background(), filepath.Join(dir, "csv"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, src); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, err = OpenAll(context.Background(), []string{filepath.Join(dir, "csv"), filepath.Join(dir, "bad")}, Options{})
	if err == nil || !strings.Contains(err.Error(), `"b" holds texts in one file and numbers in another; set its type to label`) {
		t.Errorf("texts and numbers: %v", err)
	}
	_, err = Open(context.Background(), filepath.Join(dir, "none*.csv"), Options{})
	if !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), "there is no file to read") {
		t.Errorf("glob of nothing: %v", err)
	}
	table, text := save(t, "t.csv", []byte("0\n1\n")), filepath.Join(dir, "src/deep/c.txt")
	for _, paths := range [][]string{{table, text}, {text, table}} {
		_, err = OpenAll(context.Background(), paths, Options{})
		if want := text + " is text and " + table + " is not; give one kind of file"; !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("tables and text: %v", err)
		}
	}
}

// TestEmptyInOneFile wants a column without an observed cell in one file to be what others say,
// whichever comes first, also where it is set to be of labels.
func TestEmptyInOneFile(t *testing.T) {
	empty, texts, reals := save(t, "e.csv", []byte("a,b\n1,\n0,?\n")), save(t, "t.csv", []byte("a,b\n0,y\n1,x\n")), save(t, "r.csv", []byte("a,b\n0,1.5\n"))
	label := Options{Types: map[string]Type{"b": {Labels: true}}}
	for _, tt := range []struct {
		paths []string
		opts  Options
		want  string
	}{
		{[]string{empty, texts}, Options{}, "a:2 b:x|y 1,- 0,- 0,1 1,0"},
		{[]string{texts, empty}, Options{}, "a:2 b:x|y 0,1 1,0 1,- 0,-"},
		{[]string{empty, empty, texts}, label, "a:2 b:x|y 1,- 0,- 1,- 0,- 0,1 1,0"},
		{[]string{texts, empty}, label, "a:2 b:x|y 0,1 1,0 1,- 0,-"},
		{[]string{empty, reals}, Options{}, "a:2 b:real 1,- 0,- 0,1.5"},
		{[]string{empty, reals}, label, "a:2 b:1.5 1,- 0,- 0,0"},
		{[]string{empty, empty}, label, `"b" has no observed cell to take labels from; set its type to skip`},
		{[]string{empty, texts, reals}, Options{}, `"b" holds texts in one file and numbers in another; set its type to label`},
	} {
		src, err := OpenAll(context.Background(), tt.paths, tt.opts)
		if err != nil {
			if !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("%v: %v, want %s", tt.paths, err, tt.want)
			}
		} else if got := show(t, src); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.paths, got, tt.want)
		}
	}
}

func TestOpenReader(t *testing.T) {
	var lines []string
	for i := range 10 {
		lines = append(lines, []string{"0,5", "1,?"}[i%2])
	}
	path := save(t, "a.data", []byte(strings.Join(lines, "\n")))
	r, err := OpenReader(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := new(Batch)
	var sizes []int
	var codes []int
	for {
		err := r.Read(context.Background(), b, 4)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, b.Rows)
		for r := range b.Rows {
			codes = append(codes, b.Columns[1].Codes.At(r))
		}
	}
	if !slices.Equal(sizes, []int{4, 4, 2}) || !slices.Equal(codes, []int{5, Missing, 5, Missing, 5, Missing, 5, Missing, 5, Missing}) {
		t.Errorf("batches of %v, codes %v", sizes, codes)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestMemoryLimit(t *testing.T) {
	path := save(t, "a.csv", []byte(strings.Repeat("1.5,2.5\n", 10_000)))
	_, err := Open(context.Background(), path, Options{MaxBytes: 1 << 14})
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "raise the memory limit") {
		t.Errorf("got %v", err)
	}
}

func FuzzText(f *testing.F) {
	f.Add("to be or not to be", true)
	f.Add("aé\xff\n b", false)
	f.Fuzz(func(t *testing.T, in string, words bool) {
		opts := Options{Text: Text{Unit: Char, Length: 2, Vocabulary: 4}}
		if words {
			opts.Text.Unit = Word
		}
		src, err := Open(context.Background(), save(t, "a.txt", []byte(in)), opts)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		n := len(strings.Fields(strings.ToValidUTF8(in, "\ufffd")))
		if !words {
			n = len([]rune(in))
		}
		if in[0] != '\x1f' && src.Rows() != n/2 {
			t.Fatalf("%d rows of %d tokens", src.Rows(), n)
		}
		if k := len(src.Schema().Columns[0].Labels); k > 4 {
			t.Fatalf("vocabulary of %d", k)
		}
	})
}

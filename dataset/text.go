package dataset

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode"
)

// Limits and defaults of text.
const (
	defaultLength   = 32
	defaultChars    = 256
	defaultWords    = 10_000
	maxWordBytes    = 4096
	maxDistinct     = 1 << 22 // words that are counted for a vocabulary
	unknownToken    = "<unk>"
	unknownCode     = 0
	textReadAtATime = 1 << 12 // tokens between looks at the context
)

// tokens reads the tokens of a text file.
type tokens struct {
	path string
	file io.Closer
	r    *bufio.Reader
	unit Unit
	left *int64 // bytes that may still be read of all files; nil: no bound
	line int    // of the token read last
	word []byte
}

func openTokens(ctx context.Context, path string, unit Unit, left *int64, opts *Options) (*tokens, error) {
	f, err := openFile(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	return &tokens{path: path, file: f, r: bufio.NewReaderSize(f, 1<<16), unit: unit, left: left, line: 1}, nil
}

func (t *tokens) Close() error { return t.file.Close() }

// rune reads a character. Bytes that are not UTF-8 read as U+FFFD.
func (t *tokens) rune() (rune, error) {
	if t.left != nil && *t.left <= 0 {
		return 0, io.EOF
	}
	r, size, err := t.r.ReadRune()
	if err == io.EOF {
		return 0, err
	}
	if err != nil {
		return 0, badData(fmt.Sprintf("%s:%d", t.path, t.line), "%v; the file may be damaged", err)
	}
	if r == 0 {
		return 0, badData(fmt.Sprintf("%s:%d", t.path, t.line), "holds a zero byte; is this a text file?")
	}
	if t.left != nil {
		*t.left -= int64(size)
	}
	return r, nil
}

// next returns the next token, valid until the next call, or io.EOF. A token is a character,
// or what lies between white space; a word of more than maxWordBytes is an error, since a file
// without white space is probably not text.
func (t *tokens) next() ([]byte, error) {
	t.word = t.word[:0]
	for {
		r, err := t.rune()
		if err == io.EOF && len(t.word) > 0 {
			return t.word, nil
		}
		if err != nil {
			return nil, err
		}
		if t.unit == Char {
			t.newLine(r)
			t.word = append(t.word, string(r)...)
			return t.word, nil
		}
		if unicode.IsSpace(r) {
			t.newLine(r)
			if len(t.word) > 0 {
				return t.word, nil
			}
			continue
		}
		t.word = append(t.word, string(r)...)
		if len(t.word) > maxWordBytes {
			return nil, badData(fmt.Sprintf("%s:%d", t.path, t.line), "word of more than %d bytes; is this a text file?", maxWordBytes)
		}
	}
}

func (t *tokens) newLine(r rune) {
	if r == '\n' {
		t.line++
	}
}

// textSchema counts the tokens of files and returns the schema of their
// windows: the vocabulary is <unk>, then the most frequent tokens.
func textSchema(ctx context.Context, files []file, opts *Options) (*Schema, error) {
	unit := cmp.Or(opts.Text.Unit, Char)
	size := opts.Text.Vocabulary
	if size == 0 {
		size = map[Unit]int{Char: defaultChars, Word: defaultWords}[unit]
	}
	counts := make(map[string]int)
	left := opts.textLeft()
	for _, f := range files {
		if err := countTokens(ctx, f.path, unit, left, opts, counts, maxDistinct); err != nil {
			return nil, err
		}
	}
	delete(counts, unknownToken)
	for _, mark := range opts.Missing { // its cells are missing
		delete(counts, mark)
	}
	byCount := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	labels := append([]string{unknownToken}, byCount[:min(size-1, len(byCount))]...)
	s := &Schema{Unit: unit, Columns: make([]Column, cmp.Or(opts.Text.Length, defaultLength))}
	for i := range s.Columns {
		s.Columns[i] = Column{Categories: len(labels), Labels: labels}
	}
	return s, s.Validate()
}

// countTokens adds the tokens of one file to counts, from which the vocabulary is chosen. left
// bounds the bytes of all files together. More than most different tokens are an error, so
// that the map cannot fill the memory.
func countTokens(ctx context.Context, path string, unit Unit, left *int64, opts *Options, counts map[string]int, most int) error {
	t, err := openTokens(ctx, path, unit, left, opts)
	if err != nil {
		return err
	}
	defer t.Close()
	for n := 0; ; n++ {
		if n%textReadAtATime == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		word, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, ok := counts[string(word)]; !ok && len(counts) == most {
			return badData(fmt.Sprintf("%s:%d", path, t.line), "more than %d different words; use fewer files or the unit char", most)
		}
		counts[string(word)]++
	}
}

// textLeft returns the budget of bytes for a pass over all files.
func (o *Options) textLeft() *int64 {
	if o.Text.MaxBytes == 0 {
		return nil
	}
	n := o.Text.MaxBytes
	return &n
}

// textReader is the Reader of one text file: its windows, one after another.
// Tokens at the end that fill no window are left out.
type textReader struct {
	*tokens
	schema    *Schema
	codes     map[string]int
	window    []int
	noMissing bool
}

func (r *textReader) Schema() *Schema { return r.schema }

// Read reads up to max windows of tokens into b; io.EOF comes alone, after the last one. An
// error leaves b empty.
func (r *textReader) Read(ctx context.Context, b *Batch, max int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.Resize(r.schema, max)
	n := 0
	for ; n < max; n++ {
		err := r.fill()
		if err == io.EOF && n > 0 {
			break
		}
		if err != nil {
			b.truncate(0)
			return err
		}
		for i, code := range r.window {
			b.Columns[i].Codes.Set(n, code)
		}
	}
	b.truncate(n)
	return nil
}

// fill reads the tokens of the next window.
func (r *textReader) fill() error {
	for i := range r.window {
		word, err := r.next()
		if err != nil {
			return err
		}
		r.window[i] = r.codes[string(word)] // <unk> is code 0
		if r.noMissing && r.window[i] == Missing {
			return badData(fmt.Sprintf("%s:%d", r.path, r.line), "%s marks a missing cell; fill it or allow missing cells", quote(word))
		}
	}
	return nil
}

// openText returns what opens text files under the schema of a text.
func openText(s *Schema, opts *Options) (func(ctx context.Context, path string) (Reader, error), error) {
	if s.Unit == "" || s.Columns[0].Labels == nil || s.Columns[0].Labels[unknownCode] != unknownToken {
		return nil, badData("data", "is text, and the model's variables are not tokens; give a table of %d columns", len(s.Columns))
	}
	codes := newEncoder(&Schema{Columns: s.Columns[:1]}, false).labels[0].texts
	for _, mark := range slices.Concat(opts.Missing, s.Missing) {
		codes[mark] = Missing
	}
	left := opts.textLeft()
	return func(ctx context.Context, path string) (Reader, error) {
		t, err := openTokens(ctx, path, s.Unit, left, opts)
		if err != nil {
			return nil, err
		}
		return &textReader{tokens: t, schema: s, codes: codes, window: make([]int, len(s.Columns)), noMissing: opts.NoMissing}, nil
	}, nil
}

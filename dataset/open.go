package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// builtinPrefix begins the paths of sources that the program makes itself.
const builtinPrefix = "builtin:"

// Open loads a file, the files of a glob or directory, or a builtin source into
// memory. The Source is a *Table.
func Open(ctx context.Context, path string, opts Options) (Source, error) {
	return OpenAll(ctx, []string{path}, opts)
}

// OpenAll loads the rows of several paths, one after another, as one Table.
// Without a schema, types hold for all of the files together.
func OpenAll(ctx context.Context, paths []string, opts Options) (Source, error) {
	if len(paths) == 1 && strings.HasPrefix(paths[0], builtinPrefix) {
		if err := opts.validate(); err != nil {
			return nil, err
		}
		if err := opts.withoutTypes(paths[0]); err != nil {
			return nil, err
		}
		return openBuiltin(ctx, paths[0], &opts)
	}
	c, rows, err := openChain(ctx, paths, &opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return load(ctx, c, rows, &opts)
}

// OpenReader opens what Open opens for reading once, in bounded memory. Without
// a schema, files are read twice. Reading a named pipe ends with ctx.
func OpenReader(ctx context.Context, path string, opts Options) (Reader, error) {
	return OpenReaderAll(ctx, []string{path}, opts)
}

// OpenReaderAll is OpenReader of several paths, one after another, with the schema of all of
// them. A builtin source is only read alone.
func OpenReaderAll(ctx context.Context, paths []string, opts Options) (Reader, error) {
	if len(paths) == 1 && strings.HasPrefix(paths[0], builtinPrefix) {
		src, err := Open(ctx, paths[0], opts)
		if err != nil {
			return nil, err
		}
		return NewReader(src), nil
	}
	c, _, err := openChain(ctx, paths, &opts)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// openChain settles the schema and returns a reader of all files, and their
// number of rows if it is known.
func openChain(ctx context.Context, paths []string, opts *Options) (*chain, int, error) {
	if err := opts.validate(); err != nil {
		return nil, 0, err
	}
	if err := onlyFiles(paths); err != nil {
		return nil, 0, err
	}
	files, err := findFiles(paths, opts)
	if err != nil {
		return nil, 0, err
	}
	schema, rows := opts.Schema, 0
	switch {
	case schema != nil:
	case files[0].text:
		if err = opts.withoutTypes(files[0].path); err == nil {
			schema, err = textSchema(ctx, files, opts)
		}
	default:
		var in *inspection
		if in, err = inspectAll(ctx, files, opts); err == nil {
			schema, rows = in.schema, in.rows
		}
	}
	if err != nil {
		return nil, 0, err
	}
	schema = schema.WithMarks(opts.Missing)
	c := &chain{schema: schema, names: joinNames(files), hint: "give a file with at least one"}
	var text func(context.Context, string) (Reader, error)
	if files[0].text {
		if n := len(schema.Columns); n > 1 {
			if c.hint = fmt.Sprintf("a row takes %d tokens: give more text", n); opts.Schema == nil {
				c.hint += ", or set fewer tokens for a row (data.text.length in a config)"
			}
		}
		if text, err = openText(schema, opts); err != nil {
			return nil, 0, err
		}
	}
	for _, f := range files {
		c.open = append(c.open, func() (Reader, error) {
			if f.text {
				return text(ctx, f.path)
			}
			return openRecords(ctx, f, schema, opts)
		})
	}
	return c, rows, nil
}

// load reads r to its end into a table. rows is how many are expected, which saves growing the
// table; it is an estimate and may be wrong, so memory is only taken for as many as the limit
// allows. A table that grows beyond the memory limit of opts is an error that says after how
// many rows.
func load(ctx context.Context, r Reader, rows int, opts *Options) (*Table, error) {
	limit := opts.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	s := r.Schema()
	empty := func(rows int) (*Table, error) {
		t, err := NewTable(s, rows)
		if err == nil && opts.KeepText {
			t.texts = &keptText{columns: len(s.Columns)}
		}
		return t, err
	}
	t, err := empty(0)
	if err != nil {
		return nil, err
	}
	chunk := max(1, min(chunkRows, (1<<22)/len(s.Columns)))
	for b := new(Batch); ; {
		err := r.Read(ctx, b, chunk)
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if t.rows == 0 && rows > b.Rows && int64(rows) <= limit/4/int64(len(s.Columns)) { // room for all
			if t, err = empty(rows); err != nil {
				return nil, err
			}
		}
		if err := t.Append(b); err != nil {
			return nil, err
		}
		if t.Bytes() > limit {
			return nil, badData("table", "takes more than %d MiB after %d rows; raise the memory limit or use fewer rows", limit>>20, t.rows)
		}
	}
}

// sourceReader reads a Source from its first row to its last.
type sourceReader struct {
	src  Source
	next int
}

// NewReader returns a Reader of all rows of src, from first to last. Closing it leaves src
// open.
func NewReader(src Source) Reader { return &sourceReader{src: src} }

func (r *sourceReader) Schema() *Schema { return r.src.Schema() }

func (r *sourceReader) Close() error { return nil }

func (r *sourceReader) Read(ctx context.Context, b *Batch, max int) error {
	if r.next >= r.src.Rows() { // and not where no rows are asked for
		b.Resize(r.src.Schema(), 0)
		return io.EOF
	}
	hi := min(r.src.Rows(), r.next+max)
	if err := r.src.Gather(ctx, b, span(r.next, hi)); err != nil {
		return err
	}
	r.next = hi
	return nil
}

package dataset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Builtin is a source that a program makes itself. Its paths begin with builtin: and
// its name, up to a slash or a question mark.
type Builtin struct {
	// Paths lists paths that Open takes, for people; those of one place differ behind
	// their last slash. There is at least one.
	Paths []string
	// Open returns the rows of a path, which take at most limit bytes. An error that
	// matches ErrNoSource says that there is no such path.
	Open func(ctx context.Context, path string, limit int64) (*Table, error)
}

var builtins = struct {
	sync.Mutex // guards byName
	byName     map[string]Builtin
}{byName: map[string]Builtin{
	"random": {Paths: []string{randomPath}, Open: openRandom},
}}

// RegisterBuiltin adds a source that a program makes itself, for paths that begin
// with builtin: and name. A later call for the same name wins.
func RegisterBuiltin(name string, b Builtin) {
	builtins.Lock()
	defer builtins.Unlock()
	builtins.byName[name] = b
}

func lookupBuiltin(name string) (Builtin, bool) {
	builtins.Lock()
	defer builtins.Unlock()
	b, ok := builtins.byName[name]
	return b, ok
}

// Builtins lists paths of the builtin sources, sorted by source; each begins with "builtin:".
func Builtins() []string {
	builtins.Lock()
	defer builtins.Unlock()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(builtins.byName)) {
		paths = append(paths, builtins.byName[name].Paths...)
	}
	return paths
}

// builtinHelp lists the builtin sources for messages; of paths in one place the
// first one has it.
func builtinHelp() string {
	builtins.Lock()
	defer builtins.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(builtins.byName)) {
		paths := slices.Clone(builtins.byName[name].Paths)
		for i := len(paths) - 1; i > 0; i-- {
			if at := strings.LastIndexByte(paths[0], '/'); at >= 0 && strings.HasPrefix(paths[i], paths[0][:at+1]) {
				paths[i] = paths[i][at:]
			}
		}
		text := paths[0]
		if last := len(paths) - 1; last > 0 {
			text = strings.Join(paths[:last], ", ") + " or " + paths[last]
		}
		all = append(all, text)
	}
	return strings.Join(all, ", or ")
}

// openBuiltin makes the table of a builtin source, such as builtin:digits/train. Under
// opts.Schema, as queries of a model have it, the source must hold rows of that schema;
// opts.Image reshapes rows to images. Cells with a mark of missing ones are missing, as in files. A source that is not
// registered gives an error that lists those that are.
func openBuiltin(ctx context.Context, path string, opts *Options) (Source, error) {
	name := strings.TrimPrefix(path, builtinPrefix)
	if i := strings.IndexAny(name, "/?"); i >= 0 {
		name = name[:i]
	}
	b, ok := lookupBuiltin(name)
	if !ok {
		return nil, noSource(path)
	}
	limit := opts.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	t, err := b.Open(ctx, path, limit)
	if errors.Is(err, ErrNoSource) {
		return nil, noSource(path)
	}
	if err != nil {
		return nil, err
	}
	marks := opts.Missing
	if opts.Schema != nil {
		marks = slices.Concat(marks, opts.Schema.Missing)
	}
	if t, err = t.withMarks(ctx, marks, opts); err != nil {
		return nil, err
	}
	if opts.Schema != nil {
		if t, err = t.numbered(ctx, opts.Schema, opts); err != nil {
			return nil, err
		}
	}
	under := *t
	switch {
	case opts.Schema != nil:
		if err := opts.Schema.Accepts(t.schema); err != nil {
			return nil, fmt.Errorf("%s: %w; name another source, or none", path, err)
		}
		under.schema = opts.Schema
	case opts.Image != [3]int{}:
		s := *t.schema
		s.Image = opts.Image
		if err := s.Validate(); err != nil {
			return nil, err
		}
		under.schema = &s
	}
	under.schema = under.schema.WithMarks(opts.Missing)
	return &under, nil
}

func noSource(path string) error {
	return badSetting("%s: no such source; there are %s", path, builtinHelp())
}

// randomPath has the settings of random rows that it has without a query.
const randomPath = builtinPrefix + "random?rows=512&vars=784&categories=256&seed=1"

// openRandom returns rows of uniformly random codes, as measurements want them: equal paths
// give equal rows. Settings come after the question mark; one that is unknown, out of range or
// given twice is an error, and so are rows that take more than limit bytes.
func openRandom(ctx context.Context, path string, limit int64) (*Table, error) {
	name, query, _ := strings.Cut(path, "?")
	if name != builtinPrefix+"random" {
		return nil, ErrNoSource
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badSetting("%s: %v; write it as in %s", path, err, randomPath)
	}
	n := map[string]int{"rows": 512, "vars": 784, "categories": 256, "seed": 1}
	most := map[string]int{"rows": 1 << 31, "vars": MaxColumns, "categories": MaxCategories, "seed": 1 << 62}
	for key, v := range values {
		if _, ok := n[key]; !ok {
			return nil, badSetting("%s: unknown setting %q; there are rows, vars, categories and seed, as in %s", path, key, randomPath)
		}
		x, err := strconv.Atoi(v[0])
		if err != nil || len(v) > 1 || x < 1 || x > most[key] {
			return nil, badSetting("%s: %s=%s; write one number from 1 to %d", path, key, strings.Join(v, ","), most[key])
		}
		n[key] = x
	}
	width := int64(2)
	if n["categories"] > MaxNarrow {
		width = 4
	}
	if bytes := width * int64(n["rows"]) * int64(n["vars"]); bytes > limit {
		return nil, badSetting("%s: takes more than %d MiB; ask for fewer rows", path, limit>>20)
	}
	s := &Schema{Columns: make([]Column, n["vars"])}
	for i := range s.Columns {
		s.Columns[i].Categories = n["categories"]
	}
	t, err := NewTable(s, n["rows"])
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(uint64(n["seed"]), 0))
	for row := range n["rows"] {
		if row%chunkRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for range n["vars"] {
			code := rng.Uint32N(uint32(n["categories"]))
			switch t.width {
			case 1:
				t.bytes = append(t.bytes, uint8(code))
			case 2:
				t.narrow = append(t.narrow, uint16(code))
			default:
				t.wide = append(t.wide, code)
			}
		}
	}
	t.rows = n["rows"]
	return t, nil
}

package dataset

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/pce-engine/pce/dataset/digits"
)

// builtinHelp lists the builtin sources for messages.
const builtinHelp = "builtin:digits/train, /valid or /test, or builtin:random?rows=512&vars=784&categories=256&seed=1"

// openBuiltin makes a builtin source under opts.Schema, if there is one.
func openBuiltin(ctx context.Context, path string, opts *Options) (Source, error) {
	name, query, _ := strings.Cut(strings.TrimPrefix(path, builtinPrefix), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badSetting("%s: %v; builtin sources are %s", path, err, builtinHelp)
	}
	var t *Table
	kind, split, _ := strings.Cut(name, "/")
	switch {
	case kind == "digits" && digitSplits[split] != nil && query == "":
		t, err = digitSplits[split]()
	case name == "random":
		t, err = randomTable(ctx, path, values, opts.MaxBytes)
	default:
		return nil, badSetting("%s: no such source; there are %s", path, builtinHelp)
	}
	if err != nil {
		return nil, err
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
	return &under, nil
}

// digitSplits render the digits when they are first asked for and keep them.
var digitSplits = map[string]func() (*Table, error){
	"train": sync.OnceValues(func() (*Table, error) { return digitTable(1, 60_000) }),
	"valid": sync.OnceValues(func() (*Table, error) { return digitTable(2, 5_000) }),
	"test":  sync.OnceValues(func() (*Table, error) { return digitTable(3, 10_000) }),
}

func digitTable(seed uint64, rows int) (*Table, error) {
	s := &Schema{Columns: make([]Column, digits.Pixels), Image: [3]int{digits.Side, digits.Side, 1}}
	for i := range s.Columns {
		s.Columns[i].Categories = 256
	}
	t, err := NewTable(s, 0)
	if err != nil {
		return nil, err
	}
	if t.bytes, _, err = digits.Render(seed, rows); err != nil {
		return nil, err
	}
	t.rows = rows
	return t, nil
}

// randomTable returns rows of uniformly random codes.
func randomTable(ctx context.Context, path string, values url.Values, limit int64) (*Table, error) {
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	n := map[string]int{"rows": 512, "vars": 784, "categories": 256, "seed": 1}
	most := map[string]int{"rows": 1 << 31, "vars": MaxColumns, "categories": MaxCategories, "seed": 1 << 62}
	for key, v := range values {
		x, err := strconv.Atoi(v[0])
		if _, ok := n[key]; !ok || err != nil || len(v) > 1 || x < 1 || x > most[key] {
			return nil, badSetting("%s: %s=%s; write numbers from 1, as in %s", path, key, strings.Join(v, ","), builtinHelp)
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

package digits

import (
	"context"
	"sync"

	"github.com/pce-engine/pce/dataset"
)

// Builtin is the pictures as sources of package dataset, once a program calls
//
//	dataset.RegisterBuiltin("digits", digits.Builtin)
//
// Each is rendered when it is first asked for, and kept.
var Builtin = dataset.Builtin{
	Paths: []string{"builtin:digits/train", "builtin:digits/valid", "builtin:digits/test"},
	Open: func(_ context.Context, path string, _ int64) (*dataset.Table, error) {
		split, ok := splits[path]
		if !ok {
			return nil, dataset.ErrNoSource
		}
		return split()
	},
}

var splits = map[string]func() (*dataset.Table, error){
	"builtin:digits/train": sync.OnceValues(func() (*dataset.Table, error) { return table(1, 60_000) }),
	"builtin:digits/valid": sync.OnceValues(func() (*dataset.Table, error) { return table(2, 5_000) }),
	"builtin:digits/test":  sync.OnceValues(func() (*dataset.Table, error) { return table(3, 10_000) }),
}

func table(seed uint64, rows int) (*dataset.Table, error) {
	s := &dataset.Schema{Columns: make([]dataset.Column, Pixels), Image: [3]int{Side, Side, 1}}
	for i := range s.Columns {
		s.Columns[i].Categories = 256
	}
	pixels, _, err := Render(seed, rows)
	if err != nil {
		return nil, err
	}
	return dataset.TableOf(s, pixels)
}

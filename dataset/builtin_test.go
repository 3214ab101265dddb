package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRandomSource(t *testing.T) {
	open := func(query string) (Source, error) {
		return Open(context.Background(), "builtin:random"+query, Options{})
	}
	src, err := open("?rows=100&vars=3&categories=300&seed=7")
	if err != nil {
		t.Fatal(err)
	}
	text := show(t, src)
	if !strings.HasPrefix(text, ":300 :300 :300 ") || src.Rows() != 100 {
		t.Errorf("%d rows, %.40s", src.Rows(), text)
	}
	// Held still, so that a seed means the same rows for ever.
	if got, want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16], "ec9677cf12064edf"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	for _, query := range []string{"?rows=0", "?rows=x", "?wide=3", "?rows=1&rows=2", "?categories=16777217", "?rows=2147483648&vars=1048576", "/train"} {
		if _, err := open(query); err == nil || !strings.HasPrefix(err.Error(), "dataset: bad setting: builtin:random"+query) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestRegisterBuiltin opens a source of a program's own, under the schema of a model,
// and wants messages to list its paths.
func TestRegisterBuiltin(t *testing.T) {
	table, err := TableOf(&Schema{Columns: []Column{{Categories: 3}, {Categories: 2}}}, []byte{0, 1, 2, 0})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	RegisterBuiltin("toys", Builtin{
		Paths: []string{"builtin:toys/a", "builtin:toys/b", "builtin:toys/c"},
		Open: func(_ context.Context, path string, limit int64) (*Table, error) {
			switch path {
			case "builtin:toys/a", "builtin:toys?x=1":
				if limit != DefaultMaxBytes {
					t.Errorf("limit %d", limit)
				}
				return table, nil
			case "builtin:toys/b":
				return nil, broken
			}
			return nil, ErrNoSource
		},
	})
	defer func() {
		builtins.Lock()
		defer builtins.Unlock()
		delete(builtins.byName, "toys")
	}()
	ctx := context.Background()
	for _, path := range []string{"builtin:toys/a", "builtin:toys?x=1"} {
		src, err := Open(ctx, path, Options{})
		if err != nil || show(t, src) != ":3 :2 0,1 2,0" {
			t.Fatalf("%s: %v, %q", path, err, show(t, src))
		}
	}
	if _, err := Open(ctx, "builtin:toys/a", Options{Schema: &Schema{Columns: []Column{{Categories: 2}, {Categories: 2}}}}); !errors.Is(err, ErrFormat) {
		t.Errorf("under another schema: %v", err)
	}
	if _, err := Open(ctx, "builtin:toys/b", Options{}); err != broken {
		t.Errorf("its own error: %v", err)
	}
	const random = "builtin:random?rows=512&vars=784&categories=256&seed=1"
	want := "dataset: bad setting: builtin:toys/d: no such source; there are " + random + ", or builtin:toys/a, /b or /c"
	if _, err := Open(ctx, "builtin:toys/d", Options{}); err == nil || err.Error() != want || !errors.Is(err, ErrSetting) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got := Builtins(); !slices.Equal(got, []string{random, "builtin:toys/a", "builtin:toys/b", "builtin:toys/c"}) {
		t.Errorf("builtins %v", got)
	}
}

// TestRandomSettings wants what is wrong with settings of random rows, and their limits.
func TestRandomSettings(t *testing.T) {
	for query, want := range map[string]string{
		"rows=5&vars=3&categories=16777217": "categories=16777217; write one number from 1 to 16777216",
		"vars=0":                            "vars=0; write one number from 1 to 1048576",
		"rows=x":                            "rows=x; write one number from 1 to 2147483648",
		"seed=1&seed=2":                     "seed=1,2; write one number from 1 to 4611686018427387904",
		"colums=3":                          `unknown setting "colums"; there are rows, vars, categories and seed, as in ` + randomPath,
	} {
		_, err := Open(t.Context(), "builtin:random?"+query, Options{})
		if full := "dataset: bad setting: builtin:random?" + query + ": " + want; !errors.Is(err, ErrSetting) || err.Error() != full {
			t.Errorf("got  %v\nwant %s", err, full)
		}
	}
}

// TestTableOf refuses bytes that are not rows of a schema.
func TestTableOf(t *testing.T) {
	two := &Schema{Columns: []Column{{Categories: 256}, {Categories: 2}}}
	for _, tc := range []struct {
		name  string
		s     *Schema
		codes []byte
		want  error
		rows  int
	}{
		{"rows", two, []byte{255, 1, 0, 0}, nil, 2},
		{"none", two, nil, nil, 0},
		{"half a row", two, []byte{0, 0, 1}, ErrSetting, 0},
		{"no category", two, []byte{0, 0, 0, 2}, ErrFormat, 0},
		{"wide codes", &Schema{Columns: []Column{{Categories: 257}}}, []byte{0}, ErrSetting, 0},
		{"numbers", &Schema{Columns: []Column{{Kind: Continuous}}}, []byte{0}, ErrSetting, 0},
		{"no columns", &Schema{}, []byte{0}, ErrSetting, 0},
	} {
		table, err := TableOf(tc.s, tc.codes)
		if !errors.Is(err, tc.want) || err == nil && table.Rows() != tc.rows {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

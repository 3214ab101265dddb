package dataset

import (
	"errors"
	"testing"
)

// TestNothing gives calls that take a schema, a batch or a source none.
func TestNothing(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 3}}}
	table, err := NewTable(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Append(nil); !errors.Is(err, ErrFormat) {
		t.Errorf("no batch: %v", err)
	}
	for name, call := range map[string]func() error{
		"no schema":            func() error { _, err := NewTable(nil, 1); return err },
		"fewer rows than none": func() error { _, err := NewTable(s, -1); return err },
		"a summary":            func() error { _, err := Summarize(t.Context(), nil); return err },
		"a digest":             func() error { _, err := Digest(t.Context(), (*Table)(nil)); return err },
		"a loader":             func() error { _, err := NewLoader(t.Context(), nil, LoaderOptions{BatchRows: 1}); return err },
	} {
		if err := call(); !errors.Is(err, ErrSetting) {
			t.Errorf("%s: %v, want ErrSetting", name, err)
		}
	}
}

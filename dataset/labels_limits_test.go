package dataset

import (
	"context"
	"strings"
	"testing"
)

// TestLongestLabel takes a label of as many bytes as it may have, and refuses one
// more.
func TestLongestLabel(t *testing.T) {
	label := strings.Repeat("x", 4096)
	src, err := Open(context.Background(), save(t, "a.csv", []byte(label+"\ny\n")), Options{Header: HeaderNo})
	if err != nil {
		t.Fatal(err)
	}
	if labels := src.Schema().Columns[0].Labels; len(labels) != 2 || labels[0] != label {
		t.Errorf("%d labels, want that of %d bytes and another", len(labels), len(label))
	}
	_, err = Open(context.Background(), save(t, "b.csv", []byte(label+"x\ny\n")), Options{Header: HeaderNo})
	if err == nil || !strings.Contains(err.Error(), "b.csv:1:1: text of 4097 bytes") {
		t.Errorf("a label of 4097 bytes: %v", err)
	}
}

// oneColumn are records of which only the place is asked for.
type oneColumn struct{ Records }

func (oneColumn) Columns() int     { return 1 }
func (oneColumn) Names() []string  { return nil }
func (oneColumn) Where(int) string { return "a.csv:9:1" }

// TestAllLabels takes labels of 256 MiB together, and refuses one byte more. A
// label that was there counts once.
func TestAllLabels(t *testing.T) {
	for before, ok := range map[int]bool{256<<20 - 3: true, 256<<20 - 2: false} {
		f := newInference(oneColumn{}, &Options{})
		f.labelBytes = before
		for i, text := range []string{"ab", "ab", "c"} {
			err := f.addLabel(0, []byte(text))
			if want := ok || i < 2; (err == nil) != want {
				t.Errorf("%d bytes before, text %d: %v, want it to pass: %v", before, i, err, want)
			}
			if err != nil && !strings.Contains(err.Error(), "a.csv:9:1: labels of more than 256 MiB") {
				t.Errorf("%d bytes before: %v", before, err)
			}
		}
	}
}

package dataset

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset/digits"
)

func TestDigitsSource(t *testing.T) {
	src, err := Open(context.Background(), "builtin:digits/valid", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := src.Schema(); src.Rows() != 5000 || s.Image != [3]int{28, 28, 1} || len(s.Columns) != 784 || s.Columns[783].Categories != 256 {
		t.Errorf("%d rows, image %v, %d columns", src.Rows(), s.Image, len(s.Columns))
	}
	pixels, _, err := digits.Render(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	b := new(Batch)
	if err := src.Gather(context.Background(), b, []int{2}); err != nil {
		t.Fatal(err)
	}
	for i := range b.Columns {
		if b.Columns[i].Codes.At(0) != int(pixels[2*784+i]) {
			t.Fatalf("pixel %d differs", i)
		}
	}
	model := &Schema{Columns: make([]Column, 784)}
	for i := range model.Columns {
		model.Columns[i].Categories = 2
	}
	_, err = Open(context.Background(), "builtin:digits/valid", Options{Schema: model})
	if err == nil || !strings.Contains(err.Error(), "column 1 has 256 categories, the model's has 2") {
		t.Errorf("other model: %v", err)
	}
}

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

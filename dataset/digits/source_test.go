package digits_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/digits"
)

// TestBuiltin opens the pictures as rows, once they are registered.
func TestBuiltin(t *testing.T) {
	dataset.RegisterBuiltin("digits", digits.Builtin)
	src, err := dataset.Open(context.Background(), "builtin:digits/valid", dataset.Options{})
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
	b := new(dataset.Batch)
	if err := src.Gather(context.Background(), b, []int{2}); err != nil {
		t.Fatal(err)
	}
	for i := range b.Columns {
		if b.Columns[i].Codes.At(0) != int(pixels[2*784+i]) {
			t.Fatalf("pixel %d differs", i)
		}
	}
	model := &dataset.Schema{Columns: make([]dataset.Column, 784)}
	for i := range model.Columns {
		model.Columns[i].Categories = 2
	}
	_, err = dataset.Open(context.Background(), "builtin:digits/valid", dataset.Options{Schema: model})
	if err == nil || !strings.Contains(err.Error(), "column 1 has 256 categories, the model's has 2") {
		t.Errorf("other model: %v", err)
	}
	for _, path := range []string{"builtin:digits", "builtin:digits/all", "builtin:digits/valid/1", "builtin:digits/valid?rows=1", "builtin:digits?x"} {
		_, err := dataset.Open(context.Background(), path, dataset.Options{})
		want := "dataset: bad setting: " + path + ": no such source; there are builtin:digits/train, /valid or /test, or builtin:random?rows=512&vars=784&categories=256&seed=1"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

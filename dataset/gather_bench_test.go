package dataset

import (
	"context"
	"testing"
)

func BenchmarkGather(b *testing.B) {
	const rows, vars = 20000, 784
	s := &Schema{Columns: make([]Column, vars)}
	for i := range s.Columns {
		s.Columns[i].Categories = 256
	}
	t, err := NewTable(s, rows)
	if err != nil {
		b.Fatal(err)
	}
	batch := NewBatch(s, rows)
	for i := range batch.Columns {
		for r := range rows {
			batch.Columns[i].Codes.Set(r, r*i&255)
		}
	}
	if err := t.Append(batch); err != nil {
		b.Fatal(err)
	}
	order := Order(1, 0, rows)
	out := &Batch{}
	b.SetBytes(512 * vars)
	step := 0
	for b.Loop() {
		lo := step % 32 * 512
		step++
		if err := t.Gather(context.Background(), out, order[lo:lo+512]); err != nil {
			b.Fatal(err)
		}
	}
}

package serve

import (
	"fmt"
	"testing"

	"github.com/pce-engine/pce/serve/oip"
)

// TestNumbersOfBatches: a batch has the numbers of the rows that it took of each job, of one job
// alone or of several.
func TestNumbersOfBatches(t *testing.T) {
	q := &Query{Name: "predict", Numbers: oip.FP64, Outputs: []Output{{Name: "y"}}}
	v := &version{schema: fakeSchema(), queries: []Query{*q}}
	jobs := make([]*job, 2)
	for i := range jobs {
		c := call{version: v, query: q, rows: 3, repeat: 1, x: &oip.Tensor{Datatype: oip.Uint8}}
		for k := range 15 {
			c.x.Raw = append(c.x.Raw, byte(100*i+k))
		}
		if err := c.read(); err != nil {
			t.Fatal(err)
		}
		c.job.outputs, c.job.want = [][]float64{make([]float64, 3)}, []bool{true}
		jobs[i] = &c.job
	}
	b := &batch{version: v, pieces: []piece{{jobs[0], 1, 3}}, rows: 2}
	if w := b.work(q, nil); fmt.Sprint(w.Numbers) != "[5 6 7 8 9 10 11 12 13 14]" || w.Batch.Rows != 2 || len(w.Batch.Columns) != 0 {
		t.Errorf("two rows of one job are %v", w.Numbers)
	}
	b = &batch{version: v, pieces: []piece{{jobs[0], 2, 3}, {jobs[1], 0, 1}}, rows: 2}
	if w := b.work(q, nil); fmt.Sprint(w.Numbers) != "[10 11 12 13 14 100 101 102 103 104]" || w.Batch.Rows != 2 || len(w.Outputs[0]) != 2 {
		t.Errorf("rows of two jobs are %v", w.Numbers)
	}
	c := call{version: v, query: q, rows: 1, repeat: 2}
	if err := c.read(); err != nil || len(c.job.numbers) != 10 || c.job.numbers[9] == c.job.numbers[9] {
		t.Errorf("no x, twice: %v, %v; want missing cells", c.job.numbers, err)
	}
}

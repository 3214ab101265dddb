package serve

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/serve/oip"
)

// TestNumbers: rows of a query that takes numbers are neither rounded nor bounded, what is not
// observed is NaN, the request's own memory stays as it is, and text is rounded once.
func TestNumbers(t *testing.T) {
	r := newRowReader(fakeSchema())
	floats64 := func(x ...float64) []byte {
		var raw []byte
		for _, v := range x {
			raw, _ = oip.AppendFloat(raw, oip.FP64, v)
		}
		return raw
	}
	texts := func(x ...string) []byte {
		var raw []byte
		for _, v := range x {
			raw = append(raw, byte(len(v)), 0, 0, 0)
			raw = append(raw, v...)
		}
		return raw
	}
	wide := floats64(math.Nextafter(0.1, 1), 1e300, math.Inf(-1), -7, math.NaN())
	// Half-way between two float32 numbers and a little more, which float64 does not hold.
	const above = "1.00000005960464477539062500001"
	for _, c := range []struct {
		tensor oip.Tensor
		mask   []byte
		as     oip.Datatype
		want   string
	}{
		{oip.Tensor{Datatype: oip.FP64, Raw: wide}, nil, oip.FP64, "[0.10000000000000002 1e+300 -Inf -7 NaN]"},
		{oip.Tensor{Datatype: oip.FP64, Raw: wide}, []byte{1, 0, 1, 0, 1}, oip.FP64, "[0.10000000000000002 NaN -Inf NaN NaN]"},
		{oip.Tensor{Datatype: oip.Uint8, Raw: []byte{0, 1, 2, 254, 255}}, nil, oip.FP32, "[0 1 2 254 255]"},
		{oip.Tensor{Datatype: oip.Bytes, Raw: texts("", "?", "NA", "-1e3", above)}, nil, oip.FP64, "[NaN NaN NaN -1000 1.0000000596046448]"},
		{oip.Tensor{Datatype: oip.Bytes, Raw: texts("wet", "0x1p3", "0.1", "2", above)}, []byte{0, 0, 1, 1, 1}, oip.FP32, "[NaN NaN 0.10000000149011612 2 1.0000001192092896]"},
		{oip.Tensor{Datatype: oip.FP64}, nil, oip.FP64, "[]"},
	} {
		got, err := r.numbers(&c.tensor, c.mask, c.as)
		if s := fmt.Sprint(got); err != nil || s != c.want {
			t.Errorf("%s %q as %s: %s, %v; want %s", c.tensor.Datatype, c.tensor.Raw, c.as, s, err, c.want)
		}
	}
	if string(wide) != string(floats64(math.Nextafter(0.1, 1), 1e300, math.Inf(-1), -7, math.NaN())) {
		t.Error("the mask changed the request")
	}
	_, err := r.numbers(&oip.Tensor{Name: "x", Datatype: oip.Bytes, Raw: texts("1", "2", "3", "4", "5", "6", "7,5", "8", "9", "10")}, nil, oip.FP64)
	if !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), `row 1, "b": "7,5" is not a number`) {
		t.Errorf("a cell that is no number: %v", err)
	}
}

// TestNumbersOfBatches: a batch has the numbers of the rows that it took of each job, of one job
// alone or of several.
func TestNumbersOfBatches(t *testing.T) {
	q := &Query{Name: "predict", Numbers: oip.FP64, Outputs: []Output{{Name: "y"}}}
	v := &version{schema: fakeSchema(), queries: []Query{*q}}
	jobs := make([]*job, 2)
	for i := range jobs {
		c := call{version: v, query: q, rows: 3, repeat: 1}
		raw := []byte{}
		for k := range 15 {
			raw = append(raw, byte(100*i+k))
		}
		if err := c.read(&oip.Tensor{Datatype: oip.Uint8, Raw: raw}, nil); err != nil {
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
	if err := c.read(nil, nil); err != nil || len(c.job.numbers) != 10 || c.job.numbers[9] == c.job.numbers[9] {
		t.Errorf("no x, twice: %v, %v; want missing cells", c.job.numbers, err)
	}
}

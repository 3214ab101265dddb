package learnspn

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// BenchmarkLearn learns from rows of as many binary columns in pairs of families, with one
// worker; and by RDC and EM from a mixed table.
func BenchmarkLearn(b *testing.B) {
	for _, tc := range []struct {
		name    string
		columns []column
		set     func(*Options)
	}{
		{"binary", families(16000, 0, rand.New(rand.NewPCG(1, 1))), func(o *Options) { o.Threshold = 0.5 }},
		{"mixed", func() []column { c, _ := mixedRows(2000, rand.New(rand.NewPCG(2, 2))); return c }(), func(o *Options) { o.MinRows = 200 }},
	} {
		b.Run(fmt.Sprintf("%s/rows=%d", tc.name, max(len(tc.columns[0].codes), len(tc.columns[0].values))), func(b *testing.B) {
			src, leaves := tableOf(b, tc.columns...)
			for b.Loop() {
				o := Defaults()
				o.Leaves, o.Workers = leaves, 1
				tc.set(&o)
				if _, err := Learn(b.Context(), src, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNLTCS learns from the 16,181 training rows of NLTCS with the settings of the preset
// and one worker.
func BenchmarkNLTCS(b *testing.B) {
	const path = "../../../../shared/data/density/nltcs/nltcs.train.data.gz"
	if _, err := os.Stat(path); err != nil {
		b.Skipf("%v; it is in directory datasets/nltcs of https://github.com/arranger1044/DEBD", err)
	}
	src, err := dataset.Open(b.Context(), path, dataset.Options{})
	if err != nil {
		b.Fatal(err)
	}
	o := Defaults()
	for range src.Schema().Columns {
		o.Leaves = append(o.Leaves, circuit.Categorical{Categories: 2})
	}
	o.Workers, o.MinRows, o.Smoothing, o.Seed = 1, 400, 8, 42
	for b.Loop() {
		if _, err := Learn(b.Context(), src, o); err != nil {
			b.Fatal(err)
		}
	}
}

package engine_test

import (
	"context"
	"math"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/simt"
)

// remote is the CPU as a device with memory of its own: its programs of code read and write buffers alone.
type remote struct {
	*cpu.Device
	bytes int64 // of buffers, of those of 8 bytes an element
}

func (d *remote) Alloc(ctx context.Context, t kernels.DType, n int) (kernels.Buffer, error) {
	if t == kernels.Float64 {
		d.bytes += 8 * int64(n)
	}
	return d.Device.Alloc(ctx, t, n)
}

func (d *remote) Load(ctx context.Context, m kernels.Module) (kernels.Program, error) {
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, d.Device, m)
	return struct{ kernels.CodeProgram }{p}, err
}

// TestClassesOfDevice classifies by a column of 200 codes on a device with memory of its own, whose launches have 65,536 rows for one
// root: the buffers of that many would have 105 million bytes, and those of the rows that are taken have what ClassBytes plans.
func TestClassesOfDevice(t *testing.T) {
	const codes, rows = 200, 9000
	ctx := t.Context()
	schema, m := manyClasses(t, codes)
	host, err := cpu.Open(cpu.Options{Threads: 1, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
	if err != nil {
		t.Fatal(err)
	}
	dev := &remote{Device: host}
	c, err := engine.NewCode(ctx, dev, m, engine.CodeOptions{Rows: 1 << 16, Schema: schema, OwnsDevice: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	batch := dataset.NewBatch(schema, rows)
	for r := range rows {
		batch.Columns[0].Codes.Set(r, 0)
		batch.Columns[1].Values[r], batch.Columns[2].Values[r] = float32(r)/rows, 0
	}
	dev.bytes = 0
	p := make([]float64, rows*codes)
	if err := c.Classify(ctx, batch, 0, p); err != nil {
		t.Fatal(err)
	}
	if plan := engine.ClassBytes(1<<16, codes, 0); dev.bytes == 0 || dev.bytes > plan || plan > 64<<20 {
		t.Errorf("buffers of results have %d bytes, planned %d", dev.bytes, plan)
	}
	for r := range rows {
		first, last := p[r*codes], p[r*codes+codes-1]
		if ratio := math.Log(last / first); !(math.Abs(ratio-float64(float32(r)/rows)*(codes-1)/codes) < 1e-9) {
			t.Fatalf("row %d: shares %v and %v of the first class and the last one", r, first, last)
		}
	}
}

package kerneltest

import (
	"context"
	"slices"
	"testing"

	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// launch is a loaded program with rows in its buffers, to be called without an engine.
type launch struct {
	dev    kernels.Device
	prog   *layers.Program
	own    tensor.Program
	rows   int
	params []float32
	codes  []uint32 // [coded columns, rows]
	args   tensor.ForwardArgs
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLaunch loads the program of a case for some rows, and these. What else it is
// loaded for is that of load.
func newLaunch(t testing.TB, dev kernels.Device, c *randomCase, rows [][]float64, load layers.Module) *launch {
	t.Helper()
	ctx := context.Background()
	m := Build(t, dev, c.graph, c.params, c.options(), engine.Options{Rows: 1})
	l := &launch{dev: dev, prog: m.Result.Program, rows: len(rows)}
	l.params = make([]float32, l.prog.NumParams)
	must(t, m.Engine.ReadParams(ctx, 0, l.params))
	var values []float32
	for _, col := range l.prog.Columns {
		for _, row := range rows {
			switch x := row[col.Var]; {
			case col.Codes == 0:
				values = append(values, float32(x))
			case x != x:
				l.codes = append(l.codes, uint32(col.Codes))
			default:
				l.codes = append(l.codes, uint32(x))
			}
		}
	}
	load.Program, load.Rows = l.prog, l.rows
	var err error
	l.own, err = kernels.LoadAs[tensor.Program](ctx, dev, load)
	must(t, err)
	put := func(kind kernels.DType, n int, s any) kernels.Buffer {
		b, err := dev.Alloc(ctx, kind, n)
		must(t, err)
		must(t, dev.Write(ctx, b, 0, s))
		return b
	}
	kind := kernels.Uint16
	if l.prog.WideCodes() {
		kind = kernels.Uint32
	}
	l.args = tensor.ForwardArgs{
		Params: put(kernels.Float32, len(l.params), l.params), Codes: put(kind, len(l.codes), l.cells(l.codes)),
		Values: put(kernels.Float32, len(values), values), LL: put(kernels.Float64, l.rows, make([]float64, l.rows)),
	}
	return l
}

// forward evaluates the rows and returns their log-likelihoods and how many values
// were recomputed in log space.
func (l *launch) forward(t testing.TB) (ll []float64, recomputed int64) {
	t.Helper()
	ll = make([]float64, l.rows)
	must(t, l.own.Forward(context.Background(), l.rows, &l.args))
	must(t, l.dev.Read(context.Background(), ll, l.args.LL, 0))
	return ll, l.args.Recomputed
}

// cells returns codes as the program's buffers hold them.
func (l *launch) cells(codes []uint32) any {
	if l.prog.WideCodes() {
		return slices.Clone(codes)
	}
	narrow := make([]uint16, len(codes))
	for i, c := range codes {
		narrow[i] = uint16(c)
	}
	return narrow
}

// readCodes returns the codes in the device's buffer.
func (l *launch) readCodes(t testing.TB) (codes []uint32) {
	t.Helper()
	cells := l.cells(l.codes)
	must(t, l.dev.Read(context.Background(), cells, l.args.Codes, 0))
	if wide, ok := cells.([]uint32); ok {
		return wide
	}
	for _, c := range cells.([]uint16) {
		codes = append(codes, uint32(c))
	}
	return codes
}

// column is the column of the program with a variable, -1 for none.
func (l *launch) column(variable int) int {
	return slices.IndexFunc(l.prog.Columns, func(c layers.Column) bool { return int(c.Var) == variable })
}

// unitParams returns the parameters of a unit of a function.
func (l *launch) unitParams(in *layers.Input, unit int) []float64 {
	p := make([]float64, in.Family.NumParams())
	for k := range p {
		p[k] = float64(l.params[in.Params+int64(k*l.prog.Width(in.Vector)+unit)])
	}
	return p
}

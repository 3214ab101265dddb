// Command query times conditionals of a model beside its log-likelihoods, by the calls of a
// device: what reading rows and writing answers takes is not in it.
//
// # Shapes and units
//
// Times are microseconds per row, medians of rounds in which the calls alternate.
//
// # Errors
//
// One line on standard error and exit code 1 or, for flags, 2.
//
// # Source
//
// A pass up and one down take twice the time of a pass up; the rest is the tables of leaves.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/digits"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

func main() {
	model := flag.String("model", "", "model file, all of whose columns have categories")
	data := flag.String("data", "", "rows: a file, or builtin:digits/test")
	name := flag.String("device", "cpu", "device to time")
	threads := flag.Int("threads", 1, "threads of the CPU")
	rows := flag.Int("rows", 512, "rows of a launch")
	rounds := flag.Int("rounds", 5, "rounds")
	flag.Parse()
	if *model == "" || *data == "" || *rows < 1 || *rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	dataset.RegisterBuiltin("digits", digits.Builtin)
	if err := measure(context.Background(), *model, *data, *name, *threads, *rows, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench/query:", err)
		os.Exit(1)
	}
}

// spreadColumns is how many columns are asked for alone.
const spreadColumns = 16

// line is what is printed for a device and a share of cells that are given.
type line struct {
	Device      string  `json:"device"`
	Kernels     string  `json:"kernels"`
	Threads     int     `json:"threads"`
	Rows        int     `json:"rows"`
	Columns     int     `json:"columns"`
	Given       int     `json:"given"` // cells of a row
	Loglik      float64 `json:"loglik_us_per_row"`
	Conditional float64 `json:"conditional_us_per_row"` // of all columns
	OneColumn   float64 `json:"one_column_us_per_row"`  // mean of columns spread over the row
	Ratio       float64 `json:"conditional_per_loglik"`
	OneByOne    float64 `json:"one_by_one_per_conditional"`
}

func measure(ctx context.Context, model, data, name string, threads, rows, rounds int) error {
	plan, err := run.OpenModel(model, compile.Options{})
	if err != nil {
		return err
	}
	defer plan.Close()
	source, err := dataset.OpenAll(ctx, []string{data}, dataset.Options{Schema: plan.Schema})
	if err != nil {
		return err
	}
	rows = min(rows, source.Rows())
	index := make([]int, rows)
	for i := range index {
		index[i] = i
	}
	batch := &dataset.Batch{}
	if err := source.Gather(ctx, batch, index); err != nil {
		return err
	}
	place, err := device.Find(name)
	if err != nil {
		return err
	}
	o := device.Options{}
	if name == "cpu" {
		o.Threads = threads
	}
	dev, err := place.Open(o)
	if err != nil {
		return err
	}
	defer dev.Close()
	c, err := newCalls(ctx, dev, plan, model, rows)
	if err != nil {
		return err
	}
	columns := len(c.prog.Columns)
	for _, given := range []int{0, columns / 2} {
		if err := c.observe(ctx, batch, given); err != nil {
			return err
		}
		times := [3][]float64{}
		for round := range rounds + 1 { // the first one warms up
			for i, questions := range [][][]int32{{nil}, {c.all}, c.spread()} {
				begin := time.Now()
				for _, of := range questions {
					if err := c.ask(ctx, of); err != nil {
						return err
					}
				}
				if round > 0 {
					times[i] = append(times[i], time.Since(begin).Seconds()*1e6/float64(rows*len(questions)))
				}
			}
		}
		var median [3]float64
		for i, t := range times {
			slices.Sort(t)
			median[i] = (t[(len(t)-1)/2] + t[len(t)/2]) / 2 // of an even number the middle between two
		}
		info := dev.Info()
		out, err := json.Marshal(line{
			Device: info.Name, Kernels: info.KernelPath, Threads: o.Threads, Rows: rows, Columns: columns, Given: given,
			Loglik: rounded(median[0]), Conditional: rounded(median[1]), OneColumn: rounded(median[2]),
			Ratio: rounded(median[1] / median[0]), OneByOne: rounded(float64(columns) * median[2] / median[1]),
		})
		if err != nil {
			return err
		}
		fmt.Println(string(out))
	}
	return nil
}

// spread returns questions for one column each: up to spreadColumns of them, evenly apart.
// How long one takes depends on how far below the root its column is.
func (c *calls) spread() (questions [][]int32) {
	n := min(spreadColumns, len(c.all))
	for i := range n {
		at := (2*i + 1) * len(c.all) / (2 * n)
		questions = append(questions, c.all[at:at+1])
	}
	return questions
}

// rounded keeps three decimals.
func rounded(x float64) float64 { return math.Round(1000*x) / 1000 }

// calls asks a program on a device.
type calls struct {
	prog  *layers.Program
	dev   kernels.Device
	own   tensor.Program
	rows  int
	args  tensor.ForwardArgs
	codes kernels.Buffer
	out   kernels.Buffer // posteriors of all columns
	all   []int32        // columns
}

func newCalls(ctx context.Context, dev kernels.Device, plan *run.Blueprint, model string, rows int) (*calls, error) {
	c := &calls{prog: plan.Program, dev: dev, rows: rows}
	for i, column := range c.prog.Columns {
		if column.Codes == 0 {
			return nil, fmt.Errorf("column %d has no categories; give a model of categories alone", column.Var+1)
		}
		c.all = append(c.all, int32(i))
	}
	if c.prog.WideCodes() {
		return nil, fmt.Errorf("a column has more than 65,535 categories; give a model of fewer")
	}
	file, _, err := run.OpenCircuit(model)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	params := make([]float32, c.prog.NumParams)
	for i := range plan.Map.Len() {
		id := plan.Map.Node(i)
		offset, n := plan.Map.Region(i)
		canonical := make([]float32, plan.Graph.NumParams(id))
		if err := file.Params(id, canonical); err != nil {
			return nil, err
		}
		if err := plan.Map.Pack(i, canonical, params[offset:offset+int64(n)]); err != nil {
			return nil, err
		}
	}
	if c.own, err = kernels.LoadAs[tensor.Program](ctx, dev, layers.Module{Program: c.prog, Rows: rows, Queries: true}); err != nil {
		return nil, err
	}
	offsets, err := c.prog.PosteriorOffsets(c.all)
	if err != nil {
		return nil, err
	}
	var ll, of kernels.Buffer
	for _, b := range []struct {
		to   *kernels.Buffer
		kind kernels.DType
		n    int
	}{
		{&of, kernels.Float32, len(params)}, {&c.codes, kernels.Uint16, len(c.all) * rows},
		{&ll, kernels.Float64, rows}, {&c.out, kernels.Float32, rows * offsets[len(c.all)]},
	} {
		if *b.to, err = dev.Alloc(ctx, b.kind, b.n); err != nil {
			return nil, err
		}
	}
	c.args = tensor.ForwardArgs{Params: of, Codes: c.codes, LL: ll}
	return c, dev.Write(ctx, of, 0, params)
}

// observe gives the rows their cells in the first columns.
func (c *calls) observe(ctx context.Context, batch *dataset.Batch, given int) error {
	codes := make([]uint16, len(c.prog.Columns)*c.rows)
	for i, column := range c.prog.Columns {
		for r := range c.rows {
			code := column.Codes // missing
			if cells := &batch.Columns[column.Var]; i < given && !cells.IsMissing(r) {
				code = int32(cells.Codes.At(r))
			}
			codes[int(column.Slot)*c.rows+r] = uint16(code)
		}
	}
	return c.dev.Write(ctx, c.codes, 0, codes)
}

// ask evaluates the rows and then the posteriors of some columns, and waits for them.
func (c *calls) ask(ctx context.Context, of []int32) error {
	if err := c.own.Forward(ctx, c.rows, &c.args); err != nil {
		return err
	}
	if len(of) > 0 {
		a := tensor.PosteriorsArgs{Params: c.args.Params, Codes: c.codes, Of: of, Out: c.out}
		if err := c.own.Posteriors(ctx, c.rows, &a); err != nil {
			return err
		}
	}
	return c.dev.Sync(ctx)
}

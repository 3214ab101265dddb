// Command spn times the code that pce makes of a circuit, on one thread and rows of bytes or of float32. It is the part of
// bench/spn.sh that runs in a Go process, and prints a JSON line for each module.
//
// # Shapes and units
//
// A file of rows has a byte for each variable of each row, or a float32. Rates are rows a microsecond, of the median call.
//
// # Errors
//
// One line on standard error and exit code 1.
//
// # Source
//
// The peers are those of bench/spn.sh.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/format/spnc"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "spn:", err)
		os.Exit(1)
	}
}

// line is what is printed for a module.
type line struct {
	Program   string  `json:"program"`
	Input     string  `json:"input"`
	Type      string  `json:"type"`
	Path      string  `json:"path"`
	Threads   int     `json:"threads,omitempty"` // of the library
	Rows      int     `json:"rows"`
	RowsPerUs float64 `json:"rows_per_us"`
	// Mean is null where a row is impossible, or left to the host to compute in other numbers: JSON has neither infinities nor NaN.
	Mean  *float64 `json:"mean_ll"`
	Bytes int      `json:"code_bytes,omitempty"`
	// PauseMs bounds the longest time for which the garbage collector stopped the program while it collected again and again
	// beside more calls: it waits for a call to return.
	PauseMs float64 `json:"gc_pause_ms,omitempty"`
}

// run is main with its arguments and its output.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("spn", flag.ContinueOnError)
	model := flags.String("model", "", "the model, SPFlow's text or SPNC's file")
	rows := flags.String("rows", "", "a file of rows, a byte for each variable")
	joint := flags.Int("joint", 16, "elements of a table over several variables, of float32; 0: none")
	kernels := flags.String("kernels", x86.Path(), "the largest set of instructions: avx512 or avx2")
	calls := flags.Int("calls", 15, "timed calls, of which the median is printed")
	swept := flags.Int("sweep", 0, "in place of that, compile in every way and run this many rows that the program makes")
	reals := flags.String("floats", "", "in place of -rows, a file of rows of float32, of a model of continuous variables")
	space := flags.String("space", string(spn.Auto), "of -floats: auto, linear, log or scaled")
	rats := flags.Int("rat", 0, "in place of that, this many rows of a RAT-SPN with ten roots that the program makes")
	text := flags.String("ptx", "", "in place of that, write the kernels of this RAT-SPN to a file, for cards of -major")
	major := flags.Int("major", 8, "of -ptx: 8, for sm_80, or 9, for sm_90")
	straight := flags.Bool("straight", false, "of -ptx: without loops over tables of weights")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *calls < 1 {
		return fmt.Errorf("-calls is %d, want at least 1", *calls)
	}
	if *text != "" {
		return ratText(*text, *major, !*straight)
	}
	if *rats > 0 {
		return rat(x86.Allowed(*kernels), *rats, *calls, out)
	}
	format.Register(spflow.Format)
	format.Register(spnc.Format)
	m, err := format.Open(*model)
	if err != nil {
		return err
	}
	defer m.Close()
	if *swept > 0 {
		return sweep(m, *swept, *calls, out)
	}
	if *reals != "" {
		return floats(m, *reals, spn.Space(*space), x86.Allowed(*kernels), *calls, out)
	}
	set := x86.Allowed(*kernels)
	if err := integers(m, *rows, *joint, set, *calls, out); err != nil {
		return err
	}
	return library(*model, *rows, set, *calls, out)
}

// integers times a model of discrete variables, in each type and layout, on a file of rows of bytes.
func integers(m *format.Model, file string, joint int, set string, calls int, out io.Writer) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	vars := m.Graph.NumVars
	n := len(b) / vars
	if n == 0 || len(b)%vars != 0 {
		return fmt.Errorf("%s has %d bytes, want whole rows of %d", file, len(b), vars)
	}
	columns, turned := make([]float32, len(b)), make([]byte, len(b))
	for i, x := range b {
		turned[i%vars*n+i/vars] = x
		columns[i%vars*n+i/vars] = float32(x)
	}
	for _, c := range []struct {
		options spn.Options
		in      any
		name    string
	}{
		{spn.Options{Type: simt.F64}, columns, "columns of float32"},
		{spn.Options{Type: simt.F32, Joint: joint}, columns, "columns of float32"},
		{spn.Options{Type: simt.F64, Bytes: true}, b, "rows of bytes"},
		{spn.Options{Type: simt.F32, Bytes: true, Joint: joint}, b, "rows of bytes"},
		{spn.Options{Type: simt.F32, Bytes: true, Joint: joint, Layout: simt.Columns}, turned, "columns of bytes"},
		{spn.Options{Type: simt.F64, Bytes: true, Layout: simt.Columns}, turned, "columns of bytes"},
	} {
		p, err := spn.Compile(m.Graph, m.Params64, c.options)
		if err != nil {
			return err
		}
		l, err := measure(p, set, c.in, n, calls)
		if err != nil {
			return err
		}
		l.Input = c.name
		if err := json.NewEncoder(out).Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// library times batches of all rows through the library, in float64, as it is by default, and in float32, on one thread and on all.
func library(model, file, set string, calls int, out io.Writer) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, typ := range []simt.Type{simt.F64, simt.F32} {
		for _, threads := range []int{1, runtime.NumCPU()} {
			m, err := pce.Open(ctx, model, pce.Options{Threads: threads, Path: "code", KernelPath: set, Numbers: spn.Choice{Type: typ.String()}})
			if err != nil {
				return err
			}
			l, err := ask(ctx, m, b, threads, calls)
			if err := errors.Join(err, m.Close()); err != nil {
				return err
			}
			if err := json.NewEncoder(out).Encode(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask times log-likelihoods of a model for rows of bytes.
func ask(ctx context.Context, m *pce.Model, b []byte, threads, calls int) (line, error) {
	info, err := m.Info()
	if err != nil {
		return line{}, err
	}
	device, err := m.Device(ctx)
	if err != nil {
		return line{}, err
	}
	vars := len(m.Schema().Columns)
	batch := &dataset.Batch{Rows: len(b) / vars, Columns: make([]dataset.Cells, vars)}
	for v := range batch.Columns {
		values := make([]float32, batch.Rows)
		for r := range values {
			values[r] = float32(b[r*vars+v])
		}
		batch.Columns[v].Values = values
	}
	times, mean, ll := make([]time.Duration, calls), 0.0, make([]float64, batch.Rows)
	for i := range times {
		start := time.Now()
		if err := m.LogLikelihoodInto(ctx, batch, ll); err != nil {
			return line{}, err
		}
		times[i], mean = time.Since(start), 0
		for _, x := range ll {
			mean += x / float64(len(ll))
		}
	}
	rate := float64(batch.Rows) / float64(median(times).Nanoseconds()) * 1e3
	return line{
		Program: "pce library", Input: "batch of float32", Type: info.Code.Type, Path: device.KernelPath, Threads: threads,
		Rows: batch.Rows, RowsPerUs: math.Round(rate*1e3) / 1e3, Mean: finite(mean),
	}, nil
}

// measure times calls of a program's module over all rows, as code of a set of instructions.
func measure(p *spn.Program, set string, in any, rows, calls int) (line, error) {
	var out any = make([]float64, rows)
	if p.Type == simt.F32 {
		out = make([]float32, rows)
	}
	return measureInto(p, set, in, out, calls)
}

// measureInto is measure with the log-likelihoods' place, which is as long as there are rows.
func measureInto(p *spn.Program, set string, in, out any, calls int) (line, error) {
	native, err := x86.Compile(p.Module, 1, set)
	if errors.Is(err, x86.ErrUnsupported) {
		return line{}, fmt.Errorf("%w: this benchmark is of machine code", err)
	}
	if err != nil {
		return line{}, err
	}
	defer native.Free()
	narrow, _ := out.([]float32)
	ll, wide := out.([]float64)
	rows := max(len(narrow), len(ll))
	if !wide {
		ll = make([]float64, rows)
	}
	times := make([]time.Duration, calls)
	all := func() error {
		for i := range times {
			start := time.Now()
			if err := native.Run(context.Background(), 0, rows, []any{in}, []any{out}); err != nil {
				return err
			}
			times[i] = time.Since(start)
		}
		return nil
	}
	pause, err := longestPause(all)
	if err != nil {
		return line{}, err
	}
	if err := all(); err != nil {
		return line{}, err
	}
	if p.Type == simt.F32 {
		for i, x := range narrow {
			ll[i] = float64(x)
		}
	}
	sum := 0.0
	for _, x := range ll {
		sum += x
	}
	return line{
		Program: "pce", Type: p.Type.String(), Path: native.Path(), Rows: rows, Bytes: native.CodeBytes(),
		PauseMs: math.Round(pause*1e6) / 1e3, RowsPerUs: math.Round(float64(rows)/float64(median(times).Nanoseconds())*1e6) / 1e3, Mean: finite(sum / float64(rows)),
	}, nil
}

// finite returns a number, or nil where it is infinite or NaN.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// median sorts times and returns the middle one, of an even number the middle between two.
func median[T float64 | time.Duration](times []T) T {
	slices.Sort(times)
	return (times[(len(times)-1)/2] + times[len(times)/2]) / 2
}

// longestPause runs work while garbage is collected without a break, and returns a bound of the longest pause in seconds.
func longestPause(work func() error) (float64, error) {
	pauses := func() *metrics.Float64Histogram {
		sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
		metrics.Read(sample)
		return sample[0].Value.Float64Histogram()
	}
	before := slices.Clone(pauses().Counts)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	}()
	err := work()
	close(done)
	<-stopped
	after, longest := pauses(), 0.0
	for i, n := range after.Counts {
		if n > before[i] {
			longest = after.Buckets[i+1]
		}
	}
	return longest, err
}

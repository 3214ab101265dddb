package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	call                      int
	sets                      []string
	only                      *regexp.Regexp // nil: all parts
	pce, suite, card, configs string
	in, out                   string
	pyjuice, peer, python     string
	cutlass                   string
	networks, forests         string   // folders; empty: none
	schedules                 []string // of forests, as pce names them
	device, precision         string
	time, most, measuring     time.Duration
	strict, rehearse          bool
	work                      string   // a folder of files that steps write
	env                       []string // of the programs
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	var sets, only, schedules, tableOf string
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	f.IntVar(&o.call, "call", 0, "which of the three calls to make: 1, 2 or 3; 0: only the parts of -sets")
	f.StringVar(&sets, "sets", "", "comma-separated sets of parts that follow those of the call: "+strings.Join(setNames(), ", "))
	f.StringVar(&only, "only", "", "regular expression of the names of the parts to run; empty: all. What the others need nothing of can run beside them, in a call of its own with a file of its own")
	f.StringVar(&o.pce, "pce", "bin/pce-cuda", "the program to measure")
	f.StringVar(&o.suite, "suite", "bin/cuda.test", "the conformance suite as a program")
	f.StringVar(&o.card, "card", "bin/bench-card", "the program that measures the card itself")
	f.StringVar(&o.configs, "configs", "configs/bench", "folder of the benchmark configs")
	f.StringVar(&o.in, "in", "", "file of earlier results, which -out begins with")
	f.StringVar(&o.out, "out", "gpu.jsonl", "file of results, added to")
	f.StringVar(&o.pyjuice, "pyjuice", "", "folder of PyJuice's source; empty: no PyJuice")
	f.StringVar(&o.peer, "peer", "", "PyJuice's benchmark, a Python program")
	f.StringVar(&o.cutlass, "cutlass", "", "folder of the CUTLASS headers, for PyJuice's CuTe kernels; empty: its Triton kernels alone")
	f.StringVar(&o.python, "python", "python3", "the Python that has PyTorch")
	f.StringVar(&o.networks, "networks", "", "for -sets code: folder of sum-product networks, speaker_FADG0.bin, NIPS5.spn and NIPS40.spn; empty: no networks")
	f.StringVar(&o.forests, "forests", "", "for -sets code: folder of the folders xgb-higgs and xgb-airline, each with a model *.json.gz and its rows input.csv.gz; empty: made-up forests alone")
	f.StringVar(&schedules, "schedules", "bench/gpu/schedules", "for -sets code: folder of files *.schedule, the first of which compiles the made-up forests, and each the others, as does preset:tahoe-direct")
	f.StringVar(&o.device, "device", "cuda:0", "cuda:0, cuda:1, ... or emulator")
	f.StringVar(&o.precision, "precision", "mixed", "mixed or fp32")
	f.DurationVar(&o.time, "time", callTime, "time for the whole call")
	f.DurationVar(&o.most, "most", callTime, "the most time of a part whose own budget is longer")
	f.DurationVar(&o.measuring, "measuring", 2*time.Second, "time that each circuit is measured for; code half of it")
	f.BoolVar(&o.strict, "strict", false, "measure nothing before the conformance suite has passed")
	f.BoolVar(&o.rehearse, "rehearse", false, "tiny sizes, to see that everything runs")
	f.StringVar(&tableOf, "table", "", "print the results of this file as tables, and stop")
	if err := f.Parse(args); err != nil {
		return err
	}
	if tableOf != "" {
		return printTables(stdout, tableOf)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if (o.pyjuice == "") != (o.peer == "") {
		return errors.New("-pyjuice and -peer go together")
	}
	if o.cutlass != "" && o.pyjuice == "" {
		return errors.New("-cutlass wants -pyjuice and -peer")
	}
	if sets != "" {
		o.sets = strings.Split(sets, ",")
	}
	var err error
	if only != "" {
		if o.only, err = regexp.Compile(only); err != nil {
			return fmt.Errorf("-only: %w", err)
		}
	}
	if slices.Contains(o.sets, "code") {
		if o.schedules, err = schedulesIn(schedules); err != nil {
			return err
		}
	}
	// The driver keeps what it compiles, some seconds' worth, for the next program, also
	// where the home folder cannot be written.
	o.env = os.Environ()
	if os.Getenv("CUDA_CACHE_PATH") == "" {
		o.env = append(o.env, "CUDA_CACHE_PATH="+filepath.Join(os.TempDir(), "pce-cuda-cache"))
	}
	if o.work, err = os.MkdirTemp("", "gpu"); err != nil {
		return err
	}
	defer os.RemoveAll(o.work)
	return o.measure(ctx, stderr)
}

// Command reduction times the Go that pce reduce emits for programs of equations: simplified, as they are written, and, for
// some, beside a program that a person would write. It prints a JSON line for each.
//
//	go run ./bench/reduction [-rounds 5] [-limit 60] [NAME...]
//
// # Shapes and units
//
// Seconds are of one run on one thread, the median of rounds in which programs take turns, with the memory
// that a program allocates. A program that would take more than -limit seconds at the sizes of its file is timed at
// smaller ones; its seconds are extrapolated with the exponent that fits the last of these, and marked. The exponent
// of the simplified program is that of a line through the logarithms of its seconds at four scales.
//
// # Errors
//
// One line on standard error and exit code 1: no programs in ../shared/reduction, no go command, a program that fails.
//
// # Source
//
// Sizes and rows are those of Yang, "Simplifying Multiple-Statement Reductions with the Polyhedral Model", 2020, section 8.
package main

import (
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/gosource"
	"github.com/pce-engine/pce/compile/reduction/simplify"
)

//go:embed hand/*.go runner.txt
var sources embed.FS

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reduction:", err)
		os.Exit(1)
	}
}

// benchmark is a program and the sizes it is timed at.
type benchmark struct {
	name  string
	scale []string // parameters that grow together
	first int64    // of the first of them: where timing the program as it is written starts
	fit   int64    // where timing the simplified program for its exponent starts
}

var benchmarks = []benchmark{
	{name: "gmm_gs", scale: []string{"N"}, first: 250, fit: 2500},
	{name: "gmm_mh", scale: []string{"N"}, first: 250, fit: 5000},
	{name: "gmm_lw", scale: []string{"N"}, first: 250, fit: 10000},
	{name: "lda_gs", scale: []string{"W"}, first: 50, fit: 5000},
	{name: "lda_mh", scale: []string{"W"}, first: 250, fit: 5000},
	{name: "lda_lw", scale: []string{"W"}, first: 1000, fit: 5000},
	{name: "dmm_gs", scale: []string{"D", "W"}, first: 4, fit: 35},
	{name: "dmm_mh", scale: []string{"D", "W"}, first: 4, fit: 35},
	{name: "dmm_lw", scale: []string{"D", "W"}, first: 4, fit: 35},
	{name: "lbp", scale: []string{"Y"}, first: 1, fit: 8},
	{name: "coxph", scale: []string{"N"}, first: 250, fit: 4000},
}

// named returns the benchmarks of those names, each once, as the module has one of each; of none: all.
func named(names []string) (list []benchmark, err error) {
	if len(names) == 0 {
		return benchmarks, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no program %q; want some of those of bench/reduction/main.go", name)
		}
		if !slices.ContainsFunc(list, func(b benchmark) bool { return b.name == name }) {
			list = append(list, benchmarks[i])
		}
	}
	return list, nil
}

// line is what is printed for a program.
type line struct {
	Program      string           `json:"program"`
	Sizes        map[string]int64 `json:"sizes"`
	Degree       string           `json:"degree"` // of the simplified program
	Simplified   float64          `json:"seconds"`
	Extrapolated bool             `json:"seconds_extrapolated,omitempty"`
	Written      float64          `json:"seconds_as_written"`
	FromSmaller  bool             `json:"seconds_as_written_extrapolated,omitempty"`
	Speedup      float64          `json:"speedup"`
	Hand         *float64         `json:"seconds_by_hand,omitempty"`
	Ratio        *float64         `json:"ratio_to_hand,omitempty"`
	Difference   *float64         `json:"difference_to_hand,omitempty"`
	Scales       []int64          `json:"scales"`
	Exponent     *float64         `json:"exponent,omitempty"` // of three scales or more
}

// run is main with its arguments and its output.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("reduction", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "timed rounds")
	limit := flags.Float64("limit", 60, "seconds that a run may be expected to take")
	shared := flags.String("shared", "../shared/reduction", "folder of the programs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || !(*limit > 0) {
		return fmt.Errorf("-rounds is %d and -limit %g; want at least 1, and more than 0", *rounds, *limit)
	}
	list, err := named(flags.Args())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pce-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &suite{dir: dir, rounds: *rounds, limit: *limit, programs: map[string]*reduction.Program{}, degrees: map[string]string{}}
	if err := s.build(*shared, list); err != nil {
		return err
	}
	for _, b := range list {
		l, err := s.measure(b)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		if err := json.NewEncoder(out).Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// suite is a module of all programs, compiled.
type suite struct {
	dir      string
	rounds   int
	limit    float64
	programs map[string]*reduction.Program // as they are written
	degrees  map[string]string
}

// build writes the module and compiles it.
func (s *suite) build(shared string, list []benchmark) error {
	write := func(name string, text []byte) error {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o666)
	}
	var packages, computes strings.Builder
	for _, b := range list {
		text, err := os.ReadFile(filepath.Join(shared, b.name+".red"))
		if err != nil {
			return fmt.Errorf("%w; put the programs of equations there, beside the module", err)
		}
		p, err := reduction.Parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		q, _, err := simplify.Simplify(p)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		cost, err := q.Cost(true)
		if err != nil {
			return err
		}
		degree, err := cost.Degree()
		if err != nil {
			return err
		}
		s.programs[b.name], s.degrees[b.name] = p, degree.String()
		for name, r := range map[string]*reduction.Program{"written_" + b.name: p, "simplified_" + b.name: q} {
			source, err := gosource.Source(r, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := write(name+"/z.go", []byte(source)); err != nil {
				return err
			}
			fmt.Fprintf(&packages, "\t%q\n", "emitted/"+name)
			fmt.Fprintf(&computes, "\t%q: emitted(%q, %s.Compute),\n", name, name, name)
		}
	}
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "runner.txt" {
			return err
		}
		text, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return write(path, text)
	})
	if err != nil {
		return err
	}
	runner, err := sources.ReadFile("runner.txt")
	if err != nil {
		return err
	}
	text := strings.NewReplacer("PACKAGES", packages.String(), "COMPUTES", computes.String()).Replace(string(runner))
	if err := write("main.go", []byte(text)); err != nil {
		return err
	}
	if err := write("go.mod", []byte("module emitted\n\ngo 1.22\n")); err != nil {
		return err
	}
	c := exec.Command("go", "build", "-o", "runner", ".")
	c.Dir, c.Env = s.dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// measure times a program at its sizes and at the scales that tell exponents.
func (s *suite) measure(b benchmark) (*line, error) {
	p := s.programs[b.name]
	sizes := p.DefaultSizes()
	l := &line{Program: b.name, Sizes: sizes, Degree: s.degrees[b.name]}
	var err error
	var logs [2][]float64
	for scale := b.fit; scale <= 8*b.fit; scale *= 2 {
		seconds, _, err := s.time(p, b.at(sizes, scale), s.rounds, "simplified_"+b.name)
		if err != nil {
			return nil, err
		}
		l.Scales = append(l.Scales, scale)
		logs[0], logs[1] = append(logs[0], math.Log(float64(scale))), append(logs[1], math.Log(seconds[0]))
		if seconds[0] > s.limit/8 {
			break
		}
	}
	if len(l.Scales) > 2 {
		e := slope(logs[0], logs[1])
		l.Exponent = &e
	}
	whole := sizes[b.scale[0]]
	if l.Written, l.FromSmaller, err = s.climb(p, b, "written_"+b.name, b.first, whole); err != nil {
		return nil, err
	}
	if l.Simplified, l.Extrapolated, err = s.climb(p, b, "simplified_"+b.name, min(b.first, whole), whole); err != nil {
		return nil, err
	}
	if slices.Contains([]string{"gmm_gs", "lda_gs", "dmm_gs", "lbp", "coxph"}, b.name) {
		at := sizes
		if l.Extrapolated {
			at = b.at(sizes, b.fit)
		}
		seconds, difference, err := s.time(p, at, s.rounds, "hand_"+b.name, "simplified_"+b.name)
		if err != nil {
			return nil, err
		}
		ratio := seconds[1] / seconds[0]
		l.Hand, l.Ratio, l.Difference = &seconds[0], &ratio, &difference
		if !l.Extrapolated {
			l.Simplified = seconds[1]
		}
	}
	l.Speedup = l.Written / l.Simplified
	return l, nil
}

// at returns sizes with the parameters of the benchmark's scale in proportion, the first of them as given.
func (b *benchmark) at(sizes map[string]int64, scale int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range sizes {
		out[name] = n
		if slices.Contains(b.scale, name) {
			out[name] = max(1, n*scale/sizes[b.scale[0]])
		}
	}
	return out
}

// climb times a program at its sizes, or extrapolates from smaller ones: it doubles the scale from the first on, and stops where
// the next one would take longer than the limit.
func (s *suite) climb(p *reduction.Program, b benchmark, name string, first, whole int64) (seconds float64, extrapolated bool, err error) {
	sizes := p.DefaultSizes()
	var x, y []float64
	for scale := first; ; scale = min(2*scale, whole) {
		t, _, err := s.time(p, b.at(sizes, scale), 1, name)
		if err != nil {
			return 0, false, err
		}
		if scale == whole {
			return t[0], false, nil
		}
		x, y = append(x, math.Log(float64(scale))), append(y, math.Log(t[0]))
		if len(x) < 3 || t[0] < 0.05 {
			continue
		}
		last := len(x)
		e := slope(x[last-3:], y[last-3:])
		ahead := func(scale int64) float64 { return math.Exp(y[last-1] + e*(math.Log(float64(scale))-x[last-1])) }
		if ahead(min(2*scale, whole)) > s.limit/6 && ahead(whole) > s.limit {
			return ahead(whole), true, nil
		}
		if ahead(whole) <= s.limit {
			scale = whole / 2
			if 2*scale < whole {
				scale++
			}
		}
	}
}

// time runs programs in turns and returns the median seconds of each.
func (s *suite) time(p *reduction.Program, sizes map[string]int64, rounds int, names ...string) (seconds []float64, difference float64, err error) {
	data := map[string]*reduction.Tensor{}
	if err := p.Synthesise(sizes, 1, data, 1<<36); err != nil {
		return nil, 0, err
	}
	r := struct {
		Programs     []string
		Rounds       int
		Sizes        map[string]int64
		Ints, Floats map[string]string
	}{names, rounds, sizes, map[string]string{}, map[string]string{}}
	for name, t := range data {
		path := filepath.Join(s.dir, name+".bytes")
		b := make([]byte, 0, 8*(len(t.Ints)+len(t.Floats)))
		for _, x := range t.Ints {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
		for _, x := range t.Floats {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			return nil, 0, err
		}
		if t.Ints != nil {
			r.Ints[name] = path
		} else {
			r.Floats[name] = path
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, 0, err
	}
	c := exec.Command(filepath.Join(s.dir, "runner"))
	c.Stdin = bytes.NewReader(text)
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("%v at %v: %w: %s", names, sizes, err, bytes.TrimSpace(stderr.Bytes()))
	}
	var a struct {
		Seconds    [][]float64
		Difference float64
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return nil, 0, err
	}
	for _, list := range a.Seconds {
		slices.Sort(list)
		seconds = append(seconds, (list[(len(list)-1)/2]+list[len(list)/2])/2) // of an even number the middle between two
	}
	return seconds, a.Difference, nil
}

// slope is that of the line that fits points best.
func slope(x, y []float64) float64 {
	var mx, my, xy, xx float64
	for k := range x {
		mx += x[k] / float64(len(x))
		my += y[k] / float64(len(x))
	}
	for k := range x {
		xy += (x[k] - mx) * (y[k] - my)
		xx += (x[k] - mx) * (x[k] - mx)
	}
	return xy / xx
}

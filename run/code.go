package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/device"
)

// Path is how a circuit is compiled: as layers of blocks, or as code of its own operations.
type Path string

// The paths. The tensor path answers every query and trains, and is taken by default; code computes log-likelihoods and
// classes alone. A circuit that is better off as code, see How.wants, is both by default: code where that is enough, and
// tensors for other queries and for training.
const (
	PathAuto   Path = ""
	PathTensor Path = "tensor"
	PathCode   Path = "code"
)

// How is how a circuit is compiled. The zero value is the default.
type How struct {
	Path    Path
	Numbers spn.Choice // of code
	// Single makes a circuit of single units, such as a learned one, code by default: for queries on the CPU, which computes
	// log-likelihoods several times as fast then, and in float64.
	Single bool
}

// only is how a circuit is compiled that is asked queries of one kind alone: as tensors, where h leaves the path open and
// code would have no part in the answers.
func (h How) only(kind string) How {
	if h.Path != PathAuto || h.Numbers != (spn.Choice{}) {
		return h
	}
	switch kind {
	case "", QueryLogLikelihood, QueryEntropy, QueryKL:
	case QueryClass:
		h.Single = false // see both.classify
	default:
		h.Path = PathTensor
	}
	return h
}

// ParsePath returns the path with a name; auto is PathAuto.
func ParsePath(name string) (Path, error) {
	switch p := Path(name); p {
	case PathAuto, PathTensor, PathCode:
		return p, nil
	case "auto":
		return PathAuto, nil
	}
	return "", fmt.Errorf("%w: no path %.40q; want auto, tensor or code", ErrOptions, name)
}

// CodeInfo describes a circuit that is compiled as code: its arithmetic and how exact that is.
type CodeInfo struct {
	Space string    `json:"space"` // linear, log or scaled
	Type  string    `json:"type"`  // of values: f32 or f64
	Bound spn.Bound `json:"bound"` // of the distance from float64 evaluation, in nats
	// Least is the log-likelihood below which rows are computed again, as Exact says or, without one, in log space on the host; left out
	// where all rows are above.
	Least *float64  `json:"least,omitempty"`
	Exact *CodeInfo `json:"exact,omitempty"`
	spn.Info
}

func codeInfo(p *spn.Program) *CodeInfo {
	i := &CodeInfo{Space: string(p.Space), Type: p.Type.String(), Bound: p.Bound, Info: p.Info}
	if !math.IsInf(p.Least, -1) {
		i.Least = &p.Least
	}
	if p.Exact != nil {
		i.Exact = codeInfo(p.Exact)
	}
	return i
}

// maxSingle bounds the nodes and edges of circuits of single units that are code by default, and maxSingleCodes the codes of
// their leaves: code of 44,189 takes 0.05 s longer to open than tensors do, and that of 151,814 would make commands over few
// rows wait for 0.4 s more.
const (
	maxSingle      = 1 << 16
	maxSingleCodes = 1 << 20
)

// hasBreaks reports whether a leaf is a histogram with breaks of its own, as imported networks have them: code computes
// those in float64, from all digits of the file.
func hasBreaks(g *circuit.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n circuit.Node) bool {
		_, ok := n.Leaf.(circuit.RealHistogram)
		return ok
	})
}

// maxBreakCodes bounds the numbers that code by default may have for histograms with breaks of their own: 4,194,304 take 33 MB and some
// tenths of a second to compile.
const maxBreakCodes = 1 << 22

// breakCodes counts the numbers that code has for histograms with breaks of their own: each leaf has one for each interval between the breaks
// of all leaves of its variable, which is the square of the leaves where each has its own breaks.
func breakCodes(g *circuit.Graph) int {
	leaves, breaks := map[int]int{}, map[int][]float64{}
	for i := range g.Nodes {
		if l, ok := g.Nodes[i].Leaf.(circuit.RealHistogram); ok {
			v := g.Nodes[i].Var
			leaves[v] += g.Nodes[i].Units
			breaks[v] = append(breaks[v], l.Breaks...)
		}
	}
	count := 0
	for v, list := range breaks {
		slices.Sort(list)
		count += leaves[v] * (len(slices.Compact(list)) + 1)
	}
	return count
}

// wants reports whether a circuit is better off as code, if code has its leaves: with such histograms, or of single units, if h says so,
// of which blocks of tensors would be mostly empty.
func (h How) wants(g *circuit.Graph) bool {
	switch {
	case spn.Supported(g) != nil:
		return false
	case hasBreaks(g):
		return breakCodes(g) <= maxBreakCodes
	}
	single, size, codes := h.Single, 0, 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		size += 1 + len(n.Children)
		if n.Kind == circuit.Input {
			codes += n.Leaf.Codes()
		}
		single = single && n.Units == 1
	}
	return single && size <= maxSingle && codes <= maxSingleCodes
}

// takesCode reports whether the circuit is compiled to code.
func (b *Blueprint) takesCode() (bool, error) {
	switch {
	case b.how.Path == PathCode && b.binned():
		return false, fmt.Errorf("%w: the model reads bins of values, which code does not have; use the tensor path", ErrOptions)
	case b.how.Path == PathCode && b.params == nil && b.wide == nil:
		return false, fmt.Errorf("%w: the circuit has no parameters, and code is made for them", ErrOptions)
	}
	return b.how.Path == PathCode || b.how.Path == PathAuto && !b.binned() && (b.params != nil || b.wide != nil) && b.how.wants(b.Graph), nil
}

// alsoTensor returns how the circuit of a Blueprint of code is compiled for the tensor path too, nil where that path was
// chosen.
func (b *Blueprint) alsoTensor(opts compile.Options) func() (*Blueprint, error) {
	if b.how.Path == PathCode {
		return nil
	}
	return sync.OnceValues(func() (*Blueprint, error) {
		t := &Blueprint{
			Graph: b.Graph, Schema: b.Schema, Unchecked: b.Unchecked, meta: b.meta, params: b.params,
			how: How{Path: PathTensor}, close: func() error { return nil },
		}
		return t, t.compile(opts)
	})
}

// params64 are the parameters with all digits that there are.
func (b *Blueprint) params64() circuit.ParamFunc64 {
	if b.wide != nil {
		return b.wide
	}
	return func(id circuit.NodeID, dst []float64) error {
		if b.params == nil {
			return fmt.Errorf("%w: node %d; initialise it", format.ErrNoParams, id)
		}
		narrow := make([]float32, len(dst))
		if err := b.params(id, narrow); err != nil {
			return err
		}
		for i, v := range narrow {
			dst[i] = float64(v)
		}
		return nil
	}
}

// Digest names the compiled circuit.
func (b *Blueprint) Digest() [32]byte {
	if b.Code == nil {
		return b.Program.Digest()
	}
	text := ""
	for p := b.Code; p != nil; p = p.Exact {
		text += p.Module.Text()
	}
	return sha256.Sum256([]byte(text))
}

// errCode is for what code cannot do.
var errCode = fmt.Errorf("%w: the model runs as code, which computes log-likelihoods and classes alone; leave the path to pce, or choose tensor", ErrOptions)

// both is a circuit as code, and an engine of the tensor path that is made when a query first needs it.
type both struct {
	*engine.Code
	// classify says whether code answers QueryClass by a column, too, for the sake of breaks. It has a module for each column
	// then, which takes longer to compile than tensors take for many rows.
	classify func(column int) bool
	open     func(ctx context.Context) (*engine.Engine, error)
	engine   *engine.Engine
}

// tensor returns the engine.
func (r *both) tensor(ctx context.Context) (_ *engine.Engine, err error) {
	if r.engine == nil {
		r.engine, err = r.open(ctx)
	}
	return r.engine, err
}

// Close frees the code, and the engine if there is one.
func (r *both) Close() error {
	err := r.Code.Close()
	if r.engine != nil {
		err = errors.Join(err, r.engine.Close())
	}
	return err
}

// Tensor returns the engine that a runner of Pool is or has; an error where the path of code was chosen.
func Tensor(ctx context.Context, r engine.Runner) (*engine.Engine, error) {
	switch r := r.(type) {
	case *engine.Engine:
		return r, nil
	case *both:
		return r.tensor(ctx)
	}
	return nil, errCode
}

// asCode returns the code that a runner of Pool is or has, nil if there is none.
func asCode(r engine.Runner) *engine.Code {
	switch r := r.(type) {
	case *engine.Code:
		return r
	case *both:
		return r.Code
	}
	return nil
}

// codeClasses are the most categories of a column by which code classifies where tensors can, too: it has a root for each, and
// takes minutes to compile tens of thousands.
const codeClasses = 1024

// classifier returns the code that answers QueryClass by a column, nil if a runner leaves that to tensors.
func classifier(r engine.Runner, column int) *engine.Code {
	if b, ok := r.(*both); ok && !b.classify(column) {
		return nil
	}
	return asCode(r)
}

// code returns the circuit as code on a device, with an engine for what code cannot do unless its path was chosen.
func (b *Blueprint) code(ctx context.Context, l Load) (engine.Runner, error) {
	l.Options = l.Options.forCode()
	if err := b.check(l); err != nil {
		return nil, err
	}
	at, err := l.placeOfCode()
	if err != nil {
		return nil, err
	}
	dev, err := at.Open(l.device())
	if err != nil {
		return nil, err
	}
	c, err := engine.NewCode(ctx, dev, b.codeModel(), engine.CodeOptions{Rows: l.Rows, Schema: b.codeSchema(), OwnsDevice: true})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	if b.tensor == nil {
		return c, nil
	}
	breaks := hasBreaks(b.Graph)
	classify := func(column int) bool { return breaks && b.Schema.Columns[column].Categories <= codeClasses }
	return &both{Code: c, classify: classify, open: func(ctx context.Context) (*engine.Engine, error) {
		t, err := b.tensor()
		if err != nil {
			return nil, err
		}
		beside := l.besideCode()
		if l.MaxMemory > 0 { // what code leaves, with its own rows of a launch
			m, err := b.runnerMemory(l)
			if err != nil {
				return nil, err
			}
			beside.MaxMemory = max(1, l.MaxMemory-m.Total+m.Runtime)
		}
		rows, err := t.queryRows(beside.Options)
		if err != nil {
			return nil, err
		}
		beside.Rows = min(beside.Rows, rows.Most)
		return t.Engine(ctx, beside)
	}}, nil
}

// codeSchema is the schema for code, which takes the cells of all columns: those that the root does not read have no scale there, since
// likelihoods do not depend on their numbers.
func (b *Blueprint) codeSchema() *dataset.Schema {
	s := *b.Schema
	s.Columns = slices.Clone(s.Columns)
	for v, codes := range circuit.RootDomains(b.Graph) {
		if codes < 0 {
			s.Columns[v].Offset, s.Columns[v].Scale = 0, 0
		}
	}
	return &s
}

func (b *Blueprint) codeModel() engine.CodeModel {
	return codeModel(b.Code, func(variable int) (engine.CodeModel, error) {
		if circuit.RootDomains(b.Graph)[variable] < 0 {
			return engine.CodeModel{}, fmt.Errorf("%w: %s is in no leaf, so nothing can be said of it; leave it out", dataset.ErrSetting, b.Schema.ColumnName(variable))
		}
		p, err := spn.CompileClassesFor(b.Graph, b.params64(), variable, b.how.Numbers)
		if err != nil {
			return engine.CodeModel{}, err
		}
		return codeModel(p, nil), nil
	})
}

// codeModel returns a program as the engine runs it.
func codeModel(p *spn.Program, classes func(variable int) (engine.CodeModel, error)) engine.CodeModel {
	m := engine.CodeModel{Module: p.Module, Least: p.Least, Classes: classes}
	if p.Exact != nil {
		exact := codeModel(p.Exact, nil)
		m.Exact = &exact
	} else if !math.IsInf(p.Least, -1) {
		m.Again = p.Again
	}
	return m
}

// forCode are the options of code: the CPU where the device is a choice, and as many rows of a launch as suit the device.
func (o Options) forCode() Options {
	if o.Device == "" || o.Device == "auto" {
		o.Device = "cpu"
	}
	if o.Rows == 0 && o.Device != "cpu" {
		o.Rows = CardRows
	}
	return o.withDefaults()
}

// placeOfCode is place for code.
func (o Options) placeOfCode() (device.Place, error) {
	if o.Device == "cpu" {
		return o.place()
	}
	return o.placeFor(CardRows)
}

// besideCode is how a tensor program runs beside code that runs as l says.
func (l Load) besideCode() Load {
	if l.Options = l.Options.forCode(); l.Rows > engine.MaxShardRows {
		l.Rows = 0
		l.Options = l.Options.withDefaults()
	}
	return l
}

// codeMemory plans what code takes: of each of the modules what the device needs to run it, the
// rows of a launch on the device and on the host.
func (b *Blueprint) codeMemory(l Load) (MemoryPlan, error) {
	l.Options = l.Options.forCode()
	at, err := l.placeOfCode()
	if err != nil {
		return MemoryPlan{}, err
	}
	c, roots, threads := b.codeModel(), b.mostClasses(), 0
	m := MemoryPlan{Rows: l.Rows, Data: l.Tables + tableBytes(b.Train)}
	for p := b.Code; p != nil; p = p.Exact {
		work, err := at.PlanCode(p.Module, l.device())
		if err != nil {
			return MemoryPlan{}, err
		}
		threads = work.Threads
		m.Values = c.RowBytes(l.Rows, threads)
		m.Scratch += work.Scratch
		m.Program += work.Program
	}
	if l.Queries && roots > 0 {
		m.Scratch += engine.ClassBytes(l.Rows, roots, threads)
	}
	const perNode = 400
	m.Program += perNode * int64(len(b.Graph.Nodes))
	m.add()
	return m, nil
}

// mostClasses is the most categories of a column by which code classifies, 0 where tensors do.
func (b *Blueprint) mostClasses() (most int) {
	breaks := hasBreaks(b.Graph)
	for v := range b.Schema.Columns {
		if c := &b.Schema.Columns[v]; c.Kind == dataset.Discrete && (b.tensor == nil || breaks && c.Categories <= codeClasses) {
			most = max(most, c.Categories)
		}
	}
	return most
}

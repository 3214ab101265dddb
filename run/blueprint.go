package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// Blueprint is a compiled circuit whose parameters have no memory yet.
type Blueprint struct {
	Graph       *circuit.Graph
	Schema      *dataset.Schema // what rows of the model are
	Train       dataset.Source  // the rows that it was built for; nil if there were none
	CompileTime time.Duration

	// StructureTime is how long the structure took to build, or to learn from Train; 0 where it
	// comes from a file.
	StructureTime time.Duration

	// Of the tensor path; nil and zero on the path of code.
	Program *layers.Program
	Map     *compile.ParamMap
	Report  compile.Report

	// Code is the circuit on the path of code, nil on the tensor path.
	Code   *spn.Program
	tensor func() (*Blueprint, error) // of code that other queries than its own may be asked: the circuit on the tensor path; nil: there is none

	// Unchecked says that the circuit comes from a model file of an earlier version,
	// which has no checksum: damage to its parameters need not show.
	Unchecked bool

	given  *circuit.Graph // before leaves were given lower floors; nil: as Graph is
	pd     *Structure     // settings, for the published size; nil for other structures
	class  int            // the number of the variable of the class, from 1; 0: none
	meta   map[string]string
	params circuit.ParamFunc   // starting parameters of the nodes that own some; nil: there are none
	wide   circuit.ParamFunc64 // params of a model file with all of its digits; nil: there is none
	how    How
	plans  memoryPlans
	close  func() error
}

// Build makes the circuit that s describes for the rows of train, which may be
// nil where the structure is a file or a graph. Zero compile options are the
// default ones. Close the Blueprint.
func Build(ctx context.Context, s Structure, train Rows, opts compile.Options) (*Blueprint, error) {
	return build(ctx, s, train, opts, nil, false)
}

// build is Build, and tells of its stages. Rows are read first, as the schema of a file says if
// there is one; a structure that is learned from them may want their cells stored otherwise, so
// they may be read twice. It needs train for every structure but a graph and a file. A circuit that is kept is that of a
// run which is resumed, and has the floors that it had. After an error what was opened is closed, and the caller has
// nothing to close.
func build(ctx context.Context, s Structure, train Rows, opts compile.Options, tell teller, kept bool) (_ *Blueprint, err error) {
	b := &Blueprint{close: func() error { return nil }, how: s.How}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	switch {
	case s.Graph != nil:
		if err := circuit.Validate(s.Graph); err != nil {
			return nil, err
		}
		b.Graph = s.Graph
		if b.Schema, err = graphSchema(s.Graph); err != nil {
			return nil, err
		}
	case s.Kind == "file":
		if err := b.fromFile(s.File); err != nil {
			return nil, err
		}
	case train == nil:
		return nil, fmt.Errorf("%w: a structure of kind %q is made for data, and there is none; give rows", ErrOptions, s.Kind)
	}
	if train != nil {
		if b.Train, err = tell.read(ctx, "train", train, b.Schema); err != nil {
			return nil, err
		}
		if b.Schema != nil {
			b.Schema = b.Schema.WithMarks(b.Train.Schema().Missing)
		}
	}
	if b.Graph == nil {
		if s.Latents == 0 {
			s.Latents = latentsFor(b.Train.Rows())
		}
		if err := s.check(b.Train.Schema()); err != nil {
			return nil, err
		}
		schema, err := s.stored(ctx, b.Train)
		if err != nil {
			return nil, err
		}
		if !schema.Equal(b.Train.Schema()) { // the cells have to be read again
			if b.Train, err = tell.read(ctx, "train", train, schema); err != nil {
				return nil, err
			}
		}
		leaves, err := s.leaves(ctx, b.Train, schema)
		if err != nil {
			return nil, err
		}
		if err := checkPositive(ctx, b.Train, leaves); err != nil {
			return nil, err
		}
		stage := Stage{Name: StageStructure, Structure: s.Kind}
		if s.Kind == "hclt" {
			stage.Tree = s.HCLT.Tree
		}
		built, begin := tell.begin(stage), time.Now()
		rows := nearby(b.Train, leaves)
		if s.Kind == "learnspn" {
			learned, err := s.learn(ctx, rows, schema, leaves)
			if err != nil {
				return nil, err
			}
			b.Graph, b.params = learned.Graph, learned.Params
			stage.Learned = learned.String()
			b.meta = map[string]string{metaLearned: stage.Learned}
		} else if b.Graph, err = s.build(ctx, rows, leaves); err != nil {
			return nil, err
		}
		b.StructureTime = time.Since(begin)
		sizes := b.sizes()
		stage.Nodes, stage.Edges, stage.Parameters = sizes.Nodes(), sizes.Edges(), sizes.Params()
		built(stage)
		b.Schema = withDomains(schema, b.Graph)
		if s.Kind == "pd" && s.Class == "" {
			b.pd = &s
		}
	}
	if err := b.settleClass(&s); err != nil {
		return nil, err
	}
	if b.Train != nil && !kept && !s.learned() {
		if err := b.lowerFloors(ctx); err != nil {
			return nil, err
		}
	}
	if b.params, err = b.start(ctx, s.Init); err != nil {
		return nil, err
	}
	compiled := tell.begin(Stage{Name: StageCompile})
	if err := b.compile(opts); err != nil {
		made := s.Graph == nil && s.Kind != "file" && s.Kind != "learnspn"
		if made && errors.Is(err, circuit.ErrGraph) { // such graphs break limits of size alone
			err = fmt.Errorf("%w: %s with %d latents: %w", ErrOptions, s.Kind, s.Latents, err)
		}
		return b, err
	}
	layers := 0 // of code
	if b.Program != nil {
		layers = len(b.Program.Layers)
	}
	compiled(Stage{Layers: layers})
	return b, nil
}

// OpenModel opens the model file at path, of any format that init registers, gzip included, for the
// path that its leaves want. Every parameter must be in the file. Zero compile options are the
// default ones. Close the Blueprint.
func OpenModel(path string, opts compile.Options) (*Blueprint, error) {
	return OpenModelFor(How{}, path, opts)
}

// OpenModelFor is OpenModel for a path and numbers of choice.
func OpenModelFor(how How, path string, opts compile.Options) (*Blueprint, error) {
	b := &Blueprint{close: func() error { return nil }, how: how}
	err := b.fromFile(path)
	if err == nil {
		err = b.compile(opts)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// FromGraph compiles a circuit made by hand, whose parameters params gives, as how says. Zero
// compile options are the default ones. Parameters are checked when they are read.
func FromGraph(how How, g *circuit.Graph, params circuit.ParamFunc, opts compile.Options) (*Blueprint, error) {
	if err := circuit.Validate(g); err != nil {
		return nil, err
	}
	if params == nil {
		return nil, fmt.Errorf("%w: no function gives the parameters", circuit.ErrGraph)
	}
	checked := func(id circuit.NodeID, dst []float32) error {
		if err := params(id, dst); err != nil {
			return err
		}
		return circuit.CheckParams(g, id, dst)
	}
	b := &Blueprint{Graph: g, params: checked, how: how, close: func() error { return nil }}
	var err error
	if b.Schema, err = graphSchema(g); err != nil {
		return nil, err
	}
	if err := b.compile(opts); err != nil {
		return nil, err
	}
	return b, nil
}

// settleClass says which variable the class is. A circuit that was made with one knows its number, which may be another one
// than that of the column in a file of rows, of which some may be skipped.
func (b *Blueprint) settleClass(s *Structure) error {
	made, _ := strconv.Atoi(b.meta[metaClass])
	if made < 1 || made > b.Graph.NumVars {
		made = 0
	}
	switch {
	case s.class > 0:
		b.class, b.meta = s.class, map[string]string{metaClass: strconv.Itoa(s.class)}
		return nil
	case s.Class == "":
		b.class = made
		return nil
	}
	class, err := findClass(b.Schema, s.Class)
	if err != nil {
		return err
	}
	if b.class = class + 1; made > 0 && b.class != made && b.Schema.Columns[class].Name != s.Class {
		return fmt.Errorf("%w: the class is column %s of the circuit, which was made with column %d as the class; write %d, or the name of another column",
			ErrOptions, s.Class, made, made)
	}
	return nil
}

// fromFile takes graph, schema and parameters from a model file.
func (b *Blueprint) fromFile(path string) error {
	m, schema, err := OpenCircuit(path)
	if err != nil {
		return err
	}
	b.close, b.Graph, b.Schema, b.meta, b.Unchecked = m.Close, m.Graph, schema, m.Meta, m.Unchecked
	b.params = func(id circuit.NodeID, dst []float32) error { return InFile(path, m.Params(id, dst)) }
	b.wide = func(id circuit.NodeID, dst []float64) error { return InFile(path, m.Params64(id, dst)) }
	return nil
}

// compile turns the graph into a program of the path that it takes, and notes the time. Zero
// options mean the default ones. A path that was asked for and that the leaves do not allow is
// an error that matches ErrOptions or spn.ErrCode.
func (b *Blueprint) compile(opts compile.Options) error {
	if opts == (compile.Options{}) {
		opts = compile.DefaultOptions()
	}
	begin := time.Now()
	code, err := b.takesCode()
	if err != nil {
		return err
	}
	if code {
		b.Code, err = spn.CompileFor(b.Graph, b.params64(), b.how.Numbers)
		if b.how.Path == PathCode || b.how.Numbers != (spn.Choice{}) || !errors.Is(err, format.ErrNoParams) {
			b.CompileTime, b.tensor = time.Since(begin), b.alsoTensor(opts)
			return err
		}
		b.Code = nil // code is made for parameters, and a file may leave them open: tensors have room for any
	}
	if b.how.Numbers != (spn.Choice{}) {
		return fmt.Errorf("%w: type, space and errors of numbers are chosen for code alone, and the circuit takes the tensor path; choose the path of code", ErrOptions)
	}
	r, err := compile.Compile(b.Graph, opts)
	if err != nil {
		return err
	}
	b.Program, b.Map, b.Report, b.CompileTime = r.Program, r.Map, r.Report, time.Since(begin)
	return nil
}

// Close closes the file that the circuit comes from, if any.
func (b *Blueprint) Close() error { return b.close() }

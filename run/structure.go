package run

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/circuit/structures/equations"
	"github.com/pce-engine/pce/circuit/structures/learnspn"
	"github.com/pce-engine/pce/dataset"
)

// Structure says what a circuit looks like. Start from DefaultStructure: most
// zero values are refused.
type Structure struct {
	How     How    // how the circuit is compiled; what it is built of may leave no choice
	Kind    string // hclt, hmm, pd, rat-spn, learnspn, equations, or file to continue from File
	Latents int    // units of a latent variable or region; 0: as many as the rows support
	Leaf    Leaf
	// Leaves are those of columns: a key is a column's name, its number in the file
	// counted from 1, or * for all others. Leaf holds where one says nothing.
	Leaves map[string]Leaf
	// Class is the column of the class, by name or number in the file: each of its categories gets a root of its own over
	// the other columns. Structures that are hidden Chow-Liu trees, pd or rat-spn have one; of a circuit in a file it is a
	// column that rows are classified by, by name or number among the circuit's. "": none.
	Class string
	class int    // its number, from 1, once rows are read; 0: none
	Seed  uint64 // of everything random about the structure
	Init  uint64 // seed of the starting parameters

	HCLT   HCLT
	HMM    structures.HMMOptions    // Length, Tied; Length 0: columns of the data
	PD     structures.PDOptions     // Shape, SplitInterval, MaxProductBlocks; Shape zero: that of the data
	RATSPN structures.RATSPNOptions // Depth, Repetitions, Pieces

	Equations Equations

	LearnSPN learnspn.Options // all but Leaves, Seed and Valid
	Valid    Rows             // by which LearnSPN.Search chooses; nil: TrainOptions.Valid

	File  string         // a model file or a circuit in the text format
	Graph *circuit.Graph // a circuit made by hand; with it, Kind does not count
}

// HCLT says where the tree of a hidden Chow-Liu tree comes from.
type HCLT struct {
	Tree    string // chow-liu: learned from the rows; grid: random over the image; random
	Inner   int    // inner variables of a random tree
	ChowLiu structures.ChowLiuOptions
}

// Equations says which program of equations a circuit is, see package equations.
type Equations struct {
	File  string           // .red
	Sizes map[string]int64 // of parameters that neither the data nor Latents give
}

// read returns the text of the program.
func (e *Equations) read() (string, error) {
	file, err := os.Open(e.File)
	var source string
	if err == nil {
		defer file.Close()
		source, err = equations.ReadSource(file)
	}
	if err != nil {
		return "", fmt.Errorf("%w; training reads the equations when it starts and when it is resumed, check the path", err)
	}
	return source, nil
}

// DefaultStructure returns a hidden Chow-Liu tree of 64 latents, and usual settings for the
// other structures. With Latents 0 the number of training rows chooses them.
func DefaultStructure() Structure {
	return Structure{
		Kind:    "hclt",
		Latents: 64,
		Leaf:    Leaf{Type: "auto", Bins: 32},
		Seed:    42,
		Init:    42,
		HCLT:    HCLT{Tree: "chow-liu", ChowLiu: structures.DefaultChowLiu()},
		HMM:     structures.HMMOptions{Tied: true},
		PD:      structures.DefaultPD(),
		RATSPN:  structures.DefaultRATSPN(),

		LearnSPN: learnspn.Defaults(),
	}
}

// latentsFor returns how many units that many rows support: the power of two nearest
// to a quarter of the root of their number, from 8 to 64. More units describe the
// rows better and others like them worse.
func latentsFor(rows int) int {
	units := 8
	for units < 64 && rows >= 32*units*units { // the root of rows / 16 is nearer to the next power
		units *= 2
	}
	return units
}

// build returns the graph of a named structure for the rows of src. It reads rows only where
// the structure depends on them, as the tree of an HCLT does. leaves has one family per
// column. Files and graphs made by hand do not come here.
func (s *Structure) build(ctx context.Context, src dataset.Source, leaves []circuit.Leaf) (*circuit.Graph, error) {
	if s.class == 0 {
		return s.over(ctx, src, leaves)
	}
	schema, class := src.Schema(), s.class-1
	if len(leaves) == 1 {
		return nil, fmt.Errorf("%w: the class %s is the only column; give rows of more columns", ErrOptions, schema.ColumnName(class))
	}
	g, err := s.over(ctx, dataset.Without(src, class), slices.Delete(slices.Clone(leaves), class, class+1))
	if err != nil {
		return nil, err
	}
	return g, structures.AddClass(g, class, schema.Columns[class].Categories)
}

// findClass returns the column of a schema that rows are classified by: it has the name or, where none has, the number.
func findClass(schema *dataset.Schema, name string) (int, error) {
	class := slices.Index(dataset.Keys(map[string]bool{name: true}, schema.Columns), name)
	if class < 0 || name == "*" {
		return 0, fmt.Errorf("%w: the class is to be column %q, and there is none; write the name of a column, or the number of one", ErrOptions, name)
	}
	switch c := &schema.Columns[class]; {
	case c.Kind != dataset.Discrete:
		return 0, fmt.Errorf("%w: %s is continuous and cannot be the class; choose a column of categories", ErrOptions, schema.ColumnName(class))
	case c.Categories > dataset.MaxNarrow:
		return 0, fmt.Errorf("%w: %s has %d categories and cannot be the class; %d is the most", ErrOptions, schema.ColumnName(class), c.Categories, dataset.MaxNarrow)
	}
	return class, nil
}

// over is build without a class.
func (s *Structure) over(ctx context.Context, src dataset.Source, leaves []circuit.Leaf) (*circuit.Graph, error) {
	leaf := func(v int) circuit.Leaf { return leaves[v] }
	vars := len(leaves)
	switch s.Kind {
	case "hclt":
		tree, err := s.tree(ctx, src)
		if err != nil {
			return nil, err
		}
		return structures.HCLT(tree, structures.HCLTOptions{Latents: s.Latents, Leaf: leaf})
	case "hmm":
		o := s.HMM
		o.Latents, o.Leaf = s.Latents, leaf
		if o.Length == 0 {
			o.Length = vars
		}
		if o.Length != vars {
			return nil, fmt.Errorf("%w: hmm of length %d over data of %d columns; leave the length out", ErrOptions, o.Length, vars)
		}
		return structures.HMM(o)
	case "pd":
		o, err := s.pd(src.Schema())
		if err != nil {
			return nil, err
		}
		o.Leaf = leaf
		return structures.PD(o)
	case "equations":
		source, err := s.Equations.read()
		if err != nil {
			return nil, err
		}
		return equations.Build(equations.Options{
			Name: s.Equations.File, Source: source,
			Vars: vars, Latents: s.Latents, Sizes: s.Equations.Sizes, Leaf: leaf,
		})
	case "rat-spn":
		o := s.RATSPN
		o.Vars, o.Latents, o.Seed, o.Leaf = vars, s.Latents, s.Seed, leaf
		return structures.RATSPN(o)
	}
	return nil, fmt.Errorf("%w: no structure %q; there are hclt, hmm, pd, rat-spn, learnspn, equations and file", ErrOptions, s.Kind)
}

// learn returns a circuit learned from rows of a schema, and the parameters that were learned
// with it. Where settings are searched, it reads the rows that decide.
func (s *Structure) learn(ctx context.Context, src dataset.Source, schema *dataset.Schema, leaves []circuit.Leaf) (*learnspn.Learned, error) {
	o := s.LearnSPN
	o.Leaves, o.Seed = leaves, s.Seed
	if (o.Search || o.MaxMultipliers > 0) && s.Valid != nil {
		inputs := &circuit.Graph{NumVars: len(leaves)}
		for v, l := range leaves {
			inputs.Nodes = append(inputs.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: l})
		}
		valid, err := s.Valid(ctx, withDomains(schema, inputs))
		if err == nil {
			valid, err = checked(valid)
		}
		if err != nil {
			return nil, err
		}
		o.Valid = describe(nearby(valid, leaves), schema) // one far cell would decide
	}
	return learnspn.Learn(ctx, describe(src, schema), o)
}

func (s *Structure) tree(ctx context.Context, src dataset.Source) (structures.Tree, error) {
	schema := src.Schema()
	switch s.HCLT.Tree {
	case "chow-liu":
		o := s.HCLT.ChowLiu
		o.Seed = s.Seed
		return structures.ChowLiu(ctx, src, o)
	case "grid":
		switch {
		case s.class > 0:
			return structures.Tree{}, fmt.Errorf("%w: a grid tree needs images, and rows with a class have no shape of an image; choose another tree", ErrOptions)
		case schema.Image[2] != 1:
			return structures.Tree{}, fmt.Errorf("%w: a grid tree needs images of one channel, the data's shape is %v; set the image shape (data.image in a config) or choose another tree",
				ErrOptions, schema.Image)
		}
		return structures.GridTree(schema.Image[0], schema.Image[1], s.Seed)
	case "random":
		return structures.RandomTreeInner(len(schema.Columns), s.HCLT.Inner, s.Seed)
	}
	return structures.Tree{}, fmt.Errorf("%w: no tree %q; there are chow-liu, grid and random", ErrOptions, s.HCLT.Tree)
}

// pd returns the complete options of a pd circuit over rows of a schema.
func (s *Structure) pd(schema *dataset.Schema) (structures.PDOptions, error) {
	o := s.PD
	o.Latents, o.Seed = s.Latents, s.Seed
	if o.Shape == [3]int{} {
		o.Shape = schema.Image
	}
	if o.Shape == [3]int{} {
		keys := "data.image or model.pd.shape"
		if s.class > 0 { // data.image is the shape of whole rows
			keys = "model.pd.shape"
		}
		return o, fmt.Errorf("%w: pd needs images, and the data does not say their shape; set it (%s in a config)", ErrOptions, keys)
	}
	if n := o.Shape[0] * o.Shape[1] * o.Shape[2]; n != len(schema.Columns) {
		beside := ""
		if s.class > 0 {
			beside = " beside the class"
		}
		return o, fmt.Errorf("%w: pd over images of shape %v, which have %d values, and data of %d columns%s; set the right shape",
			ErrOptions, o.Shape, n, len(schema.Columns), beside)
	}
	return o, nil
}

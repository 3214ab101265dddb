package equations

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/simplify"
)

// Options are the settings of a circuit of equations.
type Options struct {
	Name   string // of the file, for messages
	Source string // the equations

	// Vars is the number of variables, to which the extent of the row is bound;
	// Latents is the value of the parameter S, if there is one.
	Vars    int
	Latents int
	Sizes   map[string]int64 // of other parameters; those that are left out are the program's own
	Leaf    structures.Leaf  // categorical for all variables
}

// Build returns the circuit that the equations define. Its inputs are categorical. An
// error names the file and, where one statement is to blame, its line and column.
func Build(o Options) (*circuit.Graph, error) {
	g, err := build(&o)
	return g, inFile(o.Name, err)
}

// ReadSource returns the text of a program for Options.Source: of an endless one no more than Build refuses.
func ReadSource(r io.Reader) (string, error) { return reduction.ReadSource(r) }

// Digest returns the SHA-256 of the program of a file, without its comments and white space. A
// program that Build would not read gives the same error.
func Digest(name, source string) ([sha256.Size]byte, error) {
	p, err := reduction.Parse(source)
	if err != nil {
		return [sha256.Size]byte{}, inFile(name, err)
	}
	return sha256.Sum256([]byte(p.String())), nil
}

// inFile puts the file before what is wrong with its program.
func inFile(name string, err error) error {
	var at *reduction.Error
	switch {
	case !errors.As(err, &at):
		return err
	case at.Line == 0:
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s:%w", name, err)
}

func build(o *Options) (*circuit.Graph, error) {
	p, err := reduction.Parse(o.Source)
	if err != nil {
		return nil, err
	}
	// The simplified program means the same. It may add terms in ways that are not a
	// circuit, or be beyond its analysis; then the statements as they are make the circuit,
	// and errors are about them.
	if less, _, err := simplify.Elements(p); err == nil {
		if g, err := lower(less, o); err == nil {
			return g, nil
		}
	}
	return lower(p, o)
}

// lower builds the circuit of a program as its statements say.
func lower(p *reduction.Program, o *Options) (*circuit.Graph, error) {
	m := &model{prog: p, tables: map[string]int{}}
	if err := m.read(); err != nil {
		return nil, err
	}
	if err := m.bind(o); err != nil {
		return nil, err
	}
	if err := m.chooseUnits(); err != nil {
		return nil, err
	}
	return newLowering(m, o).run()
}

// refuse returns an error about a place of the source.
func refuse(at reduction.Pos, format string, args ...any) error {
	return &reduction.Error{Pos: at, Msg: fmt.Sprintf(format, args...)}
}

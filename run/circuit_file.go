package run

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/circuit/format/text"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
)

// init registers the formats of model files that come with pce. A program that
// reads others registers them as well.
func init() {
	format.Register(native.Format)
	format.Register(text.Format)
}

// OpenCircuit opens the model file at path, native or text, gzip included, and returns
// it with the schema of its rows, for what reads a circuit itself and runs no program of
// it. Close the model.
func OpenCircuit(path string) (*format.Model, *dataset.Schema, error) {
	m, err := format.Open(path)
	if err != nil {
		return nil, nil, err
	}
	schema, err := schemaOf(m)
	if err != nil {
		m.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, schema, nil
}

// WriteCircuit writes the circuit and its schema without parameters. With equal
// compile options ReadCircuit makes the same program of it.
func (b *Blueprint) WriteCircuit(w io.Writer) error {
	schema, err := json.Marshal(b.Schema)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	if err := text.Print(z, b.Graph, map[string]string{metaSchema: string(schema)}, nil); err != nil {
		return err
	}
	return z.Close()
}

// ReadCircuit compiles what WriteCircuit wrote, size bytes behind r, for the
// rows of train. The parameters of its engines are zeros until they are written.
func ReadCircuit(r io.ReaderAt, size int64, train dataset.Source, opts compile.Options) (*Blueprint, error) {
	m, err := format.Decode(r, size)
	if err != nil {
		return nil, err
	}
	b := &Blueprint{Graph: m.Graph, Train: train, close: m.Close}
	if b.Schema, err = schemaOf(m); err != nil {
		return nil, err
	}
	if train != nil {
		if err := accepts(b.Schema, train.Schema()); err != nil {
			return nil, err
		}
	}
	return b, b.compile(opts)
}

package run

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/juice"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/format/spnc"
	"github.com/pce-engine/pce/circuit/format/text"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	forests "github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/forest/format/lightgbm"
	"github.com/pce-engine/pce/forest/format/onnx"
	"github.com/pce-engine/pce/forest/format/treelite"
	"github.com/pce-engine/pce/forest/format/xgboost"
)

// init registers the formats of model files that come with pce. A program that
// reads others registers them as well.
func init() {
	format.Register(native.Format)
	format.Register(text.Format)
	format.Register(spflow.Format)
	format.Register(spnc.Format)
	format.Register(juice.Format)
	for _, f := range []forests.Format{xgboost.JSON, xgboost.UBJSON, xgboost.Binary, lightgbm.Format, onnx.Format, treelite.Format} {
		forests.Register(f)
	}
}

// OpenCircuit opens the model file at path, of any format that init registers, gzip included, and returns
// it with the schema of its rows, for what reads a circuit itself and runs no program of
// it. Close the model.
func OpenCircuit(path string) (*format.Model, *dataset.Schema, error) {
	m, err := format.Open(path)
	if err != nil {
		return nil, nil, notForest(path, err)
	}
	schema, err := schemaOf(m)
	if err != nil {
		m.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, schema, nil
}

// fileError is an error that names the model file that it is about.
type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// InFile returns an error about the model file at path with the path in front, nil for nil. Parameters
// are checked when they are read, also long after their file was opened, so their errors have it
// already, and do not get it twice.
func InFile(path string, err error) error {
	var named *fileError
	if err == nil || errors.As(err, &named) && named.path == path {
		return err
	}
	return &fileError{path, err}
}

// readOnce returns the error about a model that is not a file on disk, such as a pipe, for callers that open it more than once: its
// bytes are gone by then, and opening a pipe waits for another writer. It is nil for what can be opened anew.
func readOnce(path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%w: %s: not a regular file, and it is read more than once here; write the model to a file", format.ErrModel, path)
}

// TellForest reports whether the file at path is a forest. An error says that it is
// neither a forest nor a circuit that can be opened, or a pipe: who calls this opens the file later.
func TellForest(path string) (bool, error) {
	if err := readOnce(path); err != nil {
		return false, err
	}
	if _, ok := forests.Recognise(path); ok {
		return true, nil
	}
	m, err := format.Open(path)
	if err == nil {
		return false, m.Close()
	}
	var unknown *format.UnknownError
	if errors.As(err, &unknown) {
		return false, neither(path, unknown)
	}
	return false, err
}

// OpenAny opens the model file at path, whether it is a circuit, which is compiled
// with opts, or a forest: one of the two is nil. Both kinds are told by the content of
// the file. Close the Blueprint.
func OpenAny(path string, opts compile.Options) (*Blueprint, *forest.Forest, error) {
	return OpenAnyFor(How{}, path, opts)
}

// OpenAnyFor is OpenAny with a choice of how circuits are compiled.
func OpenAnyFor(how How, path string, opts compile.Options) (*Blueprint, *forest.Forest, error) {
	if _, ok := forests.Recognise(path); ok {
		f, err := forests.Open(path)
		return nil, f, err
	}
	b, err := OpenModelFor(how, path, opts)
	var unknown *format.UnknownError
	if errors.As(err, &unknown) { // of a pipe it may be a forest, which was not looked for
		return nil, nil, cmp.Or(readOnce(path), neither(path, unknown))
	}
	return b, nil, err
}

// neither is the error about a file that no format of circuits or forests recognises.
func neither(path string, circuits *format.UnknownError) error {
	return fmt.Errorf("%w: %s: its first bytes are those of no known model (tried circuits: %s; and forests: %s); give a model file, or get it again if it was cut short",
		format.ErrModel, path, strings.Join(circuits.Tried, ", "), strings.Join(forests.Names(), ", "))
}

// OpenForest opens the file of a forest.
func OpenForest(path string) (*forest.Forest, error) {
	f, err := forests.Open(path)
	var unknown *forests.UnknownError
	if errors.As(err, &unknown) && readOnce(path) == nil {
		if m, circuit := format.Open(path); circuit == nil {
			m.Close()
			return nil, fmt.Errorf("%w: %s: a circuit, which has no trees; ask it with pce query", forests.ErrModel, path)
		}
	}
	return f, err
}

// notForest returns err, or a better one if the file that is not a circuit is a forest.
func notForest(path string, err error) error {
	var unknown *format.UnknownError
	if errors.As(err, &unknown) {
		if name, ok := forests.Recognise(path); ok {
			return fmt.Errorf("%w: %s: a forest (%s), which this cannot use; ask it with pce predict", format.ErrModel, path, name)
		}
	}
	return err
}

// WriteCircuit writes the circuit, its schema and what else its model files say of it, without
// parameters. With equal compile options ReadCircuit makes the same program of it.
func (b *Blueprint) WriteCircuit(w io.Writer) error {
	schema, err := json.Marshal(b.Schema)
	if err != nil {
		return err
	}
	meta := make(map[string]string, len(b.meta)+1)
	maps.Copy(meta, b.meta)
	meta[metaSchema] = string(schema)
	z := gzip.NewWriter(w)
	if err := text.Print(z, b.Graph, meta, nil); err != nil {
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
	b := &Blueprint{Graph: m.Graph, Train: train, close: m.Close, how: How{Path: PathTensor}}
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

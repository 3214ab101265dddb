package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/internal/safetensors"
)

// Write writes a native model file with float32 parameters: the old file at path
// stays whole until the new one is complete. The parameters are read and checked
// node by node.
func Write(path string, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc) error {
	return writeFile(context.Background(), path, g, meta, params)
}

// WriteContext is Write where path may be a pipe: waiting for what reads it ends with ctx.
func WriteContext(ctx context.Context, path string, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc) error {
	return writeFile(ctx, path, g, meta, params)
}

// Write64 is Write with float64 parameters, for models that were imported: what
// is read back has the same bits. The file has twice the size, and programs that
// know format versions up to 1.1 refuse it.
func Write64(path string, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc64) error {
	return writeFile(context.Background(), path, g, meta, params)
}

// Write64Context is Write64 as WriteContext is Write.
func Write64Context(ctx context.Context, path string, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc64) error {
	return writeFile(ctx, path, g, meta, params)
}

func writeFile[F float32 | float64](ctx context.Context, path string, g *circuit.Graph, meta map[string]string, params func(circuit.NodeID, []F) error) error {
	if err := circuit.Validate(g); err != nil {
		return fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	return atomicfile.WriteContext(ctx, path, 0o644, func(w io.Writer) error { return encode(w, g, meta, params) })
}

// encode writes a native model of a valid graph.
func encode[F float32 | float64](w io.Writer, g *circuit.Graph, meta map[string]string, params func(circuit.NodeID, []F) error) error {
	s, err := flatten(g)
	if err != nil {
		return err
	}
	dtype := safetensors.DTypeOf[F]()
	metadata, err := s.metadata(meta, dtype)
	if err != nil {
		return err
	}
	numParams, _, err := paramOffsets(g)
	if err != nil {
		return fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	tensor := safetensors.Tensor{Name: paramTensor, DType: dtype, Shape: []int64{numParams}}
	return s.write(w, metadata, tensor, func(sink *safetensors.Sink) error { return writeParams(sink, g, params) })
}

// write writes the tensors, and the checksum of all that is before it.
func (s *structure) write(w io.Writer, metadata map[string]string, tensor safetensors.Tensor, params func(*safetensors.Sink) error) error {
	var tensors []safetensors.Tensor
	writers := map[string]func(*safetensors.Sink) error{}
	add := func(t safetensors.Tensor, write func(*safetensors.Sink) error) {
		tensors, writers[t.Name] = append(tensors, t), write
	}
	next := kindTensor // params come before tensors of smaller elements: they stay aligned
	if tensor.DType == safetensors.F64 {
		next = unitTensor
	}
	for _, c := range s.columns() {
		if c.tensor().Name == next {
			add(tensor, params)
		}
		add(c.tensor(), c.write)
	}
	sum := sha256.New()
	add(safetensors.Tensor{Name: checkTensor, DType: safetensors.U8, Shape: []int64{sha256.Size}}, func(s *safetensors.Sink) error {
		return safetensors.Append(s, sum.Sum(nil))
	})
	return safetensors.Write(io.MultiWriter(w, sum), metadata, tensors, func(t *safetensors.Tensor, sink *safetensors.Sink) error {
		return writers[t.Name](sink)
	})
}

func (s *structure) metadata(meta map[string]string, params safetensors.DType) (map[string]string, error) {
	leaves, err := json.Marshal(s.leaves)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	digest, err := s.digest()
	if err != nil {
		return nil, err
	}
	minor := checkedMinor
	if params == safetensors.F64 {
		minor = wideMinor
	}
	m := map[string]string{
		keyFormat:    nativeName,
		keyVersion:   fmt.Sprintf("%d.%d", majorVersion, minor),
		keyVariables: strconv.Itoa(s.numVars),
		keyRoot:      strconv.Itoa(int(s.root)),
		keyLeaves:    string(leaves),
		keyDigest:    hex.EncodeToString(digest[:]),
	}
	for k, v := range meta {
		m[metaPrefix+k] = v
	}
	return m, nil
}

// writeParams streams the parameters of all nodes that own some.
func writeParams[F float32 | float64](s *safetensors.Sink, g *circuit.Graph, params func(circuit.NodeID, []F) error) error {
	var buf []F
	for i := range g.Nodes {
		id := circuit.NodeID(i)
		if !g.OwnsParams(id) {
			continue
		}
		buf = slices.Grow(buf[:0], g.NumParams(id))[:g.NumParams(id)]
		if err := params(id, buf); err != nil {
			return err
		}
		if err := circuit.CheckParams(g, id, buf); err != nil {
			return fmt.Errorf("%w: %w", format.ErrModel, err)
		}
		if err := safetensors.Append(s, buf); err != nil {
			return err
		}
	}
	return nil
}

package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/internal/safetensors"
)

// The version that is written. A reader accepts its major version up to its
// minor version.
const (
	majorVersion = 1
	minorVersion = 1
	// checkedMinor is the first minor version with a checksum.
	checkedMinor = 1
)

// Metadata of native files.
const (
	keyFormat    = "format"
	keyVersion   = "format_version"
	keyVariables = "variables"
	keyRoot      = "root"
	keyLeaves    = "leaves"
	keyDigest    = "digest"
	metaPrefix   = "meta." // in front of the caller's keys

	nativeName  = "pce.circuit"
	paramTensor = "params"
	kindTensor  = "node.kind" // the last one of the structure
	checkTensor = "sha256"    // of all bytes before it, the header's included
)

// Digest names the structure of a valid graph, whatever its parameters: equal
// graphs have equal digests.
func Digest(g *circuit.Graph) ([sha256.Size]byte, error) {
	s, err := flatten(g)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return s.digest()
}

// Write writes a native model file: the old file at path stays whole until the
// new one is complete. The parameters are read and checked node by node.
func Write(path string, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc) error {
	if err := circuit.Validate(g); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return atomicfile.Write(path, 0o644, func(w io.Writer) error { return encode(w, g, meta, params) })
}

// encode writes a native model of a valid graph.
func encode(w io.Writer, g *circuit.Graph, meta map[string]string, params circuit.ParamFunc) error {
	s, err := flatten(g)
	if err != nil {
		return err
	}
	metadata, err := s.metadata(meta)
	if err != nil {
		return err
	}
	numParams, _, err := paramOffsets(g)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return s.write(w, metadata, numParams, func(sink *safetensors.Sink) error { return writeParams(sink, g, params) })
}

// write writes the tensors, and the checksum of all that stands before it.
func (s *structure) write(w io.Writer, metadata map[string]string, numParams int64, params func(*safetensors.Sink) error) error {
	var tensors []safetensors.Tensor
	writers := map[string]func(*safetensors.Sink) error{}
	add := func(t safetensors.Tensor, write func(*safetensors.Sink) error) {
		tensors, writers[t.Name] = append(tensors, t), write
	}
	for _, c := range s.columns() {
		if c.tensor().Name == kindTensor { // params before the bytes: they stay aligned
			add(safetensors.Tensor{Name: paramTensor, DType: safetensors.F32, Shape: []int64{numParams}}, params)
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

func (s *structure) metadata(meta map[string]string) (map[string]string, error) {
	leaves, err := json.Marshal(s.leaves)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	digest, err := s.digest()
	if err != nil {
		return nil, err
	}
	m := map[string]string{
		keyFormat:    nativeName,
		keyVersion:   fmt.Sprintf("%d.%d", majorVersion, minorVersion),
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

// decodeNative opens a native model of size bytes; its parameters stay in r.
func decodeNative(r io.ReaderAt, size int64) (*Model, error) {
	f, err := safetensors.NewFile(r, size)
	if err != nil {
		return nil, err
	}
	if f.Metadata[keyFormat] != nativeName {
		return nil, fmt.Errorf("a safetensors file without %s: %s in its metadata; give a file that pce wrote", keyFormat, nativeName)
	}
	minor, err := checkVersion(f.Metadata[keyVersion])
	if err != nil {
		return nil, err
	}
	checked, err := checkSum(f, r, size)
	if err == nil && !checked && minor >= checkedMinor {
		err = fmt.Errorf("no tensor %s, which format version %d.%d has; the file is damaged, get it again", checkTensor, majorVersion, minor)
	}
	if err != nil {
		return nil, err
	}
	s, err := readStructure(f)
	if err != nil {
		return nil, err
	}
	g, err := s.graph()
	if err != nil {
		return nil, err
	}
	numParams, offsets, err := paramOffsets(g)
	if err != nil {
		return nil, err
	}
	t, ok := f.Tensor(paramTensor)
	if !ok || t.DType != safetensors.F32 || t.Len() != numParams {
		return nil, fmt.Errorf("tensor %s does not hold the %d parameters of the structure", paramTensor, numParams)
	}
	m := &Model{Graph: g, Unchecked: !checked}
	for k, v := range f.Metadata {
		if key, ok := strings.CutPrefix(k, metaPrefix); ok {
			if m.Meta == nil {
				m.Meta = map[string]string{}
			}
			m.Meta[key] = v
		}
	}
	m.params = func(id circuit.NodeID, dst []float32) error {
		if err := safetensors.Read(f, paramTensor, offsets[id], dst); err != nil {
			return fmt.Errorf("%w: %w", ErrModel, err)
		}
		return nil
	}
	return m, nil
}

// checkSum compares the checksum at the end of a file with all bytes before it.
// Files of the first version have none.
func checkSum(f *safetensors.File, r io.ReaderAt, size int64) (checked bool, err error) {
	if _, ok := f.Tensor(checkTensor); !ok {
		return false, nil
	}
	var want [sha256.Size]byte
	if err := safetensors.Read(f, checkTensor, 0, want[:]); err != nil {
		return false, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, size-sha256.Size)); err != nil {
		return false, err
	}
	if [sha256.Size]byte(sum.Sum(nil)) != want {
		return false, errors.New("its bytes do not match its checksum; the file is damaged, get it again")
	}
	return true, nil
}

// checkVersion returns the minor version.
func checkVersion(text string) (minor int, err error) {
	before, after, ok := strings.Cut(text, ".")
	m, err := strconv.ParseUint(before, 10, 31)
	n, err2 := strconv.ParseUint(after, 10, 31)
	if !ok || errors.Join(err, err2) != nil {
		return 0, fmt.Errorf("%s is %.20q, want major.minor", keyVersion, text)
	}
	if m != majorVersion || n > minorVersion {
		return 0, fmt.Errorf("format version %d.%d is not among %d.0 to %[3]d.%d; use the pce that wrote the file, or a newer one",
			m, n, majorVersion, minorVersion)
	}
	return int(n), nil
}

func readStructure(f *safetensors.File) (*structure, error) {
	s := &structure{}
	numVars, err := strconv.ParseInt(f.Metadata[keyVariables], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("metadata %s is %.20q, want a number", keyVariables, f.Metadata[keyVariables])
	}
	root, err := strconv.ParseInt(f.Metadata[keyRoot], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("metadata %s is %.20q, want a number", keyRoot, f.Metadata[keyRoot])
	}
	s.numVars, s.root = int(numVars), circuit.NodeID(root)
	d := json.NewDecoder(strings.NewReader(f.Metadata[keyLeaves]))
	d.DisallowUnknownFields()
	if err := d.Decode(&s.leaves); err != nil {
		return nil, fmt.Errorf("metadata %s: %w", keyLeaves, err)
	}
	for _, c := range s.columns() {
		if err := c.read(f); err != nil {
			return nil, err
		}
	}
	digest, err := s.digest()
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(digest[:]) != f.Metadata[keyDigest] {
		return nil, errors.New("the structure does not match its digest; the file is damaged, get it again")
	}
	return s, nil
}

// paramOffsets returns the number of parameters of a valid graph and, for each
// node, the place of its own in the params tensor.
func paramOffsets(g *circuit.Graph) (total int64, offsets []int64, err error) {
	const most = 1 << 60 // floats of a file whose offsets are int64
	offsets = make([]int64, len(g.Nodes))
	for i := range g.Nodes {
		offsets[i] = total
		if id := circuit.NodeID(i); g.OwnsParams(id) {
			if total += int64(g.NumParams(id)); total > most {
				return 0, nil, errors.New("the nodes have more than 2^60 parameters; use fewer units")
			}
		}
	}
	return total, offsets, nil
}

// writeParams streams the parameters of all nodes that own some.
func writeParams(s *safetensors.Sink, g *circuit.Graph, params circuit.ParamFunc) error {
	var buf []float32
	for i := range g.Nodes {
		id := circuit.NodeID(i)
		if !g.OwnsParams(id) {
			continue
		}
		buf = resize(buf, g.NumParams(id))
		if err := params(id, buf); err != nil {
			return err
		}
		if err := circuit.CheckParams(g, id, buf); err != nil {
			return fmt.Errorf("%w: %w", ErrModel, err)
		}
		if err := safetensors.Append(s, buf); err != nil {
			return err
		}
	}
	return nil
}

package native

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
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/internal/safetensors"
)

// decode opens a native model of size bytes; its parameters stay in r.
func decode(r io.ReaderAt, size int64) (*format.Model, error) {
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
	if !ok || t.Len() != numParams {
		return nil, fmt.Errorf("tensor %s does not hold the %d parameters of the structure", paramTensor, numParams)
	}
	var params format.Params
	switch {
	case t.DType == safetensors.F32:
		params.Float32 = readParams[float32](f, offsets)
	case t.DType == safetensors.F64 && minor >= wideMinor:
		params.Float64 = readParams[float64](f, offsets)
	default:
		return nil, fmt.Errorf("tensor %s is of type %s, which format version %d.%d has not; the file is damaged, get it again", paramTensor, t.DType, majorVersion, minor)
	}
	var meta map[string]string
	for k, v := range f.Metadata {
		if key, ok := strings.CutPrefix(k, metaPrefix); ok {
			if meta == nil {
				meta = map[string]string{}
			}
			meta[key] = v
		}
	}
	m := format.NewModel(g, meta, params)
	m.Unchecked = !checked
	return m, nil
}

// readParams reads the parameters of a node from their place in the file.
func readParams[F float32 | float64](f *safetensors.File, offsets []int64) func(circuit.NodeID, []F) error {
	return func(id circuit.NodeID, dst []F) error {
		if err := safetensors.Read(f, paramTensor, offsets[id], dst); err != nil {
			return fmt.Errorf("%w: %w", format.ErrModel, err)
		}
		return nil
	}
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

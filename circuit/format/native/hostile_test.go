package native

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/internal/safetensors"
)

// forge writes a file after an edit of its structure or metadata, with a digest
// that fits: only the checks behind the digest can refuse it.
func forge(t *testing.T, edit func(s *structure), editMeta func(m map[string]string)) []byte {
	t.Helper()
	m := mustParse(t, formattest.Everything)
	s, err := flatten(m.Graph)
	if err != nil {
		t.Fatal(err)
	}
	edit(s)
	metadata, err := s.metadata(m.Meta, safetensors.F32)
	if err != nil {
		t.Fatal(err)
	}
	editMeta(metadata)
	var b bytes.Buffer
	err = s.write(&b, metadata, paramsOf(m, safetensors.F32), func(sink *safetensors.Sink) error { return writeParams(sink, m.Graph, m.Params) })
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// paramsOf is the tensor of a model's parameters.
func paramsOf(m *format.Model, dtype safetensors.DType) safetensors.Tensor {
	return safetensors.Tensor{Name: paramTensor, DType: dtype, Shape: []int64{m.NumParams()}}
}

func keepMeta(map[string]string) {}
func keep(*structure)            {}

func TestForgedStructures(t *testing.T) {
	if _, err := decodeBytes(forge(t, keep, keepMeta)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		edit func(s *structure)
		want string // part of the message
	}{
		{"no nodes", func(s *structure) {
			*s = structure{numVars: 1, childStart: []int64{0}, pairStart: []int64{0}, maskStart: []int64{0}}
		}, "no nodes"},
		{"short units", func(s *structure) { s.units = s.units[1:] }, "node.units"},
		{"short variables", func(s *structure) { s.variable = s.variable[1:] }, "node.variable"},
		{"short leaves", func(s *structure) { s.leaf = s.leaf[1:] }, "node.leaf"},
		{"short ties", func(s *structure) { s.tiedTo = s.tiedTo[1:] }, "node.tied_to"},
		{"short starts", func(s *structure) { s.childStart = s.childStart[1:] }, "node.child_start"},
		{"no starts", func(s *structure) { s.childStart = nil }, "node.child_start"},
		{"starts descend", func(s *structure) { s.childStart[8] = 5 }, "node.child_start"},
		{"starts negative", func(s *structure) { s.childStart[1] = math.MinInt64 }, "node.child_start"},
		{"starts past the end", func(s *structure) { s.childStart[len(s.childStart)-1] = math.MaxInt64 }, "node.child_start"},
		{"unknown kind", func(s *structure) { s.kind[len(s.kind)-1] = 9 }, "kind"},
		{"no units", func(s *structure) { s.units[3] = 0 }, "units"},
		{"negative units", func(s *structure) { s.units[3] = math.MinInt32 }, "units"},
		{"huge units", func(s *structure) { s.units[3] = math.MaxInt32 }, "units"},
		{"child is the node", func(s *structure) { s.children[len(s.children)-1] = int32(len(s.kind) - 1) }, "children come before"},
		{"child negative", func(s *structure) { s.children[0] = -1 }, "children come before"},
		{"leaf out of range", func(s *structure) { s.leaf[0] = int32(len(s.leaves)) }, "leaf"},
		{"leaf negative", func(s *structure) { s.leaf[0] = -1 }, "leaf"},
		{"variable out of range", func(s *structure) { s.variable[0] = 4 }, "variable"},
		{"variable negative", func(s *structure) { s.variable[0] = -1 }, "variable"},
		{"tied to nothing", func(s *structure) { s.tiedTo[0] = int32(len(s.kind)) }, "tied"},
		{"tied to the largest number", func(s *structure) { s.tiedTo[0] = math.MaxInt32 }, "tied"},
		{"tied to the smallest number", func(s *structure) { s.tiedTo[0] = math.MinInt32 }, "tied"},
		{"tied below none", func(s *structure) { s.tiedTo[0] = -2 }, "tied"},
		{"many variables", func(s *structure) { s.numVars = math.MaxInt32 }, "variables"},
		{"negative variables", func(s *structure) { s.numVars = -1 }, "variables"},
		{"root out of range", func(s *structure) { s.root = circuit.NodeID(len(s.kind)) }, "root"},
		{"root of two units", func(s *structure) { s.root = 0 }, "root"},
		{"unknown leaf", func(s *structure) { s.leaves[0].Type = "cauchy" }, "cauchy"},
		{"huge leaf", func(s *structure) { s.leaves[1].Categories = math.MaxInt64 }, "categor"},
		{"negative leaf", func(s *structure) { s.leaves[1].Categories = -1 }, "categor"},
		{"sparse node out of range", func(s *structure) { s.sparseNode[1] = int32(len(s.kind)) }, "sparse.node"},
		{"sparse node negative", func(s *structure) { s.sparseNode[0] = -1 }, "sparse.node"},
		{"sparse node twice", func(s *structure) { s.sparseNode[1] = s.sparseNode[0] }, "sparse.node"},
		{"sparse input", func(s *structure) { s.sparseNode[0] = 0 }, "edge blocks"},
		{"zero rows", func(s *structure) { s.blockSize[0] = 0 }, "edge blocks"},
		{"huge columns", func(s *structure) { s.blockSize[1] = math.MaxInt64 }, "edge blocks"},
		{"columns that do not divide", func(s *structure) { s.blockSize[1], s.blockSize[3] = 3, 3 }, "divide"},
		{"short blocks", func(s *structure) { s.blockSize = s.blockSize[:2] }, "sparse.block_size"},
		{"pairs descend", func(s *structure) { s.pairs[3] = 1; s.pairs[5] = 0 }, "sort"},
		{"pair outside", func(s *structure) { s.pairs[5] = 99 }, "inside"},
		{"pair starts wrong", func(s *structure) { s.pairStart[1] = 99 }, "sparse.pair_start"},
		{"mask starts wrong", func(s *structure) { s.maskStart[1] = -1 }, "sparse.mask_start"},
		{"mask too long", func(s *structure) { s.mask = append(s.mask, 0); s.maskStart[2] = 3 }, "mask"},
		{"mask bits behind the end", func(s *structure) { s.mask[0] |= 1 << 63 }, "mask"},
		{"unit without weights", func(s *structure) { s.mask[0] &^= 3 }, "weight"},
		{"not decomposable", func(s *structure) { s.children[1] = 0 }, "decomposable"},
		{"other number of parameters", func(s *structure) { s.tiedTo[5] = -1 }, "params"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := decodeBytes(forge(t, tc.edit, keepMeta))
			if !errors.Is(err, format.ErrModel) {
				t.Fatalf("error is %v, want ErrModel", err)
			}
			if text := err.Error(); !strings.Contains(text, tc.want) || strings.Contains(text, "\n") {
				t.Errorf("error is %q, want one line with %q", text, tc.want)
			}
		})
	}
}

func TestForgedMetadata(t *testing.T) {
	for _, tc := range []struct{ key, value, want string }{
		{keyFormat, "", "pce.circuit"},
		{keyVersion, "1.3", "newer"},
		{keyVersion, "2.0", "newer"},
		{keyVersion, "0.9", "not among"},
		{keyVersion, "1", "major.minor"},
		{keyVersion, "1.x", "major.minor"},
		{keyVersion, "1.-1", "major.minor"},
		{keyVariables, "", "variables"},
		{keyVariables, "99999999999999", "variables"},
		{keyVariables, "5", "digest"},
		{keyRoot, "x", "root"},
		{keyRoot, "16", "digest"},
		{keyLeaves, "", "leaves"},
		{keyLeaves, "[{\"type\":\"bernoulli\",\"colour\":1}]", "leaves"},
		{keyLeaves, "[]", "digest"},
		{keyDigest, strings.Repeat("0", 64), "digest"},
	} {
		b := forge(t, keep, func(m map[string]string) { m[tc.key] = tc.value })
		_, err := decodeBytes(b)
		if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s = %q: error is %v, want one line that matches ErrModel and says %q", tc.key, tc.value, err, tc.want)
		}
	}
}

// TestBadParameters: neither Write nor Params lets them through.
func TestBadParameters(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tc := range []struct {
		name string
		node circuit.NodeID
		at   int
		v    float32
	}{
		{"Bernoulli over 1", 0, 0, 1.5},
		{"categorical not normalised", 1, 0, 0.3},
		{"Gaussian NaN", 3, 0, nan},
		{"Gaussian below the minimum", 3, 1, -1},
		{"sum NaN", 14, 0, nan},
		{"sum infinite", 14, 0, inf},
		{"sum negative", 14, 0, -0.1},
		{"sum off by 0.002", 14, 0, 0.102},
		{"structural zero", 9, 2, 0.5},
		{"sparse not normalised", 9, 0, 0.5},
		{"sparse NaN", 9, 0, nan},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bad := func(id circuit.NodeID, dst []float32) error {
				err := m.Params(id, dst)
				if id == tc.node {
					dst[tc.at] = tc.v
				}
				return err
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "model")
			if err := Write(path, m.Graph, nil, bad); !errors.Is(err, format.ErrModel) {
				t.Errorf("Write = %v, want ErrModel", err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("Write left %v", left)
			}
			s, err := flatten(m.Graph)
			if err != nil {
				t.Fatal(err)
			}
			metadata, err := s.metadata(nil, safetensors.F32)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			err = s.write(&b, metadata, paramsOf(m, safetensors.F32), func(sink *safetensors.Sink) error {
				for i := range m.Graph.Nodes {
					id := circuit.NodeID(i)
					if !m.Graph.OwnsParams(id) {
						continue
					}
					p := make([]float32, m.Graph.NumParams(id))
					if err := bad(id, p); err != nil {
						return err
					}
					if err := safetensors.Append(sink, p); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeBytes(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			err = got.Params(tc.node, make([]float32, m.Graph.NumParams(tc.node)))
			if !errors.Is(err, format.ErrModel) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Params = %v, want one line that matches format.ErrModel", err)
			}
			if err := got.Verify(); !errors.Is(err, format.ErrModel) {
				t.Errorf("Verify = %v, want ErrModel", err)
			}
		})
	}
}

// TestBadFloat64 has float64 parameters that are none, that only float64 holds,
// and that the file's version has not.
func TestBadFloat64(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	forge := func(node circuit.NodeID, at int, v float64, version string, tensor safetensors.Tensor) []byte {
		s, err := flatten(m.Graph)
		if err != nil {
			t.Fatal(err)
		}
		metadata, err := s.metadata(nil, safetensors.F64)
		if err != nil {
			t.Fatal(err)
		}
		metadata[keyVersion] = version
		var b bytes.Buffer
		err = s.write(&b, metadata, tensor, func(sink *safetensors.Sink) error {
			left := tensor.Len()
			for i := range m.Graph.Nodes {
				id := circuit.NodeID(i)
				if !m.Graph.OwnsParams(id) {
					continue
				}
				p := make([]float64, m.Graph.NumParams(id))
				if err := m.Params64(id, p); err != nil {
					return err
				}
				if id == node {
					p[at] = v
				}
				p = p[:min(int64(len(p)), left)]
				left -= int64(len(p))
				if err := safetensors.Append(sink, p); err != nil {
					return err
				}
			}
			return safetensors.Append(sink, make([]float64, left))
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	whole := paramsOf(m, safetensors.F64)
	for _, version := range []string{"1.0", "1.1"} {
		_, err := decodeBytes(forge(0, 0, 0.75, version, whole))
		if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "of type F64") || strings.Contains(err.Error(), "\n") {
			t.Errorf("float64 parameters in version %s: %v, want one line of ErrModel that says F64", version, err)
		}
	}
	for _, n := range []int64{0, m.NumParams() - 1, m.NumParams() + 1} {
		short := whole
		short.Shape = []int64{n}
		if _, err := decodeBytes(forge(0, 0, 0.75, "1.2", short)); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "45 parameters") {
			t.Errorf("%d parameters: %v, want ErrModel", n, err)
		}
	}
	for _, tc := range []struct {
		node   circuit.NodeID
		at     int
		v      float64
		wide   bool // float64 holds it
		narrow bool // so does float32
	}{
		{3, 0, 0.1, true, true},
		{3, 0, math.MaxFloat32, true, true},
		{3, 0, 1e300, false, false}, // leaves stay within float32
		{3, 1, 1e-60, true, false},  // a standard deviation that rounds to 0
		{3, 0, math.NaN(), false, false},
		{3, 0, math.Inf(1), false, false},
		{14, 0, 0.102, false, false},
		{14, 0, 1e300, false, false},
		{14, 0, -1e-300, false, false}, // rounds to -0
	} {
		got, err := decodeBytes(forge(tc.node, tc.at, tc.v, "1.2", whole))
		if err != nil {
			t.Fatal(err)
		}
		n := got.Graph.NumParams(tc.node)
		err = got.Params64(tc.node, make([]float64, n))
		if (err == nil) != tc.wide || err != nil && !errors.Is(err, format.ErrModel) {
			t.Errorf("%v in float64: %v, want ErrModel: %t", tc.v, err, !tc.wide)
		}
		err = got.Params(tc.node, make([]float32, n))
		if (err == nil) != tc.narrow || err != nil && !errors.Is(err, format.ErrModel) {
			t.Errorf("%v in float32: %v, want ErrModel: %t", tc.v, err, !tc.narrow)
		}
		if tc.wide && !tc.narrow && !strings.Contains(err.Error(), "rounded to float32") {
			t.Errorf("%v in float32: %v does not say why", tc.v, err)
		}
		if (got.Verify() == nil) != tc.narrow {
			t.Errorf("%v: Verify is %v", tc.v, got.Verify())
		}
	}
}

// TestWriteRefuses leaves no file where the model is none.
func TestWriteRefuses(t *testing.T) {
	open := mustParse(t, "circuit 1\na = input x0 bernoulli\n")
	path := filepath.Join(t.TempDir(), "model")
	if err := Write(path, open.Graph, nil, open.Params); !errors.Is(err, format.ErrNoParams) {
		t.Errorf("Write of an open model: %v, want ErrNoParams", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a model without parameters was written")
	}
	m := mustParse(t, formattest.Everything)
	bad := *m.Graph
	bad.Root = 0
	if err := Write(path, &bad, nil, m.Params); !errors.Is(err, circuit.ErrGraph) || !errors.Is(err, format.ErrModel) {
		t.Errorf("Write of a bad graph: %v, want ErrGraph and format.ErrModel", err)
	}
}

// FuzzDecode reads hostile files of every format. What is accepted and has good
// parameters survives a copy.
func FuzzDecode(f *testing.F) {
	native := mustEncode(f, mustParse(f, formattest.Everything))
	f.Add(native)
	f.Add([]byte(formattest.Everything))
	f.Add(mustEncode(f, mustParse(f, "circuit 1\na = input x0 indicator codes=2 value=1\n")))
	f.Add(mustEncode64(f, mustParse(f, formattest.Everything)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeBytes(b)
		if err != nil {
			if !errors.Is(err, format.ErrModel) {
				t.Fatalf("error %v does not match ErrModel", err)
			}
			return
		}
		if m.NumParams() > 1<<20 || m.Verify() != nil {
			return
		}
		var out bytes.Buffer
		if err := encode(&out, m.Graph, m.Meta, m.Params); err != nil {
			if errors.Is(err, format.ErrNoParams) || errors.Is(err, safetensors.ErrUse) { // open nodes, strings that are not UTF-8
				return
			}
			t.Fatal(err)
		}
		again, err := decodeBytes(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := formattest.Diff(again, m); d != "" {
			t.Fatal(d)
		}
		if again, err = decodeBytes(mustEncode64(t, m)); err != nil {
			t.Fatal(err)
		}
		if d := formattest.Diff64(again, m); d != "" {
			t.Fatal(d)
		}
	})
}

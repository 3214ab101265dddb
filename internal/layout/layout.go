// Package layout is the plan of the house: which package may import which. Its
// tests hold the tree to the plan and to the rules on files.
//
// # Errors
//
// The tests' messages name the file, the rule and the cure.
//
// # Source
//
// The plan is section 2 of the design; where it departs from it, RATIONALE.md
// says why.
package layout

// Module is the import path of the root package.
const Module = "github.com/pce-engine/pce"

// All in a room's list stands for every package.
const All = "*"

// Everywhere lists the packages that every package may import.
var Everywhere = []string{
	"internal/atomicfile",
	"internal/invariants",
	"internal/safetensors",
}

// InTests lists the packages that every test may import besides; so may it
// packages whose name ends in "test", and its own room's packages.
var InTests = []string{
	"internal/golden",
	"circuit/reference",
}

// TestRooms says what the tests of a package may import besides, because they
// make circuits and run them.
var TestRooms = map[string][]string{
	"circuit/format":             {"circuit/format/native", "circuit/format/text"},
	"cluster":                    {"cluster/simnet"},
	"cluster/chaos":              {"cluster", "cluster/natsbus"},
	"cluster/scale":              {"cluster", "cluster/peer"},
	"circuit/format/native":      {"circuit/format/text"},
	"circuit/format/juice":       {"circuit/format/spflow"},
	"circuit/format/spnc":        {"circuit/format/spflow"},
	"circuit/format/units":       {"circuit/format/formattest", "circuit/reference"},
	"codec":                      {"circuit/structures"},
	"circuit/resize":             {"circuit/reference", "circuit/structures"},
	"compile":                    {"circuit/format/text", "circuit/structures"},
	"compile/forest":             {"forest/format", "forest/format/lightgbm", "forest/format/onnx", "forest/format/treelite", "forest/format/xgboost", "kernels/cpu", "kernels/cpu/micro", "kernels/cpu/sliced", "kernels/device", "kernels/emulator", "kernels/simt", "kernels/x86"},
	"compile/reduction/gosource": {"compile/reduction/simplify"},
	"compile/spn":                {"circuit/format/spflow", "circuit/structures", "kernels/simt/simttest", "kernels/x86"},
	"em":                         {"circuit", "circuit/structures", "compile", "kernels/cpu", "kernels/cpu/micro", "kernels/cpu/tensor"},
	"engine":                     {"circuit", "circuit/structures", "compile", "kernels/cpu", "kernels/cpu/tensor"},
	"kernels/cpu":                {"kernels/cpu/tensor"},
	"kernels/cuda":               {"kernels/cuda/tensor", "kernels/emulator"},
	"kernels/kerneltest":         {"kernels/cpu", "kernels/cpu/micro", "kernels/cpu/tensor"},
	"forest/format":              {"forest/format/lightgbm", "forest/format/onnx", "forest/format/treelite", "forest/format/xgboost"},
	"kernels/nest":               {"kernels/cpu"},
	"kernels/ptx/scalar":         {"kernels", "kernels/cuda", "kernels/cuda/scalar", "kernels/emulator"},
	"kernels/ptx/tensor":         {"circuit", "kernels/cuda", "kernels/emulator"},
	"layers":                     {"circuit", "compile"},
	".":                          {"circuit/format", "circuit/structures", "forest/format/xgboost", "em", "kernels/device", "kernels/emulator"},
	"run":                        {".", "kernels/cpu", "kernels/cuda", "kernels/cuda/tensor", "kernels/cuda/tensor/plan", "kernels/emulator"},
	"kernels/device":             {"circuit", "circuit/structures", "compile", "kernels/emulator"},
	"kernels/cpu/tensor":         {"circuit", "circuit/structures", "compile", "dataset", "engine"},
	"kernels":                    {"kernels/cpu", "kernels/cuda", "kernels/emulator", "kernels/ptx"},
	"cluster/job":                {"cluster/simnet", "layers"},
	"kernels/cuda/scalar":        {"kernels/emulator"},
	"kernels/cuda/tensor":        {"circuit", "circuit/structures", "compile", "dataset", "engine", "kernels/emulator"},
	"kernels/cuda/tensor/plan":   {"circuit", "circuit/structures", "compile"},
	"compile/rtl":                {"circuit/format", "circuit/format/spflow"},
	"compile/rtl/simulate":       {"circuit", "circuit/format", "circuit/format/spflow"},
}

// Rooms says for each package, relative to the module, which packages of the
// module it may import. A package that is not listed fails the test.
var Rooms = map[string][]string{
	".": {"circuit", "compile", "dataset", "engine", "compile/forest", "compile/forest/schedule", "compile/forest/tune", "forest", "forest/boxes", "internal/parallel", "kernels", "kernels/cpu", "kernels/cpu/micro", "kernels/cpu/sliced", "kernels/device", "kernels/nest", "kernels/simt", "run"},

	"bench/gpu":                    {},
	"bench/scale":                  {"circuit", "circuit/structures", "cluster/scale", "compile"},
	"cluster":                      {"cluster/assign", "dataset", "em", "kernels/tensor", "layers"},
	"cluster/assign":               {},
	"cluster/bustest":              {"cluster"},
	"cluster/chaos":                {},
	"cluster/job":                  {".", "circuit/format", "cluster", "compile", "dataset", "em", "engine", "forest", "forest/format", "internal/periodic", "kernels", "kernels/tensor", "run"},
	"cluster/natsbus":              {"cluster", "cluster/peer/wire"},
	"cluster/peer":                 {"cluster", "cluster/peer/wire"},
	"cluster/peer/wire":            {"cluster"},
	"cluster/peertest":             {"cluster"},
	"cluster/scale":                {"cluster/assign", "layers"},
	"cluster/simnet":               {"cluster", "dataset", "em", "kernels/tensor", "layers"},
	"circuit":                      {"internal/elementary"},
	"codec":                        {"circuit", "codec/lanes", "dataset", "dataset/ndarray"},
	"circuit/format":               {"circuit", "internal/registry"},
	"circuit/format/formattest":    {"circuit", "circuit/format", "circuit/reference"},
	"circuit/format/native":        {"circuit", "circuit/format"},
	"circuit/format/text":          {"circuit", "circuit/format"},
	"circuit/reference":            {"circuit", "dataset"},
	"circuit/resize":               {"circuit"},
	"circuit/structures":           {"circuit", "dataset"},
	"circuit/structures/learnspn":  {"circuit", "circuit/structures", "dataset"},
	"circuit/structures/trees":     {"circuit", "dataset", "forest"},
	"circuit/structures/equations": {"circuit", "circuit/structures", "compile/reduction", "compile/reduction/polyhedron", "compile/reduction/simplify"},
	"cmd/pce":                      {All},
	"compile":                      {"circuit", "layers"},
	"compile/reduction":            {"compile/reduction/polyhedron"},
	"compile/reduction/gosource":   {"compile/reduction", "compile/reduction/polyhedron", "compile/reduction/schedule"},
	"compile/reduction/polyhedron": {"compile/reduction/simplex"},
	"compile/reduction/schedule":   {"compile/reduction", "compile/reduction/polyhedron", "compile/reduction/simplex"},
	"compile/reduction/simplex":    {},
	"compile/reduction/simplify":   {"compile/reduction", "compile/reduction/polyhedron", "compile/reduction/schedule"},
	"compile/rtl":                  {"circuit"},
	"compile/rtl/simulate":         {"compile/rtl", "compile/rtl/verilog"},
	"compile/rtl/verilog":          {"compile/rtl"},
	"configs":                      {},
	"dataset":                      {"dataset/fields", "dataset/ndarray"},
	"dataset/datasettest":          {},
	"dataset/digits":               {"dataset"},
	"dataset/fields":               {},
	"dataset/ndarray":              {},
	"dataset/parquet":              {"dataset"},
	"em":                           {"dataset", "engine", "internal/parallel", "kernels/tensor", "layers"},
	"engine":                       {"dataset", "engine/lanes", "internal/parallel", "kernels", "kernels/simt", "kernels/tensor", "layers"},
	"examples/query":               {"."},
	"examples/structure":           {".", "circuit", "dataset", "dataset/digits"},
	"examples/train":               {".", "dataset", "dataset/digits", "em"},
	"kernels":                      {},
	"kernels/cpu":                  {"kernels", "kernels/cpu/micro", "kernels/simt", "kernels/x86"},
	"kernels/cpu/micro":            {},
	"kernels/cuda":                 {"internal/parallel", "kernels", "kernels/cuda/driver"},
	"kernels/cuda/driver":          {},
	"kernels/emulator":             {"kernels", "kernels/cuda", "kernels/device", "kernels/emulator/lanes", "kernels/ptx"},
	"kernels/emulator/lanes":       {"kernels/ptx"},
	"kernels/ptx":                  {},
	"kernels/ptx/scalar":           {"kernels/ptx", "kernels/simt"},
	"kernels/ptx/tensor":           {"kernels/ptx"},
	"kernels/tensor":               {"kernels"},
	"kernels/kerneltest":           {"circuit", "circuit/reference", "circuit/structures", "compile", "dataset", "engine", "kernels", "kernels/tensor", "layers"},
	"layers":                       {},
	"kernels/simt":                 {},
	"kernels/simt/simttest":        {"kernels/simt"},
	"kernels/x86":                  {"kernels/simt", "kernels/x86/asm"},
	"kernels/x86/asm":              {},
	"circuit/format/juice":         {"circuit", "circuit/format", "circuit/format/units"},
	"circuit/format/spflow":        {"circuit", "circuit/format", "circuit/format/units"},
	"circuit/format/spnc":          {"circuit", "circuit/format", "circuit/format/units"},
	"circuit/format/units":         {"circuit", "circuit/format"},
	"compile/spn":                  {"circuit", "kernels/simt"},

	"compile/forest":           {"compile/forest/hir", "compile/forest/ir", "compile/forest/schedule", "forest", "internal/parallel", "kernels/nest", "kernels/sliced"},
	"compile/forest/schedule":  {},
	"compile/forest/tune":      {"compile/forest/hir", "compile/forest/schedule", "forest"},
	"compile/forest/hir":       {"compile/forest/schedule", "forest"},
	"compile/forest/ir":        {"compile/forest/hir", "compile/forest/schedule", "forest", "kernels/nest", "kernels/simt", "kernels/simt/fold"},
	"kernels/nest":             {"kernels", "kernels/simt", "kernels/simt/fold"},
	"kernels/simt/fold":        {"kernels/simt"},
	"kernels/sliced":           {"internal/parallel"},
	"kernels/cpu/sliced":       {"internal/elementary", "internal/parallel", "kernels/cpu", "kernels/cpu/micro", "kernels/sliced"},
	"forest":                   {"internal/elementary", "internal/parallel"},
	"forest/boxes":             {"forest"},
	"forest/format":            {"forest", "internal/registry"},
	"forest/format/formattest": {"forest", "forest/format"},
	"forest/format/lightgbm":   {"forest", "forest/format", "internal/parallel"},
	"forest/format/onnx":       {"forest", "forest/format"},
	"forest/format/treelite":   {"forest", "forest/format"},
	"forest/format/xgboost":    {"forest", "forest/format", "internal/parallel"},
	"internal/atomicfile":      {},
	"internal/golden":          {},
	"internal/invariants":      {},
	"internal/layout":          {},
	"internal/safetensors":     {"internal/atomicfile"},
	"run":                      {"circuit", "circuit/format", "circuit/format/juice", "circuit/format/native", "circuit/format/spflow", "circuit/format/spnc", "circuit/format/text", "circuit/resize", "circuit/structures", "circuit/structures/equations", "circuit/structures/learnspn", "compile", "compile/spn", "dataset", "em", "engine", "forest", "forest/format", "forest/format/lightgbm", "forest/format/onnx", "forest/format/treelite", "forest/format/xgboost", "kernels", "kernels/device", "kernels/simt", "kernels/tensor", "layers"},
	"kernels/device":           {"kernels", "kernels/cpu", "kernels/cpu/tensor", "kernels/cuda", "kernels/cuda/scalar", "kernels/cuda/tensor", "kernels/cuda/tensor/plan", "kernels/nest", "kernels/ptx/scalar", "kernels/simt", "layers"},
	"serve":                    {"dataset", "serve/cells", "serve/metrics", "serve/oip", "serve/page"},
	"serve/cells":              {"dataset", "serve/oip"},
	"serve/metrics":            {"serve/oip"},
	"serve/oip":                {},
	"kernels/cpu/tensor":       {"kernels", "kernels/cpu", "kernels/cpu/micro", "kernels/tensor", "layers"},
	"kernels/cuda/scalar":      {"kernels", "kernels/cuda", "kernels/ptx/scalar", "kernels/simt"},
	"kernels/cuda/tensor":      {"kernels", "kernels/cuda", "kernels/cuda/tensor/plan", "kernels/ptx/tensor", "kernels/tensor", "layers"},
	"kernels/cuda/tensor/plan": {"kernels", "kernels/ptx", "kernels/ptx/tensor", "layers"},
	"bench/query":              {"compile", "dataset", "dataset/digits", "kernels", "kernels/device", "kernels/tensor", "layers", "run"},
	"bench/serve":              {"serve", "serve/oip"},
	"bench/reduction":          {"compile/reduction", "compile/reduction/gosource", "compile/reduction/simplify"},
	"bench/reduction/hand":     {},
	"bench/spn":                {".", "circuit", "circuit/format", "circuit/format/spflow", "circuit/format/spnc", "circuit/reference", "circuit/structures", "compile/spn", "dataset", "kernels/ptx/scalar", "kernels/simt", "kernels/x86"},
	"bench/card":               {"kernels/cuda", "kernels/emulator", "kernels/ptx", "kernels/ptx/tensor"},
	"report":                   {".", "compile", "dataset", "run"},
	"report/curves":            {"report"},
	"report/tensorboard":       {},
	"serve/page":               {},
	"internal/elementary":      {},
	"internal/parallel":        {},
	"internal/periodic":        {},
	"internal/registry":        {},
	"codec/lanes":              {},
	"engine/lanes":             {},
}

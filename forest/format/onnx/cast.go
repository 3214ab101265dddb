package onnx

import (
	"fmt"

	"github.com/pce-engine/pce/forest"
)

// Types that a Cast of labels may have in addition to those of numbers: labels stay what they are.
const (
	castInt32  = 6
	castInt64  = 7
	castString = 8
)

// casts follows the operators other than the ensemble. What a Cast does to the cells before it, or to its predictions, is set in f; one
// that changes numbers otherwise is refused.
func (g *graph) casts(f *forest.Forest, tree *node) error {
	label, scores := map[string]bool{}, map[string]bool{} // values of the graph that hold them
	if tree.op != "TreeEnsembleClassifier" {
		scores[tree.result(0)] = true
	} else {
		label[tree.result(0)], scores[tree.result(1)] = true, true
	}
	_, direct := g.kinds[tree.input] // from an input of the graph
	for i := range g.nodes {         // each behind those that it reads
		n := &g.nodes[i]
		if n.op != "Cast" && n.op != "Identity" {
			continue
		}
		from, to := n.input, n.result(0)
		label[to], scores[to], g.kinds[to], g.columns[to] = label[from], scores[from], g.kinds[from], g.columns[from]
		if n.op == "Identity" {
			continue
		}
		kind, err := n.one("to", 0)
		switch {
		case err != nil:
			return err
		case kind == tensorFloat32:
			g.kinds[to] = tensorFloat32
			if scores[from] {
				f.Output = forest.Float32
			}
		case kind == tensorFloat64: // what was rounded before stays so
			if g.kinds[from] != tensorFloat32 {
				g.kinds[to] = tensorFloat64
			}
		case label[from] && (kind == castInt32 || kind == castInt64 || kind == castString):
		default:
			return fmt.Errorf("operator \"Cast\" to type %d changes numbers; want FLOAT (1) or DOUBLE (11), and of labels also INT32 (6), INT64 (7) or STRING (8)", kind)
		}
	}
	switch kind := g.kinds[tree.input]; {
	case kind == tensorFloat64: // the operators before TreeEnsemble have float32 thresholds for cells of either type
		f.Input = forest.Float64
	case kind == tensorFloat32 && !direct: // a Cast rounds the cells, whatever they are compared with
		f.Input = forest.Float32
	}
	return nil
}

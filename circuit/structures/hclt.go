package structures

import "github.com/pce-engine/pce/circuit"

// HCLTOptions are the settings of a hidden Chow-Liu tree; the tree itself is an argument of
// HCLT.
type HCLTOptions struct {
	Latents int // states of the latent variable behind each variable
	Leaf    Leaf
}

// HCLT returns the hidden Chow-Liu tree over a tree of variables, such as the
// one that ChowLiu learns.
//
// Each variable of the tree that has children gets a latent of M states:
// a product of its input and its children's messages, and a dense sum over it,
// its message to its parent. A variable without children has no sum: its input
// goes straight into its parent's product. The root's sum has one unit.
//
// With n variables of which k have children it has (n+k-1)·M + 1 nodes and
// (k-1)·M² + (n+k)·M edges (n at least 2).
func HCLT(tree Tree, opts HCLTOptions) (*circuit.Graph, error) {
	b, err := newBuilder("hclt", len(tree.Parent), opts.Latents, opts.Leaf, 3*float64(len(tree.Parent)))
	if err != nil {
		return nil, err
	}
	children, order, err := tree.walk()
	if err != nil {
		return nil, err
	}
	message := make([]circuit.NodeID, len(order)) // from each variable to its parent
	for _, v := range order {
		factors := make([]circuit.NodeID, 1, 1+len(children[v]))
		factors[0] = b.input(v)
		for _, c := range children[v] {
			factors = append(factors, message[c])
		}
		state := b.product(factors...)
		switch {
		case tree.Parent[v] < 0:
			return b.root(state)
		case len(children[v]) == 0:
			message[v] = state
		default:
			message[v] = b.sum(state)
		}
	}
	panic("BUG: structures: a tree without a root")
}

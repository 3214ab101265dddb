package kerneltest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"sync"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/kernels/tensor"
)

// answer is what the reference says of a circuit on some rows.
type answer struct {
	ll     []float64        // by row
	params reference.Params // after training
	err    error
}

// answers holds the answers of the reference by the digest of the question. A test
// runs the suite on several devices, with several sets of kernels or numbers of
// threads, and the reference takes longer than any of them.
var answers sync.Map // [sha256.Size]byte → func() answer

// oracle returns the log-likelihood of every row, and the parameters after one step
// on all of them. Callers share both and must not change them.
func oracle(g *circuit.Graph, p reference.Params, rows [][]float64, rule tensor.Rule) ([]float64, reference.Params, error) {
	a := ask(g, p, rows, fmt.Sprintf("step %v, pseudocount %v", rule.Step, rule.Pseudocount), func() answer { return step(g, p, rows, rule) })
	return a.ll, a.params, a.err
}

func step(g *circuit.Graph, p reference.Params, rows [][]float64, rule tensor.Rule) answer {
	ev, err := reference.New(g, p)
	if err != nil {
		return answer{err: err}
	}
	ll := make([]float64, len(rows))
	for r, row := range rows {
		if ll[r], err = ev.LogLikelihood(row); err != nil {
			return answer{err: err}
		}
	}
	flows, err := ev.Flows(rows)
	if err != nil {
		return answer{err: err}
	}
	return answer{ll: ll, params: ev.EM(flows, reference.Step{Size: rule.Step, Pseudocount: rule.Pseudocount})}
}

// ask returns the answer to a question about a circuit with parameters and rows. It
// computes the answer when the question is first asked; concurrent callers wait for it.
func ask(g *circuit.Graph, p reference.Params, rows [][]float64, question string, compute func() answer) answer {
	q := &digester{Hash: sha256.New()}
	q.print("%s\n%d variables, root %d\n", question, g.NumVars, g.Root)
	for _, n := range g.Nodes {
		edges := n.Edges
		n.Edges = nil // a pointer, which says nothing of what it points to
		q.print("%T %+v\n", n.Leaf, n)
		if edges != nil {
			q.print("%+v\n", *edges)
		}
	}
	for _, list := range [][][]float64{p, rows} {
		q.print("%d lists\n", len(list))
		for _, numbers := range list {
			q.numbers(numbers)
		}
	}
	once, _ := answers.LoadOrStore([sha256.Size]byte(q.Sum(nil)), sync.OnceValue(compute))
	return once.(func() answer)()
}

// digester writes to a hash, which never fails.
type digester struct {
	hash.Hash
	bytes []byte
}

func (d *digester) print(format string, args ...any) { _, _ = fmt.Fprintf(d, format, args...) }

// numbers writes the bits of some numbers, after how many they are.
func (d *digester) numbers(list []float64) {
	d.bytes = binary.LittleEndian.AppendUint64(d.bytes[:0], uint64(len(list)))
	for _, x := range list {
		d.bytes = binary.LittleEndian.AppendUint64(d.bytes, math.Float64bits(x))
	}
	_, _ = d.Write(d.bytes)
}

package kerneltest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"sync"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
)

// answers holds what the reference has said, by the digest of the question. A test
// runs the suite on several devices, with several sets of kernels or numbers of
// threads, and the reference takes longer than any of them.
var answers sync.Map // digest → func() (A, error)

type digest [sha256.Size]byte

// remember returns the answer to a question. It computes the answer when the question
// is first asked; concurrent callers wait for it. Callers share the answer and must not
// change it.
func remember[A any](question digest, compute func() (A, error)) (A, error) {
	once, _ := answers.LoadOrStore(question, sync.OnceValues(compute))
	return once.(func() (A, error))()
}

// trained is what the reference says of rows, and after training on them.
type trained struct {
	ll     []float64 // by row
	params reference.Params
}

// oracle returns the log-likelihood of every row, and the parameters after one step
// on all of them.
func oracle(g *circuit.Graph, p reference.Params, rows [][]float64, rule tensor.Rule) ([]float64, reference.Params, error) {
	question := digestOf(g, p).ask(fmt.Sprintf("step %v, pseudocount %v", rule.Step, rule.Pseudocount), rows...)
	a, err := remember(question, func() (trained, error) { return step(g, p, rows, rule) })
	return a.ll, a.params, err
}

func step(g *circuit.Graph, p reference.Params, rows [][]float64, rule tensor.Rule) (trained, error) {
	ev, err := reference.New(g, p)
	if err != nil {
		return trained{}, err
	}
	ll := make([]float64, len(rows))
	for r, row := range rows {
		if ll[r], err = ev.LogLikelihood(row); err != nil {
			return trained{}, err
		}
	}
	flows, err := ev.Flows(rows)
	if err != nil {
		return trained{}, err
	}
	return trained{ll: ll, params: ev.EM(flows, reference.Step{Size: rule.Step, Pseudocount: rule.Pseudocount})}, nil
}

// evaluator is the reference of a circuit, which remembers its answers.
type evaluator struct {
	ev *reference.Evaluator
	of digest
}

// evaluator returns the reference of a case.
func (c *randomCase) evaluator(t testing.TB) *evaluator {
	t.Helper()
	ev, err := reference.New(c.graph, c.params)
	must(t, err)
	return &evaluator{ev, digestOf(c.graph, c.params)}
}

func (e *evaluator) LogLikelihood(row []float64) (float64, error) {
	return remember(e.of.ask("log-likelihood", row), func() (float64, error) { return e.ev.LogLikelihood(row) })
}

func (e *evaluator) SoftLogLikelihood(row []float64, soft []*dataset.Evidence) (float64, error) {
	lists := [][]float64{row}
	for _, s := range soft {
		var list []float64
		if s != nil {
			list = append(list, s.Low, s.High)
			for _, r := range s.Runs {
				list = append(list, float64(r.First), float64(r.Last), r.Likelihood)
			}
		}
		lists = append(lists, list)
	}
	return remember(e.of.ask("soft log-likelihood", lists...), func() (float64, error) { return e.ev.SoftLogLikelihood(row, soft) })
}

func (e *evaluator) Conditionals(given []float64) ([][]float64, error) {
	return remember(e.of.ask("conditionals", given), func() ([][]float64, error) { return e.ev.Conditionals(given) })
}

func (e *evaluator) Bound(given []float64) (float64, error) {
	return remember(e.of.ask("bound", given), func() (float64, error) { return e.ev.Bound(given) })
}

func (e *evaluator) Maximise(given []float64) ([]float64, float64, error) {
	return e.complete("maximise", given, e.ev.Maximise)
}

func (e *evaluator) MPE(given []float64) ([]float64, float64, error) {
	return e.complete("mpe", given, e.ev.MPE)
}

func (e *evaluator) complete(question string, given []float64, compute func([]float64) ([]float64, float64, error)) ([]float64, float64, error) {
	type completion struct {
		row []float64
		log float64
	}
	c, err := remember(e.of.ask(question, given), func() (completion, error) {
		row, log, err := compute(given)
		return completion{row, log}, err
	})
	return c.row, c.log, err
}

// digestOf returns the digest of a circuit with parameters.
func digestOf(g *circuit.Graph, p reference.Params) digest {
	q := &digester{Hash: sha256.New()}
	q.print("%d variables, root %d\n", g.NumVars, g.Root)
	for _, n := range g.Nodes {
		edges := n.Edges
		n.Edges = nil // a pointer, which says nothing of what it points to
		q.print("%T %+v\n", n.Leaf, n)
		if edges != nil {
			q.print("%+v\n", *edges)
		}
	}
	q.lists(p)
	return digest(q.Sum(nil))
}

// ask returns the digest of a question about rows and what has this digest.
func (d digest) ask(question string, rows ...[]float64) digest {
	q := &digester{Hash: sha256.New()}
	q.print("%x\n%s\n", d, question)
	q.lists(rows)
	return digest(q.Sum(nil))
}

// digester writes to a hash, which never fails.
type digester struct {
	hash.Hash
	bytes []byte
}

func (d *digester) print(format string, args ...any) { _, _ = fmt.Fprintf(d, format, args...) }

// lists writes lists of numbers.
func (d *digester) lists(all [][]float64) {
	d.print("%d lists\n", len(all))
	for _, list := range all {
		d.numbers(list)
	}
}

// numbers writes the bits of some numbers, after how many they are.
func (d *digester) numbers(list []float64) {
	d.bytes = binary.LittleEndian.AppendUint64(d.bytes[:0], uint64(len(list)))
	for _, x := range list {
		d.bytes = binary.LittleEndian.AppendUint64(d.bytes, math.Float64bits(x))
	}
	_, _ = d.Write(d.bytes)
}

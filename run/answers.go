package run

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// Unanswered counts the rows whose answers to a query are all NaN: nothing follows from what is
// impossible.
type Unanswered int

// Add counts a row with these answers.
func (u *Unanswered) Add(answers []float64) {
	if !slices.ContainsFunc(answers, func(x float64) bool { return !math.IsNaN(x) }) {
		*u++
	}
}

// Notes says which answers to a query of a circuit have no number, a sentence for each reason.
func (u Unanswered) Notes(q *Query, g *circuit.Graph) (notes []string) {
	if u > 0 {
		is := "rows are impossible under the model; their answers are NaN"
		if u == 1 {
			is = "row is impossible under the model; its answers are NaN"
		}
		notes = append(notes, fmt.Sprintf("%d %s", u, is))
	}
	if q.Kind == QueryMoments && slices.Contains(circuit.RootDomains(g), -1) {
		notes = append(notes, "the answers for columns that no leaf reads are NaN: the model says nothing of them")
	}
	return notes
}

// Unfilled counts the rows that keep missing cells when they are completed.
type Unfilled struct {
	domains    []int // of the circuit's variables; -1: no leaf reads it
	of         []int // columns that were to be filled; empty: all
	impossible int   // rows that keep cells which the circuit could fill
	unread     int   // other rows, which keep cells of columns that no leaf reads
}

// NewUnfilled counts rows that a circuit completes in some columns; of none: in all.
func NewUnfilled(g *circuit.Graph, of []int) *Unfilled {
	return &Unfilled{domains: circuit.RootDomains(g), of: of}
}

// Add counts the rows of completed ones.
func (u *Unfilled) Add(b *dataset.Batch) {
	for r := range b.Rows {
		impossible, unread := false, false
		for i := range b.Columns {
			if b.Columns[i].IsMissing(r) && (len(u.of) == 0 || slices.Contains(u.of, i)) {
				impossible, unread = impossible || u.domains[i] >= 0, true
			}
		}
		switch {
		case impossible:
			u.impossible++
		case unread:
			u.unread++
		}
	}
}

// Notes says how many rows were not completed, and why, a sentence for each reason.
func (u *Unfilled) Notes() (notes []string) {
	if u.impossible > 0 {
		keep := "rows keep missing cells: what they say is impossible under the model"
		if u.impossible == 1 {
			keep = "row keeps missing cells: what it says is impossible under the model"
		}
		notes = append(notes, fmt.Sprintf("%d %s", u.impossible, keep))
	}
	if u.unread > 0 {
		keep := "rows keep"
		if u.unread == 1 {
			keep = "row keeps"
		}
		notes = append(notes, fmt.Sprintf("%d %s missing cells of columns that no leaf reads: the model says nothing of them", u.unread, keep))
	}
	return notes
}

// Gaps adds up how far the bounds on completions are from what was found.
type Gaps struct {
	rows, proved int
	sum, most    float64
}

// provedGap is a gap in nats that rounding explains.
const provedGap = 1e-4

// Add adds a row by the log-likelihood of its completion and the bound on those of all, in nats.
func (g *Gaps) Add(ll, bound float64) {
	if math.IsInf(ll, -1) {
		return
	}
	gap := max(0, bound-ll)
	g.rows++
	g.sum += gap
	g.most = max(g.most, gap)
	if gap <= provedGap {
		g.proved++
	}
}

// Note says whether the completions that o asks for are the most probable ones, or how far they
// may be from those. exact is whether max-product is.
func (g *Gaps) Note(exact bool, o MPEOptions) string {
	if exact && len(o.Of) == 0 {
		return "exact: the circuit is deterministic, so max-product gives the most probable completion"
	}
	if g.rows > 0 && g.proved == g.rows {
		return "exact: a bound proves for every row that nothing is likelier"
	}
	s := fmt.Sprintf("approximate: the best of max-product, a beam of %d, %d improved draws and a search through %d partial completions for each row", o.Beam, o.Candidates, o.Search)
	if g.rows > 0 {
		s += fmt.Sprintf("; a bound allows completions that are %.4g nats likelier in the mean and %.4g at most, none in %d of %d rows",
			g.sum/float64(g.rows), g.most, g.proved, g.rows)
	}
	return s
}

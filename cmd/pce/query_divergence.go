package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/run"
)

// expectRows is how many rows of a model entropy and kl draw unless they are told.
const expectRows = 10000

// expectFlags are the flags of expectations over the rows of a model.
type expectFlags struct {
	query  queryFlags
	n      int
	seed   uint64
	asJSON bool
}

func (f *expectFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.query.model, "model", "", "model file")
	f.query.run.register(flags)
	flags.IntVarP(&f.n, "rows", "n", expectRows, "rows to draw, unless the model has no more complete ones than that or 65536: then each counts by its probability")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the draws")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
}

// estimate is an estimate as it is printed; null is infinite or unknown.
type estimate struct {
	Nats  *float64 `json:"nats"`
	Error *float64 `json:"standard_error"`
}

// expectation is what entropy and kl print.
type expectation struct {
	Rows         int       `json:"rows"`
	Exact        bool      `json:"exact"`
	Entropy      estimate  `json:"entropy"`
	CrossEntropy *estimate `json:"cross_entropy,omitempty"`
	KL           *estimate `json:"kl,omitempty"`
}

func newEstimate(e *pce.Estimate) estimate {
	return estimate{run.Finite(e.Nats), run.Finite(e.Error)}
}

// text says an estimate to a person.
func (e *estimate) text(exact bool) string {
	s := orInfinite(e.Nats, "inf") + " nats"
	if !exact && e.Nats != nil {
		s += " ± " + orInfinite(e.Error, "unknown")
	}
	return s
}

func (a *app) printExpectation(x *expectation, asJSON bool) error {
	if asJSON {
		return a.printJSON(x)
	}
	how := "drawn: means with standard errors"
	switch {
	case x.Exact && x.Rows == 0:
		how = "by one pass over a deterministic circuit: exact"
	case x.Exact:
		how = "every complete row: exact"
	}
	text := fmt.Sprintf("rows           %d, %s\nentropy        %s\n", x.Rows, how, x.Entropy.text(x.Exact))
	if x.KL != nil {
		text += fmt.Sprintf("cross-entropy  %s\nkl             %s\n", x.CrossEntropy.text(x.Exact), x.KL.text(x.Exact))
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

// queryEntropyCommand makes the command pce query entropy. The answer is exact where the model
// is deterministic or small enough to list its rows, else a mean of drawn rows with its
// standard error; which of these it is, is printed.
func (a *app) queryEntropyCommand() *cobra.Command {
	var f expectFlags
	c := &cobra.Command{
		Use:   "entropy --model MODEL [-n N] [--seed S]",
		Short: "Print the entropy of a model's rows, with its standard error where rows are drawn",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := f.query.open(cmd.Context(), a.stderr, cmd.Name())
			if err != nil {
				return err
			}
			defer m.Close()
			e, err := m.Entropy(cmd.Context(), f.n, f.seed)
			if err != nil {
				return err
			}
			return a.printExpectation(&expectation{Rows: e.Rows, Exact: e.Exact, Entropy: newEstimate(&e)}, f.asJSON)
		},
	}
	f.register(c.Flags())
	return c
}

func (a *app) queryKLCommand() *cobra.Command {
	var f expectFlags
	var other string
	c := &cobra.Command{
		Use:   "kl --model MODEL --other MODEL [-n N] [--seed S]",
		Short: "Print cross-entropy and Kullback-Leibler divergence of a model and another one of the same columns",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if other == "" {
				return usagef("no --other; give the model file to compare with")
			}
			return a.divergence(cmd.Context(), &f, other)
		},
	}
	f.register(c.Flags())
	c.Flags().StringVar(&other, "other", "", "model file whose distribution is compared with that of --model")
	return c
}

// divergence prints cross-entropy and Kullback-Leibler divergence of the model of the flags and
// another one, which is opened with the same device and path. Both must have the same columns.
// A row that the other model cannot produce makes both infinite: "inf", and null in JSON.
func (a *app) divergence(ctx context.Context, f *expectFlags, other string) error {
	p, err := f.query.open(ctx, a.stderr, run.QueryKL)
	if err != nil {
		return err
	}
	defer p.Close()
	with := f.query
	with.model = other
	q, err := with.open(ctx, a.stderr, run.QueryKL)
	if err != nil {
		return err
	}
	defer q.Close()
	d, err := p.Divergence(ctx, q, f.n, f.seed)
	if err != nil {
		return err
	}
	cross, kl := newEstimate(&d.CrossEntropy), newEstimate(&d.KL)
	return a.printExpectation(&expectation{
		Rows: d.KL.Rows, Exact: d.KL.Exact, Entropy: newEstimate(&d.Entropy), CrossEntropy: &cross, KL: &kl,
	}, f.asJSON)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// measure runs the parts of the call that the file of results does not hold yet, and
// prints a line on each.
func (o *options) measure(ctx context.Context, progress io.Writer) error {
	parts, err := o.parts()
	if err != nil {
		return err
	}
	build, err := digest(o.pce)
	if err != nil {
		return err
	}
	if err := o.alike(build); err != nil {
		return err
	}
	res, err := openResults(o.out, o.in)
	if err != nil {
		return err
	}
	defer res.file.Close()

	end := time.Now().Add(o.time)
	var left []string
	failed := 0
	for _, p := range o.inTurn(remaining(parts, res.records, build)) {
		state := stateOf(res.records, build)
		if o.strict && p.measures && state != suitePassed {
			return fmt.Errorf("the conformance suite has not passed on this build (%s); nothing is measured with -strict, and the suite's output is in %s", state, o.suiteLog())
		}
		p.budget = min(p.budget, o.most)
		if room := time.Until(end); room < p.budget {
			left = append(left, p.name)
			continue
		} else if p.rest {
			p.budget = min(room, o.most)
		}
		r := record{Part: p.name, Call: o.call, Build: build, Begun: time.Now().UTC().Format(time.RFC3339), Budget: p.budget.Seconds(), Place: o.place()}
		if p.measures {
			r.Precision = o.precision
		}
		begin := time.Now()
		r.Steps, err = o.attempt(ctx, &p)
		if ctx.Err() != nil { // cut short: the part is not recorded and runs again
			return fmt.Errorf("ended before %q was done; run again to continue", p.name)
		}
		r.Seconds = time.Since(begin).Seconds()
		if err != nil {
			r.Error = err.Error()
			failed++
		}
		r.Suite = stateOf(append(slices.Clip(res.records), r), build)
		if err := res.add(r); err != nil {
			return err
		}
		first, _, _ := strings.Cut(r.Error, "\n")
		fmt.Fprintf(progress, "%-40s %6.1f of %4.0f s  %s\n", p.name, r.Seconds, r.Budget, first)
	}
	var errs []error
	if failed > 0 {
		errs = append(errs, fmt.Errorf("%d parts failed; their errors are in %s", failed, o.out))
	}
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("no time for %s; run again to continue", strings.Join(left, ", ")))
	}
	return errors.Join(errs...)
}

// inTurn is the order of parts that are to run. With -strict the suite comes first, also one that has
// failed before: nothing is measured until it passes.
func (o *options) inTurn(parts []part) []part {
	if o.strict {
		slices.SortStableFunc(parts, func(a, b part) int { return rank(a) - rank(b) })
	}
	return parts
}

// attempt runs a part within its budget.
func (o *options) attempt(ctx context.Context, p *part) ([]outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.budget, errBudget)
	defer cancel()
	return p.run(ctx, o.work)
}

// remaining are the parts that have no record without an error for this build, and those that lacked a
// program which is there now; what failed before comes last, so that one which hangs does not keep the others
// from their turn.
func remaining(parts []part, records []record, build string) []part {
	tried, done, lacking := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range records {
		if r.Build == build {
			tried[r.Part] = true
			if r.Error == "" {
				done[r.Part] = true
				lacking[r.Part] = slices.ContainsFunc(r.Steps, func(o outcome) bool { return o.Skipped != "" })
			}
		}
	}
	var fresh, again []part
	for _, p := range parts {
		switch {
		case done[p.name] && !(lacking[p.name] && p.able()):
		case tried[p.name]:
			again = append(again, p)
		default:
			fresh = append(fresh, p)
		}
	}
	return append(fresh, again...)
}

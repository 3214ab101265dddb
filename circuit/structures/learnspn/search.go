package learnspn

import (
	"context"
	"slices"
)

// searchTrials bounds how many circuits a search learns.
const searchTrials = 48

// trial is a circuit learned with some settings, and its mean log-likelihood on Valid.
type trial struct {
	opts  Options
	root  *node
	score float64
}

// search learns circuits on a coarse grid around the given settings, and climbs from the best
// of them: it moves one setting at a time, a step up or down, as long as the mean
// log-likelihood of the rows of valid grows. A grid comes first because the settings work
// together: a large threshold pays where there are many clusters. The order is fixed, and the
// first of equals counts.
func search(ctx context.Context, all, valid []variable, opts Options) *trial {
	rows := whole(valid).rows
	try := func(o Options) *trial {
		root := learn(ctx, all, &o)
		return &trial{o, root, mean(root.logLik(valid, rows))}
	}
	best, n := try(opts), all[0].rows()
	fits := func(o Options) bool { return o.MinRows <= n && o.checkThreshold() == nil && o.checkDomains(n) == nil }
	tried := []Options{best.opts}
	for _, o := range grid(opts) {
		if fits(o) && ctx.Err() == nil {
			tried = append(tried, o)
			if t := try(o); t.score > best.score {
				best = t
			}
		}
	}
	known := func(o Options) bool { return slices.ContainsFunc(tried, func(t Options) bool { return t.same(&o) }) }
	for moved := true; moved; {
		moved = false
		for _, move := range moves {
			for _, up := range []bool{true, false} {
				for len(tried) < searchTrials && ctx.Err() == nil {
					o, ok := move(best.opts, up)
					if !ok || !fits(o) || known(o) {
						break
					}
					tried = append(tried, o)
					t := try(o)
					if !(t.score > best.score) {
						break
					}
					best, moved = t, true
				}
			}
		}
	}
	return best
}

// grid returns the settings around given ones with which a search begins.
func grid(given Options) []Options {
	var out []Options
	for _, threshold := range []float64{1, 3} {
		for _, rows := range []float64{1, 1.0 / 3, 3} {
			for _, clusters := range []int{1, 2} {
				o := given
				o.Threshold *= threshold
				o.MinRows = max(2, int(rows*float64(o.MinRows)))
				o.Clusters = min(o.Clusters*clusters, maxClusters)
				if !o.same(&given) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// same reports whether two options have equal settings among those that are searched.
func (o *Options) same(p *Options) bool {
	return o.Leaf == p.Leaf && o.MinRows == p.MinRows && o.Clusters == p.Clusters && o.Threshold == p.Threshold && o.Smoothing == p.Smoothing
}

// moves change one setting, up or down, within its range; false if that is its end.
var moves = []func(o Options, up bool) (Options, bool){
	func(o Options, up bool) (Options, bool) {
		o.MinRows = int(stepBy(float64(o.MinRows), 2, up))
		return o, o.MinRows >= 2
	},
	func(o Options, up bool) (Options, bool) {
		o.Threshold = stepBy(o.Threshold, 2, up)
		return o, o.Threshold > 1e-3 && o.Threshold < 1e3
	},
	func(o Options, up bool) (Options, bool) {
		if up {
			o.Clusters++
		} else {
			o.Clusters--
		}
		return o, o.Clusters >= 2 && o.Clusters <= 8
	},
	func(o Options, up bool) (Options, bool) {
		o.Smoothing = stepBy(o.Smoothing, 2, up)
		return o, o.Smoothing > 1e-3 && o.Smoothing < 1e3
	},
	func(o Options, up bool) (Options, bool) {
		if up == (o.Leaf == ChowLiu) {
			return o, false
		}
		o.Leaf = Factors
		if up {
			o.Leaf = ChowLiu
		}
		return o, true
	},
}

// stepBy multiplies or divides a number.
func stepBy(x, factor float64, up bool) float64 {
	if up {
		return x * factor
	}
	return x / factor
}

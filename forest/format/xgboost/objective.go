package xgboost

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
)

// inverse is the function that turns base_score, a prediction, into a margin.
type inverse uint8

const (
	same inverse = iota
	logit
	logarithm
)

// margin computes in float32 and with logf, as XGBoost does.
func (v inverse) margin(base float32) float32 {
	switch v {
	case logit:
		return -logf(1/base - 1)
	case logarithm:
		return logf(base)
	}
	return base
}

// base returns the base_score whose margin is m to the bit, and whether there is one.
func (v inverse) base(m float32) (float32, bool) {
	guess := m
	switch v {
	case logit:
		guess = float32(1 / (1 + math.Exp(-float64(m))))
	case logarithm:
		guess = float32(math.Exp(float64(m)))
	}
	up, down := guess, guess
	for range 64 { // the guess is a few roundings away
		for _, b := range []float32{up, down} {
			if v.margin(b) == m {
				return b, true
			}
		}
		up, down = math.Nextafter32(up, float32(math.Inf(1))), math.Nextafter32(down, float32(math.Inf(-1)))
	}
	return 0, false
}

// objective is what prediction needs to know of a training objective.
type objective struct {
	name    string
	link    forest.Link
	base    inverse
	classes int     // 2: told by cut; -1: one for each output; 0: none
	cut     float64 // of predictions
	params  string  // key under which XGBoost keeps the settings, empty if none
	values  string  // the settings that a file must have, as JSON
}

// objectives lists those of XGBoost up to 3.1. Settings matter to training only; files
// have them nevertheless, or XGBoost does not read them.
var objectives = []objective{
	{"reg:squarederror", forest.Identity, same, 0, 0, "reg_loss_param", `{"scale_pos_weight":"1"}`},
	{"reg:linear", forest.Identity, same, 0, 0, "reg_loss_param", `{"scale_pos_weight":"1"}`},
	{"reg:squaredlogerror", forest.Identity, same, 0, 0, "reg_loss_param", `{"scale_pos_weight":"1"}`},
	{"reg:logistic", forest.Sigmoid, logit, 0, 0, "reg_loss_param", `{"scale_pos_weight":"1"}`},
	{"reg:pseudohubererror", forest.Identity, same, 0, 0, "pseudo_huber_param", `{"huber_slope":"1"}`},
	{"reg:absoluteerror", forest.Identity, same, 0, 0, "", ""},
	{"reg:quantileerror", forest.Identity, same, 0, 0, "quantile_loss_param", `{"quantile_alpha":"[0.5]"}`},
	{"reg:expectileerror", forest.Identity, same, 0, 0, "expectile_loss_param", `{"expectile_alpha":"[0.5]"}`},
	{"reg:gamma", forest.Exp, logarithm, 0, 0, "", ""},
	{"reg:tweedie", forest.Exp, logarithm, 0, 0, "tweedie_regression_param", `{"tweedie_variance_power":"1.5"}`},
	{"count:poisson", forest.Exp, logarithm, 0, 0, "poisson_regression_param", `{"max_delta_step":"0.699999988"}`},
	{"survival:cox", forest.Exp, logarithm, 0, 0, "", ""},
	{"survival:aft", forest.Exp, logarithm, 0, 0, "aft_loss_param", `{"aft_loss_distribution":"normal","aft_loss_distribution_scale":"1"}`},
	{"binary:logistic", forest.Sigmoid, logit, 2, 0.5, "reg_loss_param", `{"scale_pos_weight":"1"}`},
	{"binary:logitraw", forest.Identity, same, 2, 0, "reg_loss_param", `{"scale_pos_weight":"1"}`},
	{"binary:hinge", forest.Step, same, 2, 0.5, "", ""},
	{"multi:softmax", forest.Argmax, same, -1, 0, "softmax_multiclass_param", ""},
	{"multi:softprob", forest.Softmax, same, -1, 0, "softmax_multiclass_param", ""},
	{"rank:pairwise", forest.Identity, same, 0, 0, "lambda_rank_param", `{"fix_list_weight":"0","num_pairsample":"1"}`},
	{"rank:ndcg", forest.Identity, same, 0, 0, "lambda_rank_param", `{"fix_list_weight":"0","num_pairsample":"1"}`},
	{"rank:map", forest.Identity, same, 0, 0, "lambda_rank_param", `{"fix_list_weight":"0","num_pairsample":"1"}`},
}

// find returns the objective of a name.
func find(name string) (objective, error) {
	i := slices.IndexFunc(objectives, func(o objective) bool { return o.name == name })
	if i < 0 {
		return objective{}, fmt.Errorf("objective %.60q is unknown; save the model with one of XGBoost's own", name)
	}
	return objectives[i], nil
}

// set gives f the objective's link and classes, and the margins of its base scores,
// one or one for each output.
func (o objective) set(f *forest.Forest, bases []float32, asMargin bool) error {
	if len(bases) != 1 && len(bases) != f.Outputs {
		return fmt.Errorf("base_score has %d numbers for %d outputs", len(bases), f.Outputs)
	}
	f.Target, f.Link, f.Alpha, f.Cut = o.name, o.link, 1, o.cut
	switch {
	case o.classes < 0 && f.Outputs > 1:
		f.Classes = f.Outputs
	case o.classes > 0 && f.Outputs == 1:
		f.Classes = 2
	}
	f.Base = make([]float64, f.Outputs)
	for i := range f.Base {
		b := bases[min(i, len(bases)-1)]
		if !asMargin {
			if o.base == logit && !(b > 0 && b < 1) || o.base == logarithm && !(b > 0) {
				return fmt.Errorf("base_score %v is out of range for %s", b, o.name)
			}
			b = o.base.margin(b)
		}
		f.Base[i] = float64(b)
	}
	return nil
}

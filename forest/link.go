package forest

import (
	"math"

	"github.com/pce-engine/pce/internal/elementary"
)

// Link turns the raw scores of a row into its prediction.
type Link uint8

// Links. s is a raw score, of all outputs unless one is named.
const (
	Identity     Link = iota
	Sigmoid           // 1 / (1 + exp(-Alpha s))
	Softmax           // exp(s) / sum of exp(s)
	Argmax            // the output with the largest score, the first of equals
	Exp               // exp(s)
	Step              // 1 if s > 0, else 0
	Softplus          // log(1 + exp(s))
	SignedSquare      // s |s|
	Anomaly           // 2^(-s / Alpha): isolation forests
	Probit            // the quantile of the normal distribution at s, by ONNX Runtime's formula
	SoftmaxZero       // Softmax that leaves scores of 0 at 0, before division
	SigmoidPair       // of one output: Sigmoid(-s), Sigmoid(s)
	Complement        // of one output: 1 - s, s
	Negation          // of one output: -s, s
	links             // their number
)

var linkNames = [links]string{
	"identity", "sigmoid", "softmax", "argmax", "exp", "step", "softplus", "signed-square", "anomaly", "probit",
	"softmax-zero", "sigmoid-pair", "complement", "negation",
}

// String returns the name of the link, such as "softmax".
func (l Link) String() string {
	if l < links {
		return linkNames[l]
	}
	return "unknown"
}

// single reports whether the link makes two numbers of one score.
func (l Link) single() bool { return l >= SigmoidPair && l <= Negation }

// width returns how many numbers the link makes of that many scores.
func (l Link) width(outputs int) int {
	switch {
	case l == Argmax:
		return 1
	case l.single():
		return 2
	}
	return outputs
}

// apply writes the predictions for rows of scores, outputs of them each, into out, width numbers
// for each row. They may share memory where the width is at most that of the scores.
func (l Link) apply(s, out []float64, outputs int, alpha float64) {
	switch l {
	case Softmax, SoftmaxZero, Argmax:
		width := l.width(outputs)
		for r := range len(s) / outputs {
			if row := s[r*outputs : (r+1)*outputs]; l == Argmax {
				out[r] = float64(argmax(row))
			} else {
				softmax(row, out[r*width:(r+1)*width], l == SoftmaxZero)
			}
		}
	case SigmoidPair:
		for r, x := range s {
			out[2*r], out[2*r+1] = sigmoid(-alpha*x), sigmoid(alpha*x)
		}
	case Complement:
		for r, x := range s {
			out[2*r], out[2*r+1] = 1-x, x
		}
	case Negation:
		for r, x := range s {
			out[2*r], out[2*r+1] = -x, x
		}
	case Sigmoid:
		for i, x := range s {
			out[i] = sigmoid(alpha * x)
		}
	default:
		for i, x := range s {
			out[i] = l.one(x, alpha)
		}
	}
}

// one is the link of a single score.
func (l Link) one(x, alpha float64) float64 {
	switch l {
	case Sigmoid:
		return sigmoid(alpha * x)
	case Exp:
		return elementary.Exp(x)
	case Step:
		if x > 0 {
			return 1
		}
		return 0
	case Softplus:
		if x > 36 { // beyond it 1 + exp(-x) is 1
			return x
		}
		return math.Log1p(math.Exp(x))
	case SignedSquare:
		return x * math.Abs(x)
	case Anomaly:
		return math.Exp2(-x / alpha)
	case Probit:
		return probit(x)
	}
	return x
}

func sigmoid(x float64) float64 { return 1 / (1 + elementary.Exp(-x)) }

func argmax(s []float64) int {
	best := 0
	for i, x := range s {
		if x > s[best] {
			best = i
		}
	}
	return best
}

// softmax subtracts the largest score first, so it does not overflow. With zeros
// set, scores within 1e-7 of 0 are multiplied by exp(-largest) and do not count in
// the sum.
func softmax(s, out []float64, zeros bool) {
	top := s[argmax(s)]
	sum := 0.0
	for i, x := range s {
		if zeros && math.Abs(x) <= 1e-7 {
			out[i] = x * math.Exp(-top)
			continue
		}
		out[i] = math.Exp(x - top)
		sum += out[i]
	}
	for i := range out[:len(s)] {
		out[i] /= sum
	}
}

// probit approximates the quantile by Winitzki's inverse of erf with a = 0.147.
func probit(p float64) float64 {
	x := 2*p - 1
	log := math.Log((1 - x) * (1 + x))
	v := 2/(math.Pi*0.147) + log/2
	return math.Sqrt2 * math.Copysign(math.Sqrt(math.Sqrt(v*v-log/0.147)-v), x)
}

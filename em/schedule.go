package em

import "math"

// Shape says how a step size goes from one value to another.
type Shape string

// The shapes of pieces.
const (
	Constant Shape = "constant" // stays at From
	Linear   Shape = "linear"
	Cosine   Shape = "cosine" // half a wave: slow, fast, slow
)

// Piece is a part of a Schedule. Length is relative to those of the others.
type Piece struct {
	Shape  Shape   `json:"shape"`
	Length float64 `json:"length"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
}

// Schedule is the step size as a function of progress: pieces one after
// another that share the steps of a phase in proportion to their lengths.
type Schedule []Piece

// At returns the size of a step of a phase of steps steps, counted from 0. The
// first step of a piece has size From, the last one To.
func (s Schedule) At(step, steps int64) float64 {
	total := 0.0
	for _, p := range s {
		total += p.Length
	}
	before, first := 0.0, int64(0)
	for i, p := range s {
		before += p.Length
		end := int64(math.Round(before / total * float64(steps)))
		if step < end || i == len(s)-1 {
			return p.at(step-first, end-first)
		}
		first = end
	}
	return 1
}

func (p Piece) at(step, steps int64) float64 {
	f := 0.0
	if steps > 1 {
		f = float64(step) / float64(steps-1)
	}
	switch p.Shape {
	case Linear:
		return p.From + f*(p.To-p.From)
	case Cosine:
		return p.To + (p.From-p.To)*(1+math.Cos(math.Pi*f))/2
	}
	return p.From
}

func (s Schedule) validate() error {
	if len(s) == 0 {
		return badOption("a schedule without pieces; give a step size")
	}
	for i, p := range s {
		switch p.Shape {
		case Constant, Linear, Cosine:
		default:
			return badOption("schedule %q; write constant, linear or cosine", p.Shape)
		}
		if !(p.Length > 0) || math.IsInf(p.Length, 0) {
			return badOption("piece %d of the schedule has length %v; give a positive number", i+1, p.Length)
		}
		if !(p.From >= 0 && p.From <= 1 && p.To >= 0 && p.To <= 1) {
			return badOption("piece %d of the schedule goes from %v to %v; step sizes are 0 to 1", i+1, p.From, p.To)
		}
	}
	return nil
}

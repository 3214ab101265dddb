package curves

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // PNG
	_ "gonum.org/v1/plot/vg/vgsvg" // SVG

	"github.com/pce-engine/pce/report"
)

// ErrOptions is matched by the errors of things that cannot be drawn.
var ErrOptions = errors.New("curves")

// Run is a run by its name in the legend.
type Run struct {
	Name   string
	Epochs []report.Epoch
}

// What is drawn, and over what.
const (
	LogLikelihood = "ll"
	StepSize      = "step-size"
	Speed         = "rows-per-second"

	Epochs  = "epochs"
	Steps   = "steps"
	Seconds = "seconds" // spent in steps since the run began
)

// Measures lists what can be drawn, and Axes over what.
var (
	Measures = []string{LogLikelihood, StepSize, Speed}
	Axes     = []string{Epochs, Steps, Seconds}
)

// mostRuns is how many runs a picture has colours and room in its legend for.
const mostRuns = 24

// most is the largest absolute value that is drawn: axes add up several.
const most = 1e300

var colours = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{0, 0, 0, 255}, color.RGBA{153, 153, 153, 255},
}

// curve is a line of the picture. Points that are not finite interrupt it.
type curve struct {
	name   string
	dashed bool
	colour color.Color
	points plotter.XYs
}

// Write draws a measure of runs over an axis, in the format png or svg. Runs have colours in
// turn, training curves dashes. Values that are not finite interrupt a curve. Another format,
// measure or axis, no run, more than mostRuns and runs without any finite value are errors that
// match ErrOptions; then nothing is written.
func Write(w io.Writer, format, measure, axis string, runs []Run) error {
	if format != "png" && format != "svg" {
		return fmt.Errorf("%w: format %q; write png or svg", ErrOptions, format)
	}
	if len(runs) == 0 || len(runs) > mostRuns {
		return fmt.Errorf("%w: %d runs; give 1 to %d", ErrOptions, len(runs), mostRuns)
	}
	var all []curve
	for i, r := range runs {
		of, err := curvesOf(r, measure, axis)
		if err != nil {
			return err
		}
		for k := range of {
			of[k].colour = colours[i%len(colours)]
		}
		all = append(all, of...)
	}
	p := plot.New()
	p.X.Label.Text = axis
	p.Y.Label.Text = map[string]string{LogLikelihood: "log-likelihood (nats per row)", StepSize: "step size", Speed: "rows per second"}[measure]
	p.Legend.Top = measure == StepSize // curves rise to the right, step sizes fall
	p.Legend.Padding = vg.Points(3)
	p.Add(plotter.NewGrid())
	drawn := 0
	for _, c := range all {
		n, err := c.add(p)
		if err != nil {
			return err
		}
		drawn += n
	}
	if drawn == 0 {
		return fmt.Errorf("%w: the runs have no finite value of %s", ErrOptions, measure)
	}
	if pad := 0.04 * (p.Y.Max - p.Y.Min); pad > 0 { // lines on the edge are cut in half
		p.Y.Min, p.Y.Max = p.Y.Min-pad, p.Y.Max+pad
	}
	to, err := p.WriterTo(8*vg.Inch, 5*vg.Inch, format)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	_, err = to.WriteTo(w)
	return err
}

// curvesOf returns the curves of a run: training and validation of log-likelihoods, one of
// everything else. A value that an epoch lacks is NaN.
func curvesOf(r Run, measure, axis string) ([]curve, error) {
	xs, err := positions(r.Epochs, axis)
	if err != nil {
		return nil, err
	}
	line := func(name string, dashed bool, y func(e *report.Epoch) *float64) curve {
		c := curve{name: name, dashed: dashed}
		for i := range r.Epochs {
			at := plotter.XY{X: xs[i], Y: math.NaN()}
			if v := y(&r.Epochs[i]); v != nil {
				at.Y = *v
			}
			c.points = append(c.points, at)
		}
		return c
	}
	switch measure {
	case LogLikelihood:
		return []curve{
			line(r.Name+", training", true, func(e *report.Epoch) *float64 { return e.TrainLL }),
			line(r.Name+", validation", false, func(e *report.Epoch) *float64 { return e.ValidLL }),
		}, nil
	case StepSize:
		return []curve{line(r.Name, false, func(e *report.Epoch) *float64 { return e.StepSize })}, nil
	case Speed:
		return []curve{line(r.Name, false, func(e *report.Epoch) *float64 { return &e.SamplesPerSecond })}, nil
	}
	return nil, fmt.Errorf("%w: measure %q; there are %v", ErrOptions, measure, Measures)
}

// positions returns where on an axis epochs are.
func positions(epochs []report.Epoch, axis string) ([]float64, error) {
	xs := make([]float64, len(epochs))
	spent := 0.0
	for i := range epochs {
		spent += epochs[i].Seconds
		switch axis {
		case Epochs:
			xs[i] = float64(epochs[i].Epoch)
		case Steps:
			xs[i] = float64(epochs[i].Step)
		case Seconds:
			xs[i] = spent
		default:
			return nil, fmt.Errorf("%w: axis %q; there are %v", ErrOptions, axis, Axes)
		}
	}
	return xs, nil
}

// add draws the parts of a curve that are finite, and returns how many points there are. A
// part of one point is a dot.
func (c *curve) add(p *plot.Plot) (points int, err error) {
	var part plotter.XYs
	var legend []plot.Thumbnailer
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		points += len(part)
		line, dots, err := plotter.NewLinePoints(part)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
		line.Color, dots.Color = c.colour, c.colour
		line.Width, dots.Radius, dots.Shape = vg.Points(1.5), vg.Points(2), draw.CircleGlyph{}
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		if len(part) > 1 {
			p.Add(line)
		} else {
			p.Add(dots)
		}
		legend, part = []plot.Thumbnailer{line}, nil
		return nil
	}
	for _, at := range c.points {
		if math.Abs(at.X) <= most && math.Abs(at.Y) <= most { // also false for NaN
			part = append(part, at)
		} else if err := flush(); err != nil {
			return points, err
		}
	}
	if err := flush(); err != nil {
		return points, err
	}
	if legend != nil {
		p.Legend.Add(c.name, legend...)
	}
	return points, nil
}

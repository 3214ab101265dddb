package report

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/run"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// content is what the template shows.
type content struct {
	Name, Subtitle    string
	Missing, Warnings []string
	Results           []entry
	ResultObjective   string // of an earlier part of the run, perhaps, that was trained otherwise
	Objective         string
	LL, Rate          template.HTML
	EpochCount        string
	Epochs            []epochEntry
	Samples           *samplesEntry
	Model             *modelEntry
	Config            string
	Changed           bool // the run was resumed with other settings than it had before
	Versions          []string
}

type entry struct{ Name, Value string }

type epochEntry struct{ Epoch, Train, Valid, Rate string }

type samplesEntry struct {
	*Samples
	Source template.URL
	Shown  int // pixels of the page that the picture is wide
}

type modelEntry struct {
	Sizes, Queries     []entry
	Properties, Blocks string
	Rows               int
	Memory             []memoryEntry
	Layers             []layerEntry
}

type memoryEntry struct{ Name, Bytes, Share string }

type layerEntry struct {
	compile.LayerReport
	Children, Share string
}

// enlarged is the width up to which small pictures are shown larger, by a whole factor.
const enlarged = 600

// Write writes the report as one HTML file. Equal runs make equal files: there is no date in
// it. What the run lacks is left out, and named at the top.
func (r *Run) Write(w io.Writer) error {
	c := &content{
		Name: r.Name, Subtitle: r.subtitle(), Missing: r.Missing, Results: r.results(), Objective: r.Objective, Config: r.Config, Changed: strings.Contains(r.Config, run.HistoryMark),
		Versions: []string{"Report by " + run.ReadVersion().String() + "."},
	}
	if r.Result != nil {
		c.Warnings, c.ResultObjective = r.Result.Warnings, r.Result.Objective
		c.Versions = append([]string{"Trained by " + r.Result.Version.String() + "."}, c.Versions...)
	}
	c.curves(r.Epochs)
	if s := r.Samples; s != nil {
		c.Samples = &samplesEntry{Samples: s}
		if s.PNG != nil {
			c.Samples.Shown = s.Width * max(1, enlarged/s.Width)
			c.Samples.Source = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(s.PNG))
		}
	}
	if r.Info != nil {
		c.Model = describe(r.Info)
		c.Versions = append(c.Versions, "Structure "+r.Info.Structure+".")
	}
	return page.Execute(w, c)
}

func (r *Run) subtitle() string {
	var parts []string
	if i := r.Info; i != nil {
		parts = append(parts, fmt.Sprintf("%s over %s, %s", plural(i.Nodes, "node"), plural(int64(i.Variables), "variable"), plural(i.Parameters, "parameter")))
	}
	if res := r.Result; res != nil {
		parts = append(parts, fmt.Sprintf("trained for %s on %s in %s", plural(int64(res.Epochs), "epoch"), res.Device, duration(res.TrainSeconds)))
	}
	if len(parts) == 0 {
		return "A run of pce train."
	}
	text := strings.Join(parts, ", ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// results lists the figures of result.json, without those that the run does not have; nil if
// there is no such file.
func (r *Run) results() (list []entry) {
	res := r.Result
	if res == nil {
		return nil
	}
	of := "log-likelihood"
	if res.Objective != "" {
		of = "objective"
	}
	for _, ll := range []struct {
		name  string
		value *float64
	}{
		{"test " + of, res.TestLL}, {"valid " + of, res.ValidLL}, {"train " + of, res.TrainLL},
		{"test bits per dimension", res.TestBPD}, {"test perplexity", res.TestPerplexity},
	} {
		if ll.value != nil {
			list = append(list, entry{ll.name, figure(*ll.value)})
		}
	}
	best := "start"
	if res.BestEpoch > 0 {
		best = fmt.Sprintf("%d of %d", res.BestEpoch, res.Epochs)
	}
	return append(list,
		entry{"saved epoch", best},
		entry{"steps", grouped(fmt.Sprint(res.Steps))},
		entry{"training time", duration(res.TrainSeconds)},
		entry{"rows per second", perSecond(res.PerSecond)},
		entry{"compile time", duration(res.CompileSeconds)},
		entry{"device", res.Device},
		entry{"precision", res.Precision},
		entry{"recomputed in log space", grouped(fmt.Sprint(res.Recomputed))},
	)
}

// curves draws the epochs, and lists them.
func (c *content) curves(epochs []Epoch) {
	train, valid, rate := series{name: "train", class: "train"}, series{name: "valid", class: "valid"}, series{class: "rate"}
	for _, e := range epochs {
		x := float64(e.Epoch)
		train.x, train.y = append(train.x, x), append(train.y, orNaN(e.TrainLL))
		valid.x, valid.y = append(valid.x, x), append(valid.y, orNaN(e.ValidLL))
		rate.x, rate.y = append(rate.x, x), append(rate.y, e.SamplesPerSecond)
		c.Epochs = append(c.Epochs, epochEntry{fmt.Sprint(e.Epoch), orDash(e.TrainLL), orDash(e.ValidLL), perSecond(e.SamplesPerSecond)})
	}
	c.EpochCount = plural(int64(len(epochs)), "epoch")
	of := "log-likelihood"
	if c.Objective != "" {
		of = "objective"
	}
	c.LL = chart("Mean "+of+" of training and validation rows, by epoch", "nats per row", []series{train, valid})
	c.Rate = chart("Rows trained per second, by epoch", "rows per second", []series{rate})
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func orDash(x *float64) string {
	if x == nil {
		return "–"
	}
	return figure(*x)
}

// describe says what the model is, as pce info does: sizes, properties, queries, memory and
// layers. The widths of bars are shares of the largest.
func describe(i *run.Info) *modelEntry {
	m := &modelEntry{
		Sizes: []entry{
			{"variables", grouped(fmt.Sprint(i.Variables))}, {"nodes", grouped(fmt.Sprint(i.Nodes))}, {"edges", grouped(fmt.Sprint(i.Edges))},
			{"parameters", grouped(fmt.Sprint(i.Parameters))}, {"depth", fmt.Sprint(i.Depth)},
		},
		Rows:   i.Memory.Rows,
		Blocks: fmt.Sprintf("Blocks of %s; %.1f %% of the multiplied weights are padding.", plural(int64(i.BlockSize), "unit"), 100*i.PaddingWaste),
	}
	for name, n := range i.Leaves {
		m.Sizes = append(m.Sizes, entry{name + " leaves", grouped(fmt.Sprint(n))})
	}
	slices.SortFunc(m.Sizes[5:], func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	var has []string
	for name, yes := range i.Properties {
		if yes {
			has = append(has, strings.ReplaceAll(name, "_", " "))
		}
	}
	slices.Sort(has)
	if len(has) > 0 {
		m.Properties = "The circuit is " + strings.Join(has, ", ") + "."
	}
	for _, q := range i.Queries {
		answer := "exact"
		switch {
		case !q.Allowed:
			answer = "no; only where the circuit is " + q.Needs
		case !q.Exact:
			answer = "approximate; exact where the circuit is " + q.Needs
		}
		m.Queries = append(m.Queries, entry{q.Name, answer})
	}
	p := &i.Memory
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"parameters", p.Parameters}, {"values", p.Values}, {"flows", p.Flows}, {"scratch", p.Scratch}, {"program", p.Program}, {"runtime", p.Runtime}, {"total", p.Total},
	} {
		m.Memory = append(m.Memory, memoryEntry{part.name, grouped(fmt.Sprint(part.bytes)), share(part.bytes, p.Total)})
	}
	most := 0
	for _, l := range i.Compile.Layers {
		most = max(most, l.NodeBlocks)
	}
	for _, l := range i.Compile.Layers {
		m.Layers = append(m.Layers, layerEntry{l, spread(l.ChildCounts), share(int64(l.NodeBlocks), int64(most))})
	}
	return m
}

// share is the width of a bar, of 100.
func share(part, whole int64) string {
	if whole <= 0 {
		return "0"
	}
	return number(100 * float64(part) / float64(whole))
}

// spread says which numbers of children there are.
func spread(counts []int) string {
	if len(counts) == 0 {
		return "–"
	}
	lo, hi := slices.Min(counts), slices.Max(counts)
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d–%d", lo, hi)
}

// perSecond prints how many there are in a second: whole numbers, and two digits below 10, as large models have less than a row in a second.
func perSecond(x float64) string {
	if x < 9.95 {
		return fmt.Sprintf("%.2g", x)
	}
	return grouped(fmt.Sprintf("%.0f", x))
}

// plural counts things.
func plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return grouped(fmt.Sprint(n)) + " " + thing
}

// duration prints seconds with three digits.
func duration(seconds float64) string {
	switch {
	case !(seconds >= 0):
		return "–"
	case seconds < 0.9995:
		return fmt.Sprintf("%.3g ms", 1000*seconds)
	case seconds < 119.5:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds < 7170:
		return fmt.Sprintf("%d min %d s", int(seconds+0.5)/60, int(seconds+0.5)%60)
	}
	return fmt.Sprintf("%d h %d min", int(seconds/60+0.5)/60, int(seconds/60+0.5)%60)
}

package dataset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Limits of inference.
const (
	maxInferredCategories = 4096 // a whole number from here on makes a column continuous
	maxInferredLabels     = 65_535
	maxLabelBytes         = 4096
	maxAllLabelBytes      = 256 << 20
)

// guess is what the cells of a column have been so far.
type guess struct {
	name       string
	set        *Type // what Options say
	whole      bool  // a whole number from 0
	other      bool  // any other number
	text       bool  // a text
	most       float64
	labels     map[string]struct{}
	textAt     string // place and text of the first text
	otherAt    string // place of the first number that is not a code
	otherValue float64
	tally
}

// inference collects the types of the columns of one file.
type inference struct {
	recs       Records
	columns    []guess
	labelBytes int
	sampled    int  // numbers sampled of a column
	points     bool // decimal commas are refused
	auto       bool // nothing is set that says whether the first row names the columns
}

func newInference(recs Records, opts *Options) *inference {
	f := &inference{recs: recs, columns: make([]guess, recs.Columns()), sampled: sampledPerColumn(recs.Columns())}
	f.auto = opts.Header == "" || opts.Header == HeaderAuto
	if c, ok := recs.(*csvRecords); ok {
		f.points = !c.commas
	}
	if names := recs.Names(); names != nil {
		f.rename(names)
	}
	for i, t := range opts.typesOf(recs.Names(), len(f.columns)) {
		f.columns[i].set = t
	}
	return f
}

// rename sets the names of the columns, once these are known.
func (f *inference) rename(names []string) {
	for i := range f.columns {
		f.columns[i].name = names[i]
	}
}

// add takes one row into account, which must be the row that the records read last: errors
// name its place. What the options set for a column decides; of the others numbers, texts and
// missing cells are noted until schema decides. A cell that no type of its column allows ends
// the reading.
func (f *inference) add(row []Value) error {
	for i := range row {
		v, g := &row[i], &f.columns[i]
		if v.Kind == Absent || g.set != nil && g.set.Skip {
			continue
		}
		if problem := v.infinite(); problem != "" {
			return badData(f.recs.Where(i), "%s", problem)
		}
		if g.set != nil && g.set.Labels {
			text := v.Text
			if text == nil {
				text, g.bare = numberLabel(v), true
			}
			if g.set.mixed && v.Kind == String {
				f.noteCommas(i, text)
			}
			if err := f.addLabel(i, text); err != nil {
				return err
			}
			continue
		}
		if v.Kind == String && g.set != nil {
			number := v.spelled()
			v = &number
		}
		if f.points && v.Kind == String && g.set == nil && isDecimalComma(v.Text) {
			return badData(f.recs.Where(i), "%s has a comma where numbers have a decimal point; write points, or set the column's type to label", quote(v.Text))
		}
		if v.Kind == String {
			if g.set != nil || g.other {
				return badData(f.recs.Where(i), "%s is not a number%s; fix the cell or list the text as a missing mark", quote(v.Text), g.because())
			}
			if !g.text {
				g.text, g.textAt = true, f.recs.Where(i)+": "+quote(v.Text)
			}
			f.noteCommas(i, v.Text)
			if err := f.addLabel(i, v.Text); err != nil {
				return err
			}
			continue
		}
		g.tally.add(v.Number, f.sampled)
		switch x := v.Number; {
		case x >= 0 && x < MaxCategories && x == math.Trunc(x):
			g.whole = true
			g.most = max(g.most, x)
		case g.set != nil && g.set.Kind == Discrete:
			return badData(f.recs.Where(i), "%s is not a code (want 0..%d), and the column is set to be discrete", formatCode(x), MaxCategories-1)
		case math.Abs(x) > math.MaxFloat32:
			return badData(f.recs.Where(i), "%s is beyond ±3.4e38; scale the column", formatNumber(x))
		case g.text:
			cure := "fix the cell or set the column's type to label"
			if f.mayBeName(i) {
				cure = "if the first row names the columns, set data.header to yes, else " + cure
			}
			return badData(f.recs.Where(i), "%s is a number in a column of texts (%s); %s", formatNumber(x), g.textAt, cure)
		case !g.other:
			g.other, g.otherAt, g.otherValue = true, f.recs.Where(i), x
		}
	}
	return nil
}

// mayBeName reports whether the only text so far of a column is in a first row that was read as a row since it has numbers, and yet may
// be the names of columns.
func (f *inference) mayBeName(col int) bool {
	c, ok := f.recs.(*csvRecords)
	return ok && f.auto && c.names == nil && !c.undecided && c.first[col].Kind == String && f.columns[col].cells-f.columns[col].numbers == 1
}

func (g *guess) because() string {
	if g.set != nil {
		return fmt.Sprintf(", and the column is set to be %s", g.set.Kind)
	}
	return fmt.Sprintf(" like %s (%s)", formatNumber(g.otherValue), g.otherAt)
}

// addLabel notes a text as a category of a column. Texts that are not UTF-8, too long, or too
// many for categories are errors: a column of free text would otherwise fill the memory before
// anything said so.
func (f *inference) addLabel(col int, text []byte) error {
	g := &f.columns[col]
	g.cells++
	if _, ok := g.labels[string(text)]; ok {
		g.repeated = true
		return nil
	}
	f.labelBytes += len(text)
	switch {
	case !utf8.Valid(text):
		return badData(f.recs.Where(col), "%s is not UTF-8; convert the file, as with iconv -f latin1 -t utf-8", quote(text))
	case len(text) > maxLabelBytes:
		return badData(f.recs.Where(col), "text of %d bytes; a category's label has at most %d", len(text), maxLabelBytes)
	case len(g.labels) == maxInferredLabels && (g.set == nil || g.set.mixed):
		return badData(f.recs.Where(col), "more than %d different texts; set the column's type to skip, or to label if they are categories", maxInferredLabels)
	case len(g.labels) == MaxCategories:
		return badData(f.recs.Where(col), "more than %d different texts; set the column's type to skip", MaxCategories)
	case f.labelBytes > maxAllLabelBytes:
		return badData(f.recs.Where(col), "labels of more than %d MiB; set the type of text columns to skip", maxAllLabelBytes>>20)
	}
	if g.labels == nil {
		g.labels = make(map[string]struct{})
	}
	g.labels[string(text)] = struct{}{}
	return nil
}

// noteCommas notes whether a text of a column is a number but for its commas.
func (f *inference) noteCommas(col int, text []byte) {
	switch g := &f.columns[col]; {
	case !isDecimalComma(text):
		g.otherTexts = true
	case g.commaAt == "":
		g.commaAt = f.recs.Where(col) + ": " + quote(text)
	}
}

// looksLikeHeader reports whether a first row of texts, not yet added, is more
// likely the columns' names than data: a column below one of its texts holds only
// numbers, or none of its texts comes again in its column.
func (f *inference) looksLikeHeader(first []Value) bool {
	again := false
	for i, g := range f.columns {
		if first[i].Kind == String && (g.whole || g.other) && !g.text && len(g.labels) == 0 { // above numbers, a missing cell says nothing
			return true
		}
		if _, ok := g.labels[string(first[i].Text)]; ok {
			again = true
		}
	}
	return !again
}

// warnOfNames warns where the first row of a table in text was read as a row, since it has numbers, and yet may be the names of
// columns, some of which are numbers such as years: above some of the columns, which are mixed, it has the only text.
func (f *inference) warnOfNames(path string, mixed []int, opts *Options) {
	c, ok := f.recs.(*csvRecords)
	if !ok || c.names != nil || opts.Header == HeaderNo || opts.Header == HeaderYes {
		return
	}
	for _, i := range mixed {
		if v, g := &c.first[i], &f.columns[i]; v.Kind == String && g.cells-g.numbers == 1 { // a text that comes again is a cell
			opts.warn(path, "the first row has %s above numbers, and numbers itself, so that it is read as a row; if it names the columns, set data.header to yes", quote(v.Text))
			return
		}
	}
}

// checkTypes reports a type that is set for a column that does not exist, or that has one by its name.
func (f *inference) checkTypes(opts *Options) error {
	names := make([]string, len(f.columns))
	for i := range names {
		names[i] = f.columns[i].name
	}
	keys := opts.keysOf(names, len(names))
	for _, key := range slices.Sorted(maps.Keys(opts.Types)) {
		if key == "*" || slices.Contains(keys, key) {
			continue
		}
		if n, err := strconv.Atoi(key); err == nil && n >= 1 && n <= len(names) && key == strconv.Itoa(n) {
			return badSetting("types are set for column %.200q and for number %s, which is the same one; keep one", names[n-1], key)
		}
		return badSetting("a type is set for column %.200q, and there is none; write a name of the header, a number from 1 to %d, or *", key, len(names))
	}
	return nil
}

// mixed lists the columns that hold whole numbers and texts, whose numbers are
// labels too.
func (f *inference) mixed() []int {
	var cols []int
	for i, g := range f.columns {
		if g.text && g.whole {
			cols = append(cols, i)
		}
	}
	return cols
}

// tallies returns those of the columns that are not skipped.
func (f *inference) tallies() []tally {
	var kept []tally
	for i := range f.columns {
		g := &f.columns[i]
		if g.set != nil && g.set.Skip {
			continue
		}
		g.tally.set = g.set != nil && !g.set.mixed
		kept = append(kept, g.tally)
	}
	return kept
}

// schema returns the columns found, skipped ones left out; it is called when all rows were
// seen. A column is labelled if it held texts, continuous if it held a number other than a
// code or too large a one, else discrete. With oneDomain all discrete columns get the
// categories of the largest, but for those whose categories are set.
func (f *inference) schema(path string, oneDomain bool) (*Schema, error) {
	s := &Schema{}
	settled := map[int]bool{} // columns whose categories are set
	domain := 2
	for i := range f.columns {
		g := &f.columns[i]
		if g.set != nil && g.set.Skip {
			continue
		}
		c := Column{Name: g.name, Place: i + 1}
		if !utf8.ValidString(c.Name) {
			return nil, badData(path, "the header has %.200q, which is not UTF-8; convert the file, as with iconv -f latin1 -t utf-8", c.Name)
		}
		switch {
		case g.set != nil && g.set.Labels || g.text:
			c.Labels = slices.Sorted(maps.Keys(g.labels)) // none where no cell is observed: another file may have some
			c.Categories = len(c.Labels)
		case g.set != nil && g.set.Kind == Continuous,
			g.set == nil && (g.other || g.most >= maxInferredCategories):
			c.Kind = Continuous
		case g.set != nil && g.set.Categories > 0:
			c.Categories = g.set.Categories
			settled[len(s.Columns)] = true
			if int(g.most) >= c.Categories {
				return nil, badData(path, "column %d holds the code %d and is set to have %d categories; give it more", i+1, int(g.most), c.Categories)
			}
		default:
			c.Categories = max(2, int(g.most)+1)
			domain = max(domain, c.Categories)
		}
		s.Columns = append(s.Columns, c)
	}
	if len(s.Columns) == 0 {
		return nil, badData(path, "all columns are skipped; leave at least one")
	}
	if oneDomain {
		for i := range s.Columns {
			if c := &s.Columns[i]; c.Kind == Discrete && c.Labels == nil && c.Categories < domain && !settled[i] {
				c.Categories = domain
			}
		}
	}
	if name, twice := s.nameTwice(); twice {
		return nil, badData(path, "two columns are named %.200q; rename or remove one", name)
	}
	return s, nil
}

// withLabels returns o with some columns, counted from 0, as labels, and with the header settled
// as it was found.
func (o *Options) withLabels(recs Records, cols []int) *Options {
	out := *o
	out.mixed = slices.Concat(o.mixed, cols)
	out.Header = HeaderNo
	if recs.Names() != nil {
		out.Header = HeaderYes
	}
	return &out
}

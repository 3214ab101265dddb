package dataset

import "io"

// pngWriter draws the rows as one picture: a grid that is about as wide as it is high.
type pngWriter struct {
	w       io.Writer
	picture *picture
	rows    int
	written int
}

func newPNGWriter(w io.Writer, s *Schema, rows int) (Writer, error) {
	return newGrid(w, s, rows, false)
}

// NewShownWriter returns a writer of that many rows of s as a PNG picture for a report, which shows pictures up to a size: dots are
// smaller where that keeps the picture to it.
func NewShownWriter(w io.Writer, s *Schema, rows int) (Writer, error) {
	return newGrid(w, s, rows, true)
}

func newGrid(w io.Writer, s *Schema, rows int, shown bool) (Writer, error) {
	if rows < 1 {
		return nil, badSetting("a picture of %d images; write at least one", rows)
	}
	across := squareColumns(s, rows)
	p, err := makePicture(&picture{schema: s, across: []int{across}, down: (rows-1)/across + 1, shown: shown})
	if err != nil {
		return nil, err
	}
	return &pngWriter{w: w, picture: p, rows: rows}, nil
}

func (p *pngWriter) Write(b *Batch) error {
	if p.written+b.Rows > p.rows {
		return badSetting("more than %d images written", p.rows)
	}
	for r := range b.Rows {
		p.picture.draw(p.written/p.picture.columns, p.written%p.picture.columns, b, r, nil)
		p.written++
	}
	return nil
}

func (p *pngWriter) Close() error {
	if p.written != p.rows {
		return badSetting("%d of %d images were written", p.written, p.rows)
	}
	return p.picture.encode(p.w)
}

// WriteBeside draws rows of s, images of 1 or 3 channels, as a PNG picture of two
// panels: drawn on the left, and real, rows of realSchema, on the right on a light ground.
// The real rows may be codes where s has numbers: then their categories say what is white
// in both panels; so does the largest real number, if it is above 1. Each dot of an image has
// 4 x 4 pixels where the picture does not get too large by that.
func WriteBeside(w io.Writer, s *Schema, drawn *Batch, realSchema *Schema, real *Batch) error {
	if len(drawn.Columns) != len(s.Columns) || len(real.Columns) != len(s.Columns) || len(realSchema.Columns) != len(s.Columns) {
		return badSetting("a picture of rows of %d, %d and %d columns; give all as many as the schema has, %d",
			len(drawn.Columns), len(real.Columns), len(realSchema.Columns), len(s.Columns))
	}
	if drawn.Rows < 1 || real.Rows < 1 {
		return badSetting("a picture of %d images beside %d; give at least one of each", drawn.Rows, real.Rows)
	}
	down, across := panels(s, drawn.Rows, real.Rows)
	p, err := newPicture(s, down, across...)
	if err != nil {
		return err
	}
	largest := 1.0
	for i := range real.Columns {
		for _, v := range real.Columns[i].Values {
			if x := realSchema.Columns[i].Number(v); x > largest {
				largest = x
			}
		}
	}
	for i, white := range whites(realSchema) {
		switch {
		case s.Columns[i].Kind == Continuous && realSchema.Columns[i].Kind == Discrete:
			p.white[i] = white
		case p.white[i] == 0:
			p.white[i] = largest
		}
	}
	for panel, b := range []*Batch{drawn, real} {
		for r := range b.Rows {
			p.draw(r/across[panel], panel*across[0]+r%across[panel], b, r, nil)
		}
	}
	return p.encode(w)
}

// panels returns how many cells high the panels of WriteBeside are, and how many wide each is.
func panels(s *Schema, drawn, real int) (down int, across []int) {
	down = (drawn-1)/squareColumns(s, drawn) + 1
	return down, []int{(drawn-1)/down + 1, (real-1)/down + 1}
}

// FitsBeside reports whether WriteBeside can draw that many images of s: larger pictures take too much memory.
func FitsBeside(s *Schema, drawn, real int) bool {
	down, across := panels(s, drawn, real)
	p := picture{schema: s, shown: true, down: down, across: across, columns: across[0] + across[1]}
	return p.largestDot() > 0
}

// CompletionWriter draws completions of rows: a line of the picture has a given row,
// whose missing dots are blue, and then its completions, in which the dots that were
// given are tinted orange.
type CompletionWriter struct {
	w       io.Writer
	picture *picture
	given   int
	times   int
	written int
}

// NewCompletionWriter returns a writer of a PNG picture of given rows of s, each with
// times completions.
func NewCompletionWriter(w io.Writer, s *Schema, given, times int) (*CompletionWriter, error) {
	if given < 1 || times < 1 {
		return nil, badSetting("a picture of %d completions of %d rows; give at least one of each", times, given)
	}
	p, err := newPicture(s, given, times+1)
	if err != nil {
		return nil, err
	}
	return &CompletionWriter{w: w, picture: p, given: given, times: times}, nil
}

// Write draws completed rows; row r of given is what row r of completed was made of.
// The completions of a row follow each other.
func (c *CompletionWriter) Write(given, completed *Batch) error {
	if given.Rows != completed.Rows {
		return badSetting("%d completions of %d rows written; give the row of each", completed.Rows, given.Rows)
	}
	if c.written+given.Rows > c.given*c.times {
		return badSetting("more than %d completions written", c.given*c.times)
	}
	for r := range given.Rows {
		line, nth := c.written/c.times, c.written%c.times
		if nth == 0 {
			c.picture.draw(line, 0, given, r, nil)
		}
		c.picture.draw(line, 1+nth, completed, r, func(col int) bool { return !given.Columns[col].IsMissing(r) })
		c.written++
	}
	return nil
}

// Close writes the picture, once all completions were written; fewer are an error, and nothing
// is written.
func (c *CompletionWriter) Close() error {
	if c.written != c.given*c.times {
		return badSetting("%d of %d completions were written", c.written, c.given*c.times)
	}
	return c.picture.encode(c.w)
}

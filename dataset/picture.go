package dataset

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"slices"
)

// A picture shows rows that are images in a grid of cells.
const (
	maxPicturePixels = 1 << 28
	maxPictureSide   = 1 << 14 // pixels of pictures that reports show; smaller dots keep to it as far as they can
	pictureDot       = 4       // pixels of a side of a dot, unless the picture would be too large
	pictureMargin    = 2       // pixels around a cell
	panelGap         = 8       // pixels between panels, and around a panel that is marked
)

// The colours between the cells, of dots that are missing, and what is mixed into dots
// that are evidence.
var (
	pictureGround  = color.RGBA{64, 64, 64, 255}
	markedGround   = color.RGBA{222, 222, 222, 255}
	missingColour  = color.RGBA{48, 72, 160, 255}
	evidenceColour = color.RGBA{255, 140, 0, 255}
)

// picture is a grid of cells of one size, in panels beside each other.
type picture struct {
	*image.RGBA
	schema  *Schema
	white   []float64 // of each column, the number that is drawn white, 0 where that is found in what is drawn; 0 is black
	dot     int
	across  []int // cells, by panel
	columns int   // of all panels
	down    int
	shown   bool      // a report shows it: dots are as small as maxPictureSide wants them, if they can be
	later   []drawing // that wait for what is white
}

// drawing is a row in its cell.
type drawing struct {
	line, column int
	dots         []float32 // of each column the shade or, where white is not known, the number; NaN where the row lacks it
	evidence     []bool    // of each column; nil: none is
}

// newPicture makes an empty picture of rows of s: a grid down cells high, and
// across cells wide in each panel. The last of several panels is marked by a light ground.
func newPicture(s *Schema, down int, across ...int) (*picture, error) {
	return makePicture(&picture{schema: s, across: across, down: down, shown: len(across) > 1})
}

// makePicture completes a picture of which is known what is in it, and where.
func makePicture(p *picture) (*picture, error) {
	if err := p.lay(); err != nil {
		return nil, err
	}
	right := p.left(p.columns-1) + p.cell(1)
	bottom := p.top(p.down-1) + p.cell(0)
	p.RGBA = image.NewRGBA(image.Rect(0, 0, right+p.edge(), bottom+p.edge()))
	draw.Draw(p.RGBA, p.Bounds(), image.NewUniform(pictureGround), image.Point{}, draw.Src)
	if n := len(p.across); n > 1 {
		from := p.left(p.columns-p.across[n-1]) - panelGap
		draw.Draw(p.RGBA, image.Rect(from, 0, right+p.edge(), bottom+p.edge()), image.NewUniform(markedGround), image.Point{}, draw.Src)
	}
	return p, nil
}

// lay finds where everything in a picture is, which takes no memory for pixels.
func (p *picture) lay() error {
	s := p.schema
	if s.Image == [3]int{} || s.Image[2] != 1 && s.Image[2] != 3 {
		what := "not images"
		if s.Image != [3]int{} {
			what = fmt.Sprintf("images of %d channels, and 1 or 3 can be drawn", s.Image[2])
		}
		return badSetting("the rows are %s; write .csv or .npy", what)
	}
	p.white = whites(s)
	for _, n := range p.across {
		p.columns += n
	}
	if p.dot = p.largestDot(); p.dot == 0 {
		return badSetting("%d x %d images make a picture that is too large; write fewer, or .npy", p.down, p.columns)
	}
	return nil
}

// largestDot returns how large dots may be so that the picture does not get too large; 0:
// not even one pixel is small enough.
func (p *picture) largestDot() int {
	gaps := float64(2 * panelGap * len(p.across))
	for p.dot = pictureDot; p.dot > 0; p.dot-- {
		height := float64(p.down)*float64(p.cell(0)) + gaps
		width := float64(p.columns)*float64(p.cell(1)) + gaps
		fits := !p.shown || p.dot == 1 || max(height, width) <= maxPictureSide
		if fits && height*width <= maxPicturePixels {
			return p.dot
		}
	}
	return 0
}

// cell is the height (0) or width (1) of a cell in pixels, with the margin behind it.
func (p *picture) cell(side int) int { return p.schema.Image[side]*p.dot + pictureMargin }

// edge is the margin around all cells, less what a cell has behind it.
func (p *picture) edge() int {
	if len(p.across) > 1 {
		return panelGap - pictureMargin
	}
	return 0
}

// left is where the cells of a column begin, and top where those of a line do.
func (p *picture) left(column int) int {
	x := pictureMargin + p.edge() + column*p.cell(1)
	for _, n := range p.across {
		if column -= n; column < 0 {
			break
		}
		x += 2 * panelGap
	}
	return x
}

func (p *picture) top(line int) int { return pictureMargin + p.edge() + line*p.cell(0) }

// draw fills a cell with row r of b, at once or when the picture is encoded. Dots for which
// evidence says yes are tinted; nil: none are.
func (p *picture) draw(line, column int, b *Batch, r int, evidence func(col int) bool) {
	d := drawing{line: line, column: column, dots: make([]float32, len(b.Columns))}
	for col := range d.dots {
		d.dots[col] = p.look(b, col, r)
	}
	if evidence != nil {
		d.evidence = make([]bool, len(d.dots))
		for col := range d.evidence {
			d.evidence[col] = evidence(col)
		}
	}
	if slices.Contains(p.white, 0) {
		p.later = append(p.later, d)
		return
	}
	p.paint(&d, 0)
}

// paint fills a cell. white is that of the columns of which it was not known.
func (p *picture) paint(d *drawing, white float64) {
	h, w, channels := p.schema.Image[0], p.schema.Image[1], p.schema.Image[2]
	for y := range h {
		for x := range w {
			first := (y*w + x) * channels
			x0, y0 := p.left(d.column)+x*p.dot, p.top(d.line)+y*p.dot
			c := image.NewUniform(p.colour(d, first, white))
			draw.Draw(p.RGBA, image.Rect(x0, y0, x0+p.dot, y0+p.dot), c, image.Point{}, draw.Src)
		}
	}
}

// colour is that of a dot whose first channel is a column. A dot of which a channel is
// missing is missing.
func (p *picture) colour(d *drawing, first int, white float64) color.RGBA {
	out := color.RGBA{A: 255}
	known := d.evidence != nil
	for k, c := range []*uint8{&out.R, &out.G, &out.B} {
		col := first + k%p.schema.Image[2]
		x := d.dots[col]
		if x != x {
			return missingColour
		}
		if *c = uint8(x); p.white[col] == 0 {
			*c = shade(float64(x), white)
		}
		known = known && d.evidence[col]
	}
	if known {
		mix := func(a, b uint8) uint8 { return uint8((5*int(a) + 3*int(b)) / 8) }
		out = color.RGBA{mix(out.R, evidenceColour.R), mix(out.G, evidenceColour.G), mix(out.B, evidenceColour.B), 255}
	}
	return out
}

// encode writes the picture as PNG: in greys where it has no other colours, which takes
// about half the bytes.
func (p *picture) encode(w io.Writer) error {
	if len(p.later) > 0 {
		white := p.usual()
		for i := range p.later {
			p.paint(&p.later[i], white)
		}
		p.later = nil
	}
	var out image.Image = p
	if grey := image.NewGray(p.Bounds()); copyGreys(grey.Pix, p.Pix) {
		out = grey
	}
	e := png.Encoder{CompressionLevel: png.BestCompression}
	return e.Encode(w, out)
}

// copyGreys copies opaque pixels of four bytes to such of one, and reports whether they
// are all grey.
func copyGreys(to, from []uint8) bool {
	for i := range to {
		c := from[4*i : 4*i+3]
		if c[0] != c[1] || c[1] != c[2] {
			return false
		}
		to[i] = c[0]
	}
	return true
}

// whites returns the largest code of each column, and for columns of numbers in bins the end of
// the last bin of all, at least 1. A model does not keep how large other numbers are.
func whites(s *Schema) []float64 {
	w, last := make([]float64, len(s.Columns)), 1.0
	for _, c := range s.Columns {
		if c.Edges != nil {
			last = max(last, c.Edges[len(c.Edges)-1])
		}
	}
	for i, c := range s.Columns {
		switch {
		case c.Kind == Discrete:
			w[i] = float64(max(1, c.Categories-1))
		case c.Edges != nil:
			w[i] = last
		}
	}
	return w
}

// usual returns what is white of the numbers that wait to be drawn: 1 where nearly all of them are
// near 0 to 1, else what nearly all do not exceed, as the largest of draws may lie far from the others.
func (p *picture) usual() float64 {
	const (
		near = 2       // numbers of 0 to 1 are drawn up to there, and few beyond
		most = 1 << 16 // that are looked at
	)
	step := len(p.later)*len(p.white)/most + 1
	for divisor(step, len(p.white)) > 1 { // else some columns alone are looked at, as those of a border
		step++
	}
	var some []float64
	for at := 0; at < len(p.later)*len(p.white); at += step {
		col := at % len(p.white)
		if x := p.later[at/len(p.white)].dots[col]; x-x == 0 && p.white[col] == 0 {
			some = append(some, float64(x))
		}
	}
	slices.Sort(some)
	if n := len(some); n > 0 && some[n*99/100] > near {
		return some[n*99/100]
	}
	return 1
}

// divisor returns the greatest number that divides both.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// look returns the shade of a cell or, where white is not known, its number; NaN where it is missing. The cells of
// a batch may be codes where the schema has numbers: those of rows that a model of numbers was trained on.
func (p *picture) look(b *Batch, col, row int) float32 {
	cells, white := &b.Columns[col], p.white[col]
	if cells.IsMissing(row) {
		return float32(math.NaN())
	}
	if cells.Discrete() {
		code := float64(cells.Codes.At(row))
		if white == 0 {
			return float32(code)
		}
		return float32(uint8(min(255, code*255/white)))
	}
	x := p.schema.Columns[col].Number(cells.Values[row])
	if white == 0 {
		return float32(x)
	}
	return float32(shade(x, white))
}

// shade maps a number to 0..255.
func shade(x, white float64) uint8 { return uint8(255*min(1, max(0, x/white)) + 0.5) }

// squareColumns returns how many columns make a picture of rows about as wide as it is
// high.
func squareColumns(s *Schema, rows int) int {
	height, width := s.Image[0]+1, s.Image[1]+1
	return max(1, min(rows, int(math.Ceil(math.Sqrt(float64(rows)*float64(height)/float64(width))))))
}

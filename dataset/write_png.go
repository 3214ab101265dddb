package dataset

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
)

const (
	maxPicturePixels = 1 << 28
	pictureMargin    = 2 // pixels between images
)

// pngWriter draws the rows as one picture: a grid of images that is about as
// wide as it is high.
type pngWriter struct {
	w       io.Writer
	schema  *Schema
	rows    int
	across  int
	picture *image.RGBA
	written int
}

func newPNGWriter(w io.Writer, s *Schema, rows int) (Writer, error) {
	if s.Image == [3]int{} || s.Image[2] != 1 && s.Image[2] != 3 {
		return nil, badSetting("rows of image shape %v cannot be drawn; set the data's image shape, with 1 or 3 channels", s.Image)
	}
	if rows < 1 {
		return nil, badSetting("a picture of %d images; write at least one", rows)
	}
	height, width := s.Image[0]+pictureMargin, s.Image[1]+pictureMargin
	if rows > maxPicturePixels/(height*width)/2 {
		return nil, badSetting("%d images make a picture that is too large; write fewer, or .npy", rows)
	}
	p := &pngWriter{w: w, schema: s, rows: rows, across: max(1, min(rows, int(math.Ceil(math.Sqrt(float64(rows*height)/float64(width))))))}
	down := (rows + p.across - 1) / p.across
	p.picture = image.NewRGBA(image.Rect(0, 0, p.across*width+pictureMargin, down*height+pictureMargin))
	for i := range p.picture.Pix {
		p.picture.Pix[i] = 64
		if i%4 == 3 {
			p.picture.Pix[i] = 255
		}
	}
	return p, nil
}

func (p *pngWriter) Write(b *Batch) error {
	if p.written+b.Rows > p.rows {
		return badSetting("more than %d images written", p.rows)
	}
	h, w, channels := p.schema.Image[0], p.schema.Image[1], p.schema.Image[2]
	for r := range b.Rows {
		left := pictureMargin + p.written%p.across*(w+pictureMargin)
		top := pictureMargin + p.written/p.across*(h+pictureMargin)
		for y := range h {
			for x := range w {
				var c [3]uint8
				for k := range c {
					c[k] = p.shade(b, (y*w+x)*channels+k%channels, r)
				}
				p.picture.SetRGBA(left+x, top+y, color.RGBA{c[0], c[1], c[2], 255})
			}
		}
		p.written++
	}
	return nil
}

// shade maps the codes of a column to 0..255 and values 0..1 to the same;
// missing cells are half grey.
func (p *pngWriter) shade(b *Batch, col, row int) uint8 {
	if c := &p.schema.Columns[col]; c.Kind == Discrete {
		code := b.Columns[col].Codes.At(row)
		if code == Missing {
			return 128
		}
		return uint8(min(255, code*255/max(1, c.Categories-1)))
	}
	v := b.Columns[col].Values[row]
	if v != v {
		return 128
	}
	return uint8(255*min(1, max(0, v)) + 0.5)
}

func (p *pngWriter) Close() error {
	if p.written != p.rows {
		return badSetting("%d of %d images were written", p.written, p.rows)
	}
	return png.Encode(p.w, p.picture)
}

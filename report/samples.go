package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"image/png"
	"io"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
)

// Samples are rows that were drawn from the model: a picture, or a table.
type Samples struct {
	Width, Height int    // of the picture
	PNG           []byte // nil: a table

	Columns []string
	Rows    [][]string
	Left    int // columns that the table leaves out
}

// What is drawn of a model that has no picture of samples.
const (
	drawnImages    = 25
	drawnRows      = 12
	drawnColumns   = 24
	maxPicture     = 16 << 20 // bytes of a picture
	maxPictureSide = 1 << 14  // pixels
	picturePixels  = 32       // pixels of a side that are not of images, at most
	maxDecoded     = 1 << 24  // pixels of a picture that is decoded to see whether it is whole
)

// pictureEnd is the last chunk of every PNG picture.
const pictureEnd = "\x00\x00\x00\x00IEND\xaeB`\x82"

// readPicture takes a picture that training drew.
func (r *Run) readPicture(path string) error {
	text, err := readBounded(path, maxPicture)
	if err != nil {
		return err
	}
	r.Samples, err = picture(text)
	return err
}

// picture checks that a picture is whole: a large one, whose pixels would take memory by their number and not by
// the file's bytes, by its end.
func picture(text []byte) (*Samples, error) {
	c, err := png.DecodeConfig(bytes.NewReader(text))
	switch {
	case err != nil:
	case max(c.Width, c.Height) > maxPictureSide:
		err = fmt.Errorf("it has %d×%d pixels", c.Width, c.Height)
	case c.Width*c.Height <= maxDecoded:
		_, err = png.Decode(bytes.NewReader(text))
	case !bytes.HasSuffix(text, []byte(pictureEnd)):
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return &Samples{Width: c.Width, Height: c.Height, PNG: text}, nil
}

// draw draws rows from the model with seed 0, as pce query sample does: a picture of images,
// the first columns of others, and of images that are too wide to be shown. It is called where the run has left no samples. A model that
// does not fit into memory here gives an error, which the report notes.
func (r *Run) draw(ctx context.Context, path string, on pce.Options) error {
	m, err := pce.Open(ctx, path, on)
	if err != nil {
		return err
	}
	defer m.Close()
	s := m.Schema()
	n, images := drawnRows, (s.Image[2] == 1 || s.Image[2] == 3) && max(s.Image[0], s.Image[1]) <= maxPictureSide-picturePixels
	if images {
		n = drawnImages
	}
	b := dataset.NewBatch(s, n)
	if err := m.SampleBatch(ctx, b, 0, 0); err != nil {
		return err
	}
	var text bytes.Buffer
	var w dataset.Writer
	if images {
		w, err = dataset.NewShownWriter(&text, s, n)
	} else {
		w, err = dataset.NewWriter(&text, "samples.csv", s, n)
	}
	if err != nil {
		return err
	}
	if err := w.Write(b); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if images {
		r.Samples, err = picture(text.Bytes())
		return err
	}
	return r.table(s, &text)
}

// table takes the first columns of rows in CSV.
func (r *Run) table(s *dataset.Schema, text *bytes.Buffer) error {
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		return err
	}
	columns := min(len(s.Columns), drawnColumns)
	t := &Samples{Left: len(s.Columns) - columns}
	for v := range columns {
		name := s.Columns[v].Name
		if name == "" {
			name = fmt.Sprint(v + 1)
		}
		t.Columns = append(t.Columns, name)
	}
	for _, row := range rows {
		t.Rows = append(t.Rows, row[:columns])
	}
	r.Samples = t
	return nil
}

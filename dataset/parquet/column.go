package parquet

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// column is the cells of a chunk: those of the library, or where it has others than the file our own.
type column struct {
	own    *pages
	pages  parquet.Pages
	page   parquet.Page // of the library, whose memory ready may be in
	values parquet.ValueReader
	buffer [rowsAtOnce]parquet.Value
	ready  []parquet.Value // the next cells
	err    error           // behind them
}

// fill decodes some cells, at least one.
func (c *column) fill() error {
	if c.err != nil {
		return c.err
	}
	n := 0
	if c.own != nil {
		for n < len(c.buffer) && (n == 0 || c.own.left > 0) && c.err == nil {
			if c.buffer[n], c.err = c.own.next(); c.err == nil {
				n++
			}
		}
	} else {
		n, c.err = c.read()
	}
	if c.ready = c.buffer[:n]; n == 0 {
		return c.err
	}
	return nil
}

// read decodes cells of the library. There has to be one: the end of the file comes too early.
func (c *column) read() (int, error) {
	for {
		if c.page == nil {
			page, err := c.pages.ReadPage()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return 0, err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buffer[:])
		switch {
		case n > 0: // the end of the page comes with the next call
			return n, nil
		case err == io.EOF:
			parquet.Release(c.page)
			c.page = nil
		case err == nil:
			return 0, io.ErrNoProgress
		default:
			return 0, err
		}
	}
}

// close gives back what the library has for the column.
func (c *column) close() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	if c.pages != nil {
		c.pages.Close()
	}
}

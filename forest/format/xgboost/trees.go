package xgboost

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/parallel"
)

// apartBytes is how much of a file has to be left for more than one goroutine to read its trees.
const apartBytes = 256 << 10

// readTrees reads the array of trees.
func (d *document) readTrees(s source) error {
	if d.seenTrees { // else each array could send readApart to the end of the file
		return errors.New("the trees are there twice; a model has them once")
	}
	d.seenTrees = true
	if at := s.here(); len(at.b)-at.at >= apartBytes && d.readApart(s) {
		return nil
	}
	return d.readInTurn(s)
}

// readInTurn reads the array of trees, one after the other.
func (d *document) readInTurn(s source) error {
	c := new(columns)
	return s.array(func() error {
		t, err := c.read(s)
		if err != nil {
			return fmt.Errorf("tree %d: %w", len(d.trees), err)
		}
		if c.vector > 1 {
			d.vector = c.vector
		}
		d.trees = append(d.trees, t)
		return nil
	})
}

// piece is a tree that is read apart.
type piece struct {
	from   source // at its begin
	end    int    // where jump found it to end
	tree   forest.Tree
	vector int
}

// errNoEnd stops a pass over an array.
var errNoEnd = errors.New("no end")

// readApart reads the array of trees on all processors: one goroutine jumps from tree to tree, and all read. It returns false,
// and leaves s where it was, if a tree is faulty or does not end where the jump did; readInTurn then tells what is wrong
// with the file, if anything is.
func (d *document) readApart(s source) bool {
	var pieces []*piece
	var failed atomic.Bool
	ahead := s.from(*s.here())
	parallel.Stream(func(put func(*piece)) {
		err := ahead.array(func() error {
			p := &piece{from: ahead.from(*ahead.here())}
			if failed.Load() || !ahead.jump() {
				return errNoEnd
			}
			p.end = ahead.here().at
			pieces = append(pieces, p)
			put(p)
			return nil
		})
		if err != nil {
			failed.Store(true)
		}
	}, func() func(*piece) {
		c := new(columns)
		return func(p *piece) {
			if failed.Load() {
				return
			}
			var err error
			if p.tree, err = c.read(p.from); err != nil || p.from.here().at != p.end {
				failed.Store(true)
			}
			p.vector = c.vector
		}
	})
	if failed.Load() {
		return false
	}
	for _, p := range pieces {
		if p.vector > 1 {
			d.vector = p.vector
		}
		d.trees = append(d.trees, p.tree)
	}
	*s.here() = *ahead.here()
	return true
}

// read reads a tree.
func (c *columns) read(s source) (forest.Tree, error) {
	c.clear()
	var weights func(into []float64) ([]float64, error) // which come before it is known whether leaves have several
	err := s.object(func(key string) error {
		floats, ints := c.floats(key), c.integers(key)
		switch {
		case key == "tree_param":
			return texts(s, func(key, text string) (err error) {
				if key == "size_leaf_vector" {
					c.vector, err = count(key, text, forest.MaxOutputs)
				}
				return err
			})
		case key == "base_weights":
			var err error
			weights, err = later(s)
			return err
		case floats != nil || ints != nil:
			if floats == nil {
				floats = &c.numbers
			}
			var err error
			if *floats, err = s.numbers(*floats); err == nil && ints != nil {
				*ints, err = integers(key, *floats, *ints)
			}
			return err
		}
		return s.skip()
	})
	if err == nil && c.vector > 1 && weights != nil {
		c.weights, err = weights(c.weights)
	}
	if err != nil {
		return forest.Tree{}, err
	}
	return c.tree()
}

package digits

import (
	"fmt"
	"math"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

const (
	grid    = 128 // cells of a side of a distance map
	emCells = 88  // cells of an em; a digit is then about 64 cells high
	reach   = 20  // cells up to which distances are known
	unit    = 16  // a distance of one cell
	pieces  = 8   // straight pieces of a curve
)

// distances is the signed distance of each cell of a grid from the outline of a
// glyph, positive inside, in 1/unit cells. The glyph is in the middle.
type distances [grid][grid]int16

// glyphs returns the distance maps of the ten digits in each font.
func glyphs() ([][10]*distances, error) {
	var out [][10]*distances
	for _, ttf := range [][]byte{goregular.TTF, gomedium.TTF, gobold.TTF} {
		f, err := sfnt.Parse(ttf)
		if err != nil {
			return nil, fmt.Errorf("digits: font: %w", err)
		}
		var maps [10]*distances
		for d := range maps {
			lines, err := outline(f, rune('0'+d))
			if err != nil {
				return nil, fmt.Errorf("digits: glyph %d: %w", d, err)
			}
			maps[d] = measure(fill(lines))
		}
		out = append(out, maps)
	}
	return out, nil
}

// line is a straight piece of an outline in 1/64 cells.
type line struct{ x0, y0, x1, y1 int }

// outline returns the outline of a glyph, curves cut into lines, in the middle
// of the grid. All arithmetic is on integers, hence the same on all machines.
func outline(f *sfnt.Font, r rune) ([]line, error) {
	var buf sfnt.Buffer
	index, err := f.GlyphIndex(&buf, r)
	if err != nil {
		return nil, err
	}
	segments, err := f.LoadGlyph(&buf, index, fixed.I(emCells), nil)
	if err != nil {
		return nil, err
	}
	var lines []line
	var at fixed.Point26_6
	add := func(x, y int) {
		lines = append(lines, line{int(at.X), int(at.Y), x, y})
		at = fixed.Point26_6{X: fixed.Int26_6(x), Y: fixed.Int26_6(y)}
	}
	for _, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			at = s.Args[0]
		case sfnt.SegmentOpLineTo:
			add(int(s.Args[0].X), int(s.Args[0].Y))
		case sfnt.SegmentOpQuadTo:
			from, by, to := at, s.Args[0], s.Args[1]
			for t := 1; t <= pieces; t++ {
				u := pieces - t
				add((u*u*int(from.X)+2*u*t*int(by.X)+t*t*int(to.X))/(pieces*pieces),
					(u*u*int(from.Y)+2*u*t*int(by.Y)+t*t*int(to.Y))/(pieces*pieces))
			}
		default:
			return nil, fmt.Errorf("outline has a cubic curve, TrueType has none")
		}
	}
	b := segments.Bounds()
	dx, dy := 32*grid-int(b.Min.X+b.Max.X)/2, 32*grid-int(b.Min.Y+b.Max.Y)/2
	for i := range lines {
		l := &lines[i]
		l.x0, l.x1, l.y0, l.y1 = l.x0+dx, l.x1+dx, l.y0+dy, l.y1+dy
	}
	return lines, nil
}

// fill reports for each cell whether its centre is inside the outline, by the
// non-zero winding rule.
func fill(lines []line) *[grid][grid]bool {
	var inside [grid][grid]bool
	for y := range grid {
		var turns [grid + 1]int // change of the winding number at a cell
		cy := 64*y + 32
		for _, l := range lines {
			turn := 1
			if l.y0 > l.y1 {
				l, turn = line{l.x1, l.y1, l.x0, l.y0}, -1
			}
			if cy < l.y0 || cy >= l.y1 {
				continue
			}
			x := l.x0 + (l.x1-l.x0)*(cy-l.y0)/(l.y1-l.y0)
			turns[min(grid, max(0, (x+31)/64))] += turn // first cell whose centre is right of x
		}
		winding := 0
		for x := range grid {
			winding += turns[x]
			inside[y][x] = winding != 0
		}
	}
	return &inside
}

// measure returns the distances of the cells from the border between inside and
// outside.
func measure(inside *[grid][grid]bool) *distances {
	// down[y][x] is the distance within the column to the nearest cell of the
	// other kind, at most reach.
	var down [grid][grid]int
	for x := range grid {
		for y := range grid {
			d := 1
			for d < reach && (y-d < 0 || inside[y-d][x] == inside[y][x]) && (y+d >= grid || inside[y+d][x] == inside[y][x]) {
				d++
			}
			down[y][x] = d
		}
	}
	var out distances
	for y := range grid {
		for x := range grid {
			best := reach * reach
			for k := max(0, x-reach); k < min(grid, x+reach+1); k++ {
				dx := k - x
				if inside[y][k] != inside[y][x] {
					best = min(best, dx*dx)
				} else if d := down[y][k]; d < reach {
					best = min(best, dx*dx+d*d)
				}
			}
			d := int16(unit*math.Sqrt(float64(best))) - unit/2
			if !inside[y][x] {
				d = -d
			}
			out[y][x] = d
		}
	}
	return &out
}

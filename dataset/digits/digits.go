// Package digits renders pictures of digits from the Go fonts: data to learn
// from on a machine that has nothing else. Builtin makes them sources of package
// dataset.
//
// # Shapes and units
//
// A picture is Side by Side bytes, row by row, 0 for paper and 255 for ink.
//
// # Errors
//
// Render fails only if the fonts that are built in cannot be read.
//
// # Goroutines
//
// Render starts a few, which end before it returns.
//
// # Source
//
// The fonts are those of golang.org/x/image/font/gofont (Bigelow and Holmes).
// Glyphs are kept as distance maps (Green, "Improved Alpha-Tested
// Magnification for Vector Textures and Special Effects", SIGGRAPH 2007), which
// makes a picture of any size, slant and weight one lookup per pixel. All
// arithmetic is on integers, so that pictures are the same on all machines.
package digits

import (
	"math/rand/v2"
	"runtime"
	"sync"
)

// Side is the height and width of a picture; Pixels its size.
const (
	Side   = 28
	Pixels = Side * Side
)

var fonts = sync.OnceValues(glyphs)

// Render returns n pictures and the digits they show. Picture i depends on seed
// and i only.
func Render(seed uint64, n int) (pixels, labels []byte, err error) {
	maps, err := fonts()
	if err != nil {
		return nil, nil, err
	}
	pixels, labels = make([]byte, n*Pixels), make([]byte, n)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				labels[i] = draw((*[Pixels]byte)(pixels[i*Pixels:]), maps, rand.NewPCG(seed, uint64(i)))
			}
		})
	}
	wg.Wait()
	return pixels, labels, nil
}

const one = 1 << 16 // 1 in fixed point

// between returns a number from lo to hi.
func between(rng *rand.PCG, lo, hi int) int {
	return lo + int(rng.Uint64()>>33)%(hi-lo+1)
}

// draw draws one picture of a random digit in a random font, slanted, turned,
// scaled, moved, thickened and noised, and returns the digit.
func draw(dst *[Pixels]byte, maps [][10]*distances, rng *rand.PCG) byte {
	digit := between(rng, 0, 9)
	m := maps[between(rng, 0, len(maps)-1)][digit]

	// The matrix maps pixels to cells: turn, then slant, then scale.
	scale := between(rng, one*33/10, one*38/10)     // cells of a pixel
	narrow := between(rng, one*95/100, one*115/100) // x against y
	slant := between(rng, -one/8, one/8)
	half := between(rng, -one/24, one/24) // tangent of half the angle: about ±5°
	square := half * half / one
	sin, cos := 2*half*one/(one+square), (one-square)*one/(one+square)
	wide := scale * narrow / one
	xx, xy := mul(wide, cos+mul(slant, sin)), mul(wide, mul(slant, cos)-sin)
	yx, yy := mul(scale, sin), mul(scale, cos)

	// Pixel (13.5, 13.5), moved a little, is the middle of the grid.
	left, top := Side*one/2-one/2+between(rng, -one, one), Side*one/2-one/2+between(rng, -one, one)
	x0, y0 := (grid-1)*one/2-mul(xx, left)-mul(xy, top), (grid-1)*one/2-mul(yx, left)-mul(yy, top)

	thicker := between(rng, -unit/2, 2*unit)
	gain := 255 << 28 / scale // an edge is one pixel wide
	ink := between(rng, 170, 255)
	for i := range Side {
		var noise uint64
		for j := range Side {
			if j%8 == 0 {
				noise = rng.Uint64()
			}
			d := m.at(x0+xx*j+xy*i, y0+yx*j+yy*i) + thicker
			cover := min(255, max(0, 128+d*gain>>16))
			shade := ink + int(noise&31) - 16
			noise >>= 8
			dst[i*Side+j] = byte(min(255, cover*shade/255))
		}
	}
	return byte(digit)
}

func mul(a, b int) int { return a * b >> 16 }

// at returns the distance at a point in fixed point, between the four cells
// around it; far outside where there are none.
func (m *distances) at(x, y int) int {
	cx, cy := x>>16, y>>16
	if cx < 0 || cy < 0 || cx >= grid-1 || cy >= grid-1 {
		return -reach * unit
	}
	fx, fy := x>>8&255, y>>8&255
	top := int(m[cy][cx])*(256-fx) + int(m[cy][cx+1])*fx
	bottom := int(m[cy+1][cx])*(256-fx) + int(m[cy+1][cx+1])*fx
	return (top*(256-fy) + bottom*fy) >> 16
}

// Package curves draws how runs of training went, as PNG or SVG.
//
// It is a package of its own because the fonts and canvases of gonum.org/v1/plot are
// much to link, which programs that only make reports do not need.
//
// # Shapes and units
//
// Pictures are 8 by 5 inches, at 96 dots per inch in PNG. Log-likelihoods are means over
// rows in nats. Training curves are dashed and are running means, as metrics.jsonl has
// them; validation curves are solid.
//
// # Errors
//
// Errors that match ErrOptions name what cannot be drawn.
//
// # Source
//
// Axes, legend and canvases are those of gonum.org/v1/plot. The colours are those of Okabe
// and Ito, "Color Universal Design", 2008, which most people tell apart.
package curves

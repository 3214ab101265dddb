// Package format opens model files of every format. It holds what formats share:
// the Model that they give, how a file's format is told, and the errors. A format
// is a package below this one: native, the file of every trained circuit, and
// text, for circuits made by hand.
//
// # Shapes and units
//
// A Model is a graph, free strings and parameters, which are read node by node
// in the canonical order of package circuit: no caller needs all of them at
// once. Parameters are float32, as engines compute, or float64, as imported
// weights are: a Model gives both, whichever the file has. Widening is exact, and
// rounding happens once.
//
// # Formats
//
// Model files come under any name, so a format is told by the first bytes of a
// file, after unpacking gzip. A new format is a package with a variable Format,
// which says what its files start with and how they are opened, and a program
// that wants it calls
//
//	format.Register(text.Format)
//
// as package dataset does with the formats of tables. Its tests run
// formattest.Run on some of its files.
//
// # Errors
//
// Files that are not valid models give errors of one line that match ErrModel
// and name the file, for text with line and column. A file that no registered
// format recognises gives an error that lists those that were tried. Nothing is
// allocated before its size is checked against the file. Nothing panics on bad
// input.
//
// # Source
//
// Gzip follows RFC 1952; the packages of the formats name theirs.
package format

// Package safetensors reads and writes the safetensors format: named tensors in
// one file that runs no code when opened.
//
// # Shapes and units
//
// A file is the length of the header (8 bytes, little-endian), the header (JSON,
// an object of tensors and of string metadata) and the data: tensors row-major,
// little-endian, one after another without holes. Written headers are padded
// with spaces so that the data starts on a multiple of Alignment bytes.
// Offsets and lengths in this package count elements, sizes count bytes.
//
// # Errors
//
// Damaged files give errors that match ErrFormat; using a tensor as what it is
// not gives errors that match ErrUse. Nothing is allocated before its size has
// been checked against the file. No function panics on bad input.
//
// # Goroutines
//
// A File may be read by several goroutines at once. A Sink belongs to one.
//
// # Source
//
// The format description in the README of the safetensors project, Hugging Face.
package safetensors

import "errors"

// Errors that callers may test for with errors.Is.
var (
	// ErrFormat means that a file breaks the rules of the format.
	ErrFormat = errors.New("safetensors: damaged file")
	// ErrUse means that a tensor is missing, of another type or of another size
	// than the caller says.
	ErrUse = errors.New("safetensors: wrong tensor")
)

const (
	// Alignment divides the offset of the data in files written by this package.
	Alignment = 64
	// MaxHeaderBytes is the longest header that a file may have.
	MaxHeaderBytes = 100_000_000
	// prefixBytes is the size of the header length at the start of a file.
	prefixBytes = 8
	// metadataKey is the entry of the header that is not a tensor.
	metadataKey = "__metadata__"
	// chunkBytes is the buffer between typed slices and bytes.
	chunkBytes = 64 << 10
)

// Package registry keeps what a program registers by name when it starts, such as
// the formats of model files.
//
// # Errors
//
// Nothing here fails.
//
// # Source
//
// image.RegisterFormat of Go's standard library, with names that can be listed.
package registry

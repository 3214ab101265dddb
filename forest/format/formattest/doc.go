// Package formattest holds what the tests of every forest format share: damaged files
// must give an error of one line, in bounded memory, or a forest that can be
// evaluated.
//
// # Shapes and units
//
// Files are bytes; memory is bytes allocated in all while one is read.
//
// # Errors
//
// Failures are reported to the test, with the damage that was done to the file.
//
// # Source
//
// The promises of package forest/format.
package formattest

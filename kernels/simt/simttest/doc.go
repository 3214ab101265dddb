// Package simttest makes random programs and rows for the tests of back ends of package
// simt.
//
// # Shapes and units
//
// Buffers hold elements as package simt lays them out.
//
// # Errors
//
// Failures are reported to the test that calls.
//
// # Source
//
// The package is pce's own.
package simttest

// Package report makes one HTML file of a run's directory.
//
// The file is self-contained: it has its pictures and its style in itself, refers to
// nothing outside and runs no script, so it can be mailed, archived and opened
// anywhere. A run that is unfinished or damaged gives what there is; the report
// begins with what is missing and why.
//
// # Shapes and units
//
// Log-likelihoods are means over rows, in nats. Times are seconds, memory is bytes.
//
// # Errors
//
// Read returns errors that match ErrNoRun where a directory has nothing of a run.
// Files that cannot be read are not errors; they are listed in Run.Missing.
//
// # Source
//
// The ticks of an axis are the multiples of 1, 2 or 5 times a power of ten, as in
// Heckbert, "Nice Numbers for Graph Labels", Graphics Gems, 1990.
package report

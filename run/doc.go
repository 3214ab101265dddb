// Package run makes circuits, plans what they take, and trains them into a
// directory: what the commands, the jobs of a cluster and the library share.
//
// Build makes a Blueprint: a compiled circuit whose parameters have no memory yet.
// A Load says how it will be run. Memory plans that before anything is allocated,
// Engine and Pool run it. Train does all of it for a run, and writes its files.
//
// # Shapes and units
//
// Log-likelihoods are natural logs. Memory is in bytes.
//
// # Errors
//
// Errors match the classes of the packages below (dataset.ErrFormat,
// format.ErrModel, structures.ErrOptions, kernels.ErrMemory, ...) or those of
// errors.go. Their texts begin with pce: they speak of settings of the program.
//
// # Source
//
// The package joins the others: structures and format make circuits, compile makes
// programs of them, engine runs these and em trains them. Where each of them comes
// from is said in its own doc.
package run

// Package pce trains probabilistic circuits and answers questions about them. It also
// predicts with decision forests that other libraries trained.
//
//	m, err := pce.Open(ctx, "model.safetensors", pce.Options{})
//	ll, err := m.LogLikelihood(ctx, rows)
//
// Open gives a Model, which answers queries; Train makes a model file from data.
// Circuits come from a named structure (DefaultStructure), from a model file or from
// a graph made by hand (New). Package run, whose types these are, also makes a circuit
// alone and says what it would cost.
//
// # Shapes and units
//
// Rows are [row][variable]. In a [][]float64 a category is its code 0, 1, 2, ...
// and NaN is a missing cell; package dataset reads files into batches, which the
// methods named Batch take as they are. Log-likelihoods are natural logs.
// Missing cells are marginalised. Forests take rows row-major in one slice, and send
// missing cells where their training said.
//
// # Errors
//
// Errors are one line that says what, where and what to do. They match the
// classes of the packages below (dataset.ErrFormat, format.ErrModel,
// structures.ErrOptions, kernels.ErrMemory, ...) or those of errors.go.
//
// # Goroutines
//
// A Model is safe for concurrent use: up to Options.Engines calls run at a time,
// the others wait. Goroutines that a call has started end with it, some of them a
// fraction of a millisecond later, for as long as they look for work of another call.
//
// # Source
//
// The package is the face of run, which joins the others. Where each of them comes
// from is said in its own doc.
package pce

// Package query is the jobs of a cluster that ask about rows: of a circuit for
// log-likelihoods, conditionals, completions and the rest of package run's queries,
// of a decision forest for predictions.
//
// A Kind opens the model of a Job as a Subject, which says what the workers are
// asked; Do has the workers of a run answer, and writes the result: the bytes that
// the command without a cluster would write.
//
// # Shapes and units
//
// Rows travel as blocks, which dataset.AppendBlock writes, those of forests as plain
// numbers, row-major; answers as float64 numbers, log-likelihoods in nats, or as
// blocks of rows. Numbers are little-endian.
//
// # Errors
//
// What is wrong with a job on any machine matches cluster.ErrJob, and the class
// of its cause where there is one. Answers that are not about the rows of their
// question match cluster.ErrCluster.
//
// # Source
//
// The package is this project's own; the formulas of the queries are package run's.
package query

// Package job is what a cluster is asked to do: training, and questions about the
// rows of a model, which any kind may ask.
//
// A Kind is registered by its name. On a worker its Load makes the session that
// computes; on the coordinator its Lead sees a job through. Jobs over rows, which
// package query has the kinds of, are Questions, put to any worker and answered by
// number, and Answers, which come back in their order, are kept in a journal and
// make the result. So a coordinator
// that is killed continues where its journal ends, and a worker that dies changes
// nothing.
//
// A Taker takes jobs from the queue, one after another, and a Runner does them. A
// Lead is one run that this process leads: it gives the workers what they need,
// files that they cannot read among it, and begins the run. A Loader is the
// worker's side.
//
// # Shapes and units
//
// Sizes are bytes. Training rows that workers cannot read travel as files of package
// blocks.
//
// # Errors
//
// What no worker can load and what cannot be asked matches cluster.ErrJob, and the
// class of its cause where there is one. IsSetback tells errors that a later
// attempt may be spared.
//
// # Source
//
// The journal is a write-ahead log of one record: how much of the answers is on the
// disk (Gray and Reuter, "Transaction Processing", 1992, section 9).
package job

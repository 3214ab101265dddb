// Package em trains circuits by expectation maximisation: phases of mini-batch
// or full-batch steps, step-size schedules, early stopping, metrics, and
// checkpoints from which a killed run continues with the same bits.
//
// # Shapes and units
//
// Log-likelihoods are means over rows, in nats. A step is one update of the
// parameters, a shard the rows whose expected counts are added as one, an epoch
// one pass over the training rows. Epochs and steps are counted over all
// phases; those of Metrics and Progress start at 1.
//
// # Errors
//
// Options that cannot work give errors that match ErrOptions, checkpoints that
// cannot be used errors that match ErrCheckpoint, and a run that was told to
// stop one that matches ErrStopped. Errors of data, device and disk pass through.
//
// # Goroutines
//
// A Trainer and a Local belong to one goroutine. A Local reads the next rows in
// another one, which Close ends.
//
// # Source
//
// Mini-batch steps are those of Peharz et al., "Einsum Networks: Fast and
// Scalable Learning of Tractable Probabilistic Circuits", ICML 2020. Anemone is
// the optimiser of that name in PyJuice. Discriminative steps are the growth
// transformations of Gopalakrishnan et al., "An inequality for rational functions
// with applications to some statistical estimation problems", IEEE Transactions on
// Information Theory, 1991, with another damping (RATIONALE.md).
package em

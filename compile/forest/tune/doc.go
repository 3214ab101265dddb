// Package tune chooses the schedule of a decision forest. A template with eight parameters spans a space of
// schedules; a cost model orders them, and few of them, those that it holds for fast and then the neighbours of the
// fastest so far, are timed. Save keeps what was chosen in a small file, by the digest of the forest, the set of
// instructions and the rows of a call.
//
// # Shapes and units
//
// Costs of the model are nanoseconds per row of one thread; times are those of one call with a batch of rows.
// Every schedule of the template is marked exact: it gives the scores of the plain evaluator to the bit.
//
// # Errors
//
// Errors match ErrTune and say in one line what is wrong and what to do. A schedule for which a forest has no code
// is left out, with its reason in the result.
//
// # Source
//
// SilvanForge: A Schedule-Guided Retargetable Compiler for Decision Tree Inference, SOSP 2024: its template for
// cards and Algorithm 1 are CardParams and Cards; Params is their counterpart for CPUs.
package tune

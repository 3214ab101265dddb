// Package configs says what a run is: the keys of a config file, their
// defaults, types and ranges, and how files, environment and command line are
// put together into one Config.
//
// Precedence, low to high: defaults, files in the order given, the environment
// (PCE_TRAIN__EPOCHS is train.epochs), settings (train.epochs=20). A resolved
// Config prints as YAML that gives the same Config again.
//
// # Shapes and units
//
// Keys are paths such as train.step_size.from. Row counts, epochs and steps are
// plain counts; durations are written as 90s or 5m; image shapes are
// [height, width, channels]. 0 and auto mean that the data decides.
//
// # Errors
//
// Everything wrong with a config matches ErrConfig. The text says file, line
// and column, or the variable or setting, then what is wrong and what to do.
//
// # Source
//
// Keys are defined once, by the tags of Config; the checks, the JSON Schema and
// the suggestions read them.
package configs

// Package invariants says whether the program checks itself as it runs.
//
// Checks that cost time are under "if invariants.Enabled"; without the build
// tag invariants they compile to nothing.
//
// # Errors
//
// A check that fails panics with "BUG: " and what was found: it is our mistake,
// never the user's.
package invariants

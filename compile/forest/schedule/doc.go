// Package schedule is the language in which a user says how the loops of a decision forest over rows
// and trees are run. A Schedule is a list of verbs, as text or made by methods; Nest applies them to the
// default loops, (batch, tree), and gives the tree of loops that the compiler lowers, or says why a verb
// is illegal. What each verb takes, does and refuses is listed in docs/forests.md.
//
// # Shapes and units
//
// Sizes count iterations of the loop that a verb names: rows of the batch, trees, or tiles of these.
//
// # Errors
//
// Errors match ErrSchedule and say in one line which verb is wrong and why. Errors of Parse name the line.
//
// # Source
//
// SilvanForge: A Schedule-Guided Retargetable Compiler for Decision Tree Inference, SOSP 2024. Its Pipeline
// is interleave here, as in the paper's text.
package schedule

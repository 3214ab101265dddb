// Package hir is the first form of a decision forest on its way to code: an Ensemble of trees of tiles, whose
// nodes ask one kind of question. Build makes it of a forest; TileNodes, Pad and SortByDepth change it as a
// schedule says; Text prints it.
//
// # Shapes and units
//
// A tile has up to Ensemble.TileNodes nodes and one exit more than it has nodes; exits are numbered by a walk
// that goes to Yes first. Depths count tiles.
//
// # Errors
//
// Errors match ErrForest and name the tree and what it has that this form does not hold; such a forest is
// evaluated by package forest, or sliced.
//
// # Source
//
// The tilings are those of Treebeard: An Optimizing Compiler for Decision Tree Based ML Inference, MICRO 2022,
// sections III.B and III.C, without their limit to balanced exits.
package hir

// Package juice reads the texts of probabilistic circuits that Juice (ProbabilisticCircuits.jl)
// and the tools around it have, and writes its own.
//
// # Shapes and units
//
// A text has a line per node, children before parents, of words with spaces between; the last node
// is the root. Lines whose first word is c or cc are comments. Weights and probabilities are natural
// logarithms. There are three kinds, told by their first line:
//
//	jpc COUNT                         variables from 1, nodes by number
//	L id vtree literal                1 where the variable, or with - its negation, holds
//	I id vtree variable value         1 where the variable has the value
//	C id vtree variable log ...       a category per number, from 0
//	B id vtree variable trials log    binomial: successes of trials, each with that probability
//	G id vtree variable mean sigma    normal density
//	P id vtree count child ...        product
//	S id vtree count {child log} ...  sum
//
//	psdd [COUNT]                      variables from 1, nodes by number
//	L id vtree literal
//	T id vtree variable log           the variable holds with that probability
//	D id vtree count {prime sub log}  sum of products of two
//
//	(2 2 ...)                         values per variable; variables and nodes from 0, by their order
//	v variable value                  1 where the variable has the value
//	* child ...
//	+ child log ...
//	EOF
//
// The number behind psdd may be any, as tools count different things. Literals of a PSDD that no node
// refers to, which some write below each T, are left out; other such nodes are refused, as they are where a
// text is cut short. A T may have two logarithms, that the variable does not hold and that it holds, of which
// the last counts.
//
// Numbers of a vtree are not kept. A variable of literals has two values, another one as many as its
// categories, one more than its trials, or one more than the largest value that is asked for. Weights and probabilities are
// those of the text, to the rounding of an exponential; logarithms below that of the least normal float64, about
// -708.4, are refused but for -Inf. Few digits need not sum to 1, and sums are checked as in
// every format.
//
// # Errors
//
// Errors match format.ErrModel, are of one line and name the line. A text of more than MaxBytes
// is refused.
//
// # Source
//
// Dang, Khosravi, Liang, Vergari, Van den Broeck, "Juice: a Julia package for logic and probabilistic
// circuits", AAAI 2021. PSDDs are of Kisa et al., KR 2014; the third kind is that of the Libra
// toolkit's arithmetic circuits, as Juice reads it.
package juice

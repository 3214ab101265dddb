// Package structures builds circuits of well-known shapes: hidden Chow-Liu
// trees, hidden Markov models, Poon-Domingos circuits and RAT-SPNs.
//
// A builder allocates nodes and edge lists, never parameters: a graph of
// billions of edges is built in milliseconds.
//
// # Shapes and units
//
// Latents (M) is the number of units of every block but the root, which has
// one. Sizes count every input and sum unit as a node, and sum edges plus
// product edges as edges. Mutual information is in nats. Equal options and data
// give equal graphs, whatever the number of goroutines.
//
// # Errors
//
// Impossible settings give errors that match ErrOptions, data that a structure
// cannot be learned from errors that match ErrData. A builder that would need
// more than a few million nodes refuses.
//
// # Goroutines
//
// MutualInformation and ChowLiu start their workers and wait for them; the
// other functions start none. All functions are safe for concurrent use.
//
// # Source
//
// HCLT: Liu and Van den Broeck, "Tractable Regularization of Probabilistic
// Circuits", NeurIPS 2021, over the tree of Chow and Liu, 1968. PD: Poon and
// Domingos, "Sum-Product Networks: A New Deep Architecture", UAI 2011. RAT-SPN:
// Peharz et al., "Random Sum-Product Networks", UAI 2019. HMM: Rabiner, "A
// Tutorial on Hidden Markov Models", 1989.
package structures

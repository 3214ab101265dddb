// Package scale says how long the steps of a cluster take, by simulating them.
//
// A Setting names a model by its owners, what workers and links can do, and the
// work; Simulate follows the protocol of package cluster event by event: shards are
// leased by the coordinator's own rule, each worker sends each owner its flows
// for that owner's part, owners move their parts and send them to all, and a
// commit ends the step. Nothing is computed and nothing is sent: all times come
// from the figures of the Setting.
//
// # Shapes and units
//
// Times are in seconds, costs in seconds per byte or a piece, links in bytes of
// payload a second and direction. A flow has 8 bytes, a parameter 4.
//
// # Errors
//
// Errors match ErrSetting.
//
// # Goroutines
//
// None. Simulate may be called from several.
//
// # Source
//
// The queue of events is the textbook one of discrete-event simulation; servers
// are first come, first served.
package scale

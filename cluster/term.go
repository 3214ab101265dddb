package cluster

import "fmt"

// Term is a stretch of a run in which its members do not change. A term is
// above another if its fence is, or at equal fences its generation.
type Term struct {
	Fence      uint64 `json:"fence"`      // revision at which the coordinator took the lead
	Generation uint32 `json:"generation"` // counted by that coordinator
}

// Above reports whether t supersedes u.
func (t Term) Above(u Term) bool {
	return t.Fence > u.Fence || t.Fence == u.Fence && t.Generation > u.Generation
}

// String writes fence and generation.
func (t Term) String() string { return fmt.Sprintf("%d.%d", t.Fence, t.Generation) }

// Version names the parameters after a number of moves. Equal versions are equal bits.
type Version struct {
	Lineage uint64 `json:"lineage"` // random: of one source of flows; 0: none
	Moves   int64  `json:"moves"`
}

// Next is the version after one more move.
func (v Version) Next() Version { return Version{v.Lineage, v.Moves + 1} }

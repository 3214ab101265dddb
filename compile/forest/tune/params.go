package tune

import (
	"errors"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// ErrTune means that there is nothing to choose from, or that options do not make sense.
var ErrTune = errors.New("tune: cannot choose a schedule")

// Params are the eight parameters of the template for CPUs. Represented sliced, a forest has loops of its own and
// the others are at their zero values.
type Params struct {
	Represent  string `json:"represent"`  // array, sparse, reorg or sliced
	RowTile    int    `json:"row_tile"`   // rows that a thread takes at a time
	TreeTile   int    `json:"tree_tile"`  // trees that all rows of a tile walk before the next ones; 0: all trees
	CacheRows  bool   `json:"cache_rows"` // a tile's rows are read before its trees are walked
	TileNodes  int    `json:"tile_nodes"` // nodes that are decided in one step
	ByDepth    bool   `json:"by_depth"`   // trees are sorted, and each run of one depth has a loop of its own
	Unroll     bool   `json:"unroll"`     // trees are padded, and a walk has no loop
	Interleave int    `json:"interleave"` // trees that are walked together
}

// maxUnroll is the most steps that the template unrolls.
const maxUnroll = 64

// Schedule returns the schedule of the parameters for trees of up to a depth.
func (p Params) Schedule(depth int) *schedule.Schedule {
	s := schedule.New().Exact().Represent(p.Represent)
	if p.Represent == schedule.Sliced {
		return s
	}
	if p.ByDepth {
		s.SortTrees()
	}
	if p.Unroll {
		s.Pad()
	}
	if p.TileNodes > 1 {
		s.TileNodes(p.TileNodes, schedule.Uniform)
	}
	s.Tile(schedule.Batch, "b0", "b1", p.RowTile)
	walks := schedule.Tree
	if p.TreeTile > 0 {
		walks = "t1"
		s.Tile(schedule.Tree, "t0", walks, p.TreeTile).Reorder("b0", "t0", "b1", walks)
	}
	if p.CacheRows {
		s.Cache("b0")
	}
	s.Parallel("b0")
	if p.ByDepth {
		s.Specialize(walks)
	}
	if p.Interleave > 1 {
		s.Interleave(walks, p.Interleave)
	}
	if p.Unroll && depth > 1 {
		s.UnrollWalk(walks, min(depth, maxUnroll))
	}
	return s
}

// Values that the template tries, those of one parameter from small to large.
var (
	rowTiles    = []int{64, 256, 1024}
	treeTiles   = []int{0, 8, 32}
	nodeTiles   = []int{1, 3}
	interleaves = []int{1, 2, 4, 8}
)

// Representations lists those of the template, in the order of Space.
func Representations() []string {
	return []string{schedule.Sliced, schedule.Array, schedule.Sparse, schedule.Reorg}
}

// Space returns the points of the template that differ for a forest and a number of rows in a call: tiles of at
// least all rows are one, and a tile of all trees is none. It holds the representations that are given, or all of
// them if there are none.
func Space(s *Shape, batch int, represent ...string) []Params {
	if len(represent) == 0 {
		represent = Representations()
	}
	var all []Params
	for _, r := range Representations() {
		if !contains(represent, r) {
			continue
		}
		if r == schedule.Sliced {
			all = append(all, Params{Represent: r, TileNodes: 1, Interleave: 1})
			continue
		}
		for _, nodes := range nodeTiles {
			for _, trees := range treeTiles {
				for _, byDepth := range []bool{false, true} {
					for _, unroll := range []bool{false, true} {
						for _, together := range interleaves {
							p := Params{Represent: r, TreeTile: trees, TileNodes: nodes, ByDepth: byDepth, Unroll: unroll, Interleave: together}
							if s.differs(&p) {
								all = append(all, rowsOf(p, batch)...)
							}
						}
					}
				}
			}
		}
	}
	return all
}

// rowsOf returns the points with all ways to take rows.
func rowsOf(p Params, batch int) (all []Params) {
	for i, n := range rowTiles {
		if i > 0 && rowTiles[i-1] >= batch {
			break
		}
		for _, cache := range []bool{false, true} {
			p.RowTile, p.CacheRows = n, cache
			all = append(all, p)
		}
	}
	return all
}

// differs reports whether the template's schedule for a point is a legal one, and another than that of a smaller
// value.
func (s *Shape) differs(p *Params) bool {
	switch {
	case p.TreeTile >= s.Trees && p.TreeTile > 0:
	case p.Interleave > 1 && p.Interleave > s.Trees:
	case p.ByDepth && (p.TreeTile > 0 || s.Even && p.TileNodes == 1): // a tile's depths are not known; or there is one depth
	case p.Unroll && s.Depth > maxUnroll:
	case p.TileNodes > 1 && s.Depth < 2:
	default:
		return true
	}
	return false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

package cluster

import "github.com/pce-engine/pce/dataset"

// FlowsOf is Flows for sessions that have no program.
func (r *Run) FlowsOf(l Layout, rows int, sources map[dataset.Source]string) *FlowSource {
	return &FlowSource{run: r, layout: l, rows: rows, sources: sources}
}

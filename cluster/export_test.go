package cluster

import (
	"context"

	"github.com/pce-engine/pce/dataset"
)

// FlowsOf is Flows for sessions that have no program.
func (r *Run) FlowsOf(ctx context.Context, l Layout, rows int, sources map[dataset.Source]string) *FlowSource {
	return &FlowSource{run: r, live: ctx, layout: l, rows: rows, sources: sources}
}

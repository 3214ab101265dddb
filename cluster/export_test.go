package cluster

import "github.com/pce-engine/pce/dataset"

// FlowsOf is Flows for sessions that have no program.
func (r *Run) FlowsOf(l Layout, rows int, sources map[dataset.Source]string) *FlowSource {
	return &FlowSource{run: r, layout: l, rows: rows, sources: sources}
}

// Defects are the names of what can be planted.
var Defects = []string{"count twice", "stale fence", "lost word"}

func defectsOf(name string) defects {
	return defects{twice: name == "count twice", anyFence: name == "stale fence", early: name == "lost word"}
}

// PlantWorker plants a defect in a worker.
func PlantWorker(o *WorkerOptions, name string) { o.defects = defectsOf(name) }

// PlantCoordinator plants a defect in a coordinator.
func PlantCoordinator(o *CoordinatorOptions, name string) { o.defects = defectsOf(name) }

package main

import (
	"context"

	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// structureOf says to package run what the config says of the circuit. The seed of a run is
// also that of its structure and, unless model.init.seed is set, of its starting parameters.
func structureOf(cfg *configs.Config) run.Structure {
	m := &cfg.Model
	s := run.DefaultStructure()
	s.Kind, s.Latents, s.Seed, s.Init, s.File = m.Structure, m.Latents, cfg.Seed, m.Init.Seed, m.File
	if s.Init == 0 {
		s.Init = cfg.Seed
	}
	s.Class, s.Leaf = m.Class, leafOf(&m.Leaf)
	for i := range cfg.Data.Columns {
		c := &cfg.Data.Columns[i]
		if c.Leaf.IsZero() {
			continue
		}
		if s.Leaves == nil {
			s.Leaves = map[string]run.Leaf{}
		}
		s.Leaves[c.Name] = leafOf(&c.Leaf)
	}
	s.HCLT.Tree, s.HCLT.Inner = m.HCLT.Tree, m.HCLT.Inner
	s.HCLT.ChowLiu.Bins, s.HCLT.ChowLiu.Softness, s.HCLT.ChowLiu.MaxRows = m.HCLT.Bins, m.HCLT.Softening, m.HCLT.MaxRows
	if cfg.Threads > 0 {
		s.HCLT.ChowLiu.Workers = cfg.Threads
	}
	s.HMM = structures.HMMOptions{Length: m.HMM.Length, Tied: m.HMM.Tied}
	s.PD.Shape, s.PD.SplitInterval, s.PD.MaxProductBlocks = imageShape(m.PD.Shape), m.PD.SplitInterval, m.PD.MaxProductBlocks
	l := &m.LearnSPN
	s.LearnSPN.Columns, s.LearnSPN.Rows, s.LearnSPN.Leaf, s.LearnSPN.Search = l.Columns, l.Rows, l.Leaf, l.Search
	s.LearnSPN.Threshold, s.LearnSPN.Smoothing = l.Threshold, l.Smoothing
	s.LearnSPN.MinRows, s.LearnSPN.Clusters, s.LearnSPN.MaxMultipliers = l.MinRows, l.Clusters, l.MaxMultipliers
	s.LearnSPN.Components = l.Components
	if cfg.Threads > 0 {
		s.LearnSPN.Workers = cfg.Threads
	}
	s.Equations.File = m.Equations
	s.Equations.Sizes, _ = m.SizeOf() // which Validate has checked
	s.RATSPN.Depth, s.RATSPN.Repetitions, s.RATSPN.Pieces = m.RATSPN.Depth, m.RATSPN.Repetitions, m.RATSPN.Pieces
	return s
}

func leafOf(l *configs.Leaf) run.Leaf {
	return run.Leaf{
		Type: l.Type, Categories: l.Categories, Bins: l.Bins, Edges: l.Edges, Outside: l.Outside,
		MinSigma: l.MinSigma, MinScale: l.MinScale,
	}
}

func compileOptions(c *configs.Compile) compile.Options {
	return compile.Options{MaxGroups: c.MaxGroups, PaddingTolerance: c.PaddingTolerance, BlockSize: c.BlockSize}
}

// split returns the rows of a split of the config, nil where it has none.
func (a *app) split(d *configs.Data, paths configs.Paths) run.Rows {
	if absent(paths) {
		return nil
	}
	return func(ctx context.Context, schema *dataset.Schema) (dataset.Source, error) {
		return a.openRows(ctx, d, paths, schema)
	}
}

// absent reports whether a config leaves a split out.
func absent(paths configs.Paths) bool {
	return len(paths) == 0 || len(paths) == 1 && paths[0] == ""
}

// blueprint builds the circuit of a config. A circuit from a file needs no
// training rows.
func (a *app) blueprint(ctx context.Context, cfg *configs.Config, how run.How) (*run.Blueprint, error) {
	rows := a.split(&cfg.Data, cfg.Data.Train)
	if rows == nil && cfg.Model.Structure != "file" {
		return nil, cfg.Data.RequireTraining()
	}
	s := structureOf(cfg)
	s.How, s.Valid = how, a.split(&cfg.Data, cfg.Data.Valid)
	return run.Build(ctx, s, rows, compileOptions(&cfg.Compile))
}

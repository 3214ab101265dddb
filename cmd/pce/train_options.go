package main

import (
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// trainOptions says to package pce what the config says of a run.
func (a *app) trainOptions(cfg *configs.Config) run.TrainOptions {
	return run.TrainOptions{
		Structure: structureOf(cfg),
		Compile:   compileOptions(&cfg.Compile),
		Train:     a.split(&cfg.Data, cfg.Data.Train),
		Valid:     a.split(&cfg.Data, cfg.Data.Valid),
		Test:      a.split(&cfg.Data, cfg.Data.Test),
		EM:        emOptions(cfg),
		Options:   runOptions(cfg.Device, cfg.Threads),
		Mixed:     cfg.Precision == "mixed",
		Dir:       cfg.Output,
		Samples:   cfg.Train.Samples,
		Name:      cfg.Name,
		Settings:  settingFacts(cfg),

		Discriminative: cfg.Train.Discriminative,
	}
}

// settingFacts returns the settings of a config as facts of a run's fingerprint.
func settingFacts(cfg *configs.Config) []em.Fact {
	var facts []em.Fact
	for _, s := range cfg.Settings() {
		facts = append(facts, em.Fact{Name: s.Key, Value: s.Value, Free: s.Free})
	}
	return facts
}

// emOptions says to package em what the config says of training.
func emOptions(cfg *configs.Config) em.Options {
	t := &cfg.Train
	phases := []em.Phase{{
		Rule: em.Rule(t.Rule), Epochs: t.Trained(), BatchRows: t.BatchSize, Subsets: t.Subsets,
		StepSize: stepSizes(&t.StepSize), Pseudocount: t.Pseudocount,
	}}
	if phases[0].Rule == em.Anemone {
		phases[0].Momentum = t.Momentum
	}
	if n := t.Epochs - t.Trained(); n > 0 {
		phases = append(phases, em.Phase{Rule: em.FullBatch, Epochs: n, Pseudocount: t.Finish.Pseudocount})
	}
	return em.Options{
		Phases: phases, Seed: cfg.Seed, ShardRows: t.ShardRows, Steps: int64(t.Steps), Patience: t.Patience,
		Checkpoints: em.Checkpoints{Epochs: t.Checkpoint.Epochs, Steps: int64(t.Checkpoint.Steps), Interval: t.Checkpoint.Interval, Keep: t.Checkpoint.Keep},
	}
}

// stepSizes leaves out pieces of no length.
func stepSizes(s *configs.StepSize) em.Schedule {
	shape := em.Shape(s.Schedule)
	if len(s.Pieces) == 0 {
		return em.Schedule{{Shape: shape, Length: 1, From: s.From, To: s.To}}
	}
	var out em.Schedule
	for _, p := range s.Pieces {
		if p.Length > 0 {
			out = append(out, em.Piece{Shape: shape, Length: p.Length, From: p.From, To: p.To})
		}
	}
	return out
}

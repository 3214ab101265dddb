package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/x86"
	"github.com/pce-engine/pce/run"
)

// scheduleFlags say how the walks of a forest are compiled.
type scheduleFlags struct {
	file, profile string
	text          *string    // of the file, once it was read
	visits        *[][]int64 // of the profile, once open has read it
	alone         bool       // one thread computes under the schedule that open took
}

func (f *scheduleFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "schedule", "", "compile the forest under the schedule in this file, a shipped one ("+configs.PresetPrefix+strings.Join(schedule.Shipped(), ", ")+"), or auto: the one that pce forest tune chose")
	flags.StringVar(&f.profile, "profile", "", "for --schedule: how many rows visit each node, as pce forest profile writes it")
}

// given reports whether the flags ask for code under a schedule.
func (f *scheduleFlags) given() bool { return f.file != "" || f.profile != "" }

// maxScheduleText bounds files of schedules.
const maxScheduleText = 1 << 20

// readSchedule returns the text of a schedule: of a file, or of a shipped one by its name.
func readSchedule(ctx context.Context, path string) (string, error) {
	if name, ok := strings.CutPrefix(path, configs.PresetPrefix); ok {
		return schedule.ShippedText(name)
	}
	if path == autoSchedule {
		return "", usagef("--schedule auto is for predict, bench, serve and compile; give a file, or print the one that is kept with pce compile --emit mir --schedule auto")
	}
	text, err := readBounded(ctx, path, maxScheduleText)
	return string(text), err
}

// textOnce returns the text of the schedule that the flags name, which is read by the first call: a pipe has it only once, and all models
// of a command get the same.
func (f *scheduleFlags) textOnce(ctx context.Context) (string, error) {
	if f.text == nil {
		text, err := readSchedule(ctx, f.file)
		if err != nil {
			return "", err
		}
		f.text = &text
	}
	return *f.text, nil
}

// maxTokenFile bounds the file of a server's token.
const maxTokenFile = 1 << 16

// readBounded reads a file of no more than most bytes.
func readBounded(ctx context.Context, path string, most int64) ([]byte, error) {
	f, err := dataset.OpenPath(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, usagef("%s: more than %d bytes; give a smaller file", path, most)
	}
	return b, nil
}

// hits reads the profile of a forest, which open keeps, as a pipe has it only once; nil where there is none.
func (f *scheduleFlags) hits(ctx context.Context, fo *forest.Forest) ([][]int64, error) {
	if f.profile == "" {
		return nil, nil
	}
	if f.visits != nil {
		return *f.visits, nil
	}
	if f.file == "" {
		return nil, usagef("--profile is for --schedule")
	}
	r, err := dataset.OpenPath(ctx, f.profile)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return run.DecodeProfile(r, f.profile, fo)
}

// open opens the file of a forest, with code under the schedule if there is one: of auto, the one that is kept for calls of
// about as many rows as batch.
func (f *scheduleFlags) open(a *app, path string, on deviceFlags, batch int) (*pce.Model, error) {
	if f.file == "" && f.profile == "" {
		if !on.processor() {
			return nil, usagef("--device %s without --schedule: only code under a schedule runs on a card; give one, such as %stahoe-direct", on.device, configs.PresetPrefix)
		}
		return openForest(path, on.threads)
	}
	if f.file == autoSchedule && !on.processor() {
		return nil, usagef("--schedule %s on --device %s: schedules are chosen for the CPU; name one, such as %stahoe-direct", autoSchedule, on.device, configs.PresetPrefix)
	}
	fo, text, hits, err := f.read(a, path, on.threads, batch)
	if err != nil {
		return nil, err
	}
	m, err := pce.NewScheduledForest(fo, text, hits, pce.Options{Device: on.device, Threads: on.threads})
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, f.file, err)
	}
	f.visits, f.alone = &hits, on.processor() && oneThread(text)
	a.tellInterpreter(path, f.file, m)
	return m, nil
}

// tellInterpreter says that kernels of a forest under a schedule are interpreted, where the processor has instructions for others.
func (a *app) tellInterpreter(path, schedule string, m *pce.Model) {
	set, err := micro.Select()
	if err == nil && m.ForestPath() == "code "+interpreter && set.Name != "generic" && x86.Allowed(set.Name) != "" {
		a.tell("note: %s: --schedule %s: kernels that walk these trees for a row have no machine code, as they take too long, and are interpreted; tile the loop over trees, and reorder the tiles around the rows", path, schedule)
	}
}

// oneThread reports whether code for a CPU under a schedule, which is legal, runs on one thread whatever there are.
func oneThread(text string) bool {
	s, err := schedule.Parse(text)
	if err != nil {
		return false
	}
	n, err := s.Nest()
	return err == nil && n.Represent != schedule.Sliced && !slices.ContainsFunc(n.Loops, onThreads)
}

// onThreads reports whether a loop, or one within it, is on the threads.
func onThreads(l *schedule.Loop) bool { return l.Parallel || slices.ContainsFunc(l.Body, onThreads) }

// read reads a forest with the schedule and profile of the flags.
func (f *scheduleFlags) read(a *app, path string, threads, batch int) (fo *forest.Forest, text string, hits [][]int64, err error) {
	if fo, err = run.OpenForest(path); err != nil {
		return nil, "", nil, err
	}
	if err = fo.Check(); err != nil {
		return nil, "", nil, fmt.Errorf("%s: %w", path, err)
	}
	if text, hits, err = f.of(a, fo, threads, batch); err != nil && f.file == autoSchedule { // which names no file itself
		err = fmt.Errorf("%s: --schedule %s: %w", path, f.file, err)
	}
	return fo, text, hits, err
}

// of returns the schedule and the profile of the flags for a forest.
func (f *scheduleFlags) of(a *app, fo *forest.Forest, threads, batch int) (text string, hits [][]int64, err error) {
	switch f.file {
	case "":
	case autoSchedule:
		text, err = a.automatic(fo, threads, batch)
	default:
		text, err = f.textOnce(a.ctx)
	}
	if err != nil {
		return "", nil, err
	}
	hits, err = f.hits(a.ctx, fo)
	return text, hits, err
}

// serve returns a forest's model under the schedule for a server, and closes m, whatever happens.
func (f *scheduleFlags) serve(a *app, m *pce.Model, path string, opts pce.Options, batch int) (*pce.Model, error) {
	plain := m
	defer plain.Close()
	text, hits, err := f.of(a, m.Forest(), opts.Threads, batch)
	opts.Device = "cpu" // whatever the circuits of the server run on
	if err == nil {
		m, err = pce.NewScheduledForest(plain.Forest(), text, hits, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: --schedule %s: %w", path, f.file, err)
	}
	a.tellInterpreter(path, f.file, m)
	return m, nil
}

package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// scheduleCache returns the folder of kept schedules, below the user's folder for caches as the environment says it.
func (a *app) scheduleCache() (string, error) {
	dir := ""
	for _, kv := range a.env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case !filepath.IsAbs(value):
		case name == "XDG_CACHE_HOME" && runtime.GOOS != "darwin":
			return filepath.Join(value, "pce", "schedules"), nil
		case name == "HOME" && runtime.GOOS == "darwin":
			dir = filepath.Join(value, "Library", "Caches", "pce", "schedules")
		case name == "HOME":
			dir = filepath.Join(value, ".cache", "pce", "schedules")
		}
	}
	if dir == "" {
		return "", usagef("no folder for kept schedules: neither XDG_CACHE_HOME nor HOME is an absolute path; set one")
	}
	return dir, nil
}

// autoSchedule is what --schedule says for the one that is kept.
const autoSchedule = "auto"

// automatic returns the schedule that is kept for a forest, or else the one that the cost model chooses, and says on
// stderr which.
func (a *app) automatic(fo *forest.Forest, threads, batch int) (string, error) {
	dir, err := a.scheduleCache()
	if err != nil {
		a.tell("note: %v", err)
	}
	set, err := micro.Select()
	if err != nil {
		return "", err
	}
	path := set.Name
	k, wrong := tune.Load(dir, fo.Digest(), path, batch)
	for _, err := range wrong {
		a.tell("note: a kept schedule is passed over: %v; pce forest tune writes it anew", err)
	}
	if k != nil {
		a.tell("note: --schedule auto: %s, kept on %s for calls of %s on %s by %s", quoted(k.Schedule), k.When.Format(time.DateOnly), several(k.Batch, "row"), several(k.Threads, "thread"), path)
		return k.Schedule, nil
	}
	text, err := pce.GuessSchedule(fo, pce.Options{Threads: threads}, batch)
	if err != nil {
		return "", err
	}
	a.tell("note: --schedule auto: none is kept for this forest by %s; the cost model says %s; pce forest tune times it", path, quoted(text))
	return text, nil
}

// quoted returns a schedule on one line.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") + `"`
}

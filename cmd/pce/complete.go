package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/run"
)

// completions adds to every command of the tree what a shell may complete: presets,
// keys of --set and their values, devices, and models and directories of runs.
func completions(c *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"config": completeConfig, "set": completeKey, "device": completeDevice, "model": completeModel,
	} {
		if c.Flags().Lookup(flag) != nil {
			c.RegisterFlagCompletionFunc(flag, complete) // its error is a flag that is not there
		}
	}
	if c.Name() == "train" {
		c.RegisterFlagCompletionFunc("out", completeRun)
	}
	for _, sub := range c.Commands() {
		completions(sub)
	}
}

// completeConfig completes presets, and leaves files to the shell.
func completeConfig(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return withPrefix(configs.Presets(), typed), cobra.ShellCompDirectiveDefault
}

// completeKey completes a key up to its =, then one of its values if they are listed.
func completeKey(_ *cobra.Command, _ []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	key, value, given := strings.Cut(typed, "=")
	for _, k := range configs.Keys() {
		switch {
		case !given && strings.HasPrefix(k.Path, key):
			out = append(out, cobra.CompletionWithDesc(k.Path+"=", k.Doc))
		case given && k.Path == key:
			for _, v := range withPrefix(k.Values, value) {
				out = append(out, key+"="+v)
			}
			return out, cobra.ShellCompDirectiveDefault // others may be files
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func completeDevice(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if c.Name() == "compile" {
		return withPrefix(rtl.Devices(), typed), cobra.ShellCompDirectiveNoFileComp
	}
	return withPrefix(device.Names(), typed), cobra.ShellCompDirectiveNoFileComp
}

// completeModel completes the models of runs, and leaves other files to the shell.
func completeModel(_ *cobra.Command, _ []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, dir := range runsBelow(typed) {
		if path := filepath.Join(dir, run.ModelFile); isFile(dir, run.ModelFile) {
			out = append(out, path)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completeRun completes directories of runs, and leaves other directories to the shell.
func completeRun(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if runs := runsBelow(typed); len(runs) > 0 {
		return runs, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// oneRun is completeRun for a command of one argument.
func oneRun(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeRun(c, args, typed)
}

// runsBelow lists the directories of runs whose path begins with what was typed, and
// those one level below.
func runsBelow(typed string) (dirs []string) {
	// What is typed is a path, not a pattern.
	prefix := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(typed)
	for _, pattern := range []string{prefix + "*", prefix + "*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil
		}
		for _, dir := range found {
			if isRun(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// isRun reports whether a directory holds a run, whatever is left of it.
func isRun(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && (isFile(dir, run.MetricsFile) || isFile(dir, run.ResultFile) || isFile(dir, run.CheckpointDir))
}

func withPrefix(words []string, prefix string) (out []string) {
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	return out
}

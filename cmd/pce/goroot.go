package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
)

// expandPaths replaces $GOROOT at the start of data paths by the directory of
// the Go installation.
func (a *app) expandPaths(ctx context.Context, paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, p := range paths {
		rest, ok := strings.CutPrefix(p, "$GOROOT/")
		if !ok {
			out[i] = p
			continue
		}
		root, err := a.goroot(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = root + "/" + rest
	}
	return out, nil
}

// goroot is the variable GOROOT, or what the go command says.
func (a *app) goroot(ctx context.Context) (string, error) {
	for _, kv := range a.env {
		if root, ok := strings.CutPrefix(kv, "GOROOT="); ok && root != "" {
			return root, nil
		}
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", usagef("data paths say $GOROOT, but no Go installation was found (go env GOROOT: %v); set GOROOT or give other paths, in training with --set data.train=PATH", err)
	}
	if _, err := os.Stat(root); err != nil {
		return "", usagef("data paths say $GOROOT, but %v; set GOROOT or give other paths, in training with --set data.train=PATH", err)
	}
	return root, nil
}

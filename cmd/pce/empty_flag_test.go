package main

import (
	"strings"
	"testing"
)

// TestEmptyFlags refuses flags whose value is empty, which were as if they had been left out.
func TestEmptyFlags(t *testing.T) {
	for _, command := range []string{
		"query loglik --given", "query sample --given", "predict --margin --density", "predict --schedule", "predict --schedule x --profile",
		"check none --expected", "check none --profile", "serve --schedule", "bench --schedule", "check none --schedule",
		"query loglik --data", "reduce run none --data", "reduce show none --emit", "compile none --emit", "check none --target", "bench --predict-card",
		"train --cluster", "train --tensorboard", "cluster up --root", "cluster up --root . --root", "cluster up --keys", "cluster up --url-file",
		"cluster up --dir", "cluster client x --dir", "worker --dir", "serve --token-file", "serve --tls-cert", "serve --tls-key x --tls-cert", "serve --tls-key", "forest tune none --represent",
	} {
		args := append(strings.Fields(command), "")
		flag := args[len(args)-2]
		if code, _, stderr := do(t, "", args...); code != exitUsage || !strings.Contains(stderr, flag+" is empty; give it a value, or leave it out") {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
	if code, _, stderr := do(t, "", "reduce", "run", "none", "--time="); code != exitUsage || !strings.Contains(stderr, "--time is empty") {
		t.Errorf("--time: exit %d, %s", code, stderr)
	}
}

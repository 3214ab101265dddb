package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzFile feeds config files: whatever loads must print and load again to the
// same config, and whatever does not gives one line that matches ErrConfig.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("train: {rule: anemone, momentum: -0.}")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		check(t, Options{Files: []string{file}})
	})
}

// FuzzSet feeds settings.
func FuzzSet(f *testing.F) {
	for _, s := range []string{
		"train.epochs=3", "train={epochs: 1}", "data.image=[1,2]", "data.image=1,2", "data.train=a", "=", "a.b=c",
		"train.step_size.pieces=[{length: 1, from: .5, to: .5}]", "data.missing=", "name=\x00", "output=runs/\xe5", "train=*x", "seed=0x1F",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, set string) { check(t, Options{Set: []string{set}}) })
}

func check(t *testing.T, o Options) {
	cfg, _, err := Load(o)
	if err == nil {
		roundTrip(t, cfg)
		return
	}
	if !errors.Is(err, ErrConfig) {
		t.Errorf("%v does not match ErrConfig", err)
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("more than one line: %q", err)
	}
}

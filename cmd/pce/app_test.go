package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/configs"
)

// testApp is the app of a test, whose messages are lost.
func testApp() *app { return &app{stdout: io.Discard, stderr: io.Discard} }

// testConfig loads a config of a short run that writes to a directory of its own.
func testConfig(t *testing.T, set ...string) *configs.Config {
	t.Helper()
	all := append([]string{"model.latents=3", "threads=1", "device=cpu", "train.epochs=3", "train.batch_size=64", "train.shard_rows=16", "train.samples=4", "output=" + filepath.Join(t.TempDir(), "run")}, set...)
	cfg, _, err := configs.Load(configs.Options{Set: all})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// imageFiles writes train.csv, valid.csv and test.csv, 4×4 images with missing
// cells, and returns settings that read them.
func imageFiles(t *testing.T, dir string) []string { return shadedFiles(t, dir, 4) }

// shadedFiles is imageFiles with the four brightest of so many shades.
func shadedFiles(t *testing.T, dir string, shades int) []string {
	t.Helper()
	set := []string{"data.image=[4, 4]"}
	for i, name := range []string{"train", "valid", "test"} {
		var text strings.Builder
		for row := range 200 - 80*i {
			for v := range 16 {
				cell := fmt.Sprint((row*(v+3)+row*row/7+i)%4 + shades - 4)
				if (row*5+v)%23 == 0 {
					cell = "?"
				}
				text.WriteString(cell)
				if v < 15 {
					text.WriteByte(',')
				}
			}
			text.WriteByte('\n')
		}
		path := filepath.Join(dir, name+".csv")
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		set = append(set, "data."+name+"="+path)
	}
	return set
}

func readFile(t *testing.T, elements ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

package tensor_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

var writeTo = flag.String("write", "", "folder to write every kernel of every variant to, for an assembler")

// TestModules prints, parses and verifies every kernel of every variant, and
// writes them to a folder if one is given, those of equal text once.
func TestModules(t *testing.T) {
	if testing.Short() {
		t.Skip("prints and reads every kernel of every variant; run without -short")
	}
	seen := map[string]bool{}
	var variants []tensor.Variant
	for _, size := range []int{1, 2, 4, 8, 16, 32} {
		for _, major := range []int{8, 9} {
			variants = append(variants, tensor.Variant{Block: size, Queries: true, Major: major})
			if size >= 16 {
				variants = append(variants, tensor.Variant{Block: size, Mixed: true, Major: major})
			}
		}
	}
	for _, v := range variants {
		v.WideCodes = true
		variants = append(variants, v)
	}
	for _, v := range variants {
		m := v.Module()
		for _, k := range m.Kernels {
			one := *m
			one.Kernels = []*ptx.Kernel{k}
			name := fmt.Sprintf("%s_b%d", k.Name, v.Block)
			if v.Mixed {
				name += "_mixed"
			}
			if v.WideCodes {
				name += "_codes32"
			}
			name = fmt.Sprintf("%s_sm%d", name, 10*v.Major)
			text := one.Text()
			parsed, err := ptx.Parse(text)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if err := parsed.Verify(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if again := parsed.Text(); !bytes.Equal(again, text) {
				t.Errorf("%s: text, parsed and printed again, is another", name)
			}
			if v.Major > 8 || *writeTo == "" { // the texts for sm_80 differ from others in their target alone
				continue
			}
			// The width of codes changes a few loads: some sizes show what it costs.
			if v.WideCodes && v.Block != 1 && v.Block != 8 && v.Block != 32 {
				continue
			}
			if body := string(text); !seen[body] {
				seen[body] = true
				if err := os.WriteFile(filepath.Join(*writeTo, name+".ptx"), text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

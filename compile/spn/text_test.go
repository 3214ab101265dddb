package spn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/internal/golden"
	"github.com/pce-engine/pce/kernels/simt"
)

// cutAt returns how modules are cut into parts of at most limit instructions.
func cutAt(limit int) func(m *simt.Module) spn.Tasks {
	return func(m *simt.Module) spn.Tasks { return spn.SplitTasks(m, limit) }
}

// TestTexts plays networks in the form of SPFlow and the two texts of their programs:
//
//	hispn [bytes]
//	lospn [space=S] [type=T] [joint=N] [task=N] [bytes]
func TestTexts(t *testing.T) {
	golden.Run(t, "testdata/texts.txt", func(cmd string, args []string, input string) string {
		o, limit := spn.DefaultOptions(), 1<<30
		for _, a := range args {
			key, value, _ := strings.Cut(a, "=")
			switch key {
			case "space":
				o.Space = spn.Space(value)
			case "type":
				o.Type = map[string]simt.Type{"f32": simt.F32, "f64": simt.F64}[value]
			case "joint":
				fmt.Sscan(value, &o.Joint)
			case "task":
				fmt.Sscan(value, &limit)
			case "bytes":
				o.Bytes = true
			default:
				t.Fatalf("%s: no option %q", cmd, a)
			}
		}
		m, err := spflow.Parse(input)
		if err != nil {
			t.Fatal(err)
		}
		p, err := spn.Compile(m.Graph, m.Params64, o)
		if err != nil {
			return "! " + err.Error()
		}
		switch cmd {
		case "hispn":
			return p.HiSPN()
		case "lospn":
			return p.LoSPN(cutAt(limit))
		}
		t.Fatalf("no command %q", cmd)
		return ""
	})
}

// names returns the values and the buffers between tasks that a text mentions, as %12 and kept_f32[3].
func names(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !(r == '%' || r == '_' || r == '[' || r == ']' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z')
	})
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, "%") && !strings.HasPrefix(w, "kept_") })
}

// wellFormed holds that every value of a text is defined once in a task, before it is read there, and that buffers between
// tasks are read where an earlier task has written.
func wellFormed(t testing.TB, text string) {
	t.Helper()
	if strings.Contains(text, "batch_read  ") {
		t.Fatal("a value is read of a task that does not keep it")
	}
	values, kept := map[string]bool{}, map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "kernel") {
			clear(kept)
		}
		if !strings.HasPrefix(line, "  ") {
			clear(values)
			continue
		}
		results, operation, ok := strings.Cut(line, " = ")
		if !ok {
			results, operation = "", line
		}
		words := names(operation)
		switch {
		case strings.Contains(operation, "batch_write kept"):
			kept[words[0]] = words[1]
			words = words[1:]
		case strings.Contains(operation, "batch_read kept"):
			if was := kept[words[0]]; was != strings.TrimSpace(results) {
				t.Fatalf("%q reads %q", line, was)
			}
			words = nil
		}
		for _, v := range words {
			if !values[v] {
				t.Fatalf("%q reads %s, which is not there", line, v)
			}
		}
		for _, v := range names(results) {
			if values[v] {
				t.Fatalf("%q defines %s again", line, v)
			}
			values[v] = true
		}
	}
}

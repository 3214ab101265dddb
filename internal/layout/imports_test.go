package layout

import (
	"slices"
	"strings"
	"testing"
)

// TestImports holds every import to the plan.
func TestImports(t *testing.T) {
	for _, s := range readTree(t) {
		room := s.room()
		if strings.HasPrefix(room, "internal/gen/") { // a module of its own
			for _, to := range s.imports {
				if !strings.HasPrefix(to, "internal/gen/") {
					t.Errorf("%s imports %s; generators import nothing of the module", s.path, to)
				}
			}
			continue
		}
		allowed, ok := Rooms[room]
		if !ok {
			t.Errorf("%s: package %s is not in the plan; add it to Rooms in internal/layout with what it may import", s.path, room)
			continue
		}
		for _, to := range s.imports {
			if !mayImport(room, allowed, to, s.test) {
				t.Errorf("%s: %s may not import %s; move the code, or change the plan in internal/layout and say why in RATIONALE.md", s.path, room, to)
			}
		}
	}
}

func mayImport(room string, allowed []string, to string, test bool) bool {
	if slices.Contains(allowed, All) || slices.Contains(allowed, to) || slices.Contains(Everywhere, to) {
		return true
	}
	return test && (to == room || slices.Contains(InTests, to) || slices.Contains(TestRooms[room], to) || strings.HasSuffix(to, "test"))
}

// TestMayImport sees that the rule can fail.
func TestMayImport(t *testing.T) {
	for _, tc := range []struct {
		room, to   string
		test, want bool
	}{
		{"compile", "circuit", false, true},
		{"compile", "engine", false, false},
		{"compile", "internal/safetensors", false, true},
		{"compile", "internal/golden", false, false},
		{"compile", "internal/golden", true, true},
		{"compile", "kernels/kerneltest", true, true},
		{"compile", "engine", true, false},
		{"cmd/pce", "em", false, true},
		{"em", "compile", false, false},
		{"em", "compile", true, true},
	} {
		if got := mayImport(tc.room, Rooms[tc.room], tc.to, tc.test); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// TestRoomsExist fails on a plan that names packages which nobody could import.
func TestRoomsExist(t *testing.T) {
	for room, allowed := range Rooms {
		for _, to := range allowed {
			if _, ok := Rooms[to]; !ok && to != All {
				t.Errorf("%s may import %s, which is not in the plan", room, to)
			}
		}
	}
}

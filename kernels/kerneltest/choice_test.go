package kerneltest

import (
	"fmt"
	"testing"

	"github.com/pce-engine/pce/kernels"
)

// TestChoose wants each choice to name about a tenth of the cases, the same ones each
// time, and every case to be named by some choice.
func TestChoose(t *testing.T) {
	const cases, choices = 400, 100
	never := map[int]bool{}
	for c := range cases {
		never[c] = true
	}
	for k := range choices {
		choice, n := fmt.Sprintf("%040x", k*0x9e3779b9), 0
		for c := range cases {
			name := fmt.Sprintf("TestConformance/step/seed=%d", c)
			in := chosen(choice, name)
			if again := chosen(choice, name); again != in {
				t.Fatalf("choice %s wavers over %s", choice, name)
			}
			if in {
				n++
				delete(never, c)
			}
		}
		// A tenth of 400 is 40, with a deviation of 6.
		if !(n > 10 && n < 70) {
			t.Errorf("choice %s names %d of %d cases, want about a tenth", choice, n, cases)
		}
	}
	if len(never) > 0 {
		t.Errorf("%d choices never name the cases %v", choices, never)
	}
}

// TestChooseSkips plays cases of a suite that opens nothing: a choice of a tenth leaves
// out those that it does not name, and only those.
func TestChooseSkips(t *testing.T) {
	for _, choice := range []string{"", Whole, Short, "0123456789abcdef"} {
		t.Run("choice="+choice, func(t *testing.T) {
			opened := map[string]bool{}
			s := Suite{Open: func(t testing.TB) kernels.Device { opened[t.Name()] = true; return nil }}.Choose(choice)
			if full := s.Depth == Full; full != (choice != "" && choice != Short) {
				t.Errorf("depth is %v", s.Depth)
			}
			open, want := s.choose(t), 0
			for c := range 250 {
				name := fmt.Sprint("case ", c)
				t.Run(name, func(t *testing.T) {
					in := choice == "" || choice == Whole || chosen(choice, t.Name())
					if in {
						want++
					}
					open(t)
					if !in {
						t.Error("a case that was not chosen was played")
					}
				})
			}
			if len(opened) != want || want == 0 {
				t.Errorf("%d cases were opened, want %d", len(opened), want)
			}
		})
	}
}

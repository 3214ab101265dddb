package schedule

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

var recorder = flag.String("isl", "", "path of polyhedron/testdata/isl.c as a program: records its answers anew")

// violations returns the points of a dependence at which an element is not later than what it needs: one set for each
// component of the times that may be the first to differ the wrong way, and one for equal times.
func (s *Schedule) violations(d *Dependence) (out []*polyhedron.Set) {
	late, early := s.times[d.Target], s.times[d.Source]
	set := d.Set.Clone()
	for k := range max(len(late), len(early)) {
		row := make(polyhedron.Row, set.Vars+1) // the source's component less the target's
		for _, end := range []struct {
			times []Time
			index []polyhedron.Row
			sign  int64
		}{{early, d.From, 1}, {late, d.To, -1}} {
			if k >= len(end.times) {
				continue
			}
			t := end.times[k]
			if t.Row == nil {
				row[set.Vars] += end.sign * t.Place
				continue
			}
			params := s.params
			for v, c := range t.Row[:params] {
				row[v] += end.sign * c
			}
			row[set.Vars] += end.sign * t.Row[len(t.Row)-1]
			for j, x := range end.index {
				for v, c := range x {
					row[v] += end.sign * t.Row[params+j] * c
				}
			}
		}
		wrong := set.Clone()
		strictly := slices.Clone(row)
		strictly[set.Vars]--
		wrong.Positive = append(wrong.Positive, strictly)
		out = append(out, wrong)
		set.Zero = append(set.Zero, row)
	}
	return append(out, set)
}

// islEmpty asks libisl whether a set of N, M and dimensions has no points.
func islEmpty(s *polyhedron.Set) string {
	names := []string{"N", "M"}
	var dims []string
	for v := 2; v < s.Vars; v++ {
		dims = append(dims, fmt.Sprintf("x%d", v))
	}
	names = append(names, dims...)
	var rows []string
	for k, row := range append(slices.Clone(s.Zero), s.Positive...) {
		text := ""
		for v, name := range names {
			if row[v] != 0 {
				text += fmt.Sprintf("%+d%s", row[v], name)
			}
		}
		relation := " >= 0"
		if k < len(s.Zero) {
			relation = " = 0"
		}
		rows = append(rows, strings.TrimPrefix(fmt.Sprintf("%s%+d%s", text, row[len(row)-1], relation), "+"))
	}
	return fmt.Sprintf("empty\t[N,M] -> { [%s] : %s }", strings.Join(dims, ","), strings.Join(rows, " and "))
}

// TestISL wants libisl to find no point at which a schedule is not legal, and one where time runs backwards.
func TestISL(t *testing.T) {
	const path = "testdata/isl.txt"
	var questions []string
	var legal []bool
	for _, c := range orders {
		p := parse(t, ordersHead+c.text)
		deps, err := Dependences(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, find := range []func() (*Schedule, error){func() (*Schedule, error) { return New(p, deps) }, func() (*Schedule, error) { return Any(p, deps) }} {
			s, err := find()
			if (err != nil) != (c.cycle != "") {
				t.Fatalf("%s: %v", c.name, err)
			}
			if err != nil {
				continue
			}
			back := &Schedule{params: s.params, times: map[string][]Time{}}
			for name, times := range s.times {
				for _, x := range times {
					x.Row, x.Place = slices.Clone(x.Row), -x.Place
					for k := range x.Row {
						x.Row[k] = -x.Row[k]
					}
					back.times[name] = append(back.times[name], x)
				}
			}
			for _, d := range deps {
				if hollow, err := d.Set.Empty(); err != nil || hollow {
					continue
				}
				for k, which := range []*Schedule{s, back} {
					for _, v := range which.violations(d) {
						questions = append(questions, islEmpty(v))
						legal = append(legal, k == 0)
					}
					legal[len(legal)-1] = k == 0
					questions = append(questions, "") // ends a dependence
					legal = append(legal, k == 0)
				}
			}
		}
	}
	asked := slices.DeleteFunc(slices.Clone(questions), func(q string) bool { return q == "" })
	if *recorder != "" {
		c := exec.Command(*recorder)
		c.Stdin = strings.NewReader(strings.Join(asked, "\n") + "\n")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for k, answer := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
			fmt.Fprintf(&b, "%s\t= %s\n", asked[k], answer)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		q, a, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t= ")
		answers[q] = a
	}
	held := true
	verdicts := 0
	for k, q := range questions {
		if q == "" {
			if verdicts++; held != legal[k] {
				t.Errorf("legal %v, want %v: %v", held, legal[k], questions[k-1])
			}
			held = true
			continue
		}
		a, ok := answers[q]
		if !ok {
			t.Fatalf("%s has no answer for %q; run make isl", path, q)
		}
		held = held && a == "1"
	}
	t.Logf("%d schedules of dependences, %d questions", verdicts, len(asked))
	if verdicts < 30 {
		t.Errorf("%d dependences: the test says little", verdicts)
	}
}

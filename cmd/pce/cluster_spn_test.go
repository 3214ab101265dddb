package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster/job"
)

// TestNetworkJobs asks a cluster about a network of SPFlow, which runs as code and, where that is not enough, as tensors:
// results have the bytes of the commands.
func TestNetworkJobs(t *testing.T) {
	data := t.TempDir()
	model, rows, few := filepath.Join(data, "net.spn"), filepath.Join(data, "rows.csv"), filepath.Join(data, "few.csv")
	text, err := os.ReadFile(sharedData + "/spn/text/NLTCS_200.spn")
	if err != nil { // one with rows of both spaces
		text = []byte("R SumNode(0.5*A, 0.5*B){\n")
		for _, p := range []string{"A", "B"} {
			var names, leaves []string
			for v := range 16 {
				names = append(names, fmt.Sprintf("%s%d", p, v))
				leaves = append(leaves, fmt.Sprintf("%s%d Histogram(V%d|[0.,1.,2.];[0.25,0.75])\n", p, v, v))
			}
			text = fmt.Appendf(text, "%s ProductNode(%s){\n%s}\n", p, strings.Join(names, ", "), strings.Join(leaves, ""))
		}
		text = append(text, "}\n"...)
	}
	rng := rand.New(rand.NewPCG(4, 2))
	var table strings.Builder
	for range 3000 {
		cells := make([]string, 16)
		for i := range cells {
			if n := rng.IntN(9); n > 0 {
				cells[i] = fmt.Sprint(n % 2 * rng.IntN(4))
			}
		}
		table.WriteString(strings.Join(cells, ",") + "\n")
	}
	some := 300 // rows to complete, which takes a search for each
	if testing.Short() {
		some = 60
	}
	first := strings.Join(strings.SplitAfter(table.String(), "\n")[:some], "")
	for path, b := range map[string][]byte{model: text, rows: []byte(table.String()), few: []byte(first)} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := newTestCluster(t, 2, data)
	dir := t.TempDir()
	r := c.runner(t, dir, data)
	a := testApp()
	for _, tc := range []struct {
		kind, file, rows string
		sets             []string // of the job
		args             []string // of the command
	}{
		{"loglik", "out.csv", rows, nil, []string{"query", "loglik"}},
		{"eval", job.EvaluationFile, rows, nil, []string{"eval", "--json"}},
		{"moments", "out.csv", rows, nil, []string{"query", "moments"}},
		{"conditional", "out.csv", rows, []string{`job.columns=["2","5"]`}, []string{"query", "conditional", "--of", "2,5"}},
		{"mpe", "out.csv", few, []string{"job.candidates=2"}, []string{"query", "mpe", "--candidates", "2"}},
	} {
		kind, file, rows, args := tc.kind, tc.file, tc.rows, tc.args
		t.Run(kind, func(t *testing.T) {
			id := "run-" + kind
			j, err := a.newJob(t.Context(), id, testConfig(t, append(tc.sets, "data.header=no", fmt.Sprintf("job.data=[%q]", rows), "job.model="+model, "job.kind="+kind)...))
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := j.Encode(r.Bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Do(t.Context(), id, encoded); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			args = append(args, "--model", model, "--data", rows, "--set", "data.header=no")
			if code := Run(t.Context(), args, nil, nil, &out, &errs); code != exitOK {
				t.Fatalf("%v: %s", args, &errs)
			}
			if got := readFile(t, dir, "runs", id, file); !bytes.Equal(got, out.Bytes()) || len(got) < 20 {
				t.Errorf("%s has %d bytes, want the %d of the command\n%.200s\n%.200s", file, len(got), out.Len(), got, out.Bytes())
			}
		})
	}
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster/query"
)

// TestNetworkJobs asks a cluster about networks of SPFlow, one of histograms and one of single units of categories, which run as
// code and, where that is not enough, as tensors: results have the bytes of the commands.
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
	single, bits := filepath.Join(data, "single.spn"), filepath.Join(data, "bits.csv")
	var coins, flips strings.Builder
	coins.WriteString("S SumNode(0.3*P0, 0.7*P1){\n")
	for k := range 2 {
		var names, leaves []string
		for v := range 5 {
			names = append(names, fmt.Sprintf("L%d%d", k, v))
			leaves = append(leaves, fmt.Sprintf("L%d%d Categorical(V%d|p=[0.%d, 0.%d])\n", k, v, v, 1+v+k, 9-v-k))
		}
		fmt.Fprintf(&coins, "P%d ProductNode(%s){\n%s}\n", k, strings.Join(names, ", "), strings.Join(leaves, ""))
	}
	coins.WriteString("}\n")
	for i := range 500 {
		cells := make([]string, 5)
		for v := range cells {
			if (i+v)%7 > 0 {
				cells[v] = fmt.Sprint(i >> v & 1)
			}
		}
		flips.WriteString(strings.Join(cells, ",") + "\n")
	}
	for path, b := range map[string][]byte{
		model: text, rows: []byte(table.String()), few: []byte(first), single: []byte(coins.String()), bits: []byte(flips.String()),
	} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for device, want := range map[string][2]string{"cpu": {"code", "f64"}, "emulator": {"tensor", "fp32"}} {
		var info struct{ Path string }
		var bench struct {
			Used string `json:"precision_used"`
		}
		for into, args := range map[any][]string{&info: {"info", single}, &bench: {"bench", "--model", single, "--data", bits, "--set", "data.header=no", "--steps", "1"}} {
			var out, errs bytes.Buffer
			if code := Run(t.Context(), append(args, "--device", device, "--json"), nil, nil, &out, &errs); code != exitOK {
				t.Fatalf("%v on %s: %s", args, device, &errs)
			}
			if err := json.Unmarshal(out.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		if info.Path != want[0] || bench.Used != want[1] {
			t.Errorf("%s on %s: info says %s and bench %s; want %s and %s", single, device, info.Path, bench.Used, want[0], want[1])
		}
	}
	c := newTestCluster(t, 2, data)
	dir := t.TempDir()
	r := c.runner(t, dir, data)
	a := testApp()
	for i, tc := range []struct {
		kind, file, rows string
		sets             []string // of the job
		args             []string // of the command
		model            string   // "": of histograms
	}{
		{"loglik", "out.csv", rows, nil, []string{"query", "loglik"}, ""},
		{"eval", query.EvaluationFile, rows, nil, []string{"eval", "--json"}, ""},
		{"moments", "out.csv", rows, nil, []string{"query", "moments"}, ""},
		{"conditional", "out.csv", rows, []string{`job.columns=["2","5"]`}, []string{"query", "conditional", "--of", "2,5"}, ""},
		{"mpe", "out.csv", few, []string{"job.candidates=2"}, []string{"query", "mpe", "--candidates", "2"}, ""},
		{"loglik", "out.csv", bits, nil, []string{"query", "loglik"}, single},
		{"loglik", "out.csv", bits, []string{`job.columns=["2"]`}, []string{"query", "loglik", "--given", "2"}, single},
		{"eval", query.EvaluationFile, bits, nil, []string{"eval", "--json"}, single},
		{"conditional", "out.csv", bits, []string{`job.columns=["3"]`}, []string{"query", "conditional", "--of", "3"}, single},
	} {
		kind, file, rows, args, model := tc.kind, tc.file, tc.rows, tc.args, cmp.Or(tc.model, model)
		t.Run(kind, func(t *testing.T) {
			id := fmt.Sprint("run-", i)
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

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestServeDomains: a number that a column's leaves do not describe is refused, with the row, the column and the number of
// the request, and the requests that wait with it are answered.
func TestServeDomains(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(7, 8))
	text := "count,size,kind\n"
	for range 200 {
		text += fmt.Sprintf("%d,%.3f,%s\n", rng.IntN(6), 2+3*rng.Float64(), []string{"a", "b"}[rng.IntN(2)])
	}
	if err := os.WriteFile("train.csv", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--set", "data.train=train.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "model.latents=2", "--set", "train.epochs=1", "--set", "train.batch_size=64", "--out", "run", "--threads", "1",
		"--set", "data.columns=[{name: count, leaf: {type: poisson}}, {name: size, leaf: {type: log-normal}}]")
	url, stop := serving(t, nil, "--model", "m=run/model.safetensors", "--max-queue-delay", "50ms")
	ask := func(query, cells string) (int, string) {
		status, text := post(t, url+"/v2/models/m/infer", `{"parameters":{`+query+`},"inputs":[{"name":"x","datatype":"FP64","shape":[2,3],"data":[3,2.5,0,`+cells+`]}]}`)
		return status, string(text)
	}
	for _, query := range []string{"log_prob", "sample", "marginal", "moments", "mpe", `classify","class":"kind`} {
		var group sync.WaitGroup
		for _, row := range []struct{ cells, refusal string }{
			{"3,2.5,1", ""},
			{"2.5,2.5,1", `row 1, \"count\": poisson: 2.5 is not a count`},
			{"3,1,null", ""},
			{"-1,2,0", `row 1, \"count\": poisson: -1 is not a count`},
			{"3,-7.5,0", `row 1, \"size\": log-normal: -7.5; want a positive number`},
			{"3,1e-320,0", `row 1, \"size\": log-normal: 0; want a positive number`},
			{"null,1e-9,0", ""},
		} {
			group.Go(func() {
				status, text := ask(`"query":"`+query+`"`, row.cells)
				if want := map[bool]int{true: 200, false: 400}[row.refusal == ""]; status != want || !strings.Contains(text, row.refusal) {
					t.Errorf("%s, %s: %d %s; want %d, %s", query, row.cells, status, text, want, row.refusal)
				}
			})
		}
		group.Wait()
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestServeMixedDomains: a number that one of a column's leaves takes is answered as pce query answers it, whichever leaf comes last.
func TestServeMixedDomains(t *testing.T) {
	t.Chdir(t.TempDir())
	normal, logs := "input x0 gaussian -3 1", "input x0 log-normal 1 0.5"
	for name, text := range map[string]string{
		"last.txt":   "a = " + normal + "\nb = " + logs + "\ns = sum a b : 0.4 0.6\n",
		"first.txt":  "a = " + logs + "\nb = " + normal + "\ns = sum a b : 0.6 0.4\n",
		"beside.txt": "a = " + logs + "\nb = " + normal + "\nc = " + logs + "\ns = sum a b : 0.6 0.4\nroot s\n",
	} {
		if err := os.WriteFile(name, []byte("circuit 1\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		url, stop := serving(t, nil, "--model", "m="+name)
		status, said := post(t, url+"/v2/models/m/infer", `{"inputs":[{"name":"x","datatype":"FP64","shape":[2,1],"data":[-3,2]}]}`)
		if status != 200 || !strings.Contains(string(said), "-1.835") {
			t.Errorf("%s: %d %s; want 200 and -1.835 of the first row", name, status, said)
		}
		if code, said := stop(); code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
	}
}

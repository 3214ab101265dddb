package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
)

// doubleForest is a LightGBM text of three classes, which compares float64 numbers, has a split
// by categories, and thresholds that float32 does not have.
const doubleForest = `tree
version=v4
num_class=3
num_tree_per_iteration=3
label_index=0
max_feature_idx=2
objective=multiclass num_class:3
feature_names=a b c
feature_infos=[0:1] [0:1] 0:1:2
tree_sizes=1 1 1

Tree=0
num_leaves=2
num_cat=0
split_feature=0
threshold=0.1
decision_type=10
left_child=-1
right_child=-2
leaf_value=0.1 -0.2
is_linear=0
shrinkage=1


Tree=1
num_leaves=3
num_cat=1
split_feature=2 1
threshold=0 -1.5
decision_type=1 6
left_child=-1 -2
right_child=1 -3
leaf_value=0.7 -0.4 0.3
cat_boundaries=0 2
cat_threshold=5 1
is_linear=0
shrinkage=1


Tree=2
num_leaves=1
num_cat=0
split_feature=
threshold=
decision_type=
left_child=
right_child=
leaf_value=0.123456789012345
is_linear=0
shrinkage=1


end of trees
`

// singleForest is an XGBoost model of two columns, which compares float32 numbers.
const singleForest = `{"version": [1, 7, 4], "learner": {
  "feature_names": ["humidity", "wind"],
  "learner_model_param": {"base_score": "0.5", "num_class": "0", "num_feature": "2"},
  "objective": {"name": "binary:logistic"},
  "gradient_booster": {"name": "gbtree", "model": {"tree_info": [0, 0], "trees": [
    {"tree_param": {"num_nodes": "3"},
     "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0],
     "split_conditions": [0.1, -0.6, 0.8], "default_left": [1, 0, 0]},
    {"tree_param": {"num_nodes": "3"},
     "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [1, 0, 0],
     "split_conditions": [5.5, 0.1, -0.3], "default_left": [0, 0, 0]}]}}}}`

// tensorX writes rows of CSV as the input x: as text, or as numbers with null for what is
// missing.
func tensorX(datatype string, rows []string, columns int) string {
	var cells []string
	for _, row := range rows {
		for cell := range strings.SplitSeq(row, ",") {
			switch {
			case datatype == "BYTES":
				cell = strconv.Quote(cell)
			case cell == "" || cell == "?" || strings.EqualFold(cell, "nan") || cell == "NA":
				cell = "null"
			}
			cells = append(cells, cell)
		}
	}
	return fmt.Sprintf(`{"name":"x","datatype":%q,"shape":[%d,%d],"data":[%s]}`, datatype, len(rows), columns, strings.Join(cells, ","))
}

// predictOutputs are the flags of pce predict for the outputs of the server.
var predictOutputs = map[string]string{"prediction": "", "margin": "--margin", "leaf": "--leaf", "class": "--class"}

// asPredicted wants an output of the server for the input x to be what the command prints for
// the rows of CSV that x was made of.
func asPredicted(t *testing.T, url, name, file, output, x string, rows []string) {
	t.Helper()
	args := []string{"predict", "--model", file, "--data", "-", "--set", "data.header=no"}
	if flag := predictOutputs[output]; flag != "" {
		args = append(args, flag)
	}
	want := slices.Concat(lines(t, strings.Join(rows, "\n")+"\n", args...)...)
	a := inferOf(t, url, name, fmt.Sprintf(`{"inputs":[%s],"outputs":[{"name":%q}]}`, x, output))
	got := a.outputs[output]
	if len(got) != len(want) || len(got) < len(rows) || a.shapes[output][0] != len(rows) {
		t.Fatalf("%s, %s of %d rows: %d numbers of shape %v, the command prints %d", name, output, len(rows), len(got), a.shapes[output], len(want))
	}
	for i, x := range got {
		if w, err := strconv.ParseFloat(want[i], 64); err != nil || x != w {
			t.Fatalf("%s, %s, number %d: %v, the command prints %s", name, output, i, x, want[i])
		}
	}
}

// TestServeForest asks a server that has forests everything that their metadata lists, and wants
// what the command prints, for rows as text and as numbers, one and more than a batch.
func TestServeForest(t *testing.T) {
	t.Chdir(t.TempDir())
	forests := []struct {
		name, text, datatype string
		columns              int
		rows                 []string
	}{
		{"double", doubleForest, "FP64", 3, []string{
			"0.1,-2,0", "0.10000000149011612,-1,2", "0.1000000000000000056,-1.5,32", ",,", "nan,?,NA", "-0.5,1e-36,-1", "1e308,-1e308,37", "0.5,0,0.5",
			"0.10000000000000002,0,1",
		}},
		{"single", singleForest, "FP32", 2, []string{"0.1,5.5", "0.09999999,5.4999995", "0.1000000015,5.50000001", ",", "nan,9", "1e30,-1e30", "0.099999998,5.4999999"}},
	}
	var models []string
	for _, f := range forests {
		if err := os.WriteFile(f.name, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		models = append(models, "--model", f.name+"="+f.name)
	}
	url, stop := serving(t, nil, models...)
	for _, f := range forests {
		var meta struct {
			Inputs  []oip.TensorInfo
			Queries []struct {
				Name    string
				Inputs  []oip.TensorInfo
				Outputs []oip.TensorInfo
			}
		}
		if err := json.Unmarshal(get(t, url+"/v2/models/"+f.name), &meta); err != nil {
			t.Fatal(err)
		}
		if len(meta.Queries) != 1 || meta.Queries[0].Name != "predict" || len(meta.Queries[0].Outputs) != len(predictOutputs) {
			t.Fatalf("%s: metadata lists %+v, want the query predict with %d outputs", f.name, meta, len(predictOutputs))
		}
		if x, y := meta.Inputs[0].Datatype, meta.Queries[0].Inputs[0].Datatype; string(x) != f.datatype || x != y {
			t.Errorf("%s: x is %s and %s, want %s", f.name, x, y, f.datatype)
		}
		many := f.rows
		for len(many) < 2500 { // more than two batches of the server
			many = append(many, many...)
		}
		for _, rows := range [][]string{f.rows[:1], f.rows, many} {
			for _, out := range meta.Queries[0].Outputs {
				for _, datatype := range []string{"BYTES", f.datatype, "FP64"} {
					if datatype != "FP32" || !slices.Contains(rows, "0.1000000015,5.50000001") { // JSON numbers round as float64 first
						asPredicted(t, url, f.name, f.name, out.Name, tensorX(datatype, rows, f.columns), rows)
					}
				}
			}
		}
		a := inferOf(t, url, f.name, fmt.Sprintf(`{"inputs":[%s]}`, tensorX("FP64", nil, f.columns)))
		if got, ok := a.outputs["prediction"]; !ok || len(got) != 0 || len(a.outputs) != 1 {
			t.Errorf("%s: no rows give %v", f.name, a.outputs)
		}
	}
	observed := inferOf(t, url, "single", `{"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[0,9]},{"name":"observed","datatype":"BOOL","shape":[1,2],"data":[true,false]}],"outputs":[{"name":"leaf"}]}`)
	if got := observed.outputs["leaf"]; !slices.Equal(got, []float64{1, 2}) {
		t.Errorf("leaves %v of a row without wind, want 1 and 2", got)
	}
	forestOverGRPC(t, url)
	for body, want := range map[string]string{
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[1,3],"data":[1,2,3]}]}`:                                              "want [N 2]",
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[2],"data":[1,2]}]}`:                                                  "want [N 2]",
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[1000000000000,2],"data":[1,2]}]}`:                                    "shape",
		`{"inputs":[{"name":"x","datatype":"BYTES","shape":[2,2],"data":["1","2","3","wet"]}]}`:                                 `row 1, \"wind\": \"wet\" is not a number`,
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[1,2]}],"outputs":[{"name":"scores"}]}`:                  "prediction margin leaf class",
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[1,2]}],"parameters":{"query":"log_prob"}}`:              "answers [predict]",
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"data":[1,2]},{"name":"low","datatype":"FP64","shape":[1,2]}]}`: "low",
		`{"inputs":[]}`: "missing",
	} {
		status, said := post(t, url+"/v2/models/single/infer", body)
		if status < 400 || status > 413 || !strings.Contains(string(said), want) || strings.Count(string(said), "\n") > 1 {
			t.Errorf("%s: %d %s, want %q", body, status, said, want)
		}
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// forestOverGRPC wants the bytes of a prediction of the forest double over gRPC: of cells
// that are the same float32 number and on two sides of a threshold.
func forestOverGRPC(t *testing.T, url string) {
	t.Helper()
	cells := []float64{0.1, 0, 1, math.Nextafter(0.1, 1), 0, 1}
	req := oip.Request{Model: "double", Inputs: []oip.Tensor{{Name: "x", Datatype: oip.FP64, Shape: []int64{2, 3}}}, Outputs: []oip.Output{{Name: "margin"}}}
	for _, x := range cells {
		req.Inputs[0].Raw = binary.LittleEndian.AppendUint64(req.Inputs[0].Raw, math.Float64bits(x))
	}
	want := oip.Response{Model: "double", Version: "1", Outputs: []oip.Tensor{{Name: "margin", Datatype: oip.FP64, Shape: []int64{2, 3}}}}
	for _, x := range lines(t, "0.1,0,1\n0.10000000000000002,0,1\n", "predict", "--model", "double", "--data", "-", "--set", "data.header=no", "--margin") {
		for _, text := range x {
			y, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			want.Outputs[0].Raw = binary.LittleEndian.AppendUint64(want.Outputs[0].Raw, math.Float64bits(y))
		}
	}
	if raw := want.Outputs[0].Raw; bytes.Equal(raw[:24], raw[24:]) {
		t.Fatal("the rows have the same scores, so float32 cells would not be found")
	}
	overGRPC(t, url, &req, &want)
}

// overGRPC wants an answer to a request over gRPC.
func overGRPC(t *testing.T, url string, req *oip.Request, want *oip.Response) {
	t.Helper()
	message := req.AppendProto(nil)
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/inference.GRPCInferenceService/ModelInfer",
		bytes.NewReader(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &p}
	defer transport.CloseIdleConnections()
	w, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	if err != nil || len(got) < 5 || !bytes.Equal(got[5:], want.AppendProto(nil)) {
		t.Errorf("gRPC says %q %v, %v, want %q", got, w.Trailer, err, want.AppendProto(nil))
	}
}

// TestServedLabels: a class is its label where all labels are numbers, else an index into the
// labels, which come with the answer; a forest without classes does not list them.
func TestServedLabels(t *testing.T) {
	for _, c := range []struct {
		labels []string
		params any
		want   []float64
	}{
		{nil, nil, []float64{0, 1}},
		{[]string{"7.5", "-3"}, nil, []float64{7.5, -3}},
		{[]string{"dry, so far", "wet"}, `"dry, so far",wet`, []float64{0, 1}},
	} {
		f := &forest.Forest{Target: "classes", Features: 1, Outputs: 2, Classes: 2, Labels: c.labels, Base: []float64{0, 0}, Link: forest.Softmax, Trees: []forest.Tree{{
			Weight: 1, Values: []forest.Value{{Value: 2}, {Output: 1, Value: 3}},
			Nodes: []forest.Node{{Test: forest.Less, MissingYes: true, Yes: 1, No: 2}, {Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
		}}}
		m, err := pce.NewForest(f, pce.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := newServedForest(m)
		if s.Bytes() < 100 {
			t.Errorf("a forest of %d bytes", s.Bytes())
		}
		out := make([]float64, 2)
		w := &serve.Work{Query: queryPredict, Parts: make([]serve.Part, 1), Numbers: []float64{math.NaN(), 1}, Outputs: [][]float64{nil, nil, nil, out}}
		if err := s.Run(t.Context(), w); err != nil || !slices.Equal(out, c.want) || w.Parts[0].Answer[answerLabels] != c.params {
			t.Errorf("labels %q: classes %v with %v, %v; want %v with %v", c.labels, out, w.Parts[0].Answer, err, c.want, c.params)
		}
		f.Classes, f.Labels = 0, nil
		if q := newServedForest(m).Queries()[0]; len(q.Outputs) != 3 {
			t.Errorf("without classes the outputs are %v", q.Outputs)
		}
	}
}

// TestServeForestShared wants of a server what the command prints for forests of each format:
// categories, missing cells, several targets, leaves that are vectors, linear models.
func TestServeForestShared(t *testing.T) {
	files := map[string]string{
		"lgb-mixed_categorical": "model.txt", "lgb-multiclass": "model.txt", "xgbs-cat-partition": "model.ubj", "xgbs-missing": "model.deprecated.bin",
		"xgbs-multitarget": "model.json", "xgbs-gblinear": "model.json", "onnx-abalone": "abalone_onnx_model_save.onnx.gz",
	}
	if testing.Short() {
		maps.DeleteFunc(files, func(name, _ string) bool { return name != "lgb-multiclass" && name != "xgbs-missing" })
	}
	var args []string
	for name, file := range files {
		path := filepath.Join(sharedData, "forest", name, file)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no %s: the forests of ../shared/data/forest are described in its README.md", path)
		}
		args = append(args, "--model", name+"="+path)
	}
	url, stop := serving(t, nil, args...)
	for name, file := range files {
		dir := filepath.Join(sharedData, "forest", name)
		text, err := os.ReadFile(filepath.Join(dir, "input.csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(string(text)), "\n")
		rows = rows[:min(len(rows), 100)]
		x := tensorX("BYTES", rows, 1+strings.Count(rows[0], ","))
		var meta struct {
			Queries []struct{ Outputs []oip.TensorInfo }
		}
		if err := json.Unmarshal(get(t, url+"/v2/models/"+name), &meta); err != nil {
			t.Fatal(err)
		}
		for _, out := range meta.Queries[0].Outputs {
			asPredicted(t, url, name, filepath.Join(dir, file), out.Name, x, rows)
		}
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

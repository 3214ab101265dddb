package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/serve/metrics"
	"github.com/pce-engine/pce/serve/oip"
)

// ask sends a request to a handler and returns the answer.
func ask(t testing.TB, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// want compares an answer with JSON text.
func want(t testing.TB, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	var got, exp any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if err := json.Unmarshal([]byte(text), &exp); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(exp)
	if w.Code != status || !bytes.Equal(a, b) {
		t.Errorf("got %d %s\nwant %d %s", w.Code, a, status, b)
	}
}

const row = `{"inputs":[{"name":"x","datatype":"FP64","shape":[1,5],"data":[1,150,2,20,3]}]}`

func TestConformanceEndpoints(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	want(t, ask(t, s, "GET", "/v2/health/live", ""), 200, `{"live":true,"ready":true}`)
	want(t, ask(t, s, "GET", "/v2/health/ready", ""), 200, `{"live":true,"ready":true}`)
	want(t, ask(t, s, "GET", "/v2", ""), 200, `{"name":"pce","version":"test","extensions":["binary_tensor_data","statistics","model_repository"]}`)
	want(t, ask(t, s, "GET", "/v2/models", ""), 200, `[{"name":"m","version":"1","state":"READY","reason":""}]`)
	want(t, ask(t, s, "POST", "/v2/repository/index", ""), 200, `[{"name":"m","version":"1","state":"READY","reason":""}]`)
	want(t, ask(t, s, "POST", "/v2/repository/index", `{"ready":true}`), 200, `[{"name":"m","version":"1","state":"READY","reason":""}]`)
	for _, base := range []string{"/v2/models/m", "/v2/models/m/versions/1"} {
		want(t, ask(t, s, "GET", base+"/ready", ""), 200, `{"name":"m","ready":true}`)
		w := ask(t, s, "GET", base, "")
		var info struct {
			Name     string
			Versions []string
			Platform string
			Inputs   []oip.TensorInfo
			Outputs  []oip.TensorInfo
			Queries  []struct {
				Name       string
				Inputs     []oip.TensorInfo
				Outputs    []oip.TensorInfo
				Parameters []map[string]any
			}
			Columns []map[string]any
		}
		if err := json.Unmarshal(w.Body.Bytes(), &info); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(info.Name, info.Versions, info.Platform, info.Inputs, info.Outputs); got != "m[1]pce[{x FP64 [-1 5] map[]}] [{log_prob FP32 [-1] map[]}]" {
			t.Error(got)
		}
		if len(info.Queries) != 3 || len(info.Columns) != 5 {
			t.Fatalf("%+v", info)
		}
		// Numbers of a column are its labels only where these are numbers.
		for i, column := range info.Columns {
			if numeric := column["numeric"] == true; numeric != (column["name"] == "d") {
				t.Errorf("column %d: %v", i, column)
			}
		}
		// What requests may leave out and what they get only if they ask is marked.
		for i, want := range []string{
			"[{x FP64 [-1 5] map[]} {observed BOOL [-1 5] map[optional:true]}] [{log_prob FP32 [-1] map[]} {twice FP64 [-1] map[on_request:true]}]",
			"[{x FP64 [-1 5] map[optional:true]} {observed BOOL [-1 5] map[optional:true]}] [{samples FP32 [-1 -1 5] map[]}]",
			"[{x FP64 [-1 5] map[]} {observed BOOL [-1 5] map[optional:true]} {w FP64 [-1 5] map[]} {bias FP32 [-1] map[optional:true]}] [{value FP64 [-1] map[]}]",
		} {
			if got := fmt.Sprint(info.Queries[i].Inputs, info.Queries[i].Outputs); got != want {
				t.Errorf("query %s:\ngot  %s\nwant %s", info.Queries[i].Name, got, want)
			}
		}
		want(t, ask(t, s, "POST", base+"/infer", row), 200,
			`{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-155]}]}`)
	}
	w := ask(t, s, "GET", "/v2/models/m/stats", "")
	var stats struct {
		List []oip.Statistics `json:"model_stats"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &stats); err != nil || len(stats.List) != 1 {
		t.Fatal(err, w.Body)
	}
	if x := stats.List[0]; x.InferenceCount != 2 || x.ExecutionCount != 2 || x.Inference.Success.Count != 2 || len(x.Batches) != 1 || x.Batches[0].Size != 1 || x.LastInference == 0 {
		t.Errorf("%+v", x)
	}
	if w := ask(t, s, "GET", "/v2/models/stats", ""); w.Code != 200 {
		t.Error(w.Code, w.Body)
	}
	metrics := ask(t, s, "GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`pce_inference_requests_total{model="m",query="log_prob",code="200"} 2`,
		`pce_inference_rows_total{model="m",query="log_prob"} 2`,
		`pce_inference_duration_seconds_count{model="m",query="log_prob"} 2`,
		`pce_inference_queue_seconds_count{model="m",query="log_prob"} 2`,
		`pce_inference_compute_seconds_bucket{model="m",query="log_prob",le="+Inf"} 2`,
		`pce_inference_batch_rows_bucket{model="m",le="1"} 2`,
		`pce_inference_queue_rows{model="m"} 0`,
		`pce_model_info{model="m",version="1"} 1`,
		`pce_model_loaded{model="m"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, metrics)
		}
	}
}

// TestConformanceDatatypes sends the same rows in every datatype that can hold them,
// as JSON and as binary tensors, and asks for the answer in every datatype.
func TestConformanceDatatypes(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	// a, b, c, d (a number is the label), e = 1 + 2·stored.
	numbers := []float64{1, 100, 2, 20, 3, 0, 0, 0, 10, 1}
	for _, d := range oip.Datatypes {
		var raw []byte
		var list []string
		for i, x := range numbers {
			if d == oip.Bool {
				x = []float64{1, 1, 1, math.NaN(), 1}[i%5]
			}
			switch {
			case d == oip.Bytes:
				text := strconv.FormatFloat(x, 'g', -1, 64)
				if i%5 == 2 {
					text = []string{"low", "mid", "high"}[int(x)]
				}
				raw, list = oip.AppendText(raw, text), append(list, strconv.Quote(text))
			case x != x: // BOOL cannot hold a label of column d
				raw, list = append(raw, 0), append(list, "false")
			default:
				var err error
				if raw, err = oip.AppendFloat(raw, d, x); err != nil {
					t.Fatal(err)
				}
				list = append(list, strconv.FormatFloat(x, 'g', -1, 64))
			}
		}
		expect, observed := []float64{-105, 0}, ""
		if d == oip.Bool {
			expect = []float64{-2.99, -2.99} // d is missing, e is stored as 0
			observed = `,{"name":"observed","datatype":"BOOL","shape":[2,5],"data":[[true,true,true,false,true],[true,true,true,false,true]]}`
		}
		for _, out := range oip.Datatypes {
			if out == oip.Bytes || d == oip.Bool && out != oip.FP64 || strings.HasPrefix(string(out), "U") || out == oip.Bool {
				continue // the answers are negative
			}
			outputs := fmt.Sprintf(`"outputs":[{"name":"log_prob","parameters":{"datatype":%q}}]`, out)
			text := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":%q,"shape":[2,5],"data":[%s]}%s],%s}`, d, strings.Join(list, ","), observed, outputs)
			w := ask(t, s, "POST", "/v2/models/m/infer", text)
			exp := fmt.Sprintf(`{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[2],"datatype":%q,"data":[%v,%v]}]}`, out, expect[0], expect[1])
			want(t, w, 200, exp)
			head := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":%q,"shape":[2,5],"parameters":{"binary_data_size":%d}}%s],%s}`, d, len(raw), observed, outputs)
			w = ask(t, s, "POST", "/v2/models/m/infer", head+string(raw), headerLength, strconv.Itoa(len(head)))
			want(t, w, 200, exp)
		}
	}
}

func TestConformanceShapes(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	answer := func(n int, data string) string {
		return fmt.Sprintf(`{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[%d],"datatype":"FP32","data":%s}]}`, n, data)
	}
	for _, tc := range []struct{ shape, data, want string }{
		{"[0,5]", "[]", answer(0, "[]")},
		{"[1,5]", "[[1,150,2,20,3]]", answer(1, "[-155]")},
		{"[2,5]", "[[1,150,2,20,3],[0,0,0,10,1]]", answer(2, "[-155,0]")},
		{"[2,5]", "[1,150,2,20,3,0,0,0,10,1]", answer(2, "[-155,0]")},
		{"[1,5]", `[null,"NaN",2,20,3]`, answer(1, "[-3.98]")},
	} {
		w := ask(t, s, "POST", "/v2/models/m/infer", fmt.Sprintf(`{"inputs":[{"data":%s,"name":"x","shape":%s,"datatype":"FP64"}]}`, tc.data, tc.shape))
		want(t, w, 200, tc.want)
	}
	// A long request takes several batches.
	rows := 3000
	var list []string
	for i := range rows {
		list = append(list, fmt.Sprintf("[1,%d,0,10,1]", i%200))
	}
	w := ask(t, s, "POST", "/v2/models/m/infer", fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"INT32","shape":[%d,5],"data":[%s]}]}`, rows, strings.Join(list, ",")))
	var got struct{ Outputs []struct{ Data []float64 } }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Outputs[0].Data) != rows {
		t.Fatal(err, w.Code)
	}
	for i, x := range got.Outputs[0].Data {
		if x != -1-float64(i%200) {
			t.Fatalf("row %d: %v", i, x)
		}
	}
}

func TestConformanceRequest(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	input := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"datatype":"FP64","shape":[1,5],"data":[1,150,2,20,3]}`, name)
	}
	for _, tc := range []struct{ name, body, want string }{
		{"id", `{"id":"a \"b\" \u00e9","inputs":[` + input("x") + `]}`,
			`{"model_name":"m","model_version":"1","id":"a \"b\" é","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-155]}]}`},
		{"query", `{"parameters":{"query":"log_prob"},"inputs":[` + input("x") + `],"outputs":[{"name":"twice"},{"name":"log_prob"}]}`,
			`{"model_name":"m","model_version":"1","outputs":[{"name":"twice","shape":[1],"datatype":"FP64","data":[-310]},{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-155]}]}`},
		{"parameters", `{"parameters":{"query":"weighted","power":2,"exact":true,"note":"n","count":18446744073709551615},"inputs":[` + input("x") + `,` + strings.Replace(input("w"), "[1,150,2,20,3]", "[1,0,0,0,10]", 1) + `]}`,
			`{"model_name":"m","model_version":"1","parameters":{"count":18446744073709551615,"exact":true,"note":"n"},"outputs":[{"name":"value","shape":[1],"datatype":"FP64","data":[121]}]}`},
		{"whole floats", `{"parameters":{"query":"weighted","power":2,"count":1.2e1},"inputs":[` + input("x") + `,` + strings.Replace(input("w"), "[1,150,2,20,3]", "[1,0,0,0,10]", 1) + `]}`,
			`{"model_name":"m","model_version":"1","parameters":{"count":12,"exact":false,"note":""},"outputs":[{"name":"value","shape":[1],"datatype":"FP64","data":[121]}]}`},
		{"optional input", `{"parameters":{"query":"weighted"},"inputs":[` + input("x") + `,` + strings.Replace(input("w"), "[1,150,2,20,3]", "[1,0,0,0,10]", 1) + `,{"name":"bias","datatype":"INT8","shape":[1],"data":[-5]}]}`,
			`{"model_name":"m","model_version":"1","parameters":{"count":3,"exact":false,"note":""},"outputs":[{"name":"value","shape":[1],"datatype":"FP64","data":[6]}]}`},
		{"sample", `{"parameters":{"query":"sample","seed":7,"n_samples":2}}`,
			`{"model_name":"m","model_version":"1","parameters":{"seed":7},"outputs":[{"name":"samples","shape":[1,2,5],"datatype":"FP32","data":[7000,7000,7000,7000,7000,7001,7001,7001,7001,7001]}]}`},
		{"sample of rows", `{"parameters":{"query":"sample","seed":8,"n_samples":2},"inputs":[{"name":"x","datatype":"FP32","shape":[2,5],"data":[1,1,1,10,1,0,2,2,30,null]}]}`,
			`{"model_name":"m","model_version":"1","parameters":{"seed":8},"outputs":[{"name":"samples","shape":[2,2,5],"datatype":"FP32","data":[1,1,1,0,0, 1,1,1,0,0, 0,2,2,2,8002, 0,2,2,2,8003]}]}`},
		{"unknown members are skipped", `{"x":{"a":[1,{"b":null}]},"inputs":[{"foo":"bar","name":"x","datatype":"FP64","shape":[1,5],"data":[1,150,2,20,3]}]}`,
			`{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-155]}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) { want(t, ask(t, s, "POST", "/v2/models/m/infer", tc.body), 200, tc.want) })
	}
	w := ask(t, s, "POST", "/v2/models/m/infer", `{"parameters":{"query":"sample"}}`)
	var got struct{ Parameters struct{ Seed uint64 } }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Parameters.Seed == 0 || got.Parameters.Seed >= 1<<53 {
		t.Errorf("a drawn seed is returned: %v %s", err, w.Body)
	}
}

// TestConformanceBinary mixes JSON and binary tensors both ways.
func TestConformanceBinary(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	var raw []byte
	for _, x := range []float64{1, 150, 2, 20, 3} {
		raw, _ = oip.AppendFloat(raw, oip.FP64, x)
	}
	mask := `{"name":"observed","datatype":"BOOL","shape":[1,5],"data":[true,false,true,true,true]}`
	head := `{"inputs":[` + mask + `,{"name":"x","datatype":"FP64","shape":[1,5],"parameters":{"binary_data_size":40}}],
		"outputs":[{"name":"log_prob","parameters":{"binary_data":true}},{"name":"twice"}]}`
	w := ask(t, s, "POST", "/v2/models/m/infer", head+string(raw), headerLength, strconv.Itoa(len(head)))
	n, err := strconv.Atoi(w.Header().Get(headerLength))
	if err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/octet-stream" {
		t.Fatal(w.Code, w.Header(), w.Body)
	}
	body := w.Body.Bytes()
	if got := math.Float32frombits(binary.LittleEndian.Uint32(body[n:])); len(body) != n+4 || got != -4.99 {
		t.Errorf("%v in %d bytes after the header", got, len(body)-n)
	}
	w.Body = bytes.NewBuffer(body[:n])
	want(t, w, 200, `{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}},{"name":"twice","shape":[1],"datatype":"FP64","data":[-9.98]}]}`)

	// All outputs at once, and one of them taken out.
	w = ask(t, s, "POST", "/v2/models/m/infer", strings.Replace(row, "{", `{"parameters":{"binary_data_output":true},`, 1))
	if n, _ := strconv.Atoi(w.Header().Get(headerLength)); w.Code != 200 || w.Body.Len() != n+4 {
		t.Error(w.Code, w.Header(), w.Body)
	}
	w = ask(t, s, "POST", "/v2/models/m/infer", strings.Replace(row, "{", `{"parameters":{"binary_data_output":true},"outputs":[{"name":"log_prob","parameters":{"binary_data":false}}],`, 1))
	want(t, w, 200, `{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-155]}]}`)
}

// TestBodiesAreTheirOwn: a body that takes the memory of an earlier, longer one is read
// as it is, and that of a request whose answer did not come is left alone.
func TestBodiesAreTheirOwn(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	long := strings.Replace(row, "{", "{"+strings.Repeat(" ", 3000), 1)
	for range 3 {
		for _, body := range []string{long, row, "", "{", row} {
			status := 200
			if len(body) < 2 {
				status = 400
			}
			if w := ask(t, s, "POST", "/v2/models/m/infer", body); w.Code != status || status == 200 && !strings.Contains(w.Body.String(), "[-155]") {
				t.Errorf("%d bytes: %d %s", len(body), w.Code, w.Body)
			}
		}
	}
	if n := s.metrics.Pending.Load(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
	s = &Server{metrics: &metrics.Metrics{}}
	m := &requestBody{server: s, bytes: make([]byte, 8)}
	m.done()
	if b := s.bodies.Get(); b != nil {
		t.Error("a body that may still be read is given to another request")
	}
}

// TestConformanceLength: every answer says how long it is, on both sides of what net/http counts itself.
func TestConformanceLength(t *testing.T) {
	server := httptest.NewServer(testServer(t, &fakeLoader{bytes: 1}, Options{}, "m"))
	defer server.Close()
	sizes := map[bool]int{}
	for rows := 1; rows <= 600; rows++ {
		data := strings.Repeat("1,2,0,20,0.5,", rows)
		body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP64","shape":[%d,5],"data":[%s]}]}`, rows, data[:len(data)-1])
		r, err := http.Post(server.URL+"/v2/models/m/infer", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 || r.ContentLength != int64(len(text)) {
			t.Fatalf("%d rows: %d, length %d of %d bytes: %v %.200s", rows, r.StatusCode, r.ContentLength, len(text), err, text)
		}
		sizes[len(text) > smallAnswer]++
	}
	if sizes[false] == 0 || sizes[true] == 0 {
		t.Errorf("answers on one side alone: %v", sizes)
	}
}

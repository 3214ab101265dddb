package report

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/run"
)

const result = `{"nodes":9,"train_ll":-2.5,"valid_ll":null,"test_ll":-2.25,"test_bpd":1.5,"best_epoch":2,"warnings":["<script>alert(1)</script>"],
"train_seconds":61,"samples_per_second":12345.6,"device":"cpu","precision_used":"fp32","steps":4,"epochs":2,"version":{"version":"v9","go":"go1","os":"o","arch":"a"}}`

const metrics = `{"epoch":1,"step":2,"train_ll":-3.5,"valid_ll":-3.25,"seconds":1,"samples_per_second":100}
{"epoch":2,"step":4,"train_ll":null,"valid_ll":-3,"seconds":1,"samples_per_second":200}
`

// TestDamaged reports runs that lack something, and wants what is there and a line
// for what is not.
func TestDamaged(t *testing.T) {
	whole := map[string]string{run.ConfigFile: "name: \"</pre><script>\"\n", run.MetricsFile: metrics, run.ResultFile: result}
	for _, tc := range []struct {
		name    string
		file    string
		text    string // "": no file
		missing string
		shows   []string
		hides   []string
	}{
		{"no model", "", "", "Layers and memory: the run has no model.safetensors (yet).", []string{"−2.2500", "valid", "61 s", "v9 go1 o/a", "&lt;script&gt;alert(1)"}, []string{"<h2>Model"}},
		{"no config", run.ConfigFile, "", "The settings: the run has no config.yaml (yet).", []string{"−2.2500"}, []string{"<h2>Settings"}},
		{"as it was", run.ConfigFile, "epochs: 4\n", "", []string{"with it makes the same run."}, []string{"may make another"}},
		{"changed", run.ConfigFile, "epochs: 4\n# history: after 2 epochs and 8 steps: train.epochs: 2, now 4\n", "", []string{"what was otherwise before, so <code>pce train --config</code> with it may make another run."}, []string{"makes the same run"}},
		{"no metrics", run.MetricsFile, "", "The curves: the run has no metrics.jsonl (yet).", []string{"<h2>Results", "<h2>Settings"}, []string{"<svg"}},
		{"no epoch", run.MetricsFile, "\n", "line 1: unexpected end of JSON input", nil, []string{"<svg"}},
		{"discriminative", run.ResultFile, strings.Replace(result, `"nodes"`, `"objective":"log p(c)","nodes"`, 1), "", []string{"<dt>test objective</dt>", "<h3>Objective</h3>",
			"The objective is the mean over rows of log p(c), in nats.", "Mean objective of training"}, []string{"og-likelihood"}},
		{"running means", "", "", "", []string{"Of training rows these are running means"}, nil},
		{"cut line", run.MetricsFile, metrics[:len(metrics)-20], "line 2: unexpected end of JSON input; the lines before it are shown.", []string{"<svg", "−3.5000"}, nil},
		{"another type", run.MetricsFile, `{"epoch":"x"}`, "line 1: json: cannot unmarshal string", nil, []string{"<svg"}},
		{"slow", run.MetricsFile, `{"epoch":1,"train_ll":-3,"samples_per_second":0.25}`, "", []string{"<td>0.25</td>", "<dd>12\u202f346</dd>"}, nil},
		{"only infinite", run.MetricsFile, `{"epoch":1,"samples_per_second":5}`, "", []string{"<h2>Results"}, []string{`class="line train"`}},
		{"endless line", run.MetricsFile, strings.Repeat(" ", maxText+1), "token too long", nil, []string{"<svg"}},
		{"no result", run.ResultFile, "", "The results: the run has no result.json (yet).", []string{"<svg"}, []string{"<h2>Results"}},
		{"resumed", run.MetricsFile, metrics + `{"epoch":3,"step":6,"valid_ll":-2.75}`, "The results and the model are those after 2 epochs: the run was resumed", []string{"<h2>Results"}, nil},
		{"not resumed", run.MetricsFile, metrics, "", nil, []string{"was resumed"}},
		{"cut result", run.ResultFile, result[:40], "The results: result.json: ", []string{"<svg"}, []string{"<h2>Results"}},
		{"result that is too large", run.ResultFile, result + strings.Repeat(" ", maxText), "more than 4194304 bytes", nil, []string{"<h2>Results"}},
		{"cut model", run.ModelFile, "\x20\x00\x00\x00\x00\x00\x00\x00{", "Layers and memory: model.safetensors: ", []string{"<svg"}, []string{"<h2>Model"}},
		{"cut picture", run.SamplesFile, "\x89PNG\r\n\x1a\n", "The samples: samples.png: ", []string{"<svg"}, []string{"<img"}},
		{"picture that is too large", run.SamplesFile, strings.Repeat("x", maxPicture+1), "more than 16777216", nil, []string{"<img"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range whole {
				write(t, dir, name, text)
			}
			if tc.file != "" {
				os.Remove(filepath.Join(dir, tc.file))
			}
			if tc.text != "" {
				write(t, dir, tc.file, tc.text)
			}
			r, err := Read(t.Context(), dir, pce.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tc.missing != "" && !slices.ContainsFunc(r.Missing, func(m string) bool { return strings.Contains(m, tc.missing) }) {
				t.Errorf("missing is %q, want %q", r.Missing, tc.missing)
			}
			text := render(t, r)
			for _, s := range tc.shows {
				if !strings.Contains(text, s) {
					t.Errorf("the report lacks %q", s)
				}
			}
			for _, s := range append(tc.hides, "<script") {
				if strings.Contains(text, s) {
					t.Errorf("the report has %q", s)
				}
			}
		})
	}
}

// TestResumedObjective: figures of a run that was resumed with train.discriminative, and is not done, are log-likelihoods as before, and
// its curves are of the objective.
func TestResumedObjective(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, run.MetricsFile, metrics)
	write(t, dir, run.ResultFile, result)
	r, err := Read(t.Context(), dir, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Objective = "the objective of train.discriminative"
	text := render(t, r)
	for _, s := range []string{"<dt>test log-likelihood</dt>", "Log-likelihoods are means over rows, in nats.", "<h3>Objective</h3>", "Of the objective of train.discriminative."} {
		if !strings.Contains(text, s) {
			t.Errorf("the report lacks %q", s)
		}
	}
}

// TestLargePicture: pixels that a picture's head claims take no memory, and one that is cut is not shown.
func TestLargePicture(t *testing.T) {
	var one bytes.Buffer
	if err := png.Encode(&one, image.NewNRGBA64(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	large := one.Bytes() // of 16 bits, with the sides of its head, and the head's sum, changed
	binary.BigEndian.PutUint32(large[16:], maxPictureSide)
	binary.BigEndian.PutUint32(large[20:], maxPictureSide)
	binary.BigEndian.PutUint32(large[29:], crc32.ChecksumIEEE(large[12:29]))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := picture(large)
	runtime.ReadMemStats(&after)
	if err != nil || s.Width != maxPictureSide {
		t.Errorf("%+v, %v", s, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("a file of %d bytes took %d", len(large), took)
	}
	if _, err := picture(large[:len(large)-1]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut picture: %v", err)
	}
}

// TestEndlessPicture reads no more of a device than a picture may have.
func TestEndlessPicture(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, run.ResultFile, result)
	if err := os.Symlink("/dev/zero", filepath.Join(dir, run.SamplesFile)); err != nil {
		t.Skip(err)
	}
	r, err := Read(t.Context(), dir, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(r.Missing, "\n"); !strings.Contains(text, "more than 16777216 bytes") {
		t.Errorf("missing is %q", text)
	}
}

// TestNoRun refuses what is not a run.
func TestNoRun(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "notes.txt", "x")
	for _, path := range []string{dir, filepath.Join(dir, "absent"), filepath.Join(dir, "notes.txt")} {
		if _, err := Read(t.Context(), path, pce.Options{}); !errors.Is(err, ErrNoRun) || errors.Is(err, run.ErrRun) {
			t.Errorf("Read(%s): %v, want ErrNoRun", path, err)
		}
	}
	// A directory that cannot be looked into may be a run.
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Skip(err)
	}
	if _, err := Read(t.Context(), loop, pce.Options{}); !errors.Is(err, syscall.ELOOP) || errors.Is(err, ErrNoRun) {
		t.Errorf("of a link to itself: %v, want the reason why it cannot be read", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// render writes a report and checks that its elements are closed and that it refers to
// nothing outside.
func render(t *testing.T, r *Run) string {
	t.Helper()
	var b, again bytes.Buffer
	if err := errors.Join(r.Write(&b), r.Write(&again)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("two reports of a run differ")
	}
	body, _, _ := strings.Cut(b.String(), "</html>")
	_, body, _ = strings.Cut(body, "</head>")
	d := xml.NewDecoder(strings.NewReader("<html>" + body + "</html>"))
	d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				if slices.Contains([]string{"src", "href", "action", "srcset"}, a.Name.Local) && !strings.HasPrefix(a.Value, "data:image/png;base64,") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	for _, word := range []string{"http://", "https://", "@import", "url("} {
		if strings.Contains(b.String(), word) {
			t.Errorf("the report has %q", word)
		}
	}
	return b.String()
}

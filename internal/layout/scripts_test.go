package layout

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// languages matches what a script does in other ways in other languages: it sorts, and reads or prints numbers
// with a point or times.
var languages = regexp.MustCompile(`\b(sort|awk|lscpu|EPOCHREALTIME|TIMEFORMAT)\b|printf .*%[.0-9]*[efg]`)

// TestScriptsLanguage wants scripts to do the same whatever the language of the machine is: in German the
// clock of bash has a comma, and in English "forward" sorts behind "forward_wide".
func TestScriptsLanguage(t *testing.T) {
	found := 0
	for _, pattern := range []string{".ci/*", "bench/*.sh"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var code []string
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(strings.TrimSpace(line), "#") {
					code = append(code, line)
				}
			}
			all := strings.Join(code, "")
			if what := languages.FindString(all); what != "" {
				found++
				if !strings.Contains(all, "\nexport LC_ALL=C ") {
					t.Errorf("%s has %q; let it begin with export LC_ALL=C", file, what)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d scripts; the pattern is broken", found)
	}
}

// TestScriptsHelp wants --help of a benchmark to print the comment at its head and to begin nothing: it was taken for a number of rounds, of
// which some printed a help with dozens of words, or for a file.
func TestScriptsHelp(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "bench", "*.sh"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, %v; the pattern is broken", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitN(string(text), "\n", 3)
		programs := map[string]string{}
		for _, name := range []string{"go", "make", "realpath", "seq", "yosys"} {
			programs[name] = "echo begun; exit 1\n"
		}
		for _, flag := range []string{"--help", "-h"} {
			out, ok := script(t, t.TempDir(), programs, nil, filepath.Join("bench", filepath.Base(file)), flag)
			if want := strings.TrimPrefix(lines[1], "# "); !ok || !strings.HasPrefix(out, want+"\n") || strings.Contains(out, "begun") || strings.Contains(out, "set -e") {
				t.Errorf("%s %s: ends well: %v, prints\n%s", file, flag, ok, out)
			}
		}
	}
}

// script runs a script of the repository in a folder, with programs of its own in front of those on the PATH. It returns what
// the script prints on standard output, and whether it ends well.
func script(t *testing.T, dir string, programs, env map[string]string, name string, args ...string) (out string, ok bool) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{path}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	text, err := cmd.Output()
	return string(text), err == nil
}

// write writes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// standInTools writes assemblers of both releases of CUDA, as .ci/ptxas keeps them. The disassemblers end with the code that the
// variable SAYS has.
func standInTools(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, release := range []string{"11.8", "12.4"} {
		write(t, dir, map[string]string{
			release + "/ptxas": "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release " + release + ",'; exit; fi\n" +
				"while [ \"$1\" != -o ]; do shift; done\n: >\"$2\"\n" +
				"echo \"ptxas info : Compiling entry function 'k' for 'sm'\"\necho 'ptxas info : Used 16 registers'\n",
			release + "/nvdisasm": "#!/bin/sh\n[ \"$1\" = --version ] || exit \"$SAYS\"\n",
		})
	}
	return dir
}

// TestReportDisassembles wants .ci/ptx-report to fail where the disassembler does: its counts of instructions
// and loops would be 0.
func TestReportDisassembles(t *testing.T) {
	dir := standInTools(t)
	write(t, dir, map[string]string{"text/k.ptx": ".version 7.0\n.target sm_80\n.visible .entry k(\n)\n.maxntid 128, 1, 1\n"})
	for says, want := range map[string]bool{"0": true, "1": false} {
		programs := map[string]string{"ptxas": "echo release 0.0,\n"} // of no release that is asked for
		out, ok := script(t, dir, programs, map[string]string{"PCE_TOOLS": dir, "SAYS": says}, ".ci/ptx-report", filepath.Join(dir, "text"))
		if ok != want || want && strings.Count(out, "k.ptx") != 4 {
			t.Errorf("nvdisasm ends with %s: the report passes: %v\n%s", says, ok, out)
		}
	}
}

// standInGo takes the place of the go command in scripts that build pce: the program that it builds prints one result.
const standInGo = `echo "#!/bin/sh
echo '{\"test_ll\":-1.5,\"seconds\":2}'" >"$3"
chmod +x "$3"
`

// TestLearnPrintsJSON wants lines of JSON of bench/learn.sh on a machine without bc, which few have.
func TestLearnPrintsJSON(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"nltcs/nltcs.train.data": "0,1\n", "nltcs/nltcs.valid.data": "0,1\n", "nltcs/nltcs.test.data": "0,1\n"})
	programs := map[string]string{"go": standInGo, "bc": "exit 127\n"}
	out, ok := script(t, dir, programs, map[string]string{"SETS": "nltcs", "PEERS": ""}, "bench/learn.sh", dir)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not JSON", line)
		}
	}
	if !ok || len(lines) != 2 || !strings.Contains(out, `"wall":`) {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

// TestLearnComparesSteps wants bench/learn.sh to measure both circuits in steps of as many rows: their presets have other rules, and steps
// of all rows update the parameters once where the others do it 34 times. A name that is given twice is learned two times.
func TestLearnComparesSteps(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"plants/plants.train.data": "0,1\n", "plants/plants.valid.data": "0,1\n", "plants/plants.test.data": "0,1\n"})
	programs := map[string]string{"go": `cat >"$3" <<'END'
#!/bin/sh
if [ "$1" = train ]; then
  while [ "$1" != --out ]; do shift; done
  mkdir "$2" || exit 2
fi
batch=preset
for word; do [ "$last" != --batch ] || batch=$word; last=$word; done
echo '{"seconds_per_1k_samples":0.'$batch',"edges":2}'
END
chmod +x "$3"
`}
	out, ok := script(t, dir, programs, map[string]string{"SETS": "plants plants", "PEERS": "", "WORDS": ""}, "bench/learn.sh", dir)
	if !ok || strings.Count(out, `"seconds_per_1k_samples":0.512,"edges":2,`) != 2 {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

// TestQualityWantsRows wants bench/quality.sh to end where a data set lacks rows: without those of validation it would
// print a row of another training.
func TestQualityWantsRows(t *testing.T) {
	for _, lacking := range []string{"", "train", "valid", "test"} {
		dir := t.TempDir()
		for _, split := range []string{"train", "valid", "test"} {
			if split != lacking {
				write(t, dir, map[string]string{"nltcs/nltcs." + split + ".data": "0,1\n"})
			}
		}
		out, ok := script(t, dir, map[string]string{"go": standInGo}, map[string]string{"SETS": "nltcs"}, "bench/quality.sh", dir)
		if whole := lacking == ""; ok != whole || strings.Contains(out, "| nltcs | -1.5 | -1.5, -1.5 |") != whole {
			t.Errorf("without rows of %q: ends well: %v, prints\n%s", lacking, ok, out)
		}
	}
}

// TestRoundsAreNumbers wants scripts that take a number of rounds to refuse what is not one, such as the name of a model that was given
// in its place: they measured nothing, and ended well.
func TestRoundsAreNumbers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"peer.py": ""})
	for _, rounds := range []string{"NIPS5", "0", "-1", "2x"} {
		for name, args := range map[string][]string{
			"bench/cluster.sh": {rounds}, "bench/forest.sh": {rounds}, "bench/spn.sh": {rounds}, "bench/hclt-cpu.sh": {"peer.py", rounds},
			"bench/serve.sh": {dir, rounds},
		} {
			if out, ok := script(t, dir, map[string]string{"go": "echo begun; exit 1\n"}, nil, name, args...); ok || out != "" {
				t.Errorf("%s %v: ends well: %v, prints\n%s", name, args, ok, out)
			}
		}
	}
}

// TestClusterMedians wants bench/cluster.sh to print the middle between the two epochs that count of a run of three, and not the faster one.
func TestClusterMedians(t *testing.T) {
	programs := map[string]string{"go": `cat >"$3" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
  --url-file) : >"$2" ;;
  --out) mkdir -p "$2"; printf '{"seconds":9}\n{"seconds":4}\n{"seconds":2}\n' >"$2/metrics.jsonl" ;;
  esac
  shift
done
END
chmod +x "$3"
`}
	out, ok := script(t, t.TempDir(), programs, nil, "bench/cluster.sh", "2")
	if !ok || !json.Valid([]byte(out)) || strings.Count(out, `seconds":3.000`) != 6 {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

// TestPeerByAnyPath wants bench/hclt-cpu.sh to find a peer that is named from the folder where it is called.
func TestPeerByAnyPath(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"peer.py": "", "python": "#!/bin/sh\nif [ \"$1\" = - ]; then cat >/dev/null; exit; fi\n[ -f \"$1\" ] && echo '{\"gflops\": 1}'\n",
	})
	out, ok := script(t, dir, map[string]string{"go": standInGo}, map[string]string{"PYTHON": filepath.Join(dir, "python")}, "bench/hclt-cpu.sh", "peer.py", "1")
	if !ok || strings.Contains(out, `"peer_sha256":""`) || strings.Count(out, `"who":"peer"`) != 2 || strings.Count(out, `"who":"pce-`) != 4 {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

// TestPeersSayWhatFailed wants bench/peers.sh to end with what pce said where it fails: the config that it was given is gone by then.
func TestPeersSayWhatFailed(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{ // one peer that is there, and does nothing
		"sources/SPFlow/numpy.py":                                 "raise ImportError('none')\n",
		"sources/SPFlow/torch.py":                                 "__version__ = '0'\nset_num_threads = manual_seed = int\nrandint = lambda *_: torch.ones\nclass torch:\n  class ones:\n    float = lambda: None\n",
		"sources/SPFlow/spflow/__init__.py":                       "",
		"sources/SPFlow/spflow/learn/__init__.py":                 "",
		"sources/SPFlow/spflow/learn/expectation_maximization.py": "expectation_maximization = lambda *_, **more: None\n",
		"sources/SPFlow/spflow/zoo/__init__.py":                   "",
		"sources/SPFlow/spflow/zoo/hclt.py":                       "learn_hclt_binary = lambda *_, **more: None\n",
		"python":                                                  "#!/bin/sh\nexec '" + python + "' -B \"$@\" 2>&1\n",
	})
	programs := map[string]string{"go": "printf '#!/bin/sh\\necho the reason >&2; exit 4\\n' >\"$3\"\nchmod +x \"$3\"\n"}
	out, ok := script(t, dir, programs, map[string]string{"PYTHON": filepath.Join(dir, "python")}, "bench/peers.sh", "sources", "1")
	if ok || !strings.Contains(out, "ended with exit code 4: the reason\n") {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

// TestModelsByAnyPath wants bench/rtl.sh to find models that are named from the folder where it is called.
func TestModelsByAnyPath(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.spn": "", "b.spn": ""})
	programs := map[string]string{
		"go": `cat >"$3" <<'END'
#!/bin/sh
[ -f "$2" ] || exit 1
while [ "$1" != -o ]; do shift; done
mkdir -p "$2"
printf '"lut": 3,\n"dsp": 2,\n' >"$2/report.json"
END
chmod +x "$3"
`,
		"yosys": `at=$(echo "$3" | sed 's/.*tee -q -o \([^ ]*\) .*/\1/')
printf 'design hierarchy\n  LUT2 5\n  DSP48E1 4\n' >"$at"
`,
	}
	out, ok := script(t, dir, programs, nil, "bench/rtl.sh", "a.spn", "b.spn")
	want := "a.spn: 4 DSP48E1, 5 LUT with shift registers; report.json: 2, 3\n"
	if !ok || out != want+strings.Replace(want, "a.spn", "b.spn", 1) {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

// TestNetworksAreAssembled wants .ci/ptx-code to fail where no network compiles: forests alone are half of what it is for.
func TestNetworksAreAssembled(t *testing.T) {
	if testing.Short() {
		t.Skip("the script begins hundreds of programs; leave out -short")
	}
	for _, folder := range []string{"spn", "forest"} {
		if _, err := os.Stat(filepath.Join(root, "..", "shared", "data", folder)); err != nil {
			t.Skipf("SKIPPED: %v: place the folder shared beside the repository", err)
		}
	}
	dir := standInTools(t)
	for networks, want := range map[string]bool{"exit 1": false, "": true} {
		programs := map[string]string{"ptxas": "echo release 0.0,\n", "go": `cat >"$3" <<'END'
#!/bin/sh
case "$*" in *"--path code"*) ` + networks + `;; esac
while [ "$1" != -o ]; do shift; done
mkdir -p "$2"
date +%N >"$2/a.ptx"
END
chmod +x "$3"
`}
		out, ok := script(t, t.TempDir(), programs, map[string]string{"PCE_TOOLS": dir, "SAYS": "0"}, ".ci/ptx-code")
		if ok != want {
			t.Errorf("networks: %q: ends well: %v, prints\n%s", networks, ok, out)
		}
	}
}

// TestRatiosOfEqualWork wants bench/spn.sh to print ratios to peers of one thread for lines of pce with one thread alone.
func TestRatiosOfEqualWork(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "..", "shared", "study", "cpu", "spn")); err != nil {
		t.Skipf("SKIPPED: %v: place the folder shared beside the repository", err)
	}
	compiler := `while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho "of 3 calls: median 10 rows/us"\n' >"$2"
chmod +x "$2"
`
	programs := map[string]string{"g++": compiler, "gcc": compiler, "go": `cat >"$3" <<'END'
#!/bin/sh
for threads in 1 2 16; do echo '{"program":"pce library","threads":'$threads',"rows_per_us":20}'; done
END
chmod +x "$3"
`}
	dir := t.TempDir()
	write(t, dir, map[string]string{"python": "#!/bin/sh\n[ \"$1\" != spn_data.py ] || : >NIPS5.u8\n"})
	out, ok := script(t, dir, programs, map[string]string{"PYTHON": filepath.Join(dir, "python")}, "bench/spn.sh", "1", "NIPS5")
	for _, want := range []string{`"to_cpp":2,`, `"threads":1,`, `"threads":16,`} {
		if strings.Count(out, want) != 1 {
			t.Errorf("prints %q %d times, want once", want, strings.Count(out, want))
		}
	}
	if !ok || strings.Count(out, `"to_cpp":null,"to_prototype":null,`) != 2 {
		t.Errorf("ends well: %v, prints\n%s", ok, out)
	}
}

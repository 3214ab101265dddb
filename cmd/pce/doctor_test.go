package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda"
)

// TestDoctorCards looks at how cards are printed, which few machines have.
func TestDoctorCards(t *testing.T) {
	d := diagnosis{Cards: []card{
		describeCard(cuda.Card{Name: "NVIDIA H200", Major: 9, Memory: 140 << 30, Multiprocessors: 132, DriverVersion: 12040}),
		describeCard(cuda.Card{Name: "NVIDIA A100", Ordinal: 1, Major: 8, Memory: 80 << 30, Multiprocessors: 108, DriverVersion: 12040}),
	}}
	var out bytes.Buffer
	if err := d.print(&app{stdout: &out}); err != nil {
		t.Fatal(err)
	}
	want := `
cards      cuda:0 NVIDIA H200, sm_90, 132 multiprocessors, 140.0 GiB, driver for CUDA 12.4 with PTX up to 8.4
           cuda:1 NVIDIA A100, sm_80, 108 multiprocessors, 80.0 GiB, driver for CUDA 12.4 with PTX up to 8.4
`
	if !strings.Contains(out.String(), want) {
		t.Errorf("printed\n%s, want in it%s", &out, want)
	}

	out.Reset()
	d = diagnosis{Cards: []card{}, NoCards: "the reason"}
	if err := d.print(&app{stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\ncards      none: the reason\n") {
		t.Errorf("printed\n%s", &out)
	}
}

// TestDoctorFull wants a full disk and memory that others have filled to be told from what the system does not tell, and a run to be
// bounded where no memory is available.
func TestDoctorFull(t *testing.T) {
	for _, tc := range []struct {
		d          diagnosis
		want, json string
	}{
		{diagnosis{MemoryBytes: new(uint64), AvailableBytes: new(uint64), DiskFreeBytes: new(uint64)}, "\nmemory     0.0 GiB, 0.0 GiB available\ndisk       0.0 GiB free here\n",
			`"memory_available_bytes":0,"disk_free_bytes":0,`},
		{diagnosis{}, "\nmemory     unknown, unknown available\ndisk       unknown free here\n", `"memory_bytes":null,"memory_available_bytes":null,"disk_free_bytes":null,`},
	} {
		if text, err := json.Marshal(&tc.d); err != nil || !strings.Contains(string(text), tc.json) {
			t.Errorf("error %v, in JSON %s, want in it %s", err, text, tc.json)
		}
		var out bytes.Buffer
		if err := tc.d.print(&app{stdout: &out}); err != nil || !strings.Contains(out.String(), tc.want) {
			t.Errorf("error %v, printed\n%s, want in it%s", err, &out, tc.want)
		}
	}
	for _, tc := range []struct {
		total, available uint64
		want             int64
	}{{0, 0, 0}, {1 << 30, 0, 1}, {1 << 30, 1 << 20, 1 << 20}} {
		if got := memoryBound(tc.total, tc.available); got != tc.want {
			t.Errorf("of %d bytes %d are available: the bound is %d, want %d", tc.total, tc.available, got, tc.want)
		}
	}
}

// TestCards wants cards or the reason why there are none, and not both.
func TestCards(t *testing.T) {
	if list, why := cards(); list == nil || (len(list) == 0) != (why != "") {
		t.Errorf("cards %v, reason %q", list, why)
	}
}

// TestDoctorToken wants the server's token to be named and not printed, and to be no fault.
func TestDoctorToken(t *testing.T) {
	t.Setenv("PCE_CPU", "")
	env := []string{"PCE_SERVE_TOKEN=s3cret", "PCE_SEED=3"}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), args, env, nil, &out, &errs)
		if code != 0 || errs.Len() > 0 || strings.Contains(out.String(), "s3cret") || !strings.Contains(out.String(), "PCE_SERVE_TOKEN (set)") || !strings.Contains(out.String(), "PCE_SEED=3") {
			t.Errorf("%v: exit %d, %s%s", args, code, &out, &errs)
		}
	}
}

// TestDoctorFaults wants doctor to find a kernel path that cannot run and variables that make
// no sense, each alone and together, in one line.
func TestDoctorFaults(t *testing.T) {
	for _, tc := range []struct {
		cpu, foo string
		code     int
	}{{"", "", 0}, {"zz", "", exitMachine}, {"", "1", exitUsage}, {"zz", "1", exitMachine}} {
		t.Setenv("PCE_CPU", tc.cpu)
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"doctor", "--json"}, []string{"PCE_CPU=" + tc.cpu, "PCE_FOO=" + tc.foo}, nil, &out, &errs)
		if code != tc.code || strings.Count(errs.String(), "\n") != min(1, code) {
			t.Errorf("%q and %q: exit %d, want %d, and one line: %s", tc.cpu, tc.foo, code, tc.code, &errs)
		}
		if strings.Contains(errs.String(), "zz") != (tc.cpu != "") || strings.Contains(errs.String(), "PCE_FOO") != (tc.foo != "") {
			t.Errorf("%q and %q: %s", tc.cpu, tc.foo, &errs)
		}
		var d diagnosis
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if Run(t.Context(), []string{"doctor"}, []string{"PCE_CPU=" + tc.cpu}, nil, &out, &errs); strings.Contains(out.String(), "kernels    none (of ") != (tc.cpu != "") {
			t.Errorf("%q: %s", tc.cpu, &out)
		}
		if (d.ConfigVariables == "ok") != (tc.foo == "") || (d.KernelPath == "") != (tc.cpu != "") {
			t.Errorf("%q and %q: kernel path %q, variables %q", tc.cpu, tc.foo, d.KernelPath, d.ConfigVariables)
		}
	}
}

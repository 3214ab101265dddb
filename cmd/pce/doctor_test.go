package main

import (
	"bytes"
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

// TestCards wants cards or the reason why there are none, and not both.
func TestCards(t *testing.T) {
	if list, why := cards(); list == nil || (len(list) == 0) != (why != "") {
		t.Errorf("cards %v, reason %q", list, why)
	}
}

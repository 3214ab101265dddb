package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/run"
)

// diagnosis is what doctor finds out about the machine. Sizes are bytes, and nil where the system does not tell: 0 bytes free are a full
// disk, 0 available memory that others have filled.
type diagnosis struct {
	Build           run.Version `json:"build"`
	Cores           int         `json:"cores"`
	CPUFeatures     []string    `json:"cpu_features"`
	KernelPath      string      `json:"kernel_path"`
	KernelPaths     []string    `json:"kernel_paths"`
	Cards           []card      `json:"cards"`
	NoCards         string      `json:"no_cards,omitempty"` // why there are none
	MemoryBytes     *uint64     `json:"memory_bytes"`
	AvailableBytes  *uint64     `json:"memory_available_bytes"`
	DiskFreeBytes   *uint64     `json:"disk_free_bytes"`
	Presets         []string    `json:"presets"`
	Variables       []string    `json:"variables"`
	ConfigVariables string      `json:"config_variables"`
}

// card is a GPU that pce can compute on.
type card struct {
	Device          string `json:"device"` // as --device wants it
	Name            string `json:"name"`
	Architecture    string `json:"architecture"`
	Multiprocessors int    `json:"multiprocessors"`
	MemoryBytes     int64  `json:"memory_bytes"`
	DriverVersion   string `json:"driver_version"` // of CUDA
	PTXVersion      string `json:"ptx_version"`    // the newest that the driver takes
}

// cards lists the machine's GPUs, or says why there are none.
func cards() ([]card, string) {
	found, err := cuda.Cards()
	if err != nil {
		return []card{}, strings.TrimPrefix(err.Error(), kernels.ErrDevice.Error()+": ")
	}
	list := []card{}
	for _, c := range found {
		list = append(list, describeCard(c))
	}
	return list, ""
}

func describeCard(c cuda.Card) card {
	major, minor := c.PTXVersion()
	return card{
		Device:          fmt.Sprintf("cuda:%d", c.Ordinal),
		Name:            c.Name,
		Architecture:    c.Architecture(),
		Multiprocessors: c.Multiprocessors,
		MemoryBytes:     c.Memory,
		DriverVersion:   fmt.Sprintf("%d.%d", c.DriverVersion/1000, c.DriverVersion%1000/10),
		PTXVersion:      fmt.Sprintf("%d.%d", major, minor),
	}
}

// diagnose looks at the machine and the environment. The error is that of a kernel path that
// cannot run here, of variables that make no sense, or of both in one line. The value of the
// server's token is a secret, and what doctor prints goes into reports of problems.
func (a *app) diagnose() (diagnosis, error) {
	d := diagnosis{
		Build:           run.ReadVersion(),
		Cores:           runtime.GOMAXPROCS(0),
		CPUFeatures:     cpuFeatures(),
		Presets:         configs.Presets(),
		Variables:       []string{},
		ConfigVariables: "ok",
	}
	if total, available := memory(); total > 0 {
		d.MemoryBytes, d.AvailableBytes = &total, &available
	}
	d.Cards, d.NoCards = cards()
	if free, known := diskFree("."); known {
		d.DiskFreeBytes = &free
	}
	for _, kv := range a.env {
		if name, value, _ := strings.Cut(kv, "="); name == tokenVariable && value != "" {
			d.Variables = append(d.Variables, name+" (set)")
		} else if strings.HasPrefix(kv, "PCE_") {
			d.Variables = append(d.Variables, kv)
		}
	}
	for _, s := range micro.All() {
		d.KernelPaths = append(d.KernelPaths, s.Name)
	}
	_, _, bad := configs.Load(configs.Options{Env: a.env})
	if bad != nil {
		d.ConfigVariables = bad.Error()
	}
	set, err := micro.Select()
	switch {
	case err == nil:
		d.KernelPath = set.Name
		return d, bad
	case bad != nil:
		err = fmt.Errorf("%w; %v", err, bad)
	}
	return d, err
}

// cpuFeatures lists those vector extensions of this processor that kernels may use, by the
// names that operating systems give them; pce doctor prints them.
func cpuFeatures() []string {
	var names []string
	halves := func(s *micro.Set) bool { return s.Half != nil } // package cpu does not know of AVX512_FP16
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"avx2", cpu.X86.HasAVX2},
		{"fma", cpu.X86.HasFMA},
		{"avx512f", cpu.X86.HasAVX512F},
		{"avx512dq", cpu.X86.HasAVX512DQ},
		{"avx512bw", cpu.X86.HasAVX512BW},
		{"avx512vl", cpu.X86.HasAVX512VL},
		{"avx512vbmi", cpu.X86.HasAVX512VBMI},
		{"avx512bf16", cpu.X86.HasAVX512BF16},
		{"avx512fp16", slices.ContainsFunc(micro.All(), halves)},
		{"gfni", cpu.X86.HasAVX512GFNI},
		{"asimd", cpu.ARM64.HasASIMD},
	} {
		if f.has {
			names = append(names, f.name)
		}
	}
	return names
}

// gib prints a size, if it is known.
func gib(bytes *uint64) string {
	if bytes == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(*bytes)/(1<<30))
}

func (d *diagnosis) print(a *app) error {
	_, err := fmt.Fprintf(a.stdout, `build      %s
cpu        %s, %s
kernels    %s (of %s)
cards      %s
memory     %s, %s available
disk       %s free here
presets    %s
variables  %s
`,
		d.Build, several(d.Cores, "core"), orNone(d.CPUFeatures), cmp.Or(d.KernelPath, "none"), strings.Join(d.KernelPaths, ", "),
		d.cardLines(), gib(d.MemoryBytes), gib(d.AvailableBytes), gib(d.DiskFreeBytes), strings.Join(d.Presets, ", "), orNone(d.Variables))
	return err
}

// cardLines has a line for each card, or one that says why there are none.
func (d *diagnosis) cardLines() string {
	if len(d.Cards) == 0 {
		return "none: " + d.NoCards
	}
	lines := make([]string, len(d.Cards))
	for i, c := range d.Cards {
		memory := uint64(c.MemoryBytes)
		lines[i] = fmt.Sprintf("%s %s, %s, %d multiprocessors, %s, driver for CUDA %s with PTX up to %s",
			c.Device, c.Name, c.Architecture, c.Multiprocessors, gib(&memory), c.DriverVersion, c.PTXVersion)
	}
	return strings.Join(lines, "\n           ")
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// doctorCommand makes the command pce doctor, which says what the machine offers and names
// variables of the environment that do not make sense.
func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what the machine offers and whether the environment makes sense",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, bad := a.diagnose()
			print := d.print
			if asJSON {
				print = func(a *app) error { return a.printJSON(d) }
			}
			if err := print(a); err != nil {
				return err
			}
			return bad
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

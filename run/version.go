package run

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// modulePath is this module's, as the Go toolchain records it.
const modulePath = "github.com/pce-engine/pce"

// Version is what the Go toolchain recorded about this build of the module.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the program's sources, where the program is of this module
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// ReadVersion returns the version of this module in the running program, from what the Go
// toolchain wrote into it. In a program that imports the module the revision stays empty: it
// would be that of the program.
func ReadVersion() Version {
	v := Version{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	own := &info.Main
	for _, m := range info.Deps {
		if m.Path == modulePath {
			own = m
		}
	}
	if own.Version != "" {
		v.Version = own.Version
	}
	if own != &info.Main {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// Source says which sources the program was made of: the module's version, which has the revision where the toolchain knows both,
// or the revision alone; "" where it knows neither.
func (v Version) Source() string {
	switch {
	case v.Version != "(devel)":
		return v.Version
	case v.Modified && v.Revision != "":
		return v.Revision + " modified"
	}
	return v.Revision
}

// String is one line.
func (v Version) String() string {
	s := fmt.Sprintf("pce %s %s %s/%s", v.Version, v.Go, v.OS, v.Arch)
	if v.Revision != "" {
		s += " " + v.Revision
	}
	if v.Modified {
		s += " modified"
	}
	return s
}

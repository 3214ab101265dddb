package peer

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster"
)

// socketOf is where a peer's Unix socket is.
func socketOf(t *testing.T, p *Peers) place {
	t.Helper()
	at, err := parsePlace(p.Endpoint().Local)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestChoice sends to endpoints whose Local is not, or not quite, a socket here:
// all but one are reached by TCP.
func TestChoice(t *testing.T) {
	dir := t.TempDir()
	a, b := listen(t, Options{ID: "a"}), listen(t, Options{ID: "b", Local: dir})
	frames := collect(b)
	b.Admit(map[string]cluster.Endpoint{"a": a.Endpoint()})
	at := socketOf(t, b)
	link, dead, file := filepath.Join(dir, "link"), filepath.Join(dir, "dead"), filepath.Join(dir, "file")
	if err := errors.Join(os.Symlink(at.path, link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	deadAt, err := placeOf(dead)
	if err != nil {
		t.Fatal(err)
	}
	edited := func(edit func(*place)) string {
		at := at
		edit(&at)
		return at.String()
	}
	for name, c := range map[string]struct{ local, why string }{
		"the socket":     {at.String(), ""},
		"no socket":      {"", "names none"},
		"another host":   {edited(func(at *place) { at.boot = "00000000-0000-0000-0000-000000000000" }), "another host"},
		"another inode":  {edited(func(at *place) { at.ino++ }), "another file"},
		"another device": {edited(func(at *place) { at.device++ }), "another file"},
		"another path":   {edited(func(at *place) { at.path += "x" }), "no such file"},
		"a link":         {edited(func(at *place) { at.path = link }), "is not a socket"},
		"a file":         {edited(func(at *place) { at.path = file }), "is not a socket"},
		"a dead socket":  {deadAt.String(), "refused"},
		"no place":       {"nonsense", "does not name one"},
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			a := listen(t, Options{ID: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			b.Admit(map[string]cluster.Endpoint{"a": a.Endpoint()})
			e := b.Endpoint()
			e.Local = c.local
			a.Admit(map[string]cluster.Endpoint{"b": e})
			if len(a.Ways()) != 0 {
				t.Errorf("ways before the first Send are %v", a.Ways())
			}
			for range 2 {
				if err := a.Send(t.Context(), "b", &cluster.Frame{Kind: cluster.FetchFrame}); err != nil {
					t.Fatal(err)
				}
				<-frames
			}
			want := map[string]string{"b": tcpWay}
			if c.why == "" {
				want["b"] = unixWay
			}
			if !maps.Equal(a.Ways(), want) {
				t.Errorf("ways are %v, want %v", a.Ways(), want)
			}
			lines := log.lines()
			if len(lines) != 1 || !strings.Contains(lines[0], "way="+want["b"]) || !strings.Contains(lines[0], c.why) {
				t.Errorf("log is %q, want one line with %s and %q", lines, want["b"], c.why)
			}
		})
	}
}

// TestSocketFiles looks at what Listen makes and Close removes.
func TestSocketFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	first, second := listen(t, Options{ID: "a", Local: dir}), listen(t, Options{ID: "b", Local: dir})
	at := socketOf(t, first)
	if s, err := os.Stat(filepath.Dir(at.path)); err != nil || s.Mode() != os.ModeDir|0o700 {
		t.Errorf("the directory of the socket is %v, %v, want mode 0700", s.Mode(), err)
	}
	if filepath.Dir(filepath.Dir(at.path)) != dir {
		t.Errorf("socket %s is not below %s", at.path, dir)
	}
	// What a dead life left goes, what another member listens on stays.
	dead := filepath.Join(filepath.Dir(at.path), "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	third := listen(t, Options{ID: "a", Local: dir})
	if _, err := os.Lstat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of a dead life: %v, want it removed", err)
	}
	if now, err := placeOf(at.path); err != nil || now != at {
		t.Errorf("the socket of another is %v, %v, want %v", now, err, at)
	}
	for _, p := range []*Peers{first, second, third} {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v is left after Close", left, err)
	}
}

// TestNoSocket listens where no socket can be: that is said in the log, and
// TCP is there.
func TestNoSocket(t *testing.T) {
	temp, long := t.TempDir(), "/"+strings.Repeat("long/", 30)
	t.Setenv("TMPDIR", temp)
	within := t.TempDir() + long
	if p := listen(t, Options{ID: "a", Local: within}); filepath.Dir(filepath.Dir(socketOf(t, p).path)) != temp {
		t.Errorf("socket is at %v, want it below %s", socketOf(t, p), temp)
	} else if _, err := near(p.Endpoint().Local); err != nil {
		t.Error(err)
	}
	open := t.TempDir()
	if p := listen(t, Options{ID: "a", Local: open}); p.local != nil {
		own := filepath.Dir(socketOf(t, p).path)
		p.Close()
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(open, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ temp, local, why string }{
		{temp + long, within, "TMPDIR"},
		{temp, open, "mode 0700"},
		{temp, file, "not a directory"},
	} {
		t.Setenv("TMPDIR", c.temp)
		var log logged
		p := listen(t, Options{ID: "a", Local: c.local, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if lines := log.lines(); p.Endpoint().Local != "" || len(lines) != 1 || !strings.Contains(lines[0], c.why) {
			t.Errorf("in %s: Local is %q, log %q; want none, and a line with %q", c.local, p.Endpoint().Local, lines, c.why)
		}
	}
}

func TestPlace(t *testing.T) {
	at := place{boot: "b", device: 1 << 63, ino: 7, path: "/a:b"}
	if got, err := parsePlace(at.String()); got != at || err != nil {
		t.Errorf("parsePlace(%v) = %v, %v", at, got, err)
	}
	for _, s := range []string{
		"", "b", "b:1:2", ":1:2:/a", "b:x:2:/a", "b:1:-2:/a", "b:1:11111111111111111:/a", "b:1:2:a", "b:1:2:@a",
		"b:1:2:/" + strings.Repeat("a", maxSocketPath),
	} {
		if _, err := parsePlace(s); !errors.Is(err, errFar) {
			t.Errorf("parsePlace(%q): %v, want an error", s, err)
		}
	}
}

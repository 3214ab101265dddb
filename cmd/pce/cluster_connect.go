package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// brokerPatience is how long a command waits for the broker.
const brokerPatience = 10 * time.Second

// maxURLFile bounds what is read of a file that --url-file wrote.
const maxURLFile = 16 << 10

// clusterFlags say which cluster a command talks to, and as whom.
type clusterFlags struct {
	cluster     string
	credentials string
	ca          string
}

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.cluster, "cluster", "", "the cluster's broker, nats://HOST:PORT or tls://HOST:PORT, or @FILE as cluster up --url-file wrote it")
	flags.StringVar(&f.credentials, "credentials", "", "file with this member's key; left out: the one that @FILE names")
	flags.StringVar(&f.ca, "ca", "", "PEM file of those who sign the broker's certificate; left out: the one that @FILE names, or the system's")
}

// options checks the flags and completes them from @FILE, where flags win over the file. Files
// of keys and certificates must exist; whether the broker accepts them shows when a connection
// is made.
func (f *clusterFlags) options(ctx context.Context, name string) (natsbus.Options, error) {
	o := natsbus.Options{URLs: f.cluster, Credentials: f.credentials, CA: f.ca, Name: "pce " + name}
	if f.cluster == "" {
		return o, usagef("no --cluster; give the broker's URL, or @FILE as pce cluster up --url-file FILE wrote it")
	}
	if file, ok := strings.CutPrefix(f.cluster, "@"); ok {
		at, err := readURLFile(ctx, file)
		if err != nil {
			return o, err
		}
		o.URLs = at.url
		if o.Credentials == "" {
			o.Credentials = at.credentials
		}
		if o.CA == "" {
			o.CA = at.ca
		}
	}
	for _, file := range []struct{ flag, name string }{{"credentials", o.Credentials}, {"ca", o.CA}} {
		if file.name == "" {
			continue
		}
		if _, err := os.Stat(file.name); err != nil {
			return o, usagef("--%s: %v; copy the file here from the machine of cluster up", file.flag, err)
		}
	}
	return o, nil
}

// connect connects to the broker. An error matches cluster.ErrCluster if the
// broker does not answer, or refuses.
func (f *clusterFlags) connect(ctx context.Context, name string) (*natsbus.Bus, error) {
	o, err := f.options(ctx, name)
	if err != nil {
		return nil, err
	}
	return connectBroker(ctx, o)
}

// connectBroker waits for a broker that is just being started, but not for long.
func connectBroker(ctx context.Context, o natsbus.Options) (*natsbus.Bus, error) {
	patient, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	bus, err := natsbus.Connect(patient, o)
	if ctx.Err() == nil && patient.Err() != nil && !errors.Is(err, natsbus.ErrStorage) {
		return nil, fmt.Errorf("%w; no answer within %v, is pce cluster up running?", err, brokerPatience)
	}
	return bus, err
}

// urlFile is what a file of --url-file holds, a line each.
type urlFile struct {
	url         string
	credentials string // path of the client's key
	ca          string // path, or "" and no line
}

// readURLFile reads what cluster up --url-file wrote: the URL, the path of the client's key
// and, with TLS, that of a certificate, a line each. At most maxURLFile bytes are read;
// anything else is a usage error.
func readURLFile(ctx context.Context, name string) (urlFile, error) {
	var u urlFile
	f, err := dataset.OpenPath(ctx, name)
	if ctx.Err() != nil { // a signal while the writer of a pipe is waited for, and no fault of the file
		return u, ctx.Err()
	}
	if err != nil {
		return u, usagef("--cluster @%s: %v; cluster up --url-file writes it when the cluster is ready", name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxURLFile+1))
	if err != nil && ctx.Err() == nil {
		return u, usagef("--cluster @%s: %v", name, err)
	}
	if err != nil {
		return u, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) > maxURLFile || len(lines) < 2 || len(lines) > 3 || lines[0] == "" || bytes.ContainsAny(text, "\x00\r") {
		return u, usagef("--cluster @%s: not a file that cluster up --url-file wrote: want a URL and the path of a key, a line each", name)
	}
	u.url, u.credentials = lines[0], lines[1]
	if len(lines) == 3 {
		u.ca = lines[2]
	}
	return u, nil
}

// removeURLFile removes what an earlier cluster wrote, or an empty file, and refuses all else: another file would be lost, and so would be
// the name of a device.
func removeURLFile(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ours := err == nil && info.Mode().IsRegular()
	if ours && info.Size() > 0 {
		u, err := readURLFile(context.Background(), name) // a regular file
		ours = err == nil && (strings.HasPrefix(u.url, "nats://") || strings.HasPrefix(u.url, "tls://"))
	}
	if !ours {
		return usagef("--url-file %s: it is there, and not a file that cluster up wrote; name another file, or remove it", name)
	}
	return os.Remove(name)
}

// text is what the file says, with full paths.
func (u urlFile) text() (string, error) {
	text := u.url + "\n"
	for _, p := range []string{u.credentials, u.ca} {
		full := p
		if p != "" {
			var err error
			if full, err = filepath.Abs(p); err != nil {
				return "", err
			}
		}
		text += full + "\n"
	}
	if u.ca == "" {
		text = strings.TrimSuffix(text, "\n") // and no line
	}
	return text, nil
}

// write replaces the file at once, so that who waits for it reads all of it.
func (u urlFile) write(name string) error {
	text, err := u.text()
	if err != nil {
		return err
	}
	return atomicfile.Write(name, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// remove removes the file if it still says this: another cluster may have written it since.
func (u urlFile) remove(name string) {
	text, err := u.text()
	info, gone := os.Stat(name)
	if err != nil || gone != nil || !info.Mode().IsRegular() || info.Size() != int64(len(text)) {
		return
	}
	if have, err := os.ReadFile(name); err == nil && string(have) == text {
		_ = os.Remove(name) // as at a crash, the next cluster removes it
	}
}

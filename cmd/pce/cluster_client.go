package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/internal/periodic"
)

// clientsInterval is how often a running cluster looks for keys of new clients.
const clientsInterval = time.Second

// clusterClientCommand makes the command pce cluster client, which writes the key of one more
// client below --dir. It needs no connection: a cluster that runs takes the key over from
// there.
func (a *app) clusterClientCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "client NAME --dir DIR",
		Short: "Make the key of a client of the cluster in DIR; print its file",
		Long: `Make a key for a client of the cluster in DIR, and print the name of its file. A
running cluster accepts the key within seconds.

With this file a client can submit, lead and cancel its own runs, whose ids end with
-NAME, and read the status and the logs of all runs. It cannot change the runs of other
clients. Copy the file to the client's machine under the same name, and pass it to commands
with --credentials. To withdraw the key, remove the file below DIR.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := os.Stat(dir); err != nil {
				return usagef("--dir %s: %v; give the directory of pce cluster up", dir, err)
			}
			file, err := natsbus.NewClient(filepath.Join(dir, seatsDir), args[0])
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			_, err = fmt.Fprintln(a.stdout, file)
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", "pce-cluster", "directory of the cluster")
	return c
}

// watchClients lets clients in whose keys appear in a directory while the cluster runs,
// and keeps those out whose keys are removed, also while the key of another client cannot be
// read. The broker has the given seats: keys may have come or gone since it was started.
func watchClients(ctx context.Context, dir string, workers int, have []natsbus.Seat, admit func([]natsbus.Seat) error, log *slog.Logger) (stop func()) {
	var last []string
	told := ""
	same := func(a, b natsbus.Seat) bool { return a.Name == b.Name && a.Key == b.Key }
	return periodic.Start(ctx, clientsInterval, func(context.Context) {
		now := keyFiles(dir)
		if slices.Equal(now, last) {
			return
		}
		seats, err := natsbus.NewSeats(dir, workers)
		if seats != nil && !slices.EqualFunc(seats, have, same) {
			if refused := admit(seats); refused != nil {
				err = refused
			} else {
				have = seats
				log.Info("the keys have changed", "dir", dir, "seats", len(seats))
			}
		}
		if err != nil { // a file may be half written; it is tried at the next look too
			if told != err.Error() {
				told = err.Error()
				log.Warn("a key has changed, and the broker has not taken it", "dir", dir, "err", err)
			}
			return
		}
		last, told = now, ""
	})
}

// keyFiles lists the keys in a directory, each with what changes when its file does.
func keyFiles(dir string) (list []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".nk") && !strings.HasPrefix(e.Name(), ".") {
			if info, err := e.Info(); err == nil { // else it has just gone
				list = append(list, fmt.Sprint(e.Name(), info.Mode(), info.Size(), info.ModTime()))
			}
		}
	}
	return list
}

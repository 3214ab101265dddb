package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/internal/periodic"
)

const (
	// fetchInterval is how often a request for files is repeated, and its answer looked for.
	fetchInterval = 500 * time.Millisecond
	// fetchPatience is how long a coordinator may say nothing.
	fetchPatience = 30 * time.Second
)

// fetched is what cluster fetch --json prints.
type fetched struct {
	Run   string        `json:"run"`
	Dir   string        `json:"dir"`
	Files []fetchedFile `json:"files"`
}

type fetchedFile struct {
	Name string `json:"name"`
	Size int64  `json:"bytes"`
}

// clusterFetchCommand makes the command pce cluster fetch RUN DIR, which writes the files of a
// run that has ended to a directory here.
func (a *app) clusterFetchCommand() *cobra.Command {
	var flags clusterFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "fetch --cluster URL|@FILE RUN DIR",
		Short: "Get the files of a run that has ended: model, metrics, answers",
		Long: `Get the files of a run that has ended: model, metrics, config and samples, or the
answers of a job over rows. They come from the machine that led the run, byte by
byte; its checkpoints stay there. Files that are in DIR already are not sent again.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := job.CheckID(args[0]); err != nil {
				return err
			}
			bus, err := flags.connect(cmd.Context(), "fetch")
			if err != nil {
				return err
			}
			defer bus.Close()
			got, err := fetch(cmd.Context(), bus, args[0], args[1])
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(got)
			}
			for _, f := range got.Files {
				if _, err := fmt.Fprintf(a.stdout, "%s  %s\n", f.Name, several(f.Size, "byte")); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// fetch writes the files of a run to a directory, which it makes and locks. The run must have
// ended; the coordinator uploads its files on request, and each is checked by its digest.
// Files that are there with the same content are kept, so a fetch that was cut short is
// repeated cheaply.
func fetch(ctx context.Context, bus cluster.Bus, run, dir string) (*fetched, error) {
	r, _, err := job.GetRun(ctx, bus, run)
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(run, job.LocalPrefix):
		return nil, usagef("run %s was led by pce train --cluster, which writes to %s on its own machine", run, oneLine(r.Out))
	case !r.Ended():
		return nil, usagef("run %s is %s; fetch it when it has ended, pce cluster logs -f %s follows it", run, oneLine(r.State), run)
	case r.Out == "": // no coordinator has a directory of it
		return nil, usagef("run %s is %s and has no files: it never began; submit it again", run, oneLine(r.State))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := atomicfile.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	ask := filesRequest{Run: run, Ask: rand.Text()}
	files, err := askFiles(ctx, bus, ask)
	if err != nil {
		return nil, err
	}
	coming := filesRequest{Run: run, Ask: ask.Ask, Fetching: true}
	defer periodic.Start(ctx, filesKept/10, func(context.Context) { _ = sendRequest(bus, coming) })() // one that is lost is followed by others
	got := &fetched{Run: run, Dir: dir, Files: []fetchedFile{}}
	paths := make([]string, len(files)) // where they go; "": they are there
	for i := range files {              // before any is written: files of two runs in a directory would look like those of one
		path, there, err := placeFile(ctx, &files[i], dir)
		if err != nil {
			return nil, err
		}
		if !there {
			paths[i] = path
		}
	}
	for i, path := range paths {
		f := &files[i]
		if path != "" {
			if err := atomicfile.Write(path, 0o644, func(w io.Writer) error { return bus.Blobs().Get(ctx, f.Digest, w) }); err != nil {
				return nil, fmt.Errorf("fetch %s: %w", f.Name, err)
			}
		}
		got.Files = append(got.Files, fetchedFile{f.Name, f.Size})
	}
	ask.Done = true
	_ = sendRequest(bus, ask) // the files are here; where that is lost the broker keeps them for filesKept
	return got, nil
}

func sendRequest(bus cluster.Bus, r filesRequest) error {
	text, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	return bus.Send(filesAddress, text)
}

// askFiles asks until a coordinator has given the files to the broker. It fails when
// none says anything for fetchPatience.
func askFiles(ctx context.Context, bus cluster.Bus, r filesRequest) ([]job.FileRef, error) {
	runs := bus.Bucket(cluster.RunsBucket)
	defer func() {
		parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), job.PartingTime)
		defer cancel()
		_ = runs.Delete(parting, job.AsksPrefix+r.Run, 0) // the next request replaces it anyway
	}()
	heard, last := time.Now(), filesAnswer{Beat: -1}
	for {
		call, cancel := context.WithTimeout(ctx, fetchPatience)
		_, err := runs.Put(call, job.AsksPrefix+r.Run, []byte(r.Ask))
		cancel()
		if err != nil {
			return nil, err
		}
		if err := sendRequest(bus, r); err != nil && !errors.Is(err, cluster.ErrUnreachable) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(fetchInterval):
		}
		call, cancel = context.WithTimeout(ctx, fetchPatience)
		rec, err := runs.Get(call, job.FilesPrefix+r.Run)
		cancel()
		var answer filesAnswer
		switch {
		case errors.Is(err, cluster.ErrNoRecord):
		case err != nil:
			return nil, err
		default:
			if err := json.Unmarshal(rec.Value, &answer); err != nil {
				return nil, fmt.Errorf("%w: the answer about run %s cannot be read: %v", cluster.ErrCluster, r.Run, err)
			}
		}
		ours := answer.Ask == r.Ask || slices.Contains(answer.Also, r.Ask)
		switch {
		case ours && answer.Error != "":
			return nil, fmt.Errorf("%w: files of run %s: %s", cluster.ErrCluster, r.Run, oneLine(answer.Error))
		case ours && answer.Ready:
			return answer.Files, nil
		case answer.Ask != "" && !answer.Ready && (answer.Ask != last.Ask || answer.Beat != last.Beat): // also where it is another's turn
			heard, last = time.Now(), answer
		}
		if time.Since(heard) > fetchPatience {
			return nil, fmt.Errorf("%w: no coordinator that has the files of run %s answered within %v; is pce cluster up running where the run was led?", cluster.ErrCluster, r.Run, fetchPatience)
		}
	}
}

// placeFile says where a file that was given goes in a directory, and whether it is there
// already. Other contents of that name are an error.
func placeFile(ctx context.Context, r *job.FileRef, dir string) (path string, there bool, err error) {
	if err := r.Check(); err != nil {
		return "", false, err
	}
	if r.Name == atomicfile.LockName {
		return "", false, fmt.Errorf("%w: %s is not a file of a run", cluster.ErrJob, r.Name)
	}
	path = filepath.Join(dir, r.Name)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	have, err := job.FileAt(ctx, path)
	if err != nil {
		return "", false, err
	}
	if have.Digest != r.Digest {
		return "", false, usagef("%s exists and is not that of the run; choose another directory", path)
	}
	return path, true, nil
}

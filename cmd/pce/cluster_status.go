package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
)

// statusInterval is the time between two pictures of a live table.
const statusInterval = time.Second

// shownJobs bounds the jobs of the queue in the table, the runs that pce train --cluster has led, and what was given up; JSON has them all.
const shownJobs = 20

// clusterStatus is what cluster status prints. Run, Epoch and what else belongs
// to a run are those of the run that has the lead, or else had it last.
type clusterStatus struct {
	Run       string               `json:"run"`
	State     string               `json:"state"`
	Epoch     int                  `json:"epoch"`
	Epochs    int                  `json:"epochs"`
	Step      int64                `json:"step"`
	TrainLL   *float64             `json:"train_ll,omitempty"`
	ValidLL   *float64             `json:"valid_ll,omitempty"`
	TestLL    *float64             `json:"test_ll,omitempty"`
	Speed     *float64             `json:"rows_per_second,omitempty"`
	Left      *float64             `json:"seconds_left,omitempty"`
	Transport string               `json:"transport"`
	Term      cluster.Term         `json:"term"`
	SameBits  bool                 `json:"same_bits"`
	Lead      *cluster.Holder      `json:"lead"` // nil: no coordinator leads
	Workers   []workerStatus       `json:"workers"`
	Jobs      []job.Record         `json:"jobs"`              // oldest first
	Dead      []cluster.DeadLetter `json:"dead_letters"`      // oldest first
	Storage   string               `json:"storage,omitempty"` // what is wrong with the broker's; "": nothing is known

	far, figures string // of the run, in words
}

// workerStatus is a member of the cluster, or a worker that is gone but
// computed shards of the run.
type workerStatus struct {
	ID       string `json:"id"`
	Device   string `json:"device"`
	Shards   int    `json:"shards"` // of the run that counted
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Threads  int    `json:"threads"`
	Alive    bool   `json:"alive"`
	Stopping bool   `json:"stopping"`
	Unfit    string `json:"unfit,omitempty"` // why it takes no part in the run that is worked on, or in any
	// Ways says how it reaches the others with bulk data: unix or tcp+tls.
	Ways map[string]string `json:"ways,omitempty"`
}

// readStatus puts the records of a cluster together: members, lead, runs, dead letters, and
// what the broker says of its storage. These are read one after another, so they may differ by
// a moment.
func readStatus(ctx context.Context, bus cluster.Bus) (*clusterStatus, error) {
	storage := make(chan string, 1)
	go func() { // beside what follows, since there may be no answer
		problem, _ := askStorage(ctx, bus)
		storage <- problem
	}()
	members, err := job.Members(ctx, bus)
	if err != nil {
		return nil, err
	}
	lead, err := readLead(ctx, bus)
	if err != nil {
		return nil, err
	}
	jobs, err := job.ListRuns(ctx, bus)
	if err != nil {
		return nil, err
	}
	dead, err := bus.Jobs().Dead(ctx)
	if err != nil {
		return nil, err
	}
	s := describeCluster(members, lead, jobs, dead)
	s.Storage = <-storage
	return s, nil
}

// readLead returns who leads the cluster, nil without a coordinator that leads.
func readLead(ctx context.Context, bus cluster.Bus) (*cluster.Holder, error) {
	r, err := bus.Bucket(cluster.LeadBucket).Get(ctx, cluster.LeadKey)
	if errors.Is(err, cluster.ErrNoRecord) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var h cluster.Holder
	if err := json.Unmarshal(r.Value, &h); err != nil {
		return nil, fmt.Errorf("%w: the record of the lead cannot be read: %w; is another version of pce in the cluster?", cluster.ErrCluster, err)
	}
	return &h, nil
}

// describeCluster picks the run that counts, the one that is led or else the latest, and gives
// its shards to workers. Workers that computed for it and have left are listed too. Lists are
// empty rather than nil, for JSON.
func describeCluster(members []cluster.Member, lead *cluster.Holder, jobs []job.Record, dead []cluster.DeadLetter) *clusterStatus {
	s := &clusterStatus{Lead: lead, Workers: []workerStatus{}, Jobs: jobs, Dead: dead}
	if s.Jobs == nil {
		s.Jobs = []job.Record{}
	}
	if s.Dead == nil {
		s.Dead = []cluster.DeadLetter{}
	}
	latest := latestRun(s.Lead, jobs)
	s.Run, s.State, s.Epoch, s.Epochs, s.Step = latest.Run, latest.State, latest.Epoch, latest.Epochs, latest.Step
	s.TrainLL, s.ValidLL, s.TestLL, s.Speed, s.Left = latest.TrainLL, latest.ValidLL, latest.TestLL, latest.RowsPerSecond, latest.SecondsLeft
	s.far, s.figures = howFar(&latest.RunStatus), figures(&latest.RunStatus)
	s.Transport, s.Term, s.SameBits = latest.Transport, latest.Term, latest.SameBits
	var unfit map[string]string
	if latest.State == job.StateRunning {
		unfit = latest.Unfit
	}
	known := map[string]bool{}
	for _, m := range members {
		known[m.ID] = true
		s.Workers = append(s.Workers, workerStatus{
			ID: m.ID, Device: m.Device, Shards: latest.Shards[m.ID], Host: m.Host, PID: m.PID, Threads: m.Threads, Alive: true, Stopping: m.Stopping, Unfit: cmp.Or(unfit[m.ID], m.Trouble), Ways: m.Ways,
		})
	}
	for id, n := range latest.Shards {
		if !known[id] {
			s.Workers = append(s.Workers, workerStatus{ID: id, Shards: n})
		}
	}
	slices.SortFunc(s.Workers, func(a, b workerStatus) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Jobs, older)
	return s
}

// older orders runs, the oldest first: ids of the queue begin with the time. Behind them are those that pce train --cluster has led, by
// when that was last, as their ids tell the directory.
func older(a, b job.Record) int {
	switch {
	case isLed(b) && !isLed(a):
		return -1
	case isLed(a) && !isLed(b):
		return 1
	case isLed(a):
		return cmp.Or(cmp.Compare(a.Term.Fence, b.Term.Fence), strings.Compare(a.Run, b.Run))
	}
	return strings.Compare(a.Run, b.Run)
}

func isLed(r job.Record) bool { return strings.HasPrefix(r.Run, job.LocalPrefix) }

// newest are the last of the runs of the queue and of the others, so that neither hide the others.
func newest(jobs []job.Record) []job.Record {
	at := slices.IndexFunc(jobs, isLed)
	if at < 0 {
		at = len(jobs)
	}
	return slices.Concat(jobs[max(0, at-shownJobs):at], jobs[max(at, len(jobs)-shownJobs):])
}

// latestRun is the run that has the lead, or else the one that was last heard
// of among those that had it.
func latestRun(lead *cluster.Holder, jobs []job.Record) job.Record {
	var latest job.Record
	for _, j := range jobs {
		if lead != nil && j.Run == lead.Run {
			return j
		}
		if j.State != job.StateQueued && j.Term.Fence > 0 && (latest.Run == "" || j.Term.Above(latest.Term)) {
			latest = j
		}
	}
	return latest
}

// table is the status for people: the run that counts, workers, the newest runs, and what was
// given up. Texts of other members are cut to one line each.
func (s *clusterStatus) table() string {
	var b strings.Builder
	if s.Storage != "" {
		b.WriteString("the broker does not store: " + s.Storage + "\n")
	}
	if s.Run == "" {
		b.WriteString("no run yet\n")
	} else {
		fmt.Fprintf(&b, "run %s: %s, %s, term %v, by %s\n", oneLine(s.Run), oneLine(s.State), s.far, s.Term, oneLine(s.Transport))
		if s.figures != "" {
			b.WriteString(s.figures + "\n")
		}
		if !s.SameBits && s.State == job.StateRunning && s.Term.Generation > 0 { // before its first term a run does not know its workers
			b.WriteString("the workers' devices differ in kind: bits depend on who computes what\n")
		}
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nWORKER\tDEVICE\tSHARDS\tTHREADS\tHOST\tPROCESS\t\n")
	for _, w := range s.Workers {
		note := ""
		switch {
		case !w.Alive:
			note = "gone"
		case w.Stopping:
			note = "leaving"
		case w.Unfit != "":
			note = "takes no part: " + oneLine(w.Unfit)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%d\t%s\n", oneLine(w.ID), oneLine(w.Device), w.Shards, w.Threads, oneLine(w.Host), w.PID, note)
	}
	jobs := newest(s.Jobs)
	if len(jobs) > 0 {
		fmt.Fprintf(t, "\nRUN\tNAME\tKIND\tSTATE\tEPOCH\tSTEP\tERROR\n")
	}
	for _, j := range jobs {
		epoch, step := "-", "-"
		if j.Kind == kindTrain {
			epoch, step = fmt.Sprintf("%d/%d", j.Epoch, j.Epochs), strconv.FormatInt(j.Step, 10)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(j.Run), oneLine(j.Name), oneLine(j.Kind), oneLine(j.State), epoch, step, oneLine(j.Error))
	}
	t.Flush() // to memory
	if more := len(s.Jobs) - len(jobs); more > 0 {
		fmt.Fprintf(&b, "and %d older ones; --json has them all\n", more)
	}
	older := max(0, len(s.Dead)-shownJobs)
	for _, d := range s.Dead[older:] {
		what := "the job"
		if d.Shard >= 0 {
			what = fmt.Sprintf("shard %d", d.Shard)
		}
		fmt.Fprintf(&b, "given up: %s of run %s, %s: %s\n", what, oneLine(d.Run), d.Time.Format(time.RFC3339), oneLine(d.Reason))
	}
	if older > 0 {
		fmt.Fprintf(&b, "and %d given up before; --json has them all\n", older)
	}
	return b.String()
}

// oneLine keeps what others wrote from moving the cursor.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// clusterStatusCommand makes the command pce cluster status, which prints the state of a
// cluster as tables or, with --json, as one object.
func (a *app) clusterStatusCommand() *cobra.Command {
	var flags clusterFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "status --cluster URL|@FILE",
		Short: "Print workers, runs and what was given up; on a terminal until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			bus, err := flags.connect(cmd.Context(), "status")
			if err != nil {
				return err
			}
			defer bus.Close()
			if !asJSON && isTerminal(a.stdout) && !hasVariable(a.env, "TERM=dumb") {
				return watchStatus(cmd.Context(), bus, a.stdout, func() (columns int) {
					if f, ok := a.stdout.(*os.File); ok {
						columns, _ = windowColumns(f)
					}
					return columns
				})
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), brokerPatience)
			defer cancel()
			s, err := readStatus(ctx, bus)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(s)
			}
			_, err = io.WriteString(a.stdout, s.table())
			return err
		},
	}
	flags.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// watchStatus draws the table each second until ctx ends; that is how people
// end it, so it is not an error. columns is the width of the terminal, 0 where it does not know.
func watchStatus(ctx context.Context, bus cluster.Bus, w io.Writer, columns func() int) error {
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	drawn := ""
	for {
		call, cancel := context.WithTimeout(ctx, brokerPatience)
		s, err := readStatus(call, bus)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		var text string
		if err != nil {
			text = oneLine(err.Error()) + "\n"
		} else {
			text = s.table()
		}
		erase := "\r\x1b[J"
		if n := rowsOn(drawn, columns()); n > 0 {
			erase = fmt.Sprintf("\r\x1b[%dA\x1b[J", n)
		}
		if _, err := io.WriteString(w, erase+text); err != nil {
			return err
		}
		drawn = text
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// rowsOn is how many rows of a terminal with that many columns the lines of text take: it shows long ones on several.
func rowsOn(text string, columns int) (rows int) {
	for line := range strings.Lines(text) {
		rows++
		if n := utf8.RuneCountInString(line) - 1; columns > 0 && n > columns {
			rows += (n - 1) / columns
		}
	}
	return rows
}

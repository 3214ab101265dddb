package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// app is what the commands share.
type app struct {
	ctx            context.Context   // of the command, which ends the reading of a file that is a pipe
	piped          map[string][]byte // configs that are pipes, by their paths
	args           []string          // of the command line
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Run runs one command line and returns the exit code. It touches nothing of
// the process but its arguments, files and memory, so tests call it in-process.
func Run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		if bug := recover(); bug != nil {
			fmt.Fprintf(stderr, "pce: internal error: %v; please report it with this trace\n%s", bug, debug.Stack())
			code = exitInternal
		}
	}()
	a := &app{ctx: ctx, args: args, env: env, stdout: stdout, stderr: stderr}
	in := &stdinReader{ctx: ctx, from: stdin}
	defer in.close()
	if stdin != nil {
		a.stdin = in
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	var own bytes.Buffer // help, which cobra prints without a look at errors
	root.SetOut(&own)
	root.SetErr(stderr)
	started := false
	onRun(root, func() { started = true })

	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started { // cobra found the command line at fault
		err = usagef("%s", explain(cmd, err))
	}
	if why := ctx.Err(); why != nil && errors.Is(err, syscall.EPIPE) { // of a reader that a Ctrl-C has ended, too
		err = why
	}
	if code := exitCode(err); in.cut.Load() && (code == exitInterrupted || code == exitData) { // not a fault of the rows that came
		err = fmt.Errorf("standard input: %w", context.Canceled)
	}
	if _, full := own.WriteTo(stdout); err == nil {
		err = full
	}
	if err == nil {
		return exitOK
	}
	a.printError(err)
	if errors.Is(err, errUsage) || errors.Is(err, job.ErrNoRun) {
		fmt.Fprintf(stderr, "run '%s --help' for its use\n", cmd.CommandPath())
	}
	return exitCode(err)
}

// printError writes an error as one line, which a terminal gets broken between words,
// and the command that it suggests.
func (a *app) printError(err error) {
	a.tell("%s", asFlags(err))
	columns, _ := columnsOf(a.stderr)
	var h *hinted
	if errors.As(err, &h) {
		fmt.Fprintf(a.stderr, "%s:\n  %s\n", h.hint, shellLines(h.command, 2, columns))
	}
}

// root builds the command tree: a new one for each call of Run, since cobra keeps the values
// of flags in it.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:                "pce",
		Short:              "Train and query probabilistic circuits",
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true, // explain makes them
	}
	for _, c := range []*cobra.Command{
		a.benchCommand(),
		a.checkCommand(),
		a.clusterCommand(),
		a.compileCommand(),
		a.compressCommand(),
		a.configCommand(),
		a.convertCommand(),
		a.dataCommand(),
		a.decompressCommand(),
		a.doctorCommand(),
		a.evalCommand(),
		a.infoCommand(),
		a.plotCommand(),
		a.predictCommand(),
		a.forestCommand(),
		a.growCommand(),
		a.pruneCommand(),
		a.queryCommand(),
		a.reduceCommand(),
		a.reportCommand(),
		a.runsCommand(),
		a.serveCommand(),
		a.trainCommand(),
		a.versionCommand(),
		a.workerCommand(),
	} {
		root.AddCommand(c)
	}
	root.InitDefaultCompletionCmd()
	refuseTopics(root)
	groups(root)
	modelArguments(root)
	refuseEmpty(root)
	refuseOctal(root)
	if len(a.args) > 0 && strings.HasPrefix(a.args[0], cobra.ShellCompRequestCmd) {
		completions(root) // only where a shell asks: cobra keeps every flag that has one as long as the process lives
	} else {
		refuseTwice(root) // not where a shell asks: cobra then reads the flags two times
	}
	return root
}

// groups makes commands that only hold others refuse unknown ones.
func groups(c *cobra.Command) {
	if c.HasSubCommands() && c.RunE == nil && c.Run == nil && c.HasParent() {
		c.Args = cobra.NoArgs
		c.RunE = func(cmd *cobra.Command, _ []string) error {
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			return usagef("%s wants one of: %s", cmd.CommandPath(), strings.Join(names, ", "))
		}
	}
	for _, sub := range c.Commands() {
		groups(sub)
	}
}

// onRun calls f before any command of the tree runs.
func onRun(c *cobra.Command, f func()) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			f()
			return run(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		onRun(sub, f)
	}
}

// optionFlags names the flags of options that errors of the library tell to set.
var optionFlags = []struct {
	class        error
	option, flag string
}{
	{run.ErrRun, "Resume", "--resume"},
	{run.ErrOptions, "Dir", "--out"},
	{em.ErrChanged, "AllowChanges", "--allow-changes"},
}

// asFlags is the text of the error that ends a command: one line, with the library's options
// as the flags that set them.
func asFlags(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	for _, f := range optionFlags {
		if errors.Is(err, f.class) {
			text = strings.ReplaceAll(text, "with "+f.option, "with "+f.flag)
		}
	}
	text = strings.ReplaceAll(text, ": pce: ", ": ")                       // of a usage error behind the name of a file
	if rest, ok := strings.CutSuffix(text, context.Canceled.Error()); ok { // by a signal, of which users know
		text = rest + "interrupted"
	}
	return text
}

// explain turns cobra's error into one line that says what to do. It is called where the
// command line was at fault, before any command ran.
func explain(cmd *cobra.Command, err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	text, _, _ = strings.Cut(text, ": strconv.") // -n x: how it was parsed does not matter
	rest, ok := strings.CutPrefix(text, `unknown command "`)
	if !ok {
		return text
	}
	word, _, _ := strings.Cut(rest, `"`)
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return text + "; did you mean " + near[0] + "?"
	}
	return text
}

// usagef returns an error that matches errUsage.
func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// printJSON writes v as one line.
func (a *app) printJSON(v any) error { return json.NewEncoder(a.stdout).Encode(v) }

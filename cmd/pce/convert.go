package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/run"
)

// convertCommand makes the command pce convert. The extension of the output says what is
// written: .spn a circuit as SPFlow's text, .bin or .bspn as SPNC's file, .jpc as Juice's text, .json or stdout a forest as XGBoost's JSON. Nothing
// is approximated: what a format cannot express is an error that says what it is, and no file
// is left.
func (a *app) convertCommand() *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "convert IN OUT.json|OUT.spn|OUT.bin|OUT.jpc",
		Short: "Write a decision forest as XGBoost's JSON, or a circuit as SPFlow, SPNC or Juice have it",
		Long: `Write a decision forest as XGBoost's JSON, which gives the same raw scores to the bit. A
forest that XGBoost cannot express is refused with the reason. OUT may be - for stdout.

With OUT.spn, write a circuit as a reference graph of SPFlow, with all digits of its
parameters, with OUT.bin or OUT.bspn as a file of the SPNC compiler, with OUT.jpc as a text of Juice. A
circuit that the format cannot express is refused with the reason.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			out.path = args[1]
			if circuitWriter(out.path) != nil {
				if err := a.checkOutput(cmd.Context(), &out, args[0]); err != nil {
					return err
				}
				return ofKind(args[0], false, a.convertCircuit(cmd.Context(), args[0], &out))
			}
			if !out.stdout() && !strings.HasSuffix(strings.ToLower(out.path), ".json") {
				return usagef("%s: a forest is written to a file that ends in .json, a circuit to one that ends in .spn, .bin, .bspn or .jpc", out.path)
			}
			if err := a.checkOutput(cmd.Context(), &out, args[0]); err != nil {
				return err
			}
			f, err := run.OpenForest(args[0])
			if err != nil {
				return ofKind(args[0], true, err)
			}
			err = a.output(cmd.Context(), &out, func(w io.Writer, _ string) error { return xgboost.Write(w, f) })
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&out.force, "force", false, "replace OUT if there is such a file")
	return c
}

// ofKind returns err, or where the model in the file is a circuit and not a forest, or the reverse, which endings it is written under.
func ofKind(in string, forest bool, err error) error {
	if err == nil {
		return nil
	}
	switch is, failed := run.TellForest(in); {
	case failed != nil || is == forest:
		return err
	case is:
		return usagef("%s is a decision forest, which is written to a file that ends in .json, or to -", in)
	}
	return usagef("%s is a circuit, which is written to a file that ends in .spn, .bin, .bspn or .jpc", in)
}

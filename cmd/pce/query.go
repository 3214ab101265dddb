package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

func (a *app) queryCommand() *cobra.Command {
	c := &cobra.Command{Use: "query", Short: "Ask a model about rows"}
	c.AddCommand(a.queryLoglikCommand(), a.querySampleCommand())
	return c
}

// output writes a result to a file, which appears whole or not at all, or as
// CSV to stdout without one. write learns the name for the format.
func (a *app) output(path string, write func(w io.Writer, name string) error) error {
	if path == "" {
		return write(a.stdout, "stdout.csv")
	}
	return atomicfile.Write(path, 0o644, func(w io.Writer) error { return write(w, path) })
}

func (a *app) queryLoglikCommand() *cobra.Command {
	var f queryFlags
	var out string
	c := &cobra.Command{
		Use:   "loglik --model MODEL --data FILE",
		Short: "Write the natural-log likelihood of each row; missing cells are marginalised",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			ll, err := a.logLikelihoods(cmd.Context(), &f, m)
			if err != nil {
				return err
			}
			return a.output(out, func(w io.Writer, name string) error {
				n, err := dataset.NewNumberWriter(w, name, len(ll), 1)
				if err != nil {
					return err
				}
				for _, x := range ll {
					if err := n.Write([]float64{x}); err != nil {
						return err
					}
				}
				return n.Close()
			})
		},
	}
	f.register(c.Flags())
	f.registerData(c.Flags())
	c.Flags().StringVar(&out, "out", "", "file to write, .csv or .npy; without it CSV goes to stdout")
	return c
}

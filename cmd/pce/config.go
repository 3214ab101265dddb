package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/device"
)

// configFlags are the flags of every command that takes a config.
type configFlags struct {
	files []string
	set   []string
}

func (f *configFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.files, "config", nil, "config file, or preset:NAME; repeated: later ones win")
	flags.StringArrayVar(&f.set, "set", nil, "key=value, such as train.epochs=20; repeatable")
}

// registerRows is register for commands that take settings of the section data alone.
func (f *configFlags) registerRows(flags *pflag.FlagSet) {
	f.register(flags)
	flags.Lookup("set").Usage = "key=value, such as data.header=no; repeatable"
}

// refuse returns the error that why has for the first key to which --set gives a value; of a map, such as data.text={length: 9},
// these are the keys in it.
func (f *configFlags) refuse(why func(key string) error) error {
	keys, err := configs.SetKeys(f.set)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := why(key); err != nil {
			return err
		}
	}
	return nil
}

// sectionOf is the section of a key, or the key itself beside sections.
func sectionOf(key string) string {
	section, _, _ := strings.Cut(key, ".")
	return section
}

// loadConfig puts the config together and says on stderr what has no effect.
func (a *app) loadConfig(f *configFlags) (*configs.Config, error) {
	if len(f.files) == 0 {
		return nil, usagef("no --config; give a file, or one of %v", configs.Presets())
	}
	cfg, notes, err := configs.Load(configs.Options{Files: f.files, Env: a.env, Set: f.set, Open: a.openConfig})
	for _, n := range notes {
		a.tell("note: %s", n)
	}
	return cfg, err
}

// maxConfigText bounds what is kept of configs that are pipes; one that is larger is refused when it is read.
const maxConfigText = 16 << 20

// openConfig opens a config. One that is a pipe is waited for, and read, until the command is interrupted, and is kept: a pipe has it
// only once, and a command may read it for each of several groups of rows.
func (a *app) openConfig(path string) (io.ReadCloser, error) {
	if text, ok := a.piped[path]; ok {
		return io.NopCloser(bytes.NewReader(text)), nil
	}
	r, err := dataset.OpenPath(a.ctx, path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return r, nil
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxConfigText))
	if err != nil {
		return nil, err
	}
	if a.piped == nil {
		a.piped = map[string][]byte{}
	}
	a.piped[path] = text
	return io.NopCloser(bytes.NewReader(text)), nil
}

// ofRuns are the sections, and keys beside sections, that nothing depends on where a model is given.
var ofRuns = []string{"name", "seed", "output", "precision", "cluster", "job"}

// ofSteps are the keys of training that choose the rows of a launch, or of a step that is measured, also where a model is given.
var ofSteps = []string{"train.batch_size", "train.shard_rows"}

// ofModel refuses settings of the circuit for a command that is given a model, whose circuit is as it is, and
// those of the sections that the command has no use for then.
func (f *configFlags) ofModel(model string, unused ...string) error {
	if len(f.files) > 0 {
		return nil
	}
	return f.refuse(func(key string) error {
		switch section := sectionOf(key); {
		case section == "model":
			return usagef("--set %s: the circuit of %s has its own; leave it out, or give --config FILE in place of the model", key, model)
		case slices.Contains(unused, section) || slices.Contains(ofRuns, section) || section == "train" && !slices.Contains(ofSteps, key):
			return usagef("--set %s: this changes nothing of %s; leave it out, or give --config FILE in place of the model", key, model)
		}
		return nil
	})
}

// ofCode refuses settings of compilation for a circuit that runs as code, which has none of the layers that these are about.
func (f *configFlags) ofCode(model string) error {
	return f.refuse(func(key string) error {
		if sectionOf(key) != "compile" {
			return nil
		}
		return usagef("--set %s: this changes nothing of the code of %s; leave it out, or give --path tensor", key, model)
	})
}

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check, show and describe configs"}
	c.AddCommand(a.configSchemaCommand(), a.configShowCommand(), a.configValidateCommand())
	return c
}

func (a *app) configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a config: every key, its meaning, range and default",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := configs.JSONSchema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
			return err
		},
	}
}

// configShowCommand makes the command pce config show, which prints the config that all
// sources add up to; feeding it back gives the same run.
func (a *app) configShowCommand() *cobra.Command {
	var flags configFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "show --config FILE",
		Short: "Print the resolved config: defaults, files, environment and settings put together",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.loadConfig(&flags)
			if err != nil {
				return err
			}
			text, err := cfg.YAML()
			if err != nil {
				return err
			}
			if !asJSON {
				_, err = a.stdout.Write(text)
				return err
			}
			var tree map[string]any
			if err := yaml.Unmarshal(text, &tree); err != nil {
				return err
			}
			return a.printJSON(tree)
		},
	}
	flags.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// configValidateCommand makes the command pce config validate, which checks a config as train
// does before it reads rows.
func (a *app) configValidateCommand() *cobra.Command {
	var flags configFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate --config FILE",
		Short: "Check a config without running it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.loadConfig(&flags)
			if err == nil {
				_, err = device.Find(cfg.Device) // which names there are is not known to package configs
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"valid": true, "name": cfg.Name, "structure": cfg.Model.Structure})
			}
			_, err = fmt.Fprintf(a.stdout, "%s is a valid config of structure %s\n", cfg.Name, cfg.Model.Structure)
			return err
		},
	}
	flags.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

package dataset

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file to read and how: format is unset for text.
type file struct {
	path   string
	format Format
	text   bool
}

// findFiles lists the files that paths mean: themselves, what a glob
// matches (dir/**/*.go goes through dir and all folders below it, **/*.go through those of the working folder), or all files below
// a directory whose format is known; sorted within each path. Without a schema files are read
// once to infer it and once for their rows, which a pipe does not allow.
func findFiles(paths []string, opts *Options) ([]file, error) {
	var out []file
	for _, path := range paths {
		names, err := expand(path, opts)
		if err != nil {
			return nil, err
		}
		n := len(out)
		for _, name := range names {
			if info, err := os.Stat(name); opts.Schema == nil && err == nil && !info.IsDir() && !info.Mode().IsRegular() {
				return nil, badSetting("%s: a pipe or a device is read once, by queries of a model; give a file", name)
			}
			f, err := formatOf(name, opts)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
		if len(out) == n {
			return nil, badSetting("%s: there is no file to read; a file's name ends in one of %s, or .gz after it", path, strings.Join(Extensions(), " "))
		}
	}
	for _, f := range out[1:] {
		if text, table := f, out[0]; text.text != table.text {
			if table.text {
				text, table = table, text
			}
			return nil, badSetting("%s is text and %s is not; give one kind of file", text.path, table.path)
		}
	}
	return out, nil
}

// FindFiles lists the files that paths mean, in the order in which they
// are read. No builtin source may be among the paths.
func FindFiles(paths []string, opts Options) ([]string, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if err := onlyFiles(paths); err != nil {
		return nil, err
	}
	files, err := findFiles(paths, &opts)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.path
	}
	return names, nil
}

// Means reports whether reading the paths may read the file of that name, whatever rows are: one of
// the paths is the file, or a folder or pattern that finds it and the file is of a kind with a format
// or text. Paths that cannot be read mean no file here: the reader says what is wrong with them.
func Means(paths []string, name string) bool {
	file, err := os.Stat(name)
	if err != nil {
		return false
	}
	for _, path := range paths {
		found, err := expand(path, &Options{})
		if err != nil {
			continue
		}
		for _, one := range found {
			if info, err := os.Stat(one); err != nil || !os.SameFile(file, info) {
				continue
			}
			if _, err := formatOf(one, &Options{}); err == nil || one == path {
				return true
			}
		}
	}
	return false
}

// onlyFiles refuses lists of paths that are empty or have a builtin source.
func onlyFiles(paths []string) error {
	if len(paths) == 0 {
		return badSetting("no path of data; give at least one")
	}
	if i := slices.IndexFunc(paths, func(p string) bool { return strings.HasPrefix(p, builtinPrefix) }); i >= 0 {
		return badSetting("%s is one of several paths; give a builtin source alone", paths[i])
	}
	return nil
}

// expand returns the names that a path means: of a directory those of files whose format is known.
func expand(path string, opts *Options) ([]string, error) {
	if path == stdinPath {
		return []string{path}, nil
	}
	root, pattern, deep := strings.Cut(path, "/**/")
	if rest, here := strings.CutPrefix(path, "**/"); here {
		root, pattern, deep = ".", rest, true
	} else if deep && root == "" {
		root = "/"
	}
	wanted := func(name string) bool {
		ok, _ := filepath.Match(pattern, name)
		return ok
	}
	if !deep {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			return []string{path}, nil
		}
		if err != nil && strings.ContainsAny(path, "*?[") {
			names, err := filepath.Glob(path)
			if err != nil {
				return nil, badSetting("%s: %v", path, err)
			}
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("dataset: %w; check the path", err)
		}
		root, wanted = path, func(name string) bool {
			_, err := formatOf(name, opts)
			return err == nil
		}
	}
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, badSetting("%s: %v", path, err)
	}
	return below(root, wanted)
}

// below lists the files below a folder, or below the one that root links to, whose names are wanted,
// sorted. A link to a file is that file, unless the file is listed by itself: rows must not count
// twice. Links to folders are not followed, as they may lead back. A link to nothing is listed, so
// that opening it says what is wrong, unless its name begins with a dot, as those of editors' locks do.
// A run below the folder is left out: what training writes there would be rows of the next training.
func below(root string, wanted func(name string) bool) ([]string, error) {
	within, err := withoutLinks(root)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w; check the path", err)
	}
	var names, links []string
	listed := map[string]bool{} // by path without links
	err = filepath.WalkDir(within, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("dataset: %w; check the path", err)
		}
		if d.IsDir() && path != within && holdsRun(path) {
			return fs.SkipDir
		}
		if !wanted(d.Name()) || d.Name() == lockFile {
			return nil
		}
		rel, err := filepath.Rel(within, path)
		if err != nil {
			return fmt.Errorf("dataset: %w; check the path", err)
		}
		switch name := filepath.Join(root, rel); {
		case d.Type().IsRegular():
			names, listed[path] = append(names, name), true
		case d.Type()&fs.ModeSymlink != 0:
			links = append(links, name)
		}
		return nil
	})
	for _, name := range links {
		target, dangling := withoutLinks(name)
		if dangling != nil && strings.HasPrefix(filepath.Base(name), ".") {
			continue
		}
		if info, err := os.Stat(name); dangling == nil && (err != nil || !info.Mode().IsRegular() || listed[target]) {
			continue
		}
		names, listed[target] = append(names, name), true
	}
	slices.Sort(names)
	return names, err
}

// The files that tell a folder with a run. It has the lock before its rows are first read, and the
// config soon after; the metrics stay where a run is copied without the lock.
const (
	lockFile    = ".lock"
	configFile  = "config.yaml"
	metricsFile = "metrics.jsonl"
)

// holdsRun reports whether a folder holds a run.
func holdsRun(dir string) bool {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	return has(configFile) && (has(lockFile) || has(metricsFile))
}

// withoutLinks returns the absolute path of what a path leads to.
func withoutLinks(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// formatOf tells a file's format by its name, without opening it: .gz is looked through, and
// names as MNIST has them are idx files. Other names are text where the options or the model's
// schema say that rows are tokens, and errors else. Standard input is CSV, or text under such
// a schema, and only queries of a model read it.
func formatOf(path string, opts *Options) (file, error) {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".gz")
	ext := filepath.Ext(name)
	if path == stdinPath {
		if opts.Stdin == nil || opts.Schema == nil {
			return file{}, badSetting("-: standard input is read once, by queries of a model; give a file")
		}
		ext = ".csv"
		if opts.Schema.Unit != "" {
			return file{path: path, text: true}, nil
		}
	}
	if strings.HasSuffix(name, "-ubyte") { // train-images-idx3-ubyte
		ext = ".idx"
	}
	if f, ok := lookup(ext); ok {
		return file{path: path, format: f}, nil
	}
	isText := ext == ".txt" || opts.Text.Unit != "" || opts.Schema != nil && opts.Schema.Unit != ""
	if !isText {
		return file{}, badSetting("%s: unknown kind of file; its name ends in one of %s, or .gz after it", path, strings.Join(Extensions(), " "))
	}
	return file{path: path, text: true}, nil
}

// unpacked is a file that is unpacked while it is read, if it is gzip.
type unpacked struct {
	io.Reader
	file io.Closer
}

func (u *unpacked) Close() error { return u.file.Close() }

// stdinPath means standard input, which holds a table in text.
const stdinPath = "-"

// openFile opens a file, or standard input for "-", and unpacks it if its first bytes say gzip,
// whatever its name. Closing what it returns closes the file. A file that is shorter than two
// bytes is plain; damage behind the first bytes of gzip shows when it is read.
func openFile(ctx context.Context, path string, opts *Options) (io.ReadCloser, error) {
	var f io.ReadCloser
	if path == stdinPath {
		f = io.NopCloser(opts.Stdin)
	} else {
		file, err := OpenPath(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w; check the path", err)
		}
		f = file
	}
	r := bufio.NewReaderSize(f, 1<<16)
	magic, err := r.Peek(2)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, fmt.Errorf("dataset: %w; check the path", err)
	}
	if string(magic) != "\x1f\x8b" {
		return &unpacked{r, f}, nil
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		f.Close()
		return nil, badData(path, "is damaged: %v", err)
	}
	return &unpacked{z, f}, nil
}

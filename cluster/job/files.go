package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// errNoRoot is in what is said of a file that a member may not read, and errLeadsOut where a link would have it read another one.
var errNoRoot, errLeadsOut = errors.New("lies in no root"), errors.New("is a link, or lies behind one, that leads out of the root")

// maxContents bounds the size that a file of a run may say it has.
const maxContents = 1 << 42

// FileRef names contents by their digest, and says where members find them: at a
// path, if that lies in one of their roots, or with the broker.
type FileRef struct {
	Path   string `json:"path,omitempty"` // absolute
	Name   string `json:"name"`           // whose end tells the format
	Digest string `json:"digest"`         // SHA-256, in hexadecimal
	Size   int64  `json:"size"`
	Blob   bool   `json:"blob,omitempty"` // the broker has them
}

// Check refuses a reference that no member can have written.
func (r *FileRef) Check() error {
	switch {
	case !isDigest(r.Digest):
		return fmt.Errorf("%w: %.80q is not a SHA-256 digest", cluster.ErrJob, r.Digest)
	case r.Name == "" || r.Name != filepath.Base(r.Name) || !filepath.IsLocal(r.Name) || len(r.Name) > 255:
		return fmt.Errorf("%w: %.80q is not the name of a file", cluster.ErrJob, r.Name)
	case r.Size < 0 || r.Size > maxContents:
		return fmt.Errorf("%w: %s has %d bytes; at most %d are taken", cluster.ErrJob, r.Name, r.Size, int64(maxContents))
	case r.Path != "" && !filepath.IsAbs(r.Path):
		return fmt.Errorf("%w: path %.80q does not start at /", cluster.ErrJob, r.Path)
	}
	return nil
}

// isDigest reports whether a text is a digest as references have it.
func isDigest(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && text == hex.EncodeToString(sum)
}

// FileAt describes the regular file at path, which is read once for its digest, unless ctx ends before. Its path is
// made absolute, as workers with the same root find it by that.
func FileAt(ctx context.Context, path string) (FileRef, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return FileRef{}, err
	}
	info, err := os.Stat(path) // before it is opened, which waits where it is a named pipe
	if err != nil {
		return FileRef{}, err
	}
	if !info.Mode().IsRegular() {
		return FileRef{}, fmt.Errorf("%w: %s is not a regular file", dataset.ErrSetting, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return FileRef{}, err
	}
	defer f.Close()
	r := FileRef{Path: path, Name: filepath.Base(path), Size: info.Size()}
	r.Digest, err = digestOf(ctx, f)
	return r, err
}

func digestOf(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, stoppable{ctx, r}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// stoppable reads until its context ends: large files take minutes.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// Upload gives the contents of the file at path to the broker.
func (r *FileRef) Upload(ctx context.Context, blobs cluster.Blobs, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := blobs.Put(ctx, r.Digest, f, r.Size); err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	r.Blob = true
	return nil
}

// inRoot returns the root that a path lies in, by its text, and its place there.
func inRoot(roots []string, path string) (root, rel string, ok bool) {
	for _, root := range roots {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return root, rel, true
		}
	}
	return "", "", false
}

// Files opens the files of runs on a member: those in its roots, and copies of
// those that the broker has.
type Files struct {
	cache string   // directory of the copies, <digest>/<name>
	roots []string // absolute
}

// NewFiles returns the files of a member that keeps copies below dir.
func NewFiles(dir string, roots []string) (*Files, error) {
	s := &Files{cache: filepath.Join(dir, "cache")}
	for _, root := range roots {
		root, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%w: root %s is not a directory; make it or name another", dataset.ErrSetting, root)
		}
		s.roots = append(s.roots, root)
	}
	return s, os.MkdirAll(s.cache, 0o700)
}

// Open returns a path under which the contents can be read. They have been
// compared with the digest.
func (s *Files) Open(ctx context.Context, r FileRef, blobs cluster.Blobs) (string, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	why := fmt.Errorf("%s %w of this member; start it with --root, or let the file be uploaded", r.Path, errNoRoot)
	if root, rel, ok := inRoot(s.roots, r.Path); ok && r.Path != "" {
		if why = sameFile(ctx, root, rel, &r); why == nil {
			return filepath.Join(root, rel), nil
		}
		if ctx.Err() != nil { // which says nothing of the file
			return "", ctx.Err()
		}
	}
	if r.Blob {
		return s.fetch(ctx, r, blobs)
	}
	if errors.Is(why, errNoRoot) || errors.Is(why, errLeadsOut) {
		return "", fmt.Errorf("%w: %w", dataset.ErrSetting, why)
	}
	if at := new(fs.PathError); errors.As(why, &at) { // it names the rest of the path, below the root, alone
		why = fmt.Errorf("%s: %w", r.Path, at.Err)
	}
	return "", fmt.Errorf("%w: %w; give all members the same file", dataset.ErrFormat, why)
}

// sameFile reads a file in a root, which no link leads out of, and compares it
// with what it must be.
func sameFile(ctx context.Context, root, rel string, r *FileRef) error {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat(rel)
	if _, out := dir.Stat(".."); err != nil && errors.Is(err, errors.Unwrap(out)) {
		return fmt.Errorf("%s %w %s, or is absolute; name the path that it leads to, or let the file be uploaded", r.Path, errLeadsOut, root)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", r.Path)
	}
	f, err := dir.Open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() != r.Size {
		return fmt.Errorf("%s has %d bytes here and %d where the run was made", r.Path, info.Size(), r.Size)
	}
	sum, err := digestOf(ctx, f)
	if err == nil && sum != r.Digest {
		err = fmt.Errorf("%s has other contents here than where the run was made", r.Path)
	}
	return err
}

// fetch copies contents from the broker, unless a whole copy is there.
func (s *Files) fetch(ctx context.Context, r FileRef, blobs cluster.Blobs) (string, error) {
	dir := filepath.Join(s.cache, r.Digest)
	path := filepath.Join(dir, r.Name)
	if sameFile(ctx, dir, r.Name, &r) == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return path, atomicfile.Write(path, 0o600, func(to io.Writer) error {
		w := &checkedWriter{w: to, h: sha256.New(), left: r.Size}
		if err := blobs.Get(ctx, r.Digest, w); err != nil {
			return fmt.Errorf("fetch %s: %w", r.Name, err)
		}
		if sum := hex.EncodeToString(w.h.Sum(nil)); sum != r.Digest || w.left != 0 {
			return fmt.Errorf("%w: fetch %s: the broker gave other contents", cluster.ErrCluster, r.Name)
		}
		return nil
	})
}

// checkedWriter adds up what passes, and lets no more pass than expected.
type checkedWriter struct {
	w    io.Writer
	h    hash.Hash
	left int64
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, fmt.Errorf("%w: the broker gives more bytes than the run says", cluster.ErrCluster)
	}
	c.left -= int64(len(p))
	c.h.Write(p)
	return c.w.Write(p)
}

// Prune removes all copies but those of some contents, given by their digests: the
// cache holds what the latest run needs. A folder of this name may have been there before, and
// what is not called by a digest is not a copy.
func (s *Files) Prune(keep map[string]bool) error {
	entries, err := os.ReadDir(s.cache)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if isDigest(e.Name()) && !keep[e.Name()] {
			if err := os.RemoveAll(filepath.Join(s.cache, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// DirectoryOptions adjusts a Directory. The zero value, and nil, mean the defaults.
type DirectoryOptions struct {
	// Now is the clock that tells an unfinished file that is being written from one that a crash left. Default
	// time.Now.
	Now func() time.Time
	// Plain stores files under their names without a suffix, for unencrypted content. Then "a" and "a/b" cannot both
	// exist. Default: the names of files end in .age.
	Plain bool
}

// Directory is a [Place] in a folder, for one machine or for several that share a file system whose renames are atomic.
// Only the user that runs the program can read the files. It is safe for concurrent use.
type Directory struct {
	root   *os.Root
	suffix string
}

var _ Place = (*Directory)(nil)

const (
	// sealedSuffix is the suffix of each file name, so that "a" and "a/b" can both exist.
	sealedSuffix = ".age"
	// unfinished is the folder of files that are being written. The dot in its name distinguishes it from all keys.
	unfinished = ".unfinished"
	// abandoned is the age from which an unfinished file counts as left by a crash.
	abandoned = 24 * time.Hour
)

// OpenDirectory opens or creates a folder. It removes unfinished files older than a day. It returns Unavailable if the
// folder cannot be used.
func OpenDirectory(dir string, opts *DirectoryOptions) (*Directory, error) {
	now, suffix := time.Now, sealedSuffix
	if opts != nil && opts.Now != nil {
		now = opts.Now
	}
	if opts != nil && opts.Plain {
		suffix = ""
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fileSystemError("open folder", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fileSystemError("open folder", err)
	}
	d := &Directory{root: root, suffix: suffix}
	if err := d.removeAbandoned(now()); err != nil {
		return nil, errors.Join(fileSystemError("open folder", err), root.Close())
	}
	return d, nil
}

// Close closes the folder. Files that are being read stay open.
func (d *Directory) Close() error { return d.root.Close() }

func (d *Directory) removeAbandoned(now time.Time) error {
	if err := d.root.MkdirAll(unfinished, 0o700); err != nil {
		return err
	}
	list, err := fs.ReadDir(d.root.FS(), unfinished)
	if err != nil {
		return err
	}
	for _, e := range list {
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) >= abandoned {
			err = d.root.Remove(unfinished + "/" + e.Name())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Write implements [Place]. It writes a temporary file, flushes the file to the disk, and renames it.
func (d *Directory) Write(ctx context.Context, name string, content io.Reader) (err error) {
	temp := unfinished + "/" + rand.Text()
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fileSystemError("write file", err)
	}
	defer func() {
		if err != nil {
			_ = d.root.Remove(temp)
		}
	}()
	if _, err = io.Copy(f, content); err != nil {
		_ = f.Close()
		return err
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return fileSystemError("write file", err)
	}
	if err = ctx.Err(); err != nil {
		return err
	}
	return d.publish(temp, name)
}

// publish renames a finished file to its name.
func (d *Directory) publish(temp, name string) error {
	folder := path.Dir(name)
	// A concurrent Remove may delete the folder, if it is empty, between its creation and the renaming.
	for range 100 {
		if err := d.root.MkdirAll(folder, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return fileSystemError("write file", err)
		}
		err := d.root.Rename(temp, name+d.suffix)
		switch {
		case err == nil:
			return d.syncFolders(folder)
		case !errors.Is(err, fs.ErrNotExist):
			return fileSystemError("write file", err)
		}
	}
	return fmt.Errorf("write file: %w: the folder of the file was removed repeatedly while it was written", healthlab.Unavailable)
}

// syncFolders flushes the entries of a folder and its parents to the disk.
func (d *Directory) syncFolders(folder string) error {
	for ; ; folder = path.Dir(folder) {
		f, err := d.root.Open(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder was removed
		}
		if err != nil {
			return fileSystemError("write file", err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fileSystemError("write file", err)
		}
		if folder == "." {
			return nil
		}
	}
}

// Open implements [Place].
func (d *Directory) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := d.root.Open(name + d.suffix)
	if err != nil {
		return nil, fileSystemError("open file", err)
	}
	return f, nil
}

// Remove implements [Place]. It also removes folders that become empty.
func (d *Directory) Remove(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.root.Remove(name + d.suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileSystemError("remove file", err)
	}
	folder := path.Dir(name)
	for folder != "." && d.root.Remove(folder) == nil {
		folder = path.Dir(folder)
	}
	return d.syncFolders(folder)
}

// List implements [Place].
func (d *Directory) List(ctx context.Context, name func(string) error) error {
	var fault error
	err := fs.WalkDir(d.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed in the meantime
		case err != nil:
			return err
		case e.IsDir() && p == unfinished:
			return fs.SkipDir
		}
		if n, ok := strings.CutSuffix(p, d.suffix); ok && !e.IsDir() {
			if fault = name(n); fault != nil {
				return fault
			}
		}
		return nil
	})
	if fault != nil || err == nil || ctx.Err() != nil {
		return errors.Join(fault, ctx.Err())
	}
	return fileSystemError("list files", err)
}

// fileSystemError converts a file system error to one without the path; verb names the failed operation.
func fileSystemError(verb string, err error) error {
	kind := healthlab.Unavailable
	if errors.Is(err, fs.ErrNotExist) {
		kind = healthlab.NotFound
	}
	var broken *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &broken):
		err = broken.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("%s: %w: %w", verb, kind, err)
}

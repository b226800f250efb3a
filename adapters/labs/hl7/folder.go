package hl7

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

// FolderOptions adjusts a Folder. The zero value, and nil, mean the defaults.
type FolderOptions struct {
	// Every is the interval between reads of the incoming folder. Default 10 s.
	Every time.Duration
	// Settle is how long a file must be unchanged before it is read, because the laboratory may still write it. Default
	// 5 s.
	Settle time.Duration
	// MaxBytes is the largest file that is read, in bytes. Default [er7.DefaultMaxBytes].
	MaxBytes int
	// Charset is the character set of messages that declare none. It must equal that of [Options]. Default UTF-8.
	Charset er7.Charset
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives errors. Default: slog.Default().
	Log *slog.Logger
}

// Folder exchanges messages with a laboratory as files. It is a [Sender]: it writes each message to a separate file
// in one directory; a file whose name ends in .hl7 is complete. [Folder.Run] reads the files that the laboratory
// puts into another directory; a file may hold many messages. It moves files that were read to the subdirectory
// done, and those that could not be read to failed. It deletes nothing.
type Folder struct {
	out, in string
	opts    FolderOptions
}

// NewFolder returns a folder that writes to one directory and reads from another. Either may be empty. The directories
// must exist.
func NewFolder(out, in string, o *FolderOptions) *Folder {
	f := &Folder{out: out, in: in}
	if o != nil {
		f.opts = *o
	}
	if f.opts.Every <= 0 {
		f.opts.Every = 10 * time.Second
	}
	if f.opts.Settle <= 0 {
		f.opts.Settle = 5 * time.Second
	}
	if f.opts.MaxBytes <= 0 {
		f.opts.MaxBytes = er7.DefaultMaxBytes
	}
	if f.opts.Now == nil {
		f.opts.Now = time.Now
	}
	f.opts.Log = cmp.Or(f.opts.Log, slog.Default())
	return f
}

// Send implements [Sender]. Sending a message again writes the same file. There is no answer.
func (f *Folder) Send(ctx context.Context, message []byte, _ func([]byte) bool) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := filepath.Join(f.out, digestID(message)+".hl7")
	if err := write(name, message); err != nil {
		return nil, fmt.Errorf("write HL7 file: %w: %w", healthlab.Unavailable, err)
	}
	return nil, nil
}

// write writes a file atomically.
func write(name string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), "*.part")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// Run reads the files of the laboratory until ctx ends, and calls take with each message; take is [Backend.Receive].
// It reads a file again later if a message could not be stored.
func (f *Folder) Run(ctx context.Context, take func(context.Context, *er7.Message) error) error {
	for {
		if _, err := f.Sweep(ctx, take); err != nil && ctx.Err() == nil {
			f.opts.Log.Warn("HL7 folder", "error", err.Error())
		}
		t := time.NewTimer(f.opts.Every)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// Sweep reads the files that are in the incoming directory once, for hosts with their own scheduler. It returns the
// number of files that it read and moved, and the joined errors of the others.
func (f *Folder) Sweep(ctx context.Context, take func(context.Context, *er7.Message) error) (int, error) {
	entries, err := os.ReadDir(f.in)
	if err != nil {
		return 0, fmt.Errorf("read HL7 folder: %w", err)
	}
	n := 0
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasSuffix(e.Name(), ".part") || strings.HasPrefix(e.Name(), ".") ||
			f.opts.Now().Sub(info.ModTime()) < f.opts.Settle {
			continue
		}
		verdict, err := f.readFile(ctx, filepath.Join(f.in, e.Name()), take)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := f.move(e.Name(), verdict); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// readFile passes the messages of a file to take, and returns the subdirectory to which the file must move, done or
// failed. After an error the file must stay, so that it is read again.
func (f *Folder) readFile(ctx context.Context, name string, take func(context.Context, *er7.Message) error) (string, error) {
	file, err := os.Open(name) //nolint:gosec // the host names the folder
	if err != nil {
		return "", fmt.Errorf("open HL7 file: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(file, int64(f.opts.MaxBytes)+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("read HL7 file: %w", err)
	}
	batch, err := er7.ParseBatch(raw, &er7.Options{MaxBytes: f.opts.MaxBytes, Charset: f.opts.Charset})
	if err != nil {
		f.opts.Log.Warn("HL7 file refused", "error", err.Error())
		return "failed", nil
	}
	verdict := "done"
	for _, err := range batch.Errors() {
		f.opts.Log.Warn("HL7 message refused", "error", err.Error())
		verdict = "failed"
	}
	for _, m := range batch.Messages() {
		err := take(ctx, m)
		if errors.Is(err, healthlab.Invalid) {
			f.opts.Log.Warn("HL7 message refused", "error", err.Error())
			verdict = "failed"
		} else if err != nil {
			return "", err
		}
	}
	return verdict, nil
}

// move moves a file of the incoming directory to a subdirectory, under a name that the subdirectory does not have
// yet.
func (f *Folder) move(name, to string) error {
	dir := filepath.Join(f.in, to)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("move HL7 file: %w", err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("move HL7 file: %w", err)
	}
	free := name
	for i := 1; slices.ContainsFunc(there, func(e os.DirEntry) bool { return e.Name() == free }); i++ {
		free = fmt.Sprintf("%d-%s", i, name)
	}
	if err := os.Rename(filepath.Join(f.in, name), filepath.Join(dir, free)); err != nil {
		return fmt.Errorf("move HL7 file: %w", err)
	}
	return nil
}

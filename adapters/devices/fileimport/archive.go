package fileimport

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/healthlab-dev/healthlab"
)

// mostEntries is the largest number of files of an archive.
const mostEntries = 20_000

// cannotUnpack is the error of a file that the ZIP reader cannot unpack.
const cannotUnpack = "a file of the archive cannot be unpacked: it is damaged, encrypted or packed by a method that is not supported"

func zipFault(msg string) error { return &FileError{Format: ZIP, Msg: msg} }

// entriesOf returns the regular files of an archive by their paths (cleaned by [path.Clean], Unicode form NFC), and
// their total unpacked size in bytes. It omits the files that macOS adds for attributes. It fails if the archive
// declares an unpacked size of more than what is left of MaxArchiveBytes.
func entriesOf(archive *zip.Reader, o *Options) (map[string]*zip.File, uint64, error) {
	most := uint64(o.MaxArchiveBytes)
	most -= min(most, o.unpacked)
	entries, total := map[string]*zip.File{}, uint64(0)
	for _, f := range archive.File {
		name := norm.NFC.String(path.Clean(strings.ReplaceAll(f.Name, `\`, "/")))
		if !f.Mode().IsRegular() || desktopFile(name) {
			continue
		}
		entries[name] = f
		if total += f.UncompressedSize64; f.UncompressedSize64 > most || total > most {
			return nil, 0, zipFault(o.named(fmt.Sprintf("the archive must unpack to at most %d bytes", o.MaxArchiveBytes), "MaxArchiveBytes"))
		}
	}
	return entries, total, nil
}

func desktopFile(name string) bool {
	// macOS stores the attributes of a file in another file beside it.
	return strings.HasPrefix(path.Base(name), "._") || strings.HasPrefix(name, "__MACOSX/") || strings.Contains(name, "/__MACOSX/")
}

// importedNames returns the names of the files that are imported on their own, and their total packed size. It
// leaves out files, such as the track of a workout, that another file of the archive refers to.
func importedNames(entries map[string]*zip.File, open opener) (names []string, packed int64) {
	in, owned := map[string][]string{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		in[path.Dir(name)] = append(in[path.Dir(name)], name)
	}
	for dir := range in {
		owned[dir] = belongsToOwner(dir, in[path.Dir(dir)], open)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !owned[path.Dir(name)] {
			names, packed = append(names, name), packed+int64(entries[name].CompressedSize64)
		}
	}
	return names, packed
}

// importZIP imports each file of an archive like ImportDir. head holds the bytes already read from r. An archive whose
// declared unpacked size exceeds Options.MaxArchiveBytes is refused before any file is read. If a file is longer than
// declared, only that file fails.
func importZIP(ctx context.Context, r io.Reader, head []byte, sink Sink, o *Options, rep *Report) error {
	at, size, done, err := randomAccess(r, head, ZIP, o)
	if err != nil {
		return err
	}
	defer done()
	archive, err := zip.NewReader(at, size)
	if err != nil {
		return zipFault("the file must be a valid ZIP archive")
	}
	if len(archive.File) > mostEntries {
		return zipFault(fmt.Sprintf("the archive must have at most %d files", mostEntries))
	}
	entries, total, err := entriesOf(archive, o)
	if err != nil {
		return err
	}
	inner := *o
	inner.inArchive, inner.unpacked = true, o.unpacked+total
	rep.unpacked = total
	open := openerOf(entries)
	var faults []error
	good := 0
	names, whole := importedNames(entries, open)
	offset := int64(0) // packed bytes of the files before this one
	for _, name := range names {
		packed := int64(entries[name].CompressedSize64)
		inner.span = o.span.part(offset, packed, whole, int64(entries[name].UncompressedSize64))
		offset += packed
		inner.nested = !o.inArchive && garminUploads(name)
		one, err := importEntry(ctx, open, name, sink, &inner)
		inner.span.end()
		if inner.nested { // nested archives count towards one limit
			inner.unpacked += one.unpacked
		}
		one.Name, one.Err = printable(name), err
		rep.Files = append(rep.Files, one)
		rep.add(&one)
		var fromSink *sinkError
		switch {
		case err == nil:
			good++
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &fromSink) && !errors.Is(err, healthlab.Invalid):
			return err
		case !errors.Is(err, ErrFormat):
			faults = append(faults, err)
		}
	}
	switch {
	case good > 0:
		return nil
	case len(faults) > 0:
		return errors.Join(faults...)
	}
	return fmt.Errorf("%w: no file of the archive has one of these formats", ErrFormat)
}

// openerOf returns a function that opens a file of an archive by its path, a key of entries.
func openerOf(entries map[string]*zip.File) opener {
	return func(name string) (io.ReadCloser, error) {
		f := entries[norm.NFC.String(name)]
		if f == nil {
			return nil, os.ErrNotExist
		}
		c, err := f.Open()
		if err != nil {
			return nil, zipFault(cannotUnpack)
		}
		return &entryReader{c, int64(f.UncompressedSize64)}, nil
	}
}

// importEntry imports one file of an archive.
func importEntry(ctx context.Context, open opener, name string, sink Sink, o *Options) (Report, error) {
	f, err := open(name)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = f.Close() }()
	return importFrom(ctx, f, path.Base(name), func(rel string) (io.ReadCloser, error) { return open(path.Join(path.Dir(name), rel)) }, sink, o)
}

// entryReader reads a file of an archive. It fails if the file is longer than its header declares.
type entryReader struct {
	io.ReadCloser
	left int64
}

// Read reads the next bytes. An error of the archive becomes a FileError of the file.
func (e *entryReader) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if e.left -= int64(n); e.left < 0 {
		return 0, zipFault("a file of the archive unpacks to more bytes than its header declares")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, zipFault(cannotUnpack)
	}
	return n, err
}

// randomAccess returns random access to an archive or database, its size in bytes, and a function that releases the
// access. head holds the bytes already read from r. If r cannot seek, its content is copied to a temporary file.
func randomAccess(r io.Reader, head []byte, format Format, o *Options) (io.ReaderAt, int64, func(), error) {
	under := r
	if c, ok := r.(*ctxReader); ok {
		under = c.r
	}
	if f, ok := under.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		if at, err := f.Seek(0, io.SeekCurrent); err == nil && at == int64(len(head)) {
			if size, err := f.Seek(0, io.SeekEnd); err == nil {
				return f, size, func() {}, nil
			}
		}
	}
	f, err := os.CreateTemp(o.TempDir, "import-*")
	if err != nil {
		return nil, 0, nil, fmt.Errorf("read file: %w", err)
	}
	done := func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	n := int64(0)
	if _, err = f.Write(head); err == nil {
		n, err = io.Copy(f, io.LimitReader(r, o.MaxArchiveBytes+1))
	}
	switch {
	case err != nil:
		done()
		return nil, 0, nil, fmt.Errorf("read file: %w", err)
	case n > o.MaxArchiveBytes:
		done()
		return nil, 0, nil, &FileError{Format: format, Msg: o.named(fmt.Sprintf("the archive or database must have at most %d bytes", o.MaxArchiveBytes), "MaxArchiveBytes")}
	}
	return f, n + int64(len(head)), done, nil
}

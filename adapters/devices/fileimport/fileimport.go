package fileimport

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Sink receives the content of a file. Each call has at most [Options.BatchSize] items.
//
// The methods are called one after another, in the goroutine that called Import. A recording is read completely before
// the first call; an export is read while its items are sent. The sink may keep and change its arguments. A source
// states the provider, the type and, if known, the app and the sport. Items have no id, user, CreatedAt or UpdatedAt.
//
// If a method returns a [*RefusedError], or a healthlab.InvalidError whose problems all have a path that begins with
// "data" and the index of an item, only those items are left out. If Stream returns any healthlab.InvalidError, only
// the stream is left out. Any other error stops the import and is returned wrapped, so that errors.Is works; items of
// earlier calls stay stored. Importing the same file again makes the same calls.
type Sink interface {
	// Summaries stores summaries of one resource, such as workouts or sleep, and of one source. A SleepCycle has the
	// ExternalID, the source and the start of the Sleep to which it belongs. A Partial summary (see healthdata.Head) must
	// be merged with the stored one, as healthdata.Service does.
	Summaries(ctx context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error
	// Samples stores samples of one resource and one source in the order of the file. A unit is that of the catalogue, or
	// one that healthdata converts to it. Values are finite, and intervals do not end before they start.
	Samples(ctx context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error
	// Stream stores the recording of a workout. workout is a pointer that an earlier call of Summaries received, so an id
	// that the sink has set there is present.
	Stream(ctx context.Context, workout *healthdata.Workout, stream healthdata.WorkoutStream) error
}

// Options adjusts an import. The zero value, and nil, mean the defaults.
type Options struct {
	// Provider is the slug of the provider under which all data is stored. Default: healthdata.SlugManual for
	// recordings, exports of accounts and FHIR, healthdata.SlugAppleHealthKit for the exports of a phone's store.
	Provider string
	// SourceType is the source type of recordings (FIT, GPX, TCX) and Observations (FHIR). Default: scale for
	// weighings, watch for monitoring, unknown for workouts, and for FHIR the type that the device's name suggests.
	// Exports state the source of each record themselves.
	SourceType healthdata.SourceType
	// Zone is the time zone of the person. It is required by exports without zones (Dexcom, LibreView, Withings) and by
	// FHIR times without an offset. FIT files whose clock had only local time, and GPX and TCX times without an offset, use
	// it; their default is UTC. Daily totals of Health Auto Export end at its midnights.
	Zone *time.Location
	// DateOrder is the order of day and month in dates such as 03-04-2026. It is needed for LibreView files whose dates
	// do not show the order, or contradict each other. Default: none; such a file is refused.
	DateOrder DateOrder
	// Aggregation is the interval that each total of a Health Auto Export file covers. It is used for metrics whose totals
	// begin at full hours. Default: none; then the times must show the interval, or the totals are left out.
	Aggregation Aggregation
	// ScaleUser selects the weighings of one user of a scale by the user index in the FIT file. Default nil: the weighings
	// of all users are imported, and the report notes if there are several users.
	ScaleUser *int
	// BatchSize is the largest number of items in one call of a sink. Default 5,000.
	BatchSize int
	// MaxRecordingBytes is the largest unpacked FIT, GPX or TCX file, which is read into memory. Default 64 MiB.
	// Exports have no limit, because they are streamed.
	MaxRecordingBytes int64
	// MaxPoints is the largest number of measurements of a FIT, GPX or TCX file. Default 500,000.
	MaxPoints int
	// Now is the clock. Data more than 24 hours in the future is left out. Default time.Now.
	Now func() time.Time
	// TempDir is the folder to which an archive or database is copied if its reader cannot seek. Default os.TempDir().
	TempDir string
	// MaxArchiveBytes is the largest size of an archive, packed and unpacked, and of a database. Default 4 GiB. A
	// database in an archive is copied to TempDir.
	MaxArchiveBytes int64
	// Database reads a SQLite database of size bytes, such as the export of Health Connect: healthconnect.Read. opts are
	// these options with defaults set, except Provider and SourceType, for which the function has its own defaults. It
	// must return ErrFormat for a database of another kind, which ImportDir skips, a FileError for a damaged one, and
	// errors of the sink unchanged or wrapped. db is valid until the function returns. Default nil: importing a database
	// fails with ErrFormat.
	Database func(ctx context.Context, db io.ReaderAt, size int64, sink Sink, opts *Options) (Report, error)

	// Progress is called by ImportFile and ImportDir with the number of bytes read so far and the total size of the files,
	// in the caller's goroutine. read grows with each call, up to size. Default: none.
	Progress func(read, size int64)
	// FieldNames maps the names of fields of Options to the names that errors and notes have for them, such as Zone to
	// time_zone. Other fields are not named. Default nil: the names of the Go fields, such as Options.Zone.
	FieldNames map[string]string

	span      *span         // part of the progress that this file covers; nil: none
	inArchive bool          // the file is part of an archive
	nested    bool          // the file may be an archive inside an archive
	unpacked  uint64        // unpacked bytes of the archives that contain the file, and of nested ones before it
	zoned     bool          // the caller has set Zone; otherwise Zone is UTC
	subjects  *fhirSubjects // the person of all FHIR files of the import
}

func (o *Options) orDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	if v.zoned = v.Zone != nil; !v.zoned {
		v.Zone = time.UTC
	} else if v.Zone == time.UTC { // time.UTC would mean a time that states only the instant
		v.Zone = time.FixedZone("UTC", 0)
	}
	v.subjects = &fhirSubjects{}
	if v.Now == nil {
		v.Now = time.Now
	}
	if v.BatchSize <= 0 {
		v.BatchSize = 5000
	}
	if v.MaxRecordingBytes <= 0 {
		v.MaxRecordingBytes = 64 << 20
	}
	if v.MaxArchiveBytes <= 0 {
		v.MaxArchiveBytes = 4 << 30
	}
	if v.MaxPoints <= 0 {
		v.MaxPoints = 500_000
	}
	return v
}

// named adds the caller's name of a field of Options to a text that is about the field.
func (o *Options) named(text, field string) string {
	name := "Options." + field
	if o.FieldNames != nil {
		name = o.FieldNames[field]
	}
	if name == "" {
		return text
	}
	return text + " (" + name + ")"
}

// DateOrder is the order of day and month in dates of digits.
type DateOrder string

// Orders of day and month.
const (
	// DayFirst means dates such as 28-03-2026.
	DayFirst DateOrder = "day_first"
	// MonthFirst means dates such as 03-28-2026.
	MonthFirst DateOrder = "month_first"
)

// Format is the format of a file.
type Format string

// Formats of files.
const (
	// FIT is a file in the FIT protocol: a recording of a workout, monitoring of a day, or weighings.
	FIT Format = "fit"
	// GPX is a track, GPX 1.0 or 1.1.
	GPX Format = "gpx"
	// TCX is activities in Training Center XML, version 2.
	TCX Format = "tcx"
	// ZIP is an archive of files in the other formats.
	ZIP Format = "zip"
	// GZIP is a gzip file that cannot be unpacked, or whose content has an unknown format. Any other gzip file has the
	// format of its content.
	GZIP Format = "gzip"
	// WHOOPExport is a CSV file of the export of a WHOOP account.
	WHOOPExport Format = "whoop_export"
	// StravaExport is the list of activities of the export of a Strava account.
	StravaExport Format = "strava_export"
	// FitbitExport is a JSON file of the export of a Fitbit account.
	FitbitExport Format = "fitbit_export"
	// WithingsExport is a CSV file of the export of a Withings account.
	WithingsExport Format = "withings_export"
	// ClarityExport is the export of Dexcom Clarity.
	ClarityExport Format = "clarity_export"
	// LibreViewExport is the glucose data of a LibreView account.
	LibreViewExport Format = "libreview_export"
	// GarminExport is a JSON file of the export of a Garmin account.
	GarminExport Format = "garmin_export"
	// HealthAutoExport is the JSON of Health Auto Export, an app that exports a phone's health store.
	HealthAutoExport Format = "health_auto_export"
	// FHIR is FHIR R4 Observations in JSON: a single Observation, a Bundle, or NDJSON.
	FHIR Format = "fhir"
	// HealthExport is the export.xml of a phone's health store.
	HealthExport Format = "health_export"
	// SQLite is a SQLite database, read by [Options.Database].
	SQLite Format = "sqlite"
)

// ErrFormat is the error of a file of an unknown format. [Import] returns it wrapped; [ImportDir] skips such files. It
// unwraps to healthlab.Invalid.
var ErrFormat = fmt.Errorf("%w: not a FIT, GPX, TCX, FHIR or health export file, a file of an account export, or an archive of such files", healthlab.Invalid)

// FileError is the error of an unreadable file, with the position in the file. It unwraps to healthlab.Invalid. It
// contains nothing of the file's content.
type FileError struct {
	// Format is the detected format of the file.
	Format Format
	// Offset is the byte position at which the error was detected, from 0.
	Offset int64
	// Line is the line of a text file at which the error was detected, from 1; 0 if it is unknown.
	Line int
	// Msg describes the error.
	Msg string
}

// Error returns the format, the line if known, the offset and Msg.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s file, line %d (byte %d): %s", e.Format, e.Line, e.Offset, e.Msg)
	}
	return fmt.Sprintf("%s file, byte %d: %s", e.Format, e.Offset, e.Msg)
}

// Unwrap returns healthlab.Invalid.
func (e *FileError) Unwrap() error { return healthlab.Invalid }

// sinkError wraps an error of a sink, to tell it from an error of the file.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return "hand over: " + e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// Import reads one file and passes its content to sink. It detects the format from the content. If nothing can be read,
// it returns a [*FileError]; if the format is unknown, an error that wraps [ErrFormat]. Parts of the file that are
// unreadable or impossible, and items that the sink refuses, are counted in the report. They are an error only if the
// sink refuses all items. Errors of the sink, of the reader and of ctx are returned wrapped.
//
// Each file of an archive is imported as ImportDir imports the files of a folder, and Report.Files has a report for
// each. Nothing is imported from an archive that is malformed or too large when unpacked.
func Import(ctx context.Context, r io.Reader, sink Sink, opts *Options) (Report, error) {
	o := opts.orDefaults()
	return importFrom(ctx, r, "", nil, sink, &o)
}

// ImportFile is [Import] for a file on disk. It also reads files in and below the folder of the file that an export
// refers to, such as workout routes.
func ImportFile(ctx context.Context, name string, sink Sink, opts *Options) (Report, error) {
	o := opts.orDefaults()
	f, err := os.Open(name) //nolint:gosec // the caller says which file
	if err != nil {
		return Report{Name: filepath.Base(name)}, fmt.Errorf("import file: %w", err)
	}
	defer func() { _ = f.Close() }()
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return Report{Name: filepath.Base(name)}, fmt.Errorf("import file: %w", err)
	}
	defer func() { _ = root.Close() }()
	if info, err := f.Stat(); err == nil {
		o.span = spanOf(&o, info.Size())
	}
	rep, err := importFrom(ctx, f, filepath.Base(name), siblingOpener(root, filepath.Base(name)), sink, &o)
	o.span.end()
	rep.Name = filepath.Base(name)
	return rep, err
}

// ImportDir imports the files of a folder and its subfolders, in the order of their names. Symbolic links are not
// followed. ImportDir returns a report for every file. If a file is malformed, or the sink refuses its content as
// healthlab.Invalid, Report.Err has the reason and the import continues. Files of other formats are skipped, and their
// Report.Err wraps [ErrFormat]. Any other error of the sink, and the end of ctx, stop the import.
//
// Recordings in a folder workout-routes next to the export of a phone's health store, and in a folder activities next to
// the list of activities of Strava, are imported as part of that file, not on their own. The file may have any name.
//
// If no file could be imported, the error joins the errors of the files. If no file has a known format, it is
// healthlab.Invalid.
func ImportDir(ctx context.Context, dir string, sink Sink, opts *Options) ([]Report, error) {
	o := opts.orDefaults()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("import folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	names, sizes, err := filesOf(root.FS())
	if err != nil {
		return nil, fmt.Errorf("import folder: %w", err)
	}
	whole, offset := int64(0), int64(0)
	for _, size := range sizes {
		whole += size
	}
	all := spanOf(&o, whole)
	var reports []Report
	var faults []error
	good := 0
	for i, name := range names {
		o.span = all.part(offset, sizes[i], whole, sizes[i])
		offset += sizes[i]
		rep, err := importRooted(ctx, root, name, sink, &o)
		o.span.end()
		rep.Name, rep.Err = name, err
		reports = append(reports, rep)
		var fromSink *sinkError
		switch {
		case err == nil:
			good++
		case ctx.Err() != nil:
			return reports, ctx.Err()
		case errors.As(err, &fromSink) && !errors.Is(err, healthlab.Invalid):
			return reports, fmt.Errorf("import %s: %w", name, err)
		case !errors.Is(err, ErrFormat):
			faults = append(faults, fmt.Errorf("import %s: %w", name, err))
		}
	}
	switch {
	case good > 0:
		return reports, nil
	case len(faults) > 0:
		return reports, errors.Join(faults...)
	default:
		return reports, fmt.Errorf("import folder: %w: no file of a known format", healthlab.Invalid)
	}
}

// filesOf lists the paths and the sizes in bytes of the regular files of a tree. It leaves out recordings that belong
// to another file (see [belongsToOwner]), and the files that macOS adds for attributes.
func filesOf(fsys fs.FS) (names []string, sizes []int64, _ error) {
	open := func(name string) (io.ReadCloser, error) { return fsys.Open(name) }
	beside := func(dir string) (names []string) {
		entries, _ := fs.ReadDir(fsys, path.Dir(dir))
		for _, e := range entries {
			if e.Type().IsRegular() && !desktopFile(e.Name()) {
				names = append(names, path.Join(path.Dir(dir), e.Name()))
			}
		}
		return names
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && belongsToOwner(name, beside(name), open) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && !desktopFile(name) {
			info, err := d.Info()
			if err != nil {
				return err
			}
			names, sizes = append(names, name), append(sizes, info.Size())
		}
		return nil
	})
	return names, sizes, err
}

func importRooted(ctx context.Context, root *os.Root, name string, sink Sink, o *Options) (Report, error) {
	rep := Report{Name: path.Base(name)}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return rep, fmt.Errorf("import file: %w", err)
	}
	defer func() { _ = f.Close() }()
	rep, err = importFrom(ctx, f, path.Base(name), siblingOpener(root, name), sink, o)
	rep.Name = path.Base(name)
	return rep, err
}

func siblingOpener(root *os.Root, name string) opener {
	dir := path.Dir(filepath.ToSlash(name))
	return func(rel string) (io.ReadCloser, error) {
		f, err := root.Open(filepath.FromSlash(path.Join(dir, rel)))
		if err == nil {
			return f, nil
		}
		// The file system may spell the name in another Unicode normal form.
		entries, _ := fs.ReadDir(root.FS(), path.Dir(path.Join(dir, rel)))
		for _, e := range entries {
			if norm.NFC.String(e.Name()) == norm.NFC.String(path.Base(rel)) {
				return root.Open(filepath.FromSlash(path.Join(dir, path.Dir(rel), e.Name())))
			}
		}
		return nil, err
	}
}

// opener opens a file by its path relative to the folder of the file that is being imported.
type opener func(name string) (io.ReadCloser, error)

// importFrom imports r. name is the file name, if known. beside opens files that r refers to; nil if there are none.
func importFrom(ctx context.Context, r io.Reader, name string, beside opener, sink Sink, o *Options) (Report, error) {
	var rep Report
	if err := ctx.Err(); err != nil {
		return rep, err
	}
	r = &ctxReader{ctx: ctx, r: r, span: o.span}
	return importText(ctx, r, name, beside, sink, o)
}

// importText imports the content of r, after it has converted UTF-16 to UTF-8. The parameters are those of importFrom.
func importText(ctx context.Context, r io.Reader, name string, beside opener, sink Sink, o *Options) (Report, error) {
	var rep Report
	head := make([]byte, detectBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return rep, fmt.Errorf("read file: %w", err)
	}
	head = head[:n]
	if wide := utf16EncodingOf(head); wide != nil {
		return importText(ctx, transform.NewReader(io.MultiReader(bytes.NewReader(head), r), wide.NewDecoder()), name, beside, sink, o)
	}
	format, err := detect(head)
	var table *csvFile
	out := &output{ctx: ctx, sink: sink, rep: &rep, opts: o}
	if err != nil {
		if known, fault := importJSON(out, r, head, name); known {
			return rep, fault
		}
		if table = csvFileOf(head, name); table == nil {
			if table = csvFileNamed(name); table == nil {
				return rep, err
			}
			return Report{Format: table.format}, table.headerError()
		}
		format = table.format
	}
	rep.Format = format
	if format == ZIP {
		if o.inArchive && !o.nested {
			return rep, fmt.Errorf("%w: an archive inside an archive is not read; unpack it first", ErrFormat)
		}
		err = importZIP(ctx, r, head, sink, o, &rep)
		return rep, err
	}
	if format == SQLite {
		return importDatabase(ctx, r, head, sink, o)
	}
	switch {
	case format == HealthExport:
		err = importExport(out, r, head, beside)
	case table != nil:
		err = importCSV(out, table, r, head, beside)
	default:
		err = importRecording(out, io.MultiReader(bytes.NewReader(head), r), format)
	}
	return rep, out.result(err)
}

// importJSON imports a file of a JSON format. head holds the bytes already read from r. If the format is unknown, known
// is false and nothing is read from r.
func importJSON(out *output, r io.Reader, head []byte, name string) (known bool, err error) {
	bare := io.MultiReader(bytes.NewReader(bytes.TrimPrefix(head, utf8BOM)), r)
	fitbit, garmin := fitbitFileOf(head, name), garminFileOf(head)
	switch {
	case fitbit != nil:
		out.rep.Format = FitbitExport
		err = importFitbit(out, fitbit, bare)
	case garmin != nil:
		out.rep.Format = GarminExport
		err = importGarmin(out, garmin, bare)
	case phoneAppHead(head):
		out.rep.Format = HealthAutoExport
		err = importPhoneApp(out, bare)
	case fhirHead(head):
		out.rep.Format = FHIR
		err = importFHIR(out, r, head)
	default:
		return false, nil
	}
	return true, out.result(err)
}

// importRecording imports a recording, plain or gzipped.
func importRecording(out *output, r io.Reader, format Format) error {
	data, err := readRecording(out, r, format)
	if err != nil {
		return err
	}
	if format == GZIP {
		if format, err = detect(data[:min(len(data), detectBytes)]); err == nil {
			out.rep.Format = format
		}
	}
	switch format {
	case FIT:
		return importFIT(out, data)
	case TCX:
		return importTCX(out, data)
	case GPX:
		return importGPX(out, data)
	}
	return fmt.Errorf("%w: a gzip file must contain a FIT, GPX or TCX file", ErrFormat)
}

// readRecording reads a recording into memory and unpacks gzip. If a gzip file is cut or damaged, it returns the
// data before the break and adds a note.
func readRecording(out *output, r io.Reader, format Format) ([]byte, error) {
	if format != GZIP {
		return readLimited(r, out.opts, format)
	}
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		if out.ctx.Err() != nil || !brokenGzip(err) {
			return nil, err
		}
		return nil, &FileError{Format: GZIP, Msg: "the gzip file is cut or damaged, and nothing of it can be unpacked"}
	}
	var broken error
	data, err := readLimited(&cutReader{unpacked, &broken}, out.opts, GZIP)
	switch {
	case err != nil || broken == nil:
		return data, err
	case len(data) == 0:
		return nil, &FileError{Format: GZIP, Msg: "the gzip file is cut or damaged, and nothing of it can be unpacked"}
	}
	out.countSkipped("rest of a gzip file that cannot be unpacked", 1)
	out.note("the gzip file is cut or damaged; what can be unpacked is read")
	return data, nil
}

func brokenGzip(err error) bool {
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, new(flate.CorruptInputError))
}

// cutReader reads a gzip stream. At the first damaged byte it returns io.EOF, and stores the error in broken.
type cutReader struct {
	io.Reader
	broken *error
}

// Read reads the next bytes before the damage.
func (c *cutReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err != nil && err != io.EOF && brokenGzip(err) {
		*c.broken, err = err, io.EOF
	}
	return n, err
}

// importDatabase imports a SQLite database with Options.Database. head holds the bytes already read from r.
func importDatabase(ctx context.Context, r io.Reader, head []byte, sink Sink, o *Options) (Report, error) {
	if o.Database == nil {
		return Report{Format: SQLite}, fmt.Errorf("%w: %s", ErrFormat, o.named("a SQLite database is not read here", "Database"))
	}
	db, size, done, err := randomAccess(r, head, SQLite, o)
	if err != nil {
		return Report{Format: SQLite}, err
	}
	defer done()
	if o.span != nil {
		db = &spanReaderAt{db, o.span}
	}
	partial := &partialSink{output{ctx: ctx, sink: sink, rep: &Report{}, opts: o}}
	rep, err := o.Database(ctx, db, size, partial, o)
	for resource, n := range partial.out.rep.Refused {
		count(&rep.Refused, resource, n)
		for _, counts := range []map[string]int{rep.Summaries, rep.Samples} {
			if counts == nil {
				continue
			}
			if counts[resource] -= n; counts[resource] <= 0 {
				delete(counts, resource)
			}
		}
	}
	rep.Notes = append(rep.Notes, partial.out.rep.Notes...)
	partial.out.rep.Summaries, partial.out.rep.Samples = rep.Summaries, rep.Samples
	return rep, partial.out.result(err)
}

// partialSink is the Sink that Options.Database gets. If the caller's sink refuses some items of a call, it stores the
// others.
type partialSink struct{ out output }

// Summaries implements [Sink].
func (p *partialSink) Summaries(ctx context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error {
	_, err := handOverItems(&p.out, resource, items, func(part []healthdata.Summary) error {
		return p.out.sink.Summaries(ctx, resource, source, part)
	})
	return unwrapSink(err)
}

// Samples implements [Sink].
func (p *partialSink) Samples(ctx context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error {
	_, err := handOverItems(&p.out, resource, samples, func(part []healthdata.Sample) error {
		return p.out.sink.Samples(ctx, resource, source, part)
	})
	return unwrapSink(err)
}

// Stream implements [Sink].
func (p *partialSink) Stream(ctx context.Context, w *healthdata.Workout, stream healthdata.WorkoutStream) error {
	return p.out.sink.Stream(ctx, w, stream)
}

func unwrapSink(err error) error {
	if of := (*sinkError)(nil); errors.As(err, &of) {
		return of.err
	}
	return err
}

// readLimited reads a whole recording of at most MaxRecordingBytes.
func readLimited(r io.Reader, o *Options, format Format) ([]byte, error) {
	most := o.MaxRecordingBytes
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if int64(len(data)) > most {
		return nil, &FileError{Format: format, Offset: most, Line: 0, Msg: o.named(fmt.Sprintf("the recording must have at most %d bytes", most), "MaxRecordingBytes")}
	}
	return data, nil
}

// ctxReader stops reading when ctx ends, and reports the progress.
type ctxReader struct {
	ctx  context.Context //nolint:containedctx // lives as long as one import
	r    io.Reader
	span *span
	last int // bytes of the last read
}

func (c *ctxReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	c.span.add(c.last)
	n, err := c.r.Read(b)
	c.last = n
	return n, err
}

package healthconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs/readervfs"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Format is the format of the reports.
const Format fileimport.Format = "health_connect"

// Read imports a Health Connect database of size bytes into sink, with the rules of [fileimport.Import]. It is for the
// field Database of [fileimport.Options]. Nil options mean the defaults; the default provider is health_connect.
// Another database is refused with an error that wraps [fileimport.ErrFormat], a damaged one with a
// [fileimport.FileError]. db must not change during the call.
func Read(ctx context.Context, db io.ReaderAt, size int64, sink fileimport.Sink, opts *fileimport.Options) (fileimport.Report, error) {
	rep := fileimport.Report{Format: Format}
	if err := ctx.Err(); err != nil {
		return rep, err
	}
	var o fileimport.Options
	if opts != nil {
		o = *opts
	}
	o.Provider = cmp.Or(o.Provider, healthdata.SlugHealthConnect)
	if o.BatchSize <= 0 {
		o.BatchSize = 5000
	}
	conn, done, err := open(ctx, sized{db, size})
	if err != nil {
		return rep, failure(ctx, err)
	}
	defer done()
	i := &importer{ctx: ctx, db: conn, out: fileimport.NewOutput(ctx, sink, &rep, &o), opts: &o, rep: &rep, columns: map[string]map[string]bool{}, waiting: map[bucket][]healthdata.Sample{}}
	if err := i.schema(); err != nil {
		return rep, failure(ctx, err)
	}
	for _, step := range []func() error{i.sources, i.samples, i.heartRates, i.pressures, i.sessions, i.nights, i.workouts, i.height, i.flush, i.countOrphans, i.countUnimported} {
		if err := step(); err != nil {
			return rep, failure(ctx, err)
		}
	}
	return rep, i.out.Result(nil)
}

// sized is a file with its length.
type sized struct {
	io.ReaderAt
	size int64
}

func (s sized) Size() (int64, error) { return s.size, nil }

// opened counts the opened databases. It makes the name of each reader unique, because SQLite's names are global.
var opened atomic.Uint64

// open opens the database and checks its integrity.
func open(ctx context.Context, db sized) (*sqlite3.Conn, func(), error) {
	name := "healthconnect-" + strconv.FormatUint(opened.Add(1), 10)
	readervfs.Create(name, db)
	conn, err := sqlite3.OpenFlags("file:"+name+"?vfs=reader&immutable=1", sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err != nil {
		readervfs.Delete(name)
		return nil, nil, err
	}
	done := func() {
		_ = conn.Close()
		readervfs.Delete(name)
	}
	conn.SetInterrupt(ctx)
	err = conn.Exec(`pragma trusted_schema = off; pragma cell_size_check = on; pragma temp_store = memory; pragma cache_size = -16384; pragma hard_heap_limit = 268435456`)
	if err == nil {
		err = check(conn)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return conn, done, nil
}

var errDamaged = &fileimport.FileError{Format: Format, Msg: "the database is damaged"}

// check runs SQLite's integrity check, which reads every page of the database.
func check(conn *sqlite3.Conn) error {
	stmt, _, err := conn.Prepare(`pragma quick_check(1)`)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	if stmt.Step() && stmt.ColumnText(0) != "ok" {
		return errDamaged
	}
	return stmt.Err()
}

// sinkError marks an error that the sink returned, as opposed to an error of the database.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// failure converts an error of Read for the caller: to the error of ctx, the error of the sink, fileimport.ErrFormat
// for a file of another format, or the error of a damaged database.
func failure(ctx context.Context, err error) error {
	var ofSink sinkError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &ofSink):
		return ofSink.error
	case errors.Is(err, fileimport.ErrFormat), errors.Is(err, errDamaged):
		return err
	case errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("%w: the file must be a SQLite database", fileimport.ErrFormat)
	}
	return errDamaged
}

// importer is the state of one import.
type importer struct {
	ctx     context.Context //nolint:containedctx // lives as long as one import
	db      *sqlite3.Conn
	out     *fileimport.Output
	opts    *fileimport.Options
	rep     *fileimport.Report
	columns map[string]map[string]bool // names of the columns of each table
	apps    map[int64]string
	devices map[int64]healthdata.SourceType
	waiting map[bucket][]healthdata.Sample
	held    int // number of collected samples that the sink has not received yet
}

// schema reads the columns of the tables. It fails unless they are those of Health Connect.
func (i *importer) schema() error {
	stmt, _, err := i.db.Prepare(`select s.name, c.name from sqlite_schema s join pragma_table_xinfo(s.name) c where s.type = 'table'`)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	for stmt.Step() {
		name := stmt.ColumnText(0)
		if i.columns[name] == nil {
			i.columns[name] = map[string]bool{}
		}
		i.columns[name][stmt.ColumnText(1)] = true
	}
	if err := stmt.Err(); err != nil {
		return err
	}
	records := 0
	for name := range i.columns {
		if strings.HasSuffix(name, "_record_table") {
			records++
		}
	}
	if records == 0 || !i.columns[appTable]["package_name"] {
		return fmt.Errorf("%w: the SQLite database must be a Health Connect export", fileimport.ErrFormat)
	}
	return nil
}

// sources reads the names of apps and the types of devices, to which records refer by id.
func (i *importer) sources() error {
	i.apps, i.devices = map[int64]string{}, map[int64]healthdata.SourceType{}
	err := i.each(appTable, "", []string{"row_id", "package_name"}, func(r row) error {
		if name, ok := r.text("package_name"); ok && len(name) <= 200 {
			i.apps[r.id()] = name
		}
		return nil
	})
	if err != nil {
		return err
	}
	return i.each(deviceTable, "", []string{"row_id", "device_type"}, func(r row) error {
		if kind, ok := r.integer("device_type"); ok {
			i.devices[r.id()] = deviceTypes[kind]
		}
		return nil
	})
}

// source returns the source of a record: its app, device and source type.
func (i *importer) source(r row) healthdata.Source {
	s := healthdata.Source{Provider: i.opts.Provider, Type: healthdata.SourceUnknown}
	if device, ok := r.integer("device_info_id"); ok && i.devices[device] != "" {
		s.Type = i.devices[device]
	}
	if method, ok := r.integer("recording_method"); ok && method == typedByHand {
		s.Type = healthdata.SourceApp
	}
	if app, ok := r.integer("app_info_id"); ok && i.apps[app] != "" {
		s.AppID = new(i.apps[app])
	}
	return s
}

func (i *importer) skip(table, why string) { i.out.Skip(table + " (" + why + ")") }

func (i *importer) count(into *map[string]int, name string, n int) {
	if *into == nil {
		*into = map[string]int{}
	}
	(*into)[name] += n
}

func (i *importer) summaries(resource string, items ...healthdata.Summary) error {
	if err := i.out.Summaries(resource, items...); err != nil {
		return sinkError{err}
	}
	return nil
}

// countOrphans counts, in the report, heart rates and sleep stages without the record to which they belong.
func (i *importer) countOrphans() error {
	for part, parent := range map[string]string{heartSeriesTable: heartRateTable, stagesTable: sleepTable} {
		if i.columns[parent] == nil {
			continue
		}
		join := " left join " + parent + " p on p.row_id = r.parent_key where p.row_id is null"
		err := i.each(part, join, nil, func(row) error {
			i.skip(part, "no record")
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// countUnimported counts, in the report, the records of tables that are not imported. It counts only tables whose name
// ends with _record_table or begins with exercise_.
func (i *importer) countUnimported() error {
	known := map[string]bool{heartRateTable: true, pressureTable: true, mindfulTable: true, sleepTable: true, exerciseTable: true, heightTable: true}
	for _, t := range tables {
		known[t.name] = true
	}
	for name := range i.columns {
		if known[name] || !strings.HasSuffix(name, "_record_table") && !strings.HasPrefix(name, "exercise_") {
			continue
		}
		n := 0
		err := i.each(name, "", nil, func(row) error {
			n++
			return nil
		})
		if err != nil {
			return err
		}
		if n > 0 && len(i.rep.Skipped) < mostNames {
			i.count(&i.rep.Skipped, printable(name), n)
		}
	}
	return nil
}

// mostNames is the largest number of the database's table names in a report.
const mostNames = 200

// printable shortens a table name of the database and replaces its special characters, for a report.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, name[:min(len(name), 100)])
}

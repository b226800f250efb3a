package healthconnect

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// common are the columns of every record.
var common = []string{"row_id", "uuid", "app_info_id", "device_info_id", "recording_method"}

// Columns of the times of records: milliseconds since 1970, and seconds east of UTC.
var (
	instantColumns  = []string{"time", "zone_offset"}
	intervalColumns = []string{"start_time", "start_zone_offset", "end_time"}
	sessionColumns  = append(intervalColumns[:3:3], "end_zone_offset")
)

// row is a row of a query. It is valid until the next row is read.
type row struct {
	stmt *sqlite3.Stmt
	at   map[string]int // positions of columns; a column that the table lacks has no entry
}

// each calls do with the columns of the rows of a table, in the order of their ids. join is an SQL join clause, or
// empty; with it, the rows have the order that it gives. A column that the table lacks is null. A missing table has no
// rows.
func (i *importer) each(table, join string, columns []string, do func(row) error) error {
	have := i.columns[table]
	if have == nil {
		return nil
	}
	r := row{at: map[string]int{}}
	list := []string{"1"}
	for _, c := range columns {
		switch {
		case strings.Contains(c, "."): // of the joined table
			r.at[c[strings.IndexByte(c, '.')+1:]] = len(list)
			list = append(list, c)
		case have[c]:
			r.at[c] = len(list)
			list = append(list, "r."+c)
		}
	}
	order := ""
	if have["row_id"] && join == "" {
		order = " order by r.row_id"
	}
	stmt, _, err := i.db.Prepare("select " + strings.Join(list, ", ") + " from " + sqlite3.QuoteIdentifier(table) + " r" + join + order)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	r.stmt = stmt
	for stmt.Step() {
		if err := do(r); err != nil {
			return err
		}
	}
	return stmt.Err()
}

func (r row) id() int64 {
	id, _ := r.integer("row_id")
	return id
}

// null reports whether a column has no value: null, or the smallest number, which Health Connect stores for a missing
// value.
func (r row) null(column string) bool {
	at, ok := r.at[column]
	if !ok || r.stmt.ColumnType(at) == sqlite3.NULL {
		return true
	}
	return r.stmt.ColumnType(at) == sqlite3.FLOAT && math.Abs(r.stmt.ColumnFloat(at)) == math.SmallestNonzeroFloat64
}

// number returns a column that is a finite number or a text with one.
func (r row) number(column string) (float64, bool) {
	at, ok := r.at[column]
	if !ok {
		return 0, false
	}
	switch r.stmt.ColumnType(at) {
	case sqlite3.INTEGER, sqlite3.FLOAT:
		v := r.stmt.ColumnFloat(at)
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case sqlite3.TEXT:
		return healthlab.ParseNumber(r.stmt.ColumnText(at))
	}
	return 0, false
}

// integer returns a column that is an integer, or text of one: Health Connect stores some numbers as text, and programs
// that copy a database may store them as fractions.
func (r row) integer(column string) (int64, bool) {
	at, ok := r.at[column]
	if !ok {
		return 0, false
	}
	if r.stmt.ColumnType(at) == sqlite3.INTEGER {
		return r.stmt.ColumnInt64(at), true
	}
	if r.stmt.ColumnType(at) == sqlite3.TEXT {
		if v, err := strconv.ParseInt(strings.TrimSpace(r.stmt.ColumnText(at)), 10, 64); err == nil {
			return v, true
		}
	}
	v, ok := r.number(column)
	return int64(v), ok && v == math.Trunc(v) && math.Abs(v) < 1<<53
}

// text returns a column that is text.
func (r row) text(column string) (string, bool) {
	at, ok := r.at[column]
	if !ok || r.stmt.ColumnType(at) != sqlite3.TEXT {
		return "", false
	}
	s := r.stmt.ColumnText(at)
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), ""), s != ""
}

// instant returns a column with Unix milliseconds as a time. It returns false for a time before the year 1900 or after
// the year 2199.
func (r row) instant(column string) (healthlab.Time, bool) {
	ms, ok := r.integer(column)
	if !ok || ms < -2_208_988_800_000 || ms >= 7_258_118_400_000 {
		return healthlab.Time{}, false
	}
	return healthlab.At(time.UnixMilli(ms)), true
}

// offset returns a column with a UTC offset, in seconds; nil if it is null. It returns false for an impossible offset.
func (r row) offset(column string) (*int, bool) {
	if r.null(column) {
		return nil, true
	}
	v, ok := r.integer(column)
	if !ok || v < -18*3600 || v > 18*3600 {
		return nil, false
	}
	n := int(v)
	return &n, true
}

// span returns start, end and UTC offset of a record, and false if they are invalid. The end is the start unless
// interval is true.
func (r row) span(interval bool) (start, end healthlab.Time, offset *int, ok bool) {
	from, zone, to := "time", "zone_offset", "time"
	if interval {
		from, zone, to = "start_time", "start_zone_offset", "end_time"
	}
	start, ok1 := r.instant(from)
	end, ok2 := r.instant(to)
	offset, ok3 := r.offset(zone)
	return start, end, offset, ok1 && ok2 && ok3 && !end.Before(start.Time)
}

func (r row) session() (start, end healthlab.Time, offsets healthdata.SessionOffsets, ok bool) {
	// A record with only one of the two offsets gets it for both ends.
	start, end, atStart, ok1 := r.span(true)
	atEnd, ok2 := r.offset("end_zone_offset")
	offsets = healthdata.SessionOffsets{StartTimezoneOffset: cmp.Or(atStart, atEnd), EndTimezoneOffset: cmp.Or(atEnd, atStart)}
	return start, end, offsets, ok1 && ok2
}

// idSpace is the UUID namespace of the ids that are derived for records without an id.
var idSpace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("healthlab:healthconnect"))

// external returns the id of a record. Without one, it derives an id from table and start.
func (r row) external(table string, start healthlab.Time) string {
	if at, ok := r.at["uuid"]; ok {
		switch r.stmt.ColumnType(at) {
		case sqlite3.BLOB:
			if id, err := uuid.FromBytes(r.stmt.ColumnRawBlob(at)); err == nil {
				return id.String()
			}
		case sqlite3.TEXT:
			if id, err := uuid.Parse(r.stmt.ColumnText(at)); err == nil {
				return id.String()
			}
		}
	}
	return uuid.NewSHA1(idSpace, []byte(table+" "+start.String())).String()
}

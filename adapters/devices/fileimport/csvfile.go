package fileimport

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// csvFile is a CSV file of an account export.
type csvFile struct {
	format Format
	// name is a pattern of what the export calls it.
	name string
	// keys are the columns that the file is known by. All of them are required.
	keys []string
	// also are the names of columns in other languages, with the English ones.
	also map[string]string
	// preamble is how many lines at most stand before the header.
	preamble int
	// twice are columns that the export has twice, of which the last is read.
	twice []string
	// named says that other files have the columns, too: this one is recognised by its name.
	named bool
	// local says that its times have no zone, so that Options.Zone is required.
	local bool
	// dateOf is the column whose dates have the day or the month first, which is learnt from all
	// rows before they are read; empty if dates have one form.
	dateOf string
	read   func(*rows) error
}

func csvFiles() []*csvFile {
	return []*csvFile{
		&whoopCycles, &whoopSleeps, &whoopWorkouts, &stravaActivities, &clarityEvents, &libreViewReadings,
		&withingsWeights, &withingsPressures, &withingsHeartRates, &withingsSteps, &withingsDistances,
	}
}

const (
	// mostRows and mostRowBytes bound a CSV file.
	mostRows     = 1_000_000
	mostRowBytes = 1 << 20
	// mostRemarks is how many cells and rows that cannot be read have a note of their own.
	mostRemarks = 100
	// Times lie between these years.
	firstYear, lastYear = 1990, 2100
)

// csvFileOf returns the file of a name that begins with head; nil if it is none that is read.
func csvFileOf(head []byte, name string) *csvFile {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), blank)
	if len(head) == 0 || head[0] < ' ' {
		return nil
	}
	for _, f := range csvFiles() {
		if _, ok := f.headerIn(head); ok && (!f.named || f.called(name)) {
			return f
		}
	}
	return nil
}

// headerIn returns where in head the header of the file begins.
func (f *csvFile) headerIn(head []byte) (at int, ok bool) {
	for range f.preamble + 1 {
		at = len(head) - len(bytes.TrimLeft(head[at:], blank))
		text := csv.NewReader(bytes.NewReader(head[at:]))
		text.Comma = separatorOf(head[at:])
		if header, err := text.Read(); err == nil && f.has(f.columnsOf(header)) {
			return at, true
		}
		end := bytes.IndexByte(head[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	return 0, false
}

// blank is what may stand before the header of a CSV file.
const blank = " \t\r\n"

// separatorOf returns what stands between the cells of a header most often: a comma, or what
// programs write in its place for people whose decimals have commas.
func separatorOf(head []byte) rune {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	found := ','
	for _, c := range ";\t" {
		if bytes.Count(line, []byte(string(c))) > bytes.Count(line, []byte(string(found))) {
			found = c
		}
	}
	return found
}

// csvFileNamed returns the file of that name; nil if there is none that is read.
func csvFileNamed(name string) *csvFile {
	for _, f := range csvFiles() {
		if f.called(name) {
			return f
		}
	}
	return nil
}

func (f *csvFile) called(name string) bool {
	ok, err := path.Match(healthlab.FoldText(f.name), healthlab.FoldText(name))
	return ok && err == nil
}

// columnsOf returns the last position of each column, and how often each is there. Names are
// the English ones, after [foldColumn].
func (f *csvFile) columnsOf(header []string) (at, seen map[string]int) {
	at, seen = map[string]int{}, map[string]int{}
	for i, name := range header {
		name = foldColumn(utf8Cell(name))
		if english, ok := f.also[name]; ok {
			name = foldColumn(english)
		}
		at[name] = i
		seen[name]++
	}
	return at, seen
}

func foldColumn(name string) string {
	return healthlab.FoldText(strings.ReplaceAll(strings.TrimSpace(name), "’", "'"))
}

// columnNames returns the English names of columns by their names in other languages. Each line is
// an English name and its translations, which a vertical bar separates.
func columnNames(lines ...string) map[string]string {
	also := map[string]string{}
	for _, line := range lines {
		names := strings.Split(line, "|")
		for _, name := range names[1:] {
			also[foldColumn(name)] = names[0]
		}
	}
	return also
}

func (f *csvFile) has(at, seen map[string]int) bool {
	for _, name := range f.keys {
		if _, ok := at[foldColumn(name)]; !ok {
			return false
		}
	}
	for _, name := range f.twice {
		if seen[foldColumn(name)] != 2 {
			return false
		}
	}
	return true
}

// otherHeader is the error of a file that has the name of f and other columns.
func (f *csvFile) otherHeader() error {
	msg := "a file of this name of an account export has the columns " + strings.Join(f.keys, ", ")
	if len(f.twice) > 0 {
		msg += ", and " + strings.Join(f.twice, ", ") + " twice"
	}
	if msg += ", in English"; len(f.also) > 0 {
		msg += " or one of the other languages that are read"
	}
	return &FileError{Format: f.format, Line: 1, Msg: msg}
}

// rows reads the rows of a CSV file. A cell or a row that cannot be read is remarked and left out.
type rows struct {
	out        *output
	beside     opener
	csv        *csv.Reader
	limit      *rowLimit
	format     Format
	columns    map[string]int
	width      int
	count      int
	remarks    remarks
	cells      []string
	before     int  // lines before the header
	monthFirst bool // dates have the month before the day
}

func newRows(out *output, f *csvFile, r io.Reader, beside opener) (*rows, error) {
	limit := &rowLimit{r: r, left: mostRowBytes}
	text := bufio.NewReaderSize(limit, detectBytes)
	head, _ := text.Peek(detectBytes) // its error is that of Read
	mark := bytes.HasPrefix(head, utf8BOM)
	if mark {
		head = head[len(utf8BOM):]
	}
	header := bytes.TrimLeft(head, blank)
	if at, ok := f.headerIn(head); ok {
		header = head[at:]
	}
	v := &rows{out: out, beside: beside, limit: limit, format: f.format, remarks: remarks{out: out}}
	if f.preamble > 0 {
		v.before = bytes.Count(head[:len(head)-len(header)], []byte("\n"))
	}
	if mark {
		_, _ = text.Discard(len(utf8BOM))
	}
	_, _ = text.Discard(len(head) - len(header))
	v.csv = csv.NewReader(text)
	v.csv.Comma, v.csv.FieldsPerRecord, v.csv.ReuseRecord = separatorOf(header), -1, true
	names, err := v.csv.Read()
	if err != nil {
		return nil, v.fault(err)
	}
	v.width = len(names)
	v.columns, _ = f.columnsOf(names)
	return v, nil
}

// importCSV hands over what the rows of a file say.
func importCSV(out *output, f *csvFile, r io.Reader, head []byte, beside opener) error {
	if f.local && !out.opts.zoned {
		return &FileError{Format: f.format, Line: 1, Msg: "its times are local: Options.Zone must say where the person was"}
	}
	text, monthFirst := io.MultiReader(bytes.NewReader(head), r), false
	if f.dateOf != "" {
		at, size, done, err := wholeOf(r, head, f.format, out.opts)
		if err != nil {
			return err
		}
		defer done()
		if monthFirst, err = monthsFirst(out, f, io.NewSectionReader(at, 0, size)); err != nil {
			return err
		}
		text = io.NewSectionReader(at, 0, size)
	}
	v, err := newRows(out, f, text, beside)
	if err != nil {
		return err
	}
	v.monthFirst = monthFirst
	return f.read(v)
}

// next reads the next row that has a cell for each column. False at the end.
func (r *rows) next() (bool, error) {
	for {
		if err := r.out.ctx.Err(); err != nil {
			return false, err
		}
		r.limit.left = mostRowBytes
		cells, err := r.csv.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case errors.As(err, &bad):
			r.remark(bad.Line, "row", "quotes around a cell with quotes, commas or line breaks")
		case err != nil:
			return false, r.fault(err)
		case len(cells) != r.width:
			line, _ := r.csv.FieldPos(0)
			r.remark(line, "row", "as many cells as the header has")
		default:
			r.cells = cells
		}
		if r.count++; r.count > mostRows {
			return false, &FileError{Format: r.format, Offset: r.csv.InputOffset(), Msg: "it has more rows than an export may have"}
		}
		if err == nil && len(cells) == r.width {
			return true, nil
		}
	}
}

// each calls do for each row that has a cell for each column.
func (r *rows) each(do func() error) error {
	for {
		if more, err := r.next(); err != nil || !more {
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
}

var errLongRow = errors.New("long row")

// rowLimit reads at most the bytes of a row, so that quotes that are not closed do not read the
// whole file into memory.
type rowLimit struct {
	r    io.Reader
	left int
}

// Read reads up to the limit, and is an error behind it.
func (l *rowLimit) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongRow
	}
	n, err := l.r.Read(b[:min(len(b), l.left)])
	l.left -= n
	return n, err
}

// fault returns what an error of the reader means.
func (r *rows) fault(err error) error {
	var ofFile *FileError
	switch {
	case errors.As(err, &ofFile), r.out.ctx.Err() != nil:
		return err
	case errors.Is(err, errLongRow):
		return &FileError{Format: r.format, Offset: r.csv.InputOffset(), Msg: "a row is longer than a row may be"}
	}
	return fmt.Errorf("read file: %w", err)
}

func (r *rows) text(column string) string {
	if i, ok := r.columns[foldColumn(column)]; ok {
		return strings.TrimSpace(utf8Cell(r.cells[i]))
	}
	return ""
}

func (r *rows) refuse(column, expected string) {
	line, _ := r.csv.FieldPos(max(0, r.columns[foldColumn(column)]))
	r.remark(line, column, expected)
}

func (r *rows) remark(line int, what, expected string) {
	r.remarks.add("line "+strconv.Itoa(line+r.before), what, expected)
}

// remarks counts what cannot be read, and notes the first of it.
type remarks struct {
	out *output
	n   int
}

func (r *remarks) add(place, what, expected string) {
	r.out.skip(what + " (not read)")
	switch r.n++; {
	case r.n <= mostRemarks:
		r.out.note(place + ", " + what + ": left out, expected " + expected)
	case r.n == mostRemarks+1:
		r.out.note("further cells are left out; they are counted")
	}
}

// clockTimes returns the instants at which a clock in a zone shows a time: two in the hour that
// comes twice in autumn, none in the hour that is left out in spring.
func clockTimes(clock time.Time, zone *time.Location) []time.Time {
	var out []time.Time
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := clock.Add(near).In(zone).Zone()
		at := clock.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, really := at.Zone(); really == offset && !slices.ContainsFunc(out, at.Equal) {
			out = append(out, at)
		}
	}
	return out
}

// timeOf reads a time and its offset, nil if it has none. False, with a remark, if it is not as
// expected.
func timeOf(r *rows, column, expected string) (at time.Time, offset *int, ok bool) {
	t, offset, err := healthlab.ParseTimeZone(r.text(column))
	if err != nil || t.Year() < firstYear || t.Year() > lastYear {
		r.refuse(column, "a time such as "+expected)
		return time.Time{}, nil, false
	}
	if offset != nil {
		return t.In(time.FixedZone("", *offset)), offset, true
	}
	return t.Time, nil, true
}

// localInstant reads a time without a zone, which is that of Options.Zone. One with an offset is
// taken as it says.
func localInstant(r *rows, column string) (time.Time, bool) {
	clock, offset, ok := timeOf(r, column, "2026-03-01 22:50:05")
	if !ok || offset != nil {
		return clock, ok
	}
	at := clockTimes(clock, r.out.opts.Zone)
	if len(at) != 1 {
		r.leave("row of the hour in which the clock changed")
		return time.Time{}, false
	}
	return at[0], true
}

// zonedInstant reads a time with its offset from UTC.
func zonedInstant(r *rows, column string) (time.Time, bool) {
	const expected = "2026-03-01T22:50:05+01:00"
	at, offset, ok := timeOf(r, column, expected)
	if ok && offset == nil {
		r.refuse(column, "a time such as "+expected)
	}
	return at, ok && offset != nil
}

func (r *rows) leave(why string) { r.out.skip(why) }

// value is a column with a number.
type value[T any] struct {
	column string
	// least and most are the range of what is taken for a measurement.
	least, most float64
	set         func(into *T, number float64)
}

// readValues reads the cells of the columns that are not empty.
func readValues[T any](r *rows, columns []value[T], into *T) {
	for i := range columns {
		c := &columns[i]
		text := r.text(c.column)
		if text == "" {
			continue
		}
		n, ok := r.number(text)
		if !ok || n < c.least || n > c.most {
			r.refuse(c.column, "a number from "+shortNumber(c.least)+" to "+shortNumber(c.most))
			continue
		}
		c.set(into, n)
	}
}

func (r *rows) number(text string) (float64, bool) {
	// Where semicolons stand between the cells, a comma is a decimal comma.
	if r.csv.Comma == ';' && strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
		text = strings.Replace(text, ",", ".", 1)
	}
	return healthlab.ParseNumber(text)
}

// expect notes the columns that the file does not have. Their values are not there.
func expect[T any](r *rows, columns []value[T]) {
	for i := range columns {
		if _, ok := r.columns[foldColumn(columns[i].column)]; !ok {
			r.out.note("the file has no column " + columns[i].column)
		}
	}
}

func shortNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func roundedNumber(n float64) *int64 { return rounded(&n) }

func wordsOf(sport string) string {
	words := strings.FieldsFunc(strings.ToLower(sport), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	return strings.Join(words, "_")
}

// batch keeps samples and summaries of one source until there are enough for a call of the sink.
type batch struct {
	out       *output
	source    healthdata.Source
	summaries map[string][]healthdata.Summary
	samples   map[string][]healthdata.Sample
}

func newBatch(out *output, source healthdata.Source) *batch {
	return &batch{out: out, source: source, summaries: map[string][]healthdata.Summary{}, samples: map[string][]healthdata.Sample{}}
}

func (b *batch) summary(resource string, s healthdata.Summary) error {
	healthdata.HeadOf(s).Source = b.source
	b.summaries[resource] = append(b.summaries[resource], s)
	if len(b.summaries[resource]) < b.out.opts.BatchSize {
		return nil
	}
	return b.flush()
}

func (b *batch) sample(resource string, s healthdata.Sample) error {
	r := healthdata.ResourceBySlug(resource)
	if s.Unit == "" {
		s.Unit = r.Unit
	}
	if r.Shape != healthdata.Discrete && s.Start == nil {
		s.Start, s.End = &s.Timestamp, &s.Timestamp
	}
	b.samples[resource] = append(b.samples[resource], s)
	if len(b.samples[resource]) < b.out.opts.BatchSize {
		return nil
	}
	return b.flush()
}

// flush hands over what is kept, in the order of the resources' names.
func (b *batch) flush() error {
	for _, resource := range slices.Sorted(maps.Keys(b.summaries)) {
		items := b.summaries[resource]
		delete(b.summaries, resource)
		if err := b.out.summaries(resource, items...); err != nil {
			return err
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(b.samples)) {
		items := b.samples[resource]
		delete(b.samples, resource)
		if err := b.out.samples(resource, b.source, items); err != nil {
			return err
		}
	}
	return nil
}

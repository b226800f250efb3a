package fileimport

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
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
	// name is the pattern that the file name must match.
	name string
	// keys lists the required columns, by which the file is recognised.
	keys []string
	// also maps column names of other languages to the English ones.
	also map[string]string
	// preamble is the largest number of lines before the header.
	preamble int
	// twice lists columns that occur twice in the export. The last one is read.
	twice []string
	// named means that other files have the same columns, so that this file is recognised by its name.
	named bool
	// local means that the times have no zone, so that Options.Zone is required.
	local bool
	// dateOf is the column whose values show whether dates have the day or the month first. It is empty if dates have
	// one form.
	dateOf string
	read   func(*rows) error
}

func csvFiles() []*csvFile {
	return []*csvFile{
		&whoopCycles, &whoopSleeps, &whoopWorkouts, &stravaActivities, &clarityEvents, &libreViewReadings,
		&withingsWeights, &withingsPounds, &withingsPressures, &withingsHeartRates, &withingsSteps, &withingsDistances,
	}
}

const (
	// mostRows is the largest number of rows of a CSV file, and mostRowBytes the largest size of a row.
	mostRows     = 1_000_000
	mostRowBytes = 1 << 20
	// mostRemarks is the largest number of notes about unreadable cells and rows of one file.
	mostRemarks = 100
)

// csvFileOf returns the csvFile for a file name and its first bytes; nil if the file is of no known kind.
func csvFileOf(head []byte, name string) *csvFile {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), blank)
	if len(head) == 0 || head[0] < ' ' {
		return nil
	}
	for _, f := range csvFiles() {
		if _, ok := f.headerIn(head); ok && (!f.named || f.hasName(name)) {
			return f
		}
	}
	return nil
}

// headerIn returns the byte position of the file's header in head. ok is false if head does not contain the header.
func (f *csvFile) headerIn(head []byte) (at int, ok bool) {
	at = separatorLine(head)
	for range f.preamble + 1 {
		at = len(head) - len(bytes.TrimLeft(head[at:], blank))
		text := newCellReader(bufio.NewReader(bytes.NewReader(head[at:])), separatorOf(head[at:]))
		if err := text.next(); err == nil && f.hasColumns(f.columnsOf(text.cells)) {
			return at, true
		}
		end := bytes.IndexAny(head[at:], "\r\n")
		if end < 0 {
			break
		}
		at += end + 1
	}
	return 0, false
}

// blank lists the characters that may precede the header.
const blank = " \t\r\n"

// separatorLine returns the length of a first line such as sep=; that spreadsheets write; 0 if there is none.
func separatorLine(head []byte) int {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	text := strings.ToLower(strings.Trim(string(line), "\"\r "))
	if strings.HasPrefix(text, "sep=") && len(text) <= len("sep=;") {
		return len(line)
	}
	return 0
}

// separatorOf returns the separator that occurs most often in a header: a comma, or a semicolon or tab of programs for
// locales with decimal commas.
func separatorOf(head []byte) byte {
	line := head
	if end := bytes.IndexAny(head, "\r\n"); end >= 0 {
		line = head[:end]
	}
	found := byte(',')
	for _, c := range []byte(";\t") {
		if bytes.Count(line, []byte{c}) > bytes.Count(line, []byte{found}) {
			found = c
		}
	}
	return found
}

// csvFileNamed returns the csvFile with that name; nil if there is none.
func csvFileNamed(name string) *csvFile {
	for _, f := range csvFiles() {
		if f.hasName(name) {
			return f
		}
	}
	return nil
}

func (f *csvFile) hasName(name string) bool { return matchesName(f.name, name) }

func matchesName(pattern, name string) bool {
	// Browsers and file managers add a number to a second file with the same name: weight (1).csv.
	ok, err := path.Match(healthlab.FoldText(pattern), healthlab.FoldText(copyNumber.ReplaceAllString(name, "$1")))
	return ok && err == nil
}

var copyNumber = regexp.MustCompile(`(?: ?\(\d+\)| copy(?: \d+)?)(\.[A-Za-z]+)$`)

// columnsOf returns the index of the last occurrence of each column in a header, and the number of its occurrences.
// Both maps have the English column names, after [foldColumn], as keys.
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
	return healthlab.FoldText(strings.Join(strings.Fields(columnMarks.Replace(name)), " "))
}

var columnMarks = strings.NewReplacer("’", "'", "(", " ", ")", " ", "[", " ", "]", " ")

// columnNames returns a map from translated column names to English ones. Each line is an English name and its
// translations, separated by vertical bars.
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

func (f *csvFile) hasColumns(at, seen map[string]int) bool {
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

// headerError returns the error of a file that has the name of f but other columns.
func (f *csvFile) headerError() error {
	msg := "a file of this name of an account export has the columns " + strings.Join(f.keys, ", ")
	if len(f.twice) > 0 {
		msg += ", and " + strings.Join(f.twice, ", ") + " twice"
	}
	if msg += ", in English"; len(f.also) > 0 {
		msg += " or one of the other languages that are read"
	}
	return &FileError{Format: f.format, Line: 1, Msg: msg}
}

// rows reads the rows of a CSV file. It leaves out a cell or row that cannot be read, and adds a note about it.
type rows struct {
	out        *output
	beside     opener
	csv        *cellReader
	format     Format
	columns    map[string]int
	found      map[string]int // indexes of the requested columns; -1: the file lacks the column
	count      int
	remarks    remarks
	cells      []string
	before     int  // lines before the header
	monthFirst bool // dates have the month before the day
}

func newRows(out *output, f *csvFile, r io.Reader, beside opener) (*rows, error) {
	text := bufio.NewReaderSize(r, detectBytes)
	head, _ := text.Peek(detectBytes) // an error comes again from Read
	if bytes.HasPrefix(head, utf8BOM) {
		head = head[len(utf8BOM):]
		_, _ = text.Discard(len(utf8BOM))
	}
	header := bytes.TrimLeft(head, blank)
	if at, ok := f.headerIn(head); ok {
		header = head[at:]
	}
	v := &rows{out: out, beside: beside, format: f.format, remarks: remarks{out: out}, found: map[string]int{}}
	before := head[:len(head)-len(header)]
	v.before = max(bytes.Count(before, []byte("\n")), bytes.Count(before, []byte("\r")))
	v.csv = newCellReader(text, separatorOf(header))
	_, _ = text.Discard(len(before))
	if err := v.csv.next(); err != nil {
		return nil, v.fault(err)
	}
	v.csv.width = len(v.csv.cells)
	v.columns, _ = f.columnsOf(v.csv.cells)
	return v, nil
}

// importCSV reads the rows of a file and sends their data to the sink. head holds the bytes already read from r. beside
// opens files in and below the folder of the file; it may be nil.
func importCSV(out *output, f *csvFile, r io.Reader, head []byte, beside opener) error {
	if f.local && !out.opts.zoned {
		return &FileError{Format: f.format, Line: 1, Msg: out.opts.named("the times of the file are local: the time zone of the person, such as Europe/Berlin, must be set", "Zone")}
	}
	text, monthFirst := io.MultiReader(bytes.NewReader(head), r), false
	if f.dateOf != "" {
		at, size, done, err := randomAccess(r, head, f.format, out.opts)
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

// next reads the next row that has as many cells as the header. It returns false at the end of the file.
func (r *rows) next() (bool, error) {
	for {
		if err := r.out.ctx.Err(); err != nil {
			return false, err
		}
		err := r.csv.next()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case errors.Is(err, errQuotes):
			r.remark(r.csv.line, "row", "quotes around a cell with quotes, commas or line breaks")
		case err != nil:
			return false, r.fault(err)
		case !r.csv.trimToWidth():
			r.remark(r.csv.line, "row", "as many cells as the header has")
		default:
			r.cells = r.csv.cells
		}
		if r.count++; r.count > mostRows {
			return false, &FileError{Format: r.format, Offset: r.csv.bytes, Msg: fmt.Sprintf("the file must have at most %d rows", mostRows)}
		}
		if err == nil && len(r.csv.cells) == r.csv.width {
			return true, nil
		}
	}
}

// each calls do for each row that has as many cells as the header.
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

// fault converts an error of the CSV reader to a FileError with the line.
func (r *rows) fault(err error) error {
	var ofFile *FileError
	switch {
	case errors.As(err, &ofFile), r.out.ctx.Err() != nil:
		return err
	case errors.Is(err, errLongRow):
		return &FileError{Format: r.format, Offset: r.csv.bytes, Msg: fmt.Sprintf("a row must have at most %d bytes", mostRowBytes)}
	}
	return fmt.Errorf("read file: %w", err)
}

func (r *rows) text(column string) string {
	if i := r.index(column); i >= 0 {
		return strings.TrimSpace(utf8Cell(r.cells[i]))
	}
	return ""
}

// index returns the position of a column; -1 if the file lacks it.
func (r *rows) index(column string) int {
	i, known := r.found[column]
	if !known {
		if i, known = r.columns[foldColumn(column)]; !known {
			i = -1
		}
		r.found[column] = i
	}
	return i
}

func (r *rows) refuse(column, expected string) {
	r.remark(r.csv.lineOf[max(0, r.index(column))], column, expected)
}

func (r *rows) remark(line int, what, expected string) {
	r.remarks.add("line "+strconv.Itoa(line+r.before), what, expected)
}

// remarks counts unreadable values in the report, and adds notes about the first ones.
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
		r.out.note("more unreadable cells are left out and counted, but not listed here")
	}
}

// timeOf reads a time as [readTime] does. If the time is malformed or not from firstYear to lastYear, ok is false and a
// note gives expected as an example.
func timeOf(r *rows, column, expected string) (at time.Time, zoned, ok bool) {
	at, zoned, ok = readTime(r.text(column))
	if !ok || at.Year() < firstYear || at.Year() > lastYear {
		r.refuse(column, "a time such as "+expected)
		return time.Time{}, false, false
	}
	return at, zoned, true
}

// localInstant reads the time of a cell in Options.Zone. A time with an offset keeps its offset. A time that states
// only the instant, such as one with Z, gets the offset of Options.Zone. localInstant returns false if the time is
// malformed or lies in an hour that occurs twice or not at all.
func localInstant(r *rows, column string) (time.Time, bool) {
	clock, zoned, ok := timeOf(r, column, "2026-03-01 22:50:05")
	if ok && zoned && clock.Location() == time.UTC {
		clock = clock.In(r.out.opts.Zone)
	}
	if !ok || zoned {
		return clock, ok
	}
	at := clockTimes(clock, r.out.opts.Zone)
	if len(at) != 1 {
		r.skipRow("row of the hour in which the clock changed")
		return time.Time{}, false
	}
	return at[0], true
}

// zonedInstant reads a time with an offset from UTC. It returns false, and adds a note, if the time is malformed or has
// no offset.
func zonedInstant(r *rows, column string) (time.Time, bool) {
	const expected = "2026-03-01T22:50:05+01:00"
	at, zoned, ok := timeOf(r, column, expected)
	if ok && !zoned {
		r.refuse(column, "a time such as "+expected)
	}
	return at, ok && zoned
}

func (r *rows) skipRow(why string) { r.out.skip(why) }

// value describes a column of numbers, and the field of T that such a number sets.
type value[T any] struct {
	column string
	// A number outside of least to most is refused.
	least, most float64
	set         func(into *T, number float64)
}

// readValues reads the non-empty cells of the columns, and sets the fields of into.
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
	// If cells are separated by semicolons, a comma is a decimal comma.
	if r.csv.comma == ';' && strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
		text = strings.Replace(text, ",", ".", 1)
	}
	return healthlab.ParseNumber(text)
}

// expect adds a note for each column that the file lacks.
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

// batch collects the samples and summaries of one source until one call of the sink is full (Options.BatchSize).
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

// flush sends the collected items to the sink, in the order of the resource names.
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

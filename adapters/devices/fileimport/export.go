package fileimport

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/text/transform"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// importExport streams an Apple Health export to the sink. head holds the bytes already read from r. beside opens files
// that the export refers to, such as workout routes; it may be nil.
func importExport(out *output, r io.Reader, head []byte, beside opener) error {
	r = io.MultiReader(bytes.NewReader(head), r)
	if e := encodingOf(head); e != nil {
		r = transform.NewReader(r, e.NewDecoder())
	}
	return newExport(out, r, beside).run()
}

// export is the state of one pass over an export.
type export struct {
	units map[string]string // shared strings for the texts of units

	out    *output
	sc     *scanner
	beside opener

	origins origins
	zones   zones
	key     []byte // buffer for the keys of origins

	outer   outerElement
	rec     record
	corr    correlation
	workout workoutRecord

	buckets  map[bucketKey]*bucket
	buffered int
	sleep    []sleepRecord
	bodies   []bodyRecord
	days     []healthdata.Summary
	workouts []healthdata.Summary
	person   person
}

// outerElement identifies the current child of the root element.
type outerElement uint8

const (
	inNothing outerElement = iota
	inRecord
	inCorrelation
	inWorkout
)

// Limits of items that are held until the end of the file.
const (
	mostSleepHeld = 1_000_000
	mostBodyHeld  = 500_000
)

func newExport(out *output, r io.Reader, beside opener) *export {
	e := &export{
		out: out, sc: newScanner(r, HealthExport), beside: beside,
		origins: origins{}, zones: zones{}, buckets: map[bucketKey]*bucket{},
	}
	e.sc.told = e.skipHere
	e.sc.parents = map[string]string{"Record": " HealthData Correlation ", "Workout": " HealthData ", "ActivitySummary": " HealthData ", "Correlation": " HealthData "}
	return e
}

func (e *export) skipHere(what string) {
	e.out.skipAt("line "+strconv.Itoa(e.sc.line()), what)
}

// record is the measurement that is being read.
type record struct {
	kind       *recordKind // nil: skipped
	skip       string      // why it is skipped, if kind is nil
	start, end int64       // Unix seconds
	offset     int         // seconds east of UTC at the start
	endOffset  int         // seconds east of UTC at the end
	value      float64     // in the unit of kind
	sent       float64     // value as written, in unit
	unit       string      // unit of sent; empty if value is stored, not sent
	sampleType string
	sensor     string
	stage      sleepStage
	from       *origin
	byHand     bool
}

func (e *export) run() error {
	for {
		token, err := e.sc.next()
		if err != nil {
			return err
		}
		switch token {
		case startToken:
			err = e.start()
			if bad := (*itemError)(nil); errors.As(err, &bad) {
				if len(e.sc.opens) == 2 {
					e.outer = inNothing
				}
				e.skipHere(bad.what)
				err = nil
			}
		case endToken:
			err = e.end()
		default:
			return e.finish()
		}
		if err != nil {
			return err
		}
	}
}

// itemError is the error of an item that cannot be read. Only this item is left out.
type itemError struct{ what string }

// Error returns the reason.
func (e *itemError) Error() string { return e.what }

// start handles the beginning of an element.
func (e *export) start() error {
	switch depth := len(e.sc.opens); {
	case depth == 1 && string(e.sc.name) != "HealthData":
		return e.sc.errorHere("the root element of the XML document must be HealthData")
	case e.sc.bad && depth == 2:
		e.outer = inNothing
	case e.sc.bad:
	case depth == 2:
		return e.startOuter()
	case depth == 3:
		return e.startInner()
	case depth == 4 && e.outer == inWorkout && string(e.sc.name) == "FileReference":
		e.workout.route = string(e.attr("path"))
	}
	return nil
}

func (e *export) startOuter() error {
	e.outer = inNothing
	switch string(e.sc.name) {
	case "Record":
		e.outer = inRecord
		return e.readRecord(&e.rec)
	case "Workout":
		e.outer = inWorkout
		return e.startWorkout()
	case "ActivitySummary":
		return e.activityDay()
	case "Correlation":
		e.outer = inCorrelation
		e.corr = correlation{pressure: string(e.attr("type")) == "HKCorrelationTypeIdentifierBloodPressure"}
		if !e.corr.pressure {
			e.out.skip(string(e.attr("type")))
		}
	case "Me":
		e.readPerson()
	case "ExportDate":
	default:
		e.out.skip(string(e.sc.name))
	}
	return nil
}

func (e *export) startInner() error {
	name := string(e.sc.name)
	switch {
	case e.outer == inRecord && name == "MetadataEntry":
		e.recordMetadata()
	case e.outer == inCorrelation && name == "Record":
		if !e.corr.pressure {
			return nil // the same record also stands at the top level
		}
		var r record
		if err := e.readRecord(&r); err != nil {
			return err
		}
		e.corr.add(&r)
	case e.outer == inWorkout:
		e.workoutDetail(name)
	}
	return nil
}

// end handles the end of an element, which was already removed from the stack.
func (e *export) end() error {
	if len(e.sc.opens) != 1 {
		return nil
	}
	switch e.outer {
	case inRecord:
		return e.endRecord()
	case inWorkout:
		return e.endWorkout()
	case inCorrelation:
		return e.endCorrelation()
	}
	return nil
}

// attr returns the value of an attribute of the current element, or nil. The bytes are valid until the next call of
// attr or of the scanner.
func (e *export) attr(name string) []byte {
	for _, a := range e.sc.attrs {
		if string(a.name) == name {
			return e.sc.value(a)
		}
	}
	return nil
}

// readRecord reads the attributes of a Record into r.
func (e *export) readRecord(r *record) error {
	var kind, unit, value, name, device, start, end attr
	for _, a := range e.sc.attrs {
		switch string(a.name) {
		case "type":
			kind = a
		case "unit":
			unit = a
		case "value":
			value = a
		case "sourceName":
			name = a
		case "device":
			device = a
		case "startDate":
			start = a
		case "endDate":
			end = a
		}
	}
	*r = record{}
	if kind.name == nil {
		return &itemError{"record without a type"}
	}
	var ok bool
	if r.start, r.offset, ok = parseStamp(start.raw); !ok {
		return &itemError{"record whose startDate is not a date-time with an offset"}
	}
	if r.end, r.endOffset, ok = parseStamp(end.raw); !ok {
		return &itemError{"record whose endDate is not a date-time with an offset"}
	}
	if r.kind = kindOf(kind.raw); r.kind == nil {
		r.skip = string(e.sc.value(kind))
		return nil
	}
	if r.end < r.start {
		r.kind, r.skip = nil, string(kind.raw)+" (ends before it starts)"
		return nil
	}
	if !e.out.inTime(r.start * 1e6) {
		r.kind, r.skip = nil, string(kind.raw)+" (before 1990 or in the future)"
		return nil
	}
	if err := e.recordValue(r, kind, unit, value); err != nil || r.kind == nil {
		return err
	}
	e.setOrigin(r, name, device)
	return nil
}

// setOrigin sets the source of r. Both values may use the scanner's buffer, so it copies one before it reads the
// other.
func (e *export) setOrigin(r *record, name, device attr) {
	n := e.sc.value(name)
	if name.refs && device.refs {
		n = bytes.Clone(n)
	}
	r.from, e.key = e.origins.get(n, e.sc.value(device), e.key)
}

// recordValue reads the value of a record.
func (e *export) recordValue(r *record, kind, unit, value attr) error {
	k := r.kind
	switch {
	case k.use == useSleep:
		stage, known := sleepStages[string(value.raw)]
		switch {
		case !known:
			r.kind, r.skip = nil, string(kind.raw)+" (unknown value)"
		case r.end-r.start > longestNight || !e.out.inTime(r.end*1e6):
			r.kind, r.skip = nil, string(kind.raw)+" (longer than 36 hours, or in the future)"
		}
		r.stage = stage
		return nil
	case k.from == fromEvent:
		r.value = 1
		if k.types != nil {
			if r.sampleType = k.types[string(value.raw)]; r.sampleType == "" {
				r.kind, r.skip = nil, string(kind.raw)+" (unknown value)"
			}
		}
		return nil
	case k.from == fromDuration:
		r.value = float64(r.end-r.start) / 60
		return nil
	}
	if value.name == nil {
		r.kind, r.skip = nil, string(kind.raw)+" (no value)"
		return nil
	}
	v, ok := healthlab.ParseNumber(string(value.raw))
	if !ok {
		return &itemError{"record whose value is not a number"}
	}
	to := "cm"
	written := e.sc.value(unit)
	switch k.use {
	case useSample:
		to = k.resource.Unit
	case useSystolic, useDiastolic:
		to = "mmHg"
	}
	if r.value, ok = inUnit(v, written, to); !ok {
		r.kind, r.skip = nil, string(kind.raw)+" (in "+string(written)+")"
		return nil
	}
	if r.value != v && to != "%" {
		r.sent, r.unit = v, e.unit(written)
	}
	if math.IsInf(r.value, 0) {
		return &itemError{"record whose value is not a number"}
	}
	return nil
}

// unit returns the text of a unit as a shared string.
func (e *export) unit(text []byte) string {
	if s, ok := e.units[string(text)]; ok {
		return s
	}
	if e.units == nil {
		e.units = map[string]string{}
	}
	s := string(text)
	if len(e.units) < mostUnits {
		e.units[s] = s
	}
	return s
}

// mostUnits is the largest number of cached unit texts.
const mostUnits = 256

// recordMetadata reads a MetadataEntry of the current record.
func (e *export) recordMetadata() {
	if e.rec.kind == nil {
		return
	}
	switch string(e.attr("key")) {
	case "HKTimeZone":
		if loc := e.zones.get(e.attr("value")); loc != nil {
			e.rec.offset, e.rec.endOffset = offsetIn(loc, e.rec.start), offsetIn(loc, e.rec.end)
		}
	case "HKWasUserEntered":
		e.rec.byHand = string(e.attr("value")) == "1"
	case "HKBodyTemperatureSensorLocation":
		e.rec.sensor = sensorLocations[string(e.attr("value"))]
	}
}

func (e *export) endRecord() error {
	r := &e.rec
	if r.kind == nil {
		e.out.skip(r.skip)
		return nil
	}
	switch r.kind.use {
	case useSleep:
		e.sleep = append(e.sleep, sleepRecord{
			start: r.start, end: r.end, offset: int32(r.offset), endOffset: int32(r.endOffset), stage: r.stage, from: r.source(),
		})
		if len(e.sleep) >= mostSleepHeld {
			return e.finishSleep()
		}
		return nil
	case useHeight:
		e.person.height(r)
		return nil
	case useSystolic, useDiastolic:
		return nil // their correlation links the two values
	}
	if r.kind.body != bodyNone {
		e.bodies = append(e.bodies, bodyRecord{
			at: r.start, offset: new(r.offset), part: r.kind.body, value: r.value, from: r.source(),
		})
		if len(e.bodies) >= mostBodyHeld {
			if err := e.finishBodies(); err != nil {
				return err
			}
		}
	}
	return e.sample(r)
}

// source returns the source of r: manual entry by a person, or a device.
func (r *record) source() *origin {
	if r.byHand && r.from.kind != healthdata.SourceApp {
		o := *r.from
		o.kind = healthdata.SourceApp
		return &o
	}
	return r.from
}

// bucketKey groups the samples of one call of the sink.
type bucketKey struct {
	resource *healthdata.Resource
	kind     healthdata.SourceType
	app      string // app of the origin; empty if unknown
	sport    string
}

type bucket struct {
	samples []healthdata.Sample
	// Memory to which the pointers in samples point, allocated in blocks.
	times   []healthlab.Time
	values  []healthdata.Value
	offsets []int
}

func (e *export) sample(r *record) error {
	k := r.kind
	s := healthdata.Sample{Unit: k.resource.Unit}
	b := e.bucket(k.resource, r.source(), k.sport)
	b.stamp(&s, k.resource.Shape, r.start, r.end, r.offset)
	number := r.value
	if r.unit != "" {
		s.Unit, number = r.unit, r.sent
	}
	b.values = append(b.values, healthdata.Value{Number: number})
	s.Value = &b.values[len(b.values)-1]
	kind := r.sampleType
	if k.always != "" {
		kind = k.always
	}
	if kind != "" {
		s.Type = &kind
	}
	if r.sensor == "" {
		r.sensor = k.sensor
	}
	if r.sensor != "" && len(k.resource.Fields) > 0 {
		s.SensorLocation = new(r.sensor)
	}
	return e.put(b, s)
}

func (e *export) bucket(r *healthdata.Resource, from *origin, sport string) *bucket {
	key := bucketKey{resource: r, kind: from.kind, sport: sport}
	if from.app != nil {
		key.app = *from.app
	}
	b := e.buckets[key]
	if b == nil {
		b = &bucket{}
		e.buckets[key] = b
	}
	if b.samples == nil {
		b.reserve(min(64, e.out.opts.BatchSize))
	} else if len(b.samples) == cap(b.samples) {
		b.reserve(min(4*cap(b.samples), e.out.opts.BatchSize))
	}
	return b
}

// reserve makes room for n samples without moving the memory to which earlier samples point.
func (b *bucket) reserve(n int) {
	more := n - len(b.samples)
	b.samples = append(make([]healthdata.Sample, 0, n), b.samples...)
	b.times = make([]healthlab.Time, 0, 2*more)
	b.values = make([]healthdata.Value, 0, more)
	b.offsets = make([]int, 0, more)
}

// stamp sets the time of a sample. start and end are Unix seconds, offset is seconds east of UTC. end is ignored for a
// resource of the shape Discrete.
func (b *bucket) stamp(s *healthdata.Sample, kind healthdata.SampleShape, start, end int64, offset int) {
	s.Timestamp = instant(start)
	if kind != healthdata.Discrete {
		b.times = append(b.times, s.Timestamp, instant(end))
		n := len(b.times)
		s.Start, s.End = &b.times[n-2], &b.times[n-1]
	}
	b.offsets = append(b.offsets, offset)
	s.TimezoneOffset = &b.offsets[len(b.offsets)-1]
}

func (e *export) put(b *bucket, s healthdata.Sample) error {
	b.samples = append(b.samples, s)
	e.buffered++
	if len(b.samples) >= e.out.opts.BatchSize || e.buffered >= 4*e.out.opts.BatchSize {
		return e.flush(b)
	}
	return nil
}

// flush sends the samples of the bucket full to the sink. It sends those of all buckets if full is nil or has fewer
// than Options.BatchSize samples.
func (e *export) flush(full *bucket) error {
	all := full == nil || len(full.samples) < e.out.opts.BatchSize
	for _, key := range sortedKeys(e.buckets) {
		b := e.buckets[key]
		if len(b.samples) == 0 || !all && b != full {
			continue
		}
		source := healthdata.Source{Provider: e.provider(), Type: key.kind}
		if key.app != "" {
			source.AppID = new(key.app)
		}
		if key.sport != "" {
			source.Sport = new(key.sport)
		}
		if err := e.out.samples(key.resource.Slug, source, b.samples); err != nil {
			return err
		}
		e.buffered -= len(b.samples)
		delete(e.buckets, key) // otherwise the file decides how many buckets there are
	}
	return nil
}

func sortedKeys(m map[bucketKey]*bucket) []bucketKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b bucketKey) int {
		return cmp.Or(cmp.Compare(a.resource.Slug, b.resource.Slug), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.app, b.app), cmp.Compare(a.sport, b.sport))
	})
}

func (e *export) provider() string {
	if p := e.out.opts.Provider; p != "" {
		return p
	}
	return healthdata.SlugAppleHealthKit
}

func (e *export) head(from *origin) healthdata.Head {
	// The external id is derived from the source's name and the start, so that the next export gives a session the
	// same id.
	return healthdata.Head{Source: healthdata.Source{Provider: e.provider(), Type: from.kind, AppID: from.app}}
}

// finish sends the remaining items to the sink: workouts, activity days, sleep, body measurements, the profile and
// samples.
func (e *export) finish() error {
	if err := e.flushWorkouts(); err != nil {
		return err
	}
	if err := e.flushDays(); err != nil {
		return err
	}
	if err := e.finishSleep(); err != nil {
		return err
	}
	if err := e.finishBodies(); err != nil {
		return err
	}
	if err := e.finishPerson(); err != nil {
		return err
	}
	return e.flush(nil)
}

func instant(unix int64) healthlab.Time { return healthlab.Time{Time: time.Unix(unix, 0).UTC()} }

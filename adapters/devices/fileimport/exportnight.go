package fileimport

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// sleepStage is a stage of sleep, or time in bed.
type sleepStage int8

// stageInBed is time in bed, asleep or not.
const stageInBed sleepStage = 100

// sleepRecord is one interval of sleep or of time in bed.
type sleepRecord struct {
	start, end int64 // Unix seconds
	from       *origin
	offset     int32 // seconds east of UTC at the start
	endOffset  int32 // seconds east of UTC at the end
	stage      sleepStage
}

// sleepGap is the longest time, in seconds, between two stretches of one session.
const sleepGap = 60 * 60

// longestNight is the longest accepted interval of sleep, in seconds.
const longestNight = 36 * 60 * 60

// finishSleep joins sleep intervals into sessions and sends them to the sink.
func (e *export) finishSleep() error {
	records := e.sleep
	e.sleep = nil
	var nights, cycles []healthdata.Summary
	for _, session := range sleepSessions(records) {
		night, cycle := e.night(session)
		nights = append(nights, night)
		if cycle != nil {
			cycles = append(cycles, cycle)
		}
	}
	if err := e.out.summaries("sleep", nights...); err != nil {
		return err
	}
	return e.out.summaries("sleep_cycle", cycles...)
}

// sleepSessions sorts intervals by source and start, and splits them into sessions: a session ends where its source
// has recorded nothing for more than an hour.
func sleepSessions(records []sleepRecord) [][]sleepRecord {
	slices.SortStableFunc(records, func(a, b sleepRecord) int {
		return cmp.Or(compareOrigins(a.from, b.from), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	var sessions [][]sleepRecord
	from := 0
	var until int64
	for i, r := range records {
		if i > from && (compareOrigins(r.from, records[from].from) != 0 || r.start > until+sleepGap) {
			sessions = append(sessions, records[from:i])
			from = i
		}
		if i == from {
			until = r.end
		}
		until = max(until, r.end)
	}
	if from < len(records) {
		sessions = append(sessions, records[from:])
	}
	return sessions
}

func compareOrigins(a, b *origin) int {
	if a == b {
		return 0
	}
	return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.kind, b.kind))
}

// night converts a session to a summary and, unless only time in bed is known, its stages.
func (e *export) night(session []sleepRecord) (*healthdata.Sleep, *healthdata.SleepCycle) {
	first := session[0]
	start, end := first.start, first.end
	atStart, atEnd := int(first.offset), int(first.endOffset)
	for _, r := range session {
		if r.end > end {
			end, atEnd = r.end, int(r.endOffset)
		}
	}
	n := &healthdata.Sleep{
		Head: e.head(first.from), BedtimeStart: instant(start), BedtimeStop: instant(end), TimezoneOffset: &atEnd,
		SessionOffsets: healthdata.SessionOffsets{StartTimezoneOffset: &atStart, EndTimezoneOffset: &atEnd},
	}
	n.ExternalID = uuid.NewSHA1(first.from.id, []byte("sleep "+n.BedtimeStart.String())).String()
	c := &healthdata.SleepCycle{
		Head: n.Head, SessionStart: n.BedtimeStart, SessionEnd: n.BedtimeStop,
		TimezoneOffset: n.TimezoneOffset, SessionOffsets: n.SessionOffsets,
	}
	for _, r := range stretches(session) {
		n.AddStage(healthdata.SleepStage(r.stage), r.end-r.start)
		c.StageStartOffsetSecond = append(c.StageStartOffsetSecond, r.start-start)
		c.StageEndOffsetSecond = append(c.StageEndOffsetSecond, r.end-start)
		c.StageType = append(c.StageType, healthdata.SleepStage(r.stage))
	}
	if len(c.StageType) == 0 {
		return n, nil
	}
	if staged := secondsOf(n.Deep) + secondsOf(n.Light) + secondsOf(n.REM); 2*staged < secondsOf(n.Total) {
		n.Deep, n.Light, n.REM, n.Awake = nil, nil, nil, nil // they cover less than half of the night
	}
	return n, c
}

func secondsOf(v *int64) int64 {
	if v == nil {
		return 0
	}
	return *v
}

// stretches returns the stages of a session as intervals that do not overlap. Where several overlap, the most
// detailed one counts: sleep with a stage before sleep without one, then the shorter, then the earlier one.
func stretches(session []sleepRecord) []sleepRecord {
	var stages []sleepRecord
	var edges []int64
	for _, r := range session {
		if r.stage != stageInBed && r.end > r.start {
			stages, edges = append(stages, r), append(edges, r.start, r.end)
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	finer := func(a, b sleepRecord) int {
		coarse := func(r sleepRecord) int64 {
			if r.stage == sleepStage(healthdata.SleepStageMissing) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(coarse(a), coarse(b)), cmp.Compare(a.end-a.start, b.end-b.start), cmp.Compare(a.start, b.start))
	}
	var out, open []sleepRecord
	for i := range max(len(edges)-1, 0) {
		from, to := edges[i], edges[i+1]
		open = slices.DeleteFunc(open, func(r sleepRecord) bool { return r.end <= from })
		for len(stages) > 0 && stages[0].start <= from {
			open, stages = append(open, stages[0]), stages[1:]
		}
		if len(open) == 0 {
			continue
		}
		r := slices.MinFunc(open, finer)
		whole := r // the interval of which r is a part
		if k := len(out) - 1; k >= 0 && out[k].end == from && out[k].stage == whole.stage && whole.start < from {
			out[k].end = to
			continue
		}
		r.start, r.end = from, to
		out = append(out, r)
	}
	return out
}

// bodyRecord is one value of a body measurement.
type bodyRecord struct {
	at     int64 // Unix seconds
	value  float64
	from   *origin
	offset *int // seconds east of UTC; nil if unknown
	part   bodyPart
}

// finishBodies joins the values that one source measured at one instant into a body measurement, and sends it to the
// sink.
func (e *export) finishBodies() error {
	records := e.bodies
	e.bodies = nil
	slices.SortStableFunc(records, func(a, b bodyRecord) int {
		return cmp.Or(compareOrigins(a.from, b.from), cmp.Compare(a.at, b.at))
	})
	var items []healthdata.Summary
	var b *healthdata.Body
	for i := range records {
		r := &records[i]
		if i == 0 || r.at != records[i-1].at || compareOrigins(r.from, records[i-1].from) != 0 {
			if len(items) >= e.out.opts.BatchSize {
				if err := e.out.summaries("body", items...); err != nil {
					return err
				}
				items = nil
			}
			at := instant(r.at)
			b = &healthdata.Body{Head: e.head(r.from), MeasuredAt: at, TimezoneOffset: r.offset}
			b.ExternalID = uuid.NewSHA1(r.from.id, []byte("body "+at.String())).String()
			items = append(items, b)
		}
		switch r.part {
		case bodyWeight:
			b.Weight = &r.value
		case bodyFat:
			b.Fat = &r.value
		case bodyBMI:
			b.BodyMassIndex = &r.value
		case bodyLean:
			b.LeanBodyMassKilogram = &r.value
		case bodyWaist:
			b.WaistCircumferenceCentimeter = &r.value
		}
	}
	return e.out.summaries("body", items...)
}

// correlation is a Correlation element, which groups records. A correlation of blood pressure becomes one sample.
type correlation struct {
	pressure            bool
	systolic, diastolic *record
}

func (c *correlation) add(r *record) {
	if r.kind == nil {
		return
	}
	switch r.kind.use {
	case useSystolic:
		c.systolic = r
	case useDiastolic:
		c.diastolic = r
	}
}

func (e *export) endCorrelation() error {
	c := &e.corr
	if !c.pressure {
		return nil
	}
	if c.systolic == nil || c.diastolic == nil {
		e.out.skip("HKCorrelationTypeIdentifierBloodPressure (one value only)")
		return nil
	}
	r := c.systolic
	resource := healthdata.ResourceBySlug("blood_pressure")
	b := e.bucket(resource, r.source(), "")
	s := healthdata.Sample{Unit: resource.Unit, Systolic: &r.value, Diastolic: &c.diastolic.value}
	if r.unit != "" && r.unit == c.diastolic.unit {
		s.Unit, s.Systolic, s.Diastolic = r.unit, &r.sent, &c.diastolic.sent
	}
	b.stamp(&s, resource.Shape, r.start, r.end, r.offset)
	return e.put(b, s)
}

// person holds the characteristics of the person in an export.
type person struct {
	profile   *healthdata.Profile
	heightCM  float64
	heightAt  int64
	anyHeight bool
}

func (p *person) height(r *record) {
	if !p.anyHeight || r.start >= p.heightAt {
		p.anyHeight, p.heightAt, p.heightCM = true, r.start, r.value
	}
}

// readPerson reads the characteristics of the person, such as sex and birth date.
func (e *export) readPerson() {
	f := &healthdata.Profile{}
	if raw := e.attr("HKCharacteristicTypeIdentifierDateOfBirth"); len(raw) > 0 {
		if d, err := healthlab.ParseDate(string(raw)); err == nil {
			f.BirthDate = &d
		} else {
			e.skipHere("birth date that is no day")
		}
	}
	sex := strings.ToLower(strings.TrimPrefix(
		string(e.attr("HKCharacteristicTypeIdentifierBiologicalSex")), "HKBiologicalSex"))
	if sex == "female" || sex == "male" || sex == "other" {
		f.Sex = &sex
	}
	if string(e.attr("HKCharacteristicTypeIdentifierWheelchairUse")) == "HKWheelchairUseYes" {
		f.WheelchairUse = new(true)
	}
	e.person.profile = f
}

func (e *export) finishPerson() error {
	f := e.person.profile
	if f == nil {
		f = &healthdata.Profile{}
	}
	if cm := math.Round(e.person.heightCM); e.person.anyHeight && cm >= 0 && cm < 1e6 {
		f.Height = new(int64(cm))
	}
	if f.BirthDate == nil && f.Sex == nil && f.Height == nil && f.WheelchairUse == nil {
		return nil
	}
	f.Source = healthdata.Source{Provider: e.provider(), Type: healthdata.SourceApp}
	return e.out.summaries("profile", f)
}

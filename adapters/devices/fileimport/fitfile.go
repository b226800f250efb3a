package fileimport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

const (
	// fitEpoch is the Unix time of the FIT epoch, 1989-12-31.
	fitEpoch = 631065600
	// fitClock is the smallest timestamp that is a date. Smaller ones are seconds since the device was switched on.
	fitClock = 0x10000000
)

// fitFile is the decoded content of a FIT file. Times are in the clock of the file until resolveTimes converts them to
// Unix time.
type fitFile struct {
	zone *time.Location

	kind         float64 // type in the file_id message, if anyKind
	anyKind      bool
	serial       float64
	created      float64
	sport, sub   float64
	local        float64 // local timestamp at the UTC timestamp localAt
	localAt      float64
	anyLocal     bool
	timeZone     float64 // seconds east of UTC in the device's settings
	anyTimeZone  bool
	sixteenths   uint32 // distance of compressed records, in 1/16 m
	clock        float64
	anyClock     bool
	points       []point
	sessions     []fitSession
	monitor      []monitored
	monitorStart float64
	resting      float64
	anyResting   bool
	weighings    []weighing
	readings     []reading
	beats        beats
	loose        []point // heart rates of a chest strap from before or after the session
	between      int     // number of points between sessions
	untimed      int     // number of records without a time
	startless    int     // number of sessions without a start
	unused       map[string]int

	offset *int // seconds east of UTC
}

func (f *fitFile) any() bool {
	return len(f.points)+len(f.sessions)+len(f.monitor)+len(f.weighings)+len(f.readings)+len(f.beats.sums) > 0
}

// heartRatesOnly returns the heart rates of a file that contains no other data; nil if it contains other data. In a
// chain, such a file belongs to the session of another file.
func (f *fitFile) heartRatesOnly() map[int64]beatSum {
	if len(f.sessions)+len(f.monitor)+len(f.weighings)+len(f.readings) > 0 {
		return nil
	}
	var sums beats
	sums.add(f.beats.sums)
	for _, p := range f.points {
		bpm := p.heart
		if p.heart = nan; bpm != bpm || !p.empty() {
			return nil
		}
		sums.add(map[int64]beatSum{p.micros: {bpm, 1}})
	}
	return sums.sums
}

// joinHeartRateFiles adds the heart rates of each file that contains nothing else to the nearest preceding file with a
// session, or to the first file with a session if none precedes.
func joinHeartRateFiles(files []*fitFile) {
	var session *fitFile
	if i := slices.IndexFunc(files, func(f *fitFile) bool { return len(f.sessions) > 0 }); i >= 0 {
		session = files[i]
	}
	for _, f := range files {
		if len(f.sessions) > 0 {
			session = f
		}
		if of := f.heartRatesOnly(); session != nil && len(of) > 0 {
			session.beats.add(of)
			f.points, f.beats = nil, beats{}
		}
	}
}

// fitSession is a session message, which describes one workout.
type fitSession struct {
	start, elapsed float64
	workout        healthdata.Workout
	points         []point
}

// monitored is a monitoring message. NaN means that a value is missing.
type monitored struct {
	at                 float64
	activity           float64
	steps, distance    float64
	calories           float64
	wholeDay           bool // the message holds the totals of a day
	heart              float64
	moderate, vigorous float64
}

// weighing is a weight_scale message.
type weighing struct {
	at   float64
	user float64
	body healthdata.Body
}

// reading is a single value of a timeseries.
type reading struct {
	at       float64
	resource string
	value    float64
	other    float64 // diastolic pressure
}

// Costs of a message, as a number of points that need as much memory.
const (
	costPoint    = 1
	costWeighing = 5
	costSession  = 500
)

// readMessage reads a message and returns its cost, as the number of points that need as much memory.
func (f *fitFile) readMessage(m *proto.Message) int {
	at, timed := field(m, proto.FieldNumTimestamp)
	if timed {
		f.clock, f.anyClock = at, true
	}
	switch m.Num {
	case mesgnum.FileId:
		f.readFileID(m)
	case mesgnum.Activity:
		if local, ok := field(m, fieldnum.ActivityLocalTimestamp); ok && timed {
			f.local, f.localAt, f.anyLocal = local, at, true
		}
	case mesgnum.DeviceSettings:
		f.readDeviceSettings(m)
	case mesgnum.Sport:
		f.sport, f.sub = scaled(m, fieldnum.SportSport, 1, 0), scaled(m, fieldnum.SportSubSport, 1, 0)
	case mesgnum.Record:
		p := fitPoint(m)
		f.unpack(m, &p)
		if p.empty() {
			return 0
		}
		if !timed {
			f.untimed++
			return 0
		}
		p.micros = int64(at)
		f.points = append(f.points, p)
	case mesgnum.Hr:
		return f.beats.readMessage(m, at, timed)
	case mesgnum.Session:
		f.readSession(m)
		return costSession
	case mesgnum.MonitoringInfo:
		if local, ok := field(m, fieldnum.MonitoringInfoLocalTimestamp); ok && timed {
			f.local, f.localAt, f.anyLocal = local, at, true
		}
		f.monitorStart = at
	case mesgnum.Monitoring:
		return f.readMonitoring(m, timed)
	case mesgnum.MonitoringHrData:
		if v, ok := field(m, fieldnum.MonitoringHrDataCurrentDayRestingHeartRate); ok {
			f.resting, f.anyResting = v, true
		}
	case mesgnum.WeightScale:
		f.readWeight(m, at, timed)
		return costWeighing
	case mesgnum.BloodPressure, mesgnum.Spo2Data, mesgnum.StressLevel, mesgnum.RespirationRate:
		return f.readSingleValue(m, at, timed)
	default:
		name := m.Num.String()
		if m.Num >= typedef.MesgNumMfgRangeMin || !plainSlug.MatchString(name) {
			name = "unknown"
		}
		count(&f.unused, name+" message", 1)
		return 0
	}
	return costPoint
}

func (f *fitFile) readFileID(m *proto.Message) {
	f.kind, f.anyKind = field(m, fieldnum.FileIdType)
	f.serial, _ = field(m, fieldnum.FileIdSerialNumber)
	f.created, _ = field(m, fieldnum.FileIdTimeCreated)
}

// readDeviceSettings reads the UTC offset of the device's clock, which is used for files without a local timestamp.
func (f *fitFile) readDeviceSettings(m *proto.Message) {
	active, _ := field(m, fieldnum.DeviceSettingsActiveTimeZone)
	for i := range m.Fields {
		if m.Fields[i].Num != fieldnum.DeviceSettingsTimeOffset {
			continue
		}
		if offsets := m.Fields[i].Value.SliceUint32(); int(active) < len(offsets) {
			f.timeZone, f.anyTimeZone = float64(int32(offsets[int(active)])), true
		}
	}
}

func (f *fitFile) readSession(m *proto.Message) {
	start, ok := field(m, fieldnum.SessionStartTime)
	s := fitSession{start: start, elapsed: scaled(m, fieldnum.SessionTotalElapsedTime, 1000, 0)}
	if end, timed := field(m, proto.FieldNumTimestamp); !ok {
		// Devices write a session message when the session ends, so its time is the end.
		if s.start = math.Floor(end - s.elapsed); !timed || s.start != s.start {
			f.startless++
			return
		}
	}
	w := &s.workout
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	whole := func(v float64) *int64 { return rounded(number(v)) }
	sport := fitSport(scaled(m, fieldnum.SessionSport, 1, 0), scaled(m, fieldnum.SessionSubSport, 1, 0))
	w.Sport = healthdata.SportOf(sport)
	w.Distance = number(scaled(m, fieldnum.SessionTotalDistance, 100, 0))
	w.Calories = number(scaled(m, fieldnum.SessionTotalCalories, 1, 0))
	w.AverageHR = whole(scaled(m, fieldnum.SessionAvgHeartRate, 1, 0))
	w.MaxHR = whole(scaled(m, fieldnum.SessionMaxHeartRate, 1, 0))
	w.MovingTime = whole(firstOf(m, fieldnum.SessionTotalMovingTime, fieldnum.SessionTotalTimerTime, 1000, 0))
	w.AverageSpeed = number(firstOf(m, fieldnum.SessionEnhancedAvgSpeed, fieldnum.SessionAvgSpeed, 1000, 0))
	w.MaxSpeed = number(firstOf(m, fieldnum.SessionEnhancedMaxSpeed, fieldnum.SessionMaxSpeed, 1000, 0))
	w.AverageWatts = number(scaled(m, fieldnum.SessionAvgPower, 1, 0))
	w.DeviceWatts = number(scaled(m, fieldnum.SessionAvgPower, 1, 0))
	w.MaxWatts = number(scaled(m, fieldnum.SessionMaxPower, 1, 0))
	w.WeightedAverageWatts = number(scaled(m, fieldnum.SessionNormalizedPower, 1, 0))
	w.TotalElevationGain = number(scaled(m, fieldnum.SessionTotalAscent, 1, 0))
	w.ElevHigh = number(firstOf(m, fieldnum.SessionEnhancedMaxAltitude, fieldnum.SessionMaxAltitude, 5, 500))
	w.ElevLow = number(firstOf(m, fieldnum.SessionEnhancedMinAltitude, fieldnum.SessionMinAltitude, 5, 500))
	if onFoot(sport) {
		w.Steps = whole(scaled(m, fieldnum.SessionTotalCycles, 0.5, 0)) // strides
	}
	for i := range m.Fields {
		if m.Fields[i].Num == fieldnum.SessionSportProfileName {
			if title := printable(m.Fields[i].Value.String()); title != "" {
				w.Title = &title
			}
		}
	}
	f.sessions = append(f.sessions, s)
}

// resolveTimes converts the times of a file to Unix time, drops items with impossible times, and assigns points to
// sessions.
func (f *fitFile) resolveTimes(out *output, base int64) error {
	out.countSkipped("point without a time", f.untimed)
	out.countSkipped("session without a start", f.startless)
	f.points = f.beats.addToPoints(f.points)
	shift := float64(fitEpoch)
	switch {
	case f.anyLocal && f.localAt < fitClock && f.local >= fitClock:
		// The clock was set but never synchronised, so only its local digits are known, in Options.Zone.
		wall := time.Unix(int64(f.local)+fitEpoch, 0).UTC()
		at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, f.zone)
		_, offset := at.Zone()
		f.offset = &offset
		shift = float64(at.Unix()) - f.localAt
	case f.anyTimes(func(t float64) bool { return t < fitClock }) && !f.anyTimes(func(t float64) bool { return t >= fitClock }):
		return fitError(base, "the clock of the device was not set, so the time of the recording is unknown")
	case f.anyLocal:
		f.offset = quarter(f.local - f.localAt)
	case f.anyTimeZone:
		f.offset = quarter(f.timeZone)
	}
	for i := range f.points {
		f.points[i].micros = (f.points[i].micros + int64(shift)) * 1e6
	}
	for i := range f.sessions {
		f.sessions[i].start += shift
	}
	for i := range f.monitor {
		f.monitor[i].at += shift
	}
	for i := range f.weighings {
		f.weighings[i].at += shift
	}
	for i := range f.readings {
		f.readings[i].at += shift
	}
	f.monitorStart += shift
	f.dropImpossible(out)
	f.dropRepeated(out)
	f.assignPoints()
	return nil
}

// dropImpossible drops items with impossible times. A session with an impossible time is kept if it is the only
// session and points belong to it.
func (f *fitFile) dropImpossible(out *output) {
	f.points = out.plausiblePoints(f.points)
	bad := func(at float64) bool { return !out.inTime(int64(at * 1e6)) }
	stray := func(s fitSession) bool {
		return bad(s.start) || len(f.points) > 0 && math.Abs(s.start*1e6-float64(medianTime(f.points))) > float64(healthdata.MostStray.Microseconds())
	}
	for i := range f.sessions {
		s := &f.sessions[i]
		if s.elapsed > maxWorkoutSeconds {
			s.elapsed = nan
			out.countSkipped("session of more than 7 days: its length", 1)
		}
		if len(f.sessions) == 1 && len(f.points) > 0 && stray(*s) {
			s.start = float64(f.points[0].micros) / 1e6
			out.countSkipped("session with an impossible time: its time", 1)
		}
	}
	f.sessions = possibleItems(out, "session with an impossible time", f.sessions, stray)
	f.monitor = possibleItems(out, "monitoring with an impossible time", f.monitor, func(m monitored) bool { return bad(m.at) })
	f.weighings = possibleItems(out, "weighing with an impossible time", f.weighings, func(w weighing) bool { return bad(w.at) })
	f.readings = possibleItems(out, "reading with an impossible time", f.readings, func(r reading) bool { return bad(r.at) })
}

// dropRepeated drops repeated sessions: of the sessions with the same start and sport, only the longest one is
// kept.
func (f *fitFile) dropRepeated(out *output) {
	length := func(s fitSession) float64 {
		if s.elapsed != s.elapsed {
			return 0
		}
		return s.elapsed
	}
	kept := f.sessions[:0]
	for _, s := range f.sessions {
		i := slices.IndexFunc(kept, func(k fitSession) bool { return k.start == s.start && k.workout.Sport == s.workout.Sport })
		if i < 0 {
			kept = append(kept, s)
			continue
		}
		out.countSkipped("session that occurs twice", 1)
		if length(s) > length(kept[i]) {
			kept[i] = s
		}
	}
	f.sessions = kept
}

func possibleItems[T any](out *output, what string, items []T, bad func(T) bool) []T {
	n := len(items)
	items = slices.DeleteFunc(items, bad)
	out.countSkipped(what, n-len(items))
	return items
}

// anyTimes reports whether fits returns true for any time of an item.
func (f *fitFile) anyTimes(fits func(float64) bool) bool {
	return slices.ContainsFunc(f.points, func(p point) bool { return fits(float64(p.micros)) }) ||
		slices.ContainsFunc(f.sessions, func(s fitSession) bool { return fits(s.start) }) ||
		slices.ContainsFunc(f.monitor, func(m monitored) bool { return fits(m.at) }) ||
		slices.ContainsFunc(f.weighings, func(w weighing) bool { return fits(w.at) }) ||
		slices.ContainsFunc(f.readings, func(r reading) bool { return fits(r.at) })
}

// quarter returns an offset rounded to quarters of an hour; nil if it is not a valid offset.
func quarter(seconds float64) *int {
	v := int(math.Round(seconds/900)) * 900
	if v < -18*3600 || v > 18*3600 {
		return nil
	}
	return &v
}

// sessionSlack is the number of seconds by which a record may follow the end of its session.
const sessionSlack = 2

// assignPoints assigns every point to the last session that began at or before it, or to the first session. A session
// ends at its stated end, or at the start of the next session if that is earlier. Points between two sessions are
// dropped and counted. Heart rates of a chest strap from outside of a session go to loose. The points of a file without
// a session form one session, unless the file_id message says that the file is no activity.
func (f *fitFile) assignPoints() {
	planned := f.anyKind && f.kind != float64(typedef.FileActivity)
	if len(f.sessions) == 0 {
		if len(f.points) == 0 || planned {
			return
		}
		first := slices.MinFunc(f.points, func(a, b point) int { return cmp.Compare(a.micros, b.micros) })
		s := fitSession{start: float64(first.micros) / 1e6, elapsed: nan}
		s.workout.Sport = healthdata.SportOf(fitSport(f.sport, f.sub))
		f.sessions = append(f.sessions, s)
	}
	slices.SortStableFunc(f.sessions, func(a, b fitSession) int { return cmp.Compare(a.start, b.start) })
	if s := &f.sessions[0]; len(f.sessions) == 1 {
		for _, p := range f.points {
			if at := float64(p.micros) / 1e6; p.strap && (at < s.start || at > s.start+s.elapsed) {
				f.loose = append(f.loose, p)
			} else {
				s.points = append(s.points, p)
			}
		}
		return
	}
	for i := range f.sessions[1:] {
		s, next := &f.sessions[i], &f.sessions[i+1]
		if s.start+s.elapsed > next.start {
			s.elapsed = next.start - s.start
		}
	}
	for _, p := range f.points {
		at := float64(p.micros) / 1e6
		i := len(f.sessions) - 1
		for i > 0 && f.sessions[i].start > at {
			i--
		}
		s := &f.sessions[i]
		outside := at > s.start+s.elapsed+sessionSlack
		if p.strap && (at < s.start || at > s.start+s.elapsed) {
			f.loose = append(f.loose, p)
		} else if i < len(f.sessions)-1 && outside {
			f.between++
		} else {
			s.points = append(s.points, p)
		}
	}
}

// handOver sends the data of the file to the sink, and reports whether the file has sessions, monitoring, weighings or
// readings.
func (f *fitFile) handOver(out *output) (bool, error) {
	for name, n := range f.unused {
		count(&out.rep.Skipped, name, n)
	}
	if f.between > 0 {
		count(&out.rep.Skipped, "record between sessions", f.between)
	}
	for i := range f.sessions {
		if err := f.handOverSession(out, i); err != nil {
			return false, err
		}
	}
	rec := recording{points: f.loose}
	err := rec.samples(out, "heartrate", out.recordedBy(healthdata.SourceUnknown), f.offset, func(p *point) float64 { return p.heart })
	if err != nil {
		return false, err
	}
	if err := f.handOverMonitoring(out); err != nil {
		return false, err
	}
	if err := f.handOverWeighings(out); err != nil {
		return false, err
	}
	err = f.handOverReadings(out)
	return len(f.sessions)+len(f.monitor)+len(f.weighings)+len(f.readings) > 0, err
}

func (f *fitFile) handOverSession(out *output, i int) error {
	s := &f.sessions[i]
	w := s.workout
	w.Source = out.recordedBy(healthdata.SourceUnknown)
	w.TimezoneOffset = f.copyOffset()
	rec := recording{points: s.points, onFoot: onFoot(w.Sport.Slug)}
	rec.measure()
	start := int64(s.start * 1e6)
	end := start
	if s.elapsed == s.elapsed {
		end += int64(math.Round(s.elapsed * 1e6))
	}
	if n := len(rec.points); n > 0 {
		start = min(start, rec.points[0].micros)
		end = max(end, rec.points[n-1].micros)
	}
	w.TimeStart, w.TimeEnd = atMicros(start), atMicros(end)
	if f.serial > 0 && f.created > 0 {
		name := fmt.Sprintf("fit %.0f %.0f %d", f.serial, f.created, i)
		w.ExternalID = uuid.NewSHA1(originSpace, []byte(name)).String()
		w.ProviderID = w.ExternalID
	}
	out.removeBadTotals(&w)
	rec.fill(&w)
	out.removeBadTotals(&w)
	return out.handOver(&w, &rec)
}

func (f *fitFile) copyOffset() *int {
	if f.offset == nil {
		return nil
	}
	return new(*f.offset)
}

// sample returns a sample with the timestamp start, in Unix seconds. A sample of an interval resource covers start to
// end.
func (f *fitFile) sample(resource string, start, end float64, v *healthdata.Value) healthdata.Sample {
	r := healthdata.ResourceBySlug(resource)
	s := healthdata.Sample{
		Timestamp: instant(int64(start)), Unit: r.Unit, Value: v, TimezoneOffset: f.copyOffset(),
	}
	if r.Shape != healthdata.Discrete {
		from, to := instant(int64(start)), instant(int64(end))
		s.Start, s.End = &from, &to
	}
	return s
}

func (f *fitFile) localDay(at float64) healthlab.Date {
	if f.offset != nil {
		at += float64(*f.offset)
	}
	return healthlab.DateOf(instant(int64(at)).Time)
}

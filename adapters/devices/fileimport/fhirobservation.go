package fileimport

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

type fhirObservation struct {
	ImplicitRules     string
	ModifierExtension []json.RawMessage
	Category          []fhirConcept
	Focus             []json.RawMessage
	Method            fhirConcept
	Device            *fhirReference
	Performer         []fhirReference
	HasMember         []json.RawMessage
	Component         []fhirValue
	fhirEffective
	fhirValue
}

// fhirEffective is the time of an Observation.
type fhirEffective struct {
	EffectiveDateTime, EffectiveInstant string
	EffectivePeriod                     *struct{ Start, End string }
	EffectiveTiming                     json.RawMessage
}

// fhirValue is the value of an Observation or of a component.
type fhirValue struct {
	Code             fhirConcept
	ValueQuantity    *fhirQuantity
	ValueSampledData *fhirSamples
	DataAbsentReason json.RawMessage
}

func (v *fhirValue) any() bool {
	return v.ValueQuantity != nil || v.ValueSampledData != nil || len(v.DataAbsentReason) > 0
}

type fhirConcept struct {
	Coding []struct{ System, Code string }
}

type fhirQuantity struct {
	Value                          *float64
	Comparator, Unit, System, Code string
}

// fhirSamples is a SampledData: numbers at equal intervals of time.
type fhirSamples struct {
	Origin     fhirQuantity
	Period     float64 // milliseconds
	Factor     *float64
	Dimensions int
	Data       string
}

// fhirImport stores the Observations of one person.
type fhirImport struct {
	out     *output
	known   *fhirSurvey
	batches batches
	store   *export // combines body measurements
	origins map[string]*origin
	seen    map[fhirIdentity]bool
	days    map[fhirDay]*healthdata.Activity
}

// fhirIdentity holds what two Observations of the same measurement have in common.
type fhirIdentity struct {
	name       string
	from       batchKey
	start, end int64
	value      float64
	diastolic  float64
}

type fhirDay struct {
	from batchKey
	date healthlab.Date
}

func newFHIRImport(out *output, known *fhirSurvey) *fhirImport {
	return &fhirImport{
		out: out, known: known, batches: batches{out: out, provider: out.opts.Provider}, store: &export{out: out},
		origins: map[string]*origin{}, seen: map[fhirIdentity]bool{}, days: map[fhirDay]*healthdata.Activity{},
	}
}

// fhirItem is the Observation that is being read.
type fhirItem struct {
	place string
	*fhirObservation
	when fhirTime
	from *origin
}

// fhirHolds lists the values of Observation.status that are imported.
var fhirHolds = []string{"final", "amended", "corrected"}

var fhirStates = append([]string{"registered", "preliminary", "cancelled", "entered-in-error", "unknown"}, fhirHolds...)

// importObservation stores an Observation, or counts it with the reason for leaving it out. place is its position in
// the file, as a text for notes.
func (f *fhirImport) importObservation(place string, head *fhirResource, raw json.RawMessage) error {
	o := itemOf[fhirObservation](raw)
	switch {
	case o == nil:
		f.out.skipAt(place, "Observation that does not have the form of FHIR R4")
		return nil
	case f.known.replaced(head):
		f.out.skip("Observation of which the file has a later version")
		return nil
	case !slices.Contains(fhirStates, head.Status):
		f.out.skipAt(place, "Observation without a status of FHIR R4")
		return nil
	case !slices.Contains(fhirHolds, head.Status):
		f.out.skip("Observation that is " + head.Status)
		return nil
	case !head.ofPatient() || len(o.Focus) > 0:
		f.out.skip("Observation that is not about the person")
		return nil
	case o.ImplicitRules != "" || len(o.ModifierExtension) > 0:
		f.out.skipAt(place, "Observation whose meaning an extension changes")
		return nil
	}
	if k, _ := o.Code.kind(); o.category("laboratory") && (k == nil || !k.device) {
		f.out.skip("Observation of a laboratory")
		f.out.note("results of laboratories are left out: they come from the laboratory for an order, or as a report (docs/fhir.md)")
		return nil
	}
	when, why := f.time(&o.fhirEffective)
	if why != "" {
		f.out.skipAt(place, "Observation "+why)
		return nil
	}
	return f.values(&fhirItem{place: place, fhirObservation: o, when: when, from: f.origin(head, o)})
}

func (o *fhirObservation) category(code string) bool {
	return slices.ContainsFunc(o.Category, func(c fhirConcept) bool { return c.hasCode(code) })
}

// origin returns the source of an Observation: its device, or else meta.source, or else its performer. A name is
// replaced by an id, because it may be that of a person.
func (f *fhirImport) origin(head *fhirResource, o *fhirObservation) *origin {
	var app, words string
	known := func(r *fhirReference) string {
		switch {
		case r.Reference != "" && !strings.HasPrefix(r.Reference, "#") && !strings.HasPrefix(r.Reference, "urn:"):
			ref, _, _ := strings.Cut(r.Reference, "/_history/")
			return ref
		case r.Identifier != nil && r.Identifier.Value != "":
			return uuid.NewSHA1(originSpace, []byte(r.Identifier.System+"|"+r.Identifier.Value)).String()
		case r.Display != "":
			return uuid.NewSHA1(originSpace, []byte(r.Display)).String()
		}
		return ""
	}
	if o.Device != nil {
		app, words = known(o.Device), o.Device.Display
	}
	if app == "" {
		app, _, _ = strings.Cut(head.Meta.Source, "#") // after # some servers add the id of a request
	}
	for i := 0; i < len(o.Performer) && app == ""; i++ {
		if p := &o.Performer[i]; !strings.Contains("/"+p.Reference, "/Patient/") {
			app = known(p)
		}
	}
	if len(app) > mostAppID {
		app = uuid.NewSHA1(originSpace, []byte(app)).String()
	}
	kind := cmp.Or(f.out.opts.SourceType, typeOfWords(words))
	key := app + " " + string(kind)
	if from := f.origins[key]; from != nil {
		return from
	}
	from := &origin{kind: kind, id: uuid.NewSHA1(originSpace, []byte("fhir "+app))}
	if app = printable(app); app != "" {
		from.app = &app
	}
	if len(f.origins) >= mostOrigins {
		clear(f.origins)
	}
	f.origins[key] = from
	return from
}

// fhirTime is the time of a measurement: a whole day, an instant or an interval.
type fhirTime struct {
	day    healthlab.Date
	at, to time.Time // to is zero for an instant
	offset *int      // seconds east of UTC; nil for a day, and for a time with Z
}

// time reads the time of an Observation. why is the reason if it cannot be read.
func (f *fhirImport) time(e *fhirEffective) (when fhirTime, why string) {
	p := e.EffectivePeriod
	switch {
	case e.EffectiveDateTime != "" || e.EffectiveInstant != "":
		return f.instant(cmp.Or(e.EffectiveDateTime, e.EffectiveInstant))
	case len(e.EffectiveTiming) > 0:
		return when, "whose time is a schedule"
	case p == nil:
		return when, "without a time"
	case p.Start == "" || p.End == "":
		return when, "whose period has no start or no end"
	}
	when, why = f.instant(p.Start)
	end, wrong := f.instant(p.End)
	switch {
	case why != "" || wrong != "":
		return when, cmp.Or(why, wrong)
	case !when.day.IsZero() && when.day == end.day:
		return when, ""
	case !when.day.IsZero() || !end.day.IsZero():
		return when, "whose period is of days"
	}
	// A FHIR period includes its end: 08:59:59 means the end of the hour.
	if when.to = end.at; end.at.Second() == 59 {
		when.to = end.at.Truncate(time.Second).Add(time.Second)
	}
	if when.to.Before(when.at) {
		return when, "whose period ends before it starts"
	}
	return when, ""
}

// instant reads a time, or a day. A time without an offset needs Options.Zone.
func (f *fhirImport) instant(text string) (when fhirTime, why string) {
	const cannotBe = "before 1990 or in the future"
	if day, err := healthlab.ParseDate(text); err == nil {
		if !f.out.inTime(day.At(time.UTC).UnixMicro()) {
			return when, cannotBe
		}
		return fhirTime{day: day}, ""
	}
	at, offset, err := healthlab.ParseTimeZone(text)
	switch {
	case err != nil:
		return when, "whose time is no time of FHIR R4"
	case offset == nil && !f.out.opts.zoned:
		return when, "whose time has no offset"
	case offset == nil:
		times := clockTimes(at.Time, f.out.opts.Zone)
		if len(times) != 1 {
			return when, "of the hour in which the clock changed"
		}
		when.at, when.offset = times[0], offsetOf(times[0])
	default:
		when.at = at.Time
		if !strings.HasSuffix(text, "Z") { // Z states only the instant
			when.offset = offset
		}
	}
	if !f.out.inTime(when.at.UnixMicro()) {
		return when, cannotBe
	}
	return when, ""
}

// values stores the values of an Observation and its components.
func (f *fhirImport) values(o *fhirItem) error {
	all := make([]*fhirValue, 0, 1+len(o.Component))
	if o.any() || len(o.Component) == 0 {
		all = append(all, &o.fhirValue)
	}
	for i := range o.Component {
		all = append(all, &o.Component[i])
	}
	var parts fhirPressure
	for _, v := range all {
		k, name := v.Code.kind()
		switch {
		case len(o.HasMember) > 0 && !v.any():
			f.out.skip(name + " (a panel, whose members stand alone)")
		case k == nil:
			f.out.skip(name)
		case k.part != pressureNone:
			parts.add(k, v)
		case v.ValueSampledData != nil:
			if err := f.sampled(o, k, v.ValueSampledData); err != nil {
				return err
			}
		default:
			if err := f.quantity(o, k, v); err != nil {
				return err
			}
		}
	}
	if !parts.any {
		return nil
	}
	return f.pressure(o, &parts)
}

func (f *fhirImport) skipItem(o *fhirItem, k *fhirKind, why string) {
	f.out.skipAt(o.place, k.name+" ("+why+")")
}

// Reasons for leaving out a value.
const (
	fhirNoValue    = "no value"
	fhirStatistic  = "mean or other statistic of a longer time"
	fhirSame       = "a measurement that another Observation of the file has too"
	fhirDayAlone   = "a value of a whole day, where a time of day is required"
	fhirOfDays     = "a value at a time of day, where only values of whole days are imported"
	fhirNoLength   = "a total without effectivePeriod"
	fhirComparator = "value with a comparator"
	fhirNoUnit     = "without a unit, or in a unit that cannot be converted to that of the resource"
)

// number returns the number of a quantity as sent with its unit, and the number converted to the unit of k. If there is
// no usable number, why is the reason; otherwise why is empty.
func (q *fhirQuantity) number(k *fhirKind) (sent float64, unit string, number float64, why string) {
	if q == nil || q.Value == nil {
		return 0, "", 0, fhirNoValue
	}
	if q.Comparator != "" {
		return 0, "", 0, fhirComparator
	}
	texts := []string{q.Unit}
	if q.Code != "" && (q.System == "" || q.System == "http://unitsofmeasure.org") {
		texts = []string{q.Code, q.Unit}
	}
	for _, text := range texts {
		n, ok := k.inUnit(*q.Value, text)
		if ok && !math.IsInf(n, 0) {
			return *q.Value, text, n, ""
		}
	}
	return 0, "", 0, fhirNoUnit
}

func (k *fhirKind) inUnit(v float64, text string) (float64, bool) {
	switch {
	case k.resource != nil:
		return appUnit(v, text, k.resource)
	case text == "":
		return 0, false
	}
	return healthdata.ConvertUnit(v, text, k.unit)
}

// fhirPressure collects the components of a blood pressure, in mmHg.
type fhirPressure struct {
	any                 bool
	systolic, diastolic *float64
	why                 string // reason if a part is left out
}

func (p *fhirPressure) add(k *fhirKind, v *fhirValue) {
	p.any = true
	_, _, n, why := v.ValueQuantity.number(k)
	if len(v.DataAbsentReason) > 0 || k.part == pressurePanel {
		why = fhirNoValue
	}
	switch {
	case why != "":
		p.why = why
	case k.part == pressureSystolic:
		p.systolic = &n
	default:
		p.diastolic = &n
	}
}

// fhirStatistics lists the codes of methods that combine many values.
var fhirStatistics = []string{"average", "median", "maximum", "minimum", "count", "total-count", "std-dev", "sum", "variance", "20-percent", "80-percent", "4-lower", "4-upper", "4-dev", "5-1", "5-2", "5-3", "5-4", "skew", "kurtosis", "regression"}

// longestInstant is the longest period that is treated as an instant, at its start.
const longestInstant = 5 * time.Minute

// method returns the code of the statistic, such as average, that Observation.method names; empty if it names none.
func (o *fhirItem) method() string {
	for _, code := range fhirStatistics {
		if o.Method.hasCode(code) {
			return code
		}
	}
	return ""
}

// statistic returns why a mean or total is left out; empty if it is accepted.
func (o *fhirItem) statistic(k *fhirKind) string {
	method := o.method()
	switch {
	case k.day != nil && (method == "" || method == "sum"), k.day != nil && k.resource == nil && method == "average":
		return ""
	case k.slow && (method == "" || method == "average" || method == "median"):
		return ""
	case method != "" || !o.when.to.IsZero() && o.when.to.Sub(o.when.at) > longestInstant:
		return fhirStatistic
	}
	return ""
}

// quantity stores a numeric value.
func (f *fhirImport) quantity(o *fhirItem, k *fhirKind, v *fhirValue) error {
	if len(v.DataAbsentReason) > 0 {
		f.skipItem(o, k, fhirNoValue)
		return nil
	}
	sent, unit, number, why := v.ValueQuantity.number(k)
	if why = cmp.Or(why, o.statistic(k)); why != "" {
		f.skipItem(o, k, why)
		return nil
	}
	total := k.resource != nil && k.resource.Additive
	switch {
	case !o.when.day.IsZero() && k.day != nil:
		f.day(o, k, number)
		return nil
	case !o.when.day.IsZero():
		why = fhirDayAlone
	case k.resource == nil:
		why = fhirOfDays
	case total && o.when.to.IsZero():
		why = fhirNoLength
	case f.isDuplicate(o, k, number, 0):
		why = fhirSame
	}
	if why != "" {
		f.skipItem(o, k, why)
		return nil
	}
	s := o.sample(healthdata.Number(sent), unit)
	if number == sent {
		s.Unit = k.unit
	}
	if total {
		end := healthlab.At(o.when.to)
		s.Start, s.End = &s.Timestamp, &end
	}
	return f.addSample(o, k, s, number)
}

func (o *fhirItem) sample(v *healthdata.Value, unit string) healthdata.Sample {
	return healthdata.Sample{Timestamp: healthlab.At(o.when.at), TimezoneOffset: o.when.offset, Value: v, Unit: unit}
}

// addSample adds a sample to the batch of its source. If k is also a field of body measurements, addSample stores
// number, which is in the unit of k, in that field.
func (f *fhirImport) addSample(o *fhirItem, k *fhirKind, s healthdata.Sample, number float64) error {
	from := o.from
	if k.from != "" {
		from = &origin{kind: k.from, app: from.app, id: from.id}
	}
	if k.sensor != "" {
		s.SensorLocation = &k.sensor
	}
	if k.body != bodyNone {
		f.store.bodies = append(f.store.bodies, bodyRecord{at: o.when.at.Unix(), offset: s.TimezoneOffset, part: k.body, value: number, from: from})
		if len(f.store.bodies) >= mostBodyHeld {
			if err := f.store.finishBodies(); err != nil {
				return err
			}
		}
	}
	b, err := f.batches.batchOf(from)
	if err != nil {
		return err
	}
	return b.sample(k.resource.Slug, s)
}

func (f *fhirImport) isDuplicate(o *fhirItem, k *fhirKind, value, diastolic float64) bool {
	id := fhirIdentity{name: k.name, from: keyOf(o.from), start: o.when.at.UnixMicro(), end: o.when.to.UnixMicro(), value: value, diastolic: diastolic}
	was := f.seen[id]
	f.seen[id] = true
	return was
}

// pressure stores a blood pressure.
func (f *fhirImport) pressure(o *fhirItem, p *fhirPressure) error {
	k := fhirByName["blood_pressure"]
	why := o.statistic(k)
	switch {
	case p.systolic == nil && p.diastolic == nil:
		why = p.why
	case p.systolic == nil || p.diastolic == nil:
		why = "one value only"
	case why != "":
	case !o.when.day.IsZero():
		why = fhirDayAlone
	case f.isDuplicate(o, k, *p.systolic, *p.diastolic):
		why = fhirSame
	}
	if why != "" {
		f.skipItem(o, k, why)
		return nil
	}
	s := o.sample(nil, k.unit)
	s.Systolic, s.Diastolic = p.systolic, p.diastolic
	return f.addSample(o, k, s, 0)
}

// day stores the value of a whole day, in the unit of k. Of several values for one day the last one is stored.
func (f *fhirImport) day(o *fhirItem, k *fhirKind, v float64) {
	key := fhirDay{keyOf(o.from), o.when.day}
	if f.days[key] == nil {
		f.days[key] = &healthdata.Activity{CalendarDate: o.when.day}
		healthdata.HeadOf(f.days[key]).Source = healthdata.Source{Provider: f.out.opts.Provider, Type: o.from.kind, AppID: o.from.app}
	}
	k.day(f.days[key], v)
}

// sampled stores the numbers of a SampledData. The value E in the data means that nothing was measured.
func (f *fhirImport) sampled(o *fhirItem, k *fhirKind, d *fhirSamples) error {
	_, unit, _, why := d.Origin.number(k)
	switch {
	case why != "":
	case k.resource == nil || o.method() != "":
		why = fhirStatistic
	case !o.when.day.IsZero():
		why = fhirDayAlone
	case d.Dimensions != 1 || !(d.Period > 0):
		why = "sampled data without a period, or of several dimensions"
	}
	if why != "" {
		f.skipItem(o, k, why)
		return nil
	}
	factor, start, i := 1.0, o.when.at, -1
	if d.Factor != nil {
		factor = *d.Factor
	}
	one := *o
	for text := range strings.FieldsSeq(d.Data) {
		if i++; text == "E" {
			continue
		}
		from, to := float64(i)*d.Period*1000, float64(i+1)*d.Period*1000 // microseconds
		n, read := healthlab.ParseNumber(text)
		n = *d.Origin.Value + n*factor
		number, ok := k.inUnit(n, unit)
		switch {
		case text == "L" || text == "U":
			f.skipItem(o, k, "sample outside the limits of detection")
			continue
		case !read || !ok || math.IsNaN(number) || math.IsInf(number, 0):
			f.skipItem(o, k, "sample that is no number")
			continue
		case to > 1e15 || !f.out.inTime(start.UnixMicro()+int64(from)):
			f.skipItem(o, k, "sample before 1990 or in the future")
			continue
		}
		one.when.at = start.Add(time.Duration(from) * time.Microsecond)
		s := one.sample(healthdata.Number(n), unit)
		if number == n {
			s.Unit = k.unit
		}
		if k.resource.Additive {
			end := healthlab.At(start.Add(time.Duration(to) * time.Microsecond))
			s.Start, s.End = &s.Timestamp, &end
		}
		if err := f.addSample(&one, k, s, number); err != nil {
			return err
		}
	}
	return nil
}

// finish sends the remaining items to the sink: activity days, body measurements and samples.
func (f *fhirImport) finish() error {
	var days []healthdata.Summary
	for _, key := range slices.SortedFunc(maps.Keys(f.days), func(a, b fhirDay) int {
		return cmp.Or(cmp.Compare(a.from.kind, b.from.kind), cmp.Compare(a.from.app, b.from.app), a.date.Compare(b.date))
	}) {
		days = append(days, f.days[key])
	}
	if err := f.out.summaries("activity", days...); err != nil {
		return err
	}
	if err := f.store.finishBodies(); err != nil {
		return err
	}
	return f.batches.flush()
}

package nightscout

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// figure is a number. Some uploaders write it as a text. here is false for null, the empty text and NaN.
type figure struct {
	v    float64
	here bool
}

// UnmarshalJSON reads a number or a text with a number.
func (f *figure) UnmarshalJSON(b []byte) error {
	s := strings.TrimSpace(strings.Trim(string(b), `"`))
	if s == "" || s == "null" || s == "NaN" {
		return nil
	}
	n, ok := healthlab.ParseNumber(s)
	if !ok {
		return healthlab.Invalid
	}
	f.v, f.here = n, true
	return nil
}

// loose is an optional text. A number is read as a text, and other values are ignored.
type loose string

// UnmarshalJSON reads a text or a number.
func (l *loose) UnmarshalJSON(b []byte) error {
	var text string
	var n json.Number
	if json.Unmarshal(b, &text) != nil && json.Unmarshal(b, &n) == nil {
		text = n.String()
	}
	*l = loose(strings.TrimSpace(text))
	return nil
}

// document holds the used fields of an entry or a treatment.
type document struct {
	raw json.RawMessage // the whole document

	ID         string `json:"_id"`
	Identifier string `json:"identifier"`
	IsValid    *bool  `json:"isValid"`
	UTCOffset  figure `json:"utcOffset"` // minutes

	// Fields of documents of the collection entries, which are glucose measurements.

	Type       string `json:"type"`
	Date       figure `json:"date"`
	DateString string `json:"dateString"`
	SGV        figure `json:"sgv"`
	MBG        figure `json:"mbg"`

	// Fields of treatments.
	EventType   string `json:"eventType"`
	CreatedAt   string `json:"created_at"`
	Glucose     figure `json:"glucose"`
	GlucoseType string `json:"glucoseType"`
	Units       string `json:"units"`
	Insulin     figure `json:"insulin"`
	Carbs       figure `json:"carbs"`
	Duration    figure `json:"duration"` // minutes
	Relative    figure `json:"relative"` // rate of the extended part of a combination bolus, in units per hour
	Notes       string `json:"notes"`
	PumpType    loose  `json:"pumpType"`
	PumpSerial  loose  `json:"pumpSerial"`
	IsSMB       bool   `json:"isSMB"`

	// Fields of both.
	Device loose `json:"device"`
}

// firstReading is the lowest valid sensor value in mg/dL. Lower values are error codes.
const firstReading = 39

// place identifies a sample within a page: samples of the same instant and source type are joined.
type place struct {
	at     time.Time
	source healthdata.SourceType
}

// instrument identifies the device of a sample; the zero value means unknown.
type instrument struct{ model, id string }

// instrument returns the device of a document: the pump for an injection by a pump, and for glucose the uploader or
// meter under the name that the uploader has written. For other sources it returns no device.
func (d *document) instrument(source healthdata.SourceType) instrument {
	switch source {
	case healthdata.SourceInsulinPump:
		return instrument{string(d.PumpType), string(d.PumpSerial)}
	case healthdata.SourceAutomatic, healthdata.SourceFingerprick:
		return instrument{model: string(d.Device)}
	default:
		return instrument{}
	}
}

func (i instrument) info() *healthdata.DeviceInfo {
	if i == (instrument{}) {
		return nil
	}
	out := &healthdata.DeviceInfo{}
	if i.model != "" {
		out.Model = &i.model
	}
	if i.id != "" {
		out.ID = &i.id
	}
	return out
}

// mapper converts the documents of a page to samples of one resource.
type mapper struct {
	resource string
	site     *site
	oldest   int64 // smallest time by which the site sorts a document, in Unix milliseconds
	unparsed []linking.UnparsedItem
	docs     []document
	known    map[string]int // index in docs by the id of the document
}

func newMapper(resource string, s *site) *mapper {
	return &mapper{resource: resource, site: s, oldest: math.MaxInt64, known: map[string]int{}}
}

// read adds a document to the page and reports unreadable parts. entry is true for a document of the collection
// entries, false for a treatment. Of documents with the same id the last one is used.
func (m *mapper) read(raw json.RawMessage, entry bool) {
	var d document
	var p healthlab.Problems
	if err := json.Unmarshal(raw, &d); err != nil {
		what := "the document and its members"
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
			what = "the member " + wrong.Field
		}
		p.Add("shape", what+" must have the type that version 1 of the Nightscout API documents")
	}
	t, ok := d.time(entry)
	if ok {
		m.oldest = min(m.oldest, d.sortTime(entry, t))
	} else if len(p) == 0 {
		p.Add("instant", "must be a time: the member date in Unix milliseconds, or dateString or created_at in ISO 8601", map[bool]string{true: "date", false: "created_at"}[entry])
	}
	if len(p) > 0 {
		m.unparsed = append(m.unparsed, linking.UnparsedItem{Item: raw, Problems: p})
		return
	}
	if d.IsValid != nil && !*d.IsValid {
		return // the treatment was deleted
	}
	d.Date = figure{float64(t.UnixMilli()), true}
	if !entry {
		d.Type = ""
	}
	d.raw = raw
	name := d.Identifier
	if name == "" {
		name = d.ID
	}
	if i, twice := m.known[name]; twice && name != "" {
		m.docs[i] = d
		return
	}
	m.known[name] = len(m.docs)
	m.docs = append(m.docs, d)
}

// time returns the time of a document, and false if the document has no readable one. entry is false for a treatment.
func (d *document) time(entry bool) (time.Time, bool) {
	text := d.CreatedAt
	if entry {
		text = d.DateString
	}
	if d.Date.here && (entry || text == "") {
		ms := math.Floor(d.Date.v)
		const first, last = -62135596800000, 253402300799999 // the years 1 to 9999
		return time.UnixMilli(int64(ms)).UTC(), ms >= first && ms <= last
	}
	t, err := healthlab.ParseTime(text)
	return t.Time, err == nil
}

// sortTime returns the time by which a site sorts a document whose time is t, in Unix milliseconds. A site sorts
// treatments (entry is false) by the text of their time, so it is the date and time in that text, read without the
// offset.
func (d *document) sortTime(entry bool, t time.Time) int64 {
	const digits = "2006-01-02T15:04:05"
	if !entry && len(d.CreatedAt) >= len(digits) {
		if written, err := time.Parse(digits, d.CreatedAt[:len(digits)]); err == nil {
			return written.UnixMilli()
		}
	}
	return t.UnixMilli()
}

// offset returns seconds east of UTC: the offset of the document, else that of its time text; nil if neither is
// present.
func (d *document) offset() *int {
	if !d.UTCOffset.here {
		if _, seconds, err := healthlab.ParseTimeOffset(cmp.Or(d.DateString, d.CreatedAt)); err == nil && seconds != 0 {
			return &seconds
		}
	}
	seconds := int(d.UTCOffset.v * 60)
	if !d.UTCOffset.here || seconds == 0 || d.UTCOffset.v*60 != float64(seconds) || seconds > 18*3600 || seconds < -18*3600 {
		return nil
	}
	return &seconds
}

// reading is a sample with the device that recorded it.
type reading struct {
	healthdata.Sample
	with instrument
}

// pulled returns the samples of the page, grouped by source type and device, and the unreadable documents.
func (m *mapper) pulled() []linking.PullItem {
	var order []place
	made := map[place]*reading{}
	for i := range m.docs {
		s, source, ok := m.sample(&m.docs[i])
		if !ok {
			continue
		}
		s.TimezoneOffset = m.docs[i].offset()
		with := m.docs[i].instrument(source)
		at := place{s.Timestamp.Time, source}
		if old := made[at]; old != nil {
			if m.merge(&old.Sample, &s); with != (instrument{}) {
				old.with = with
			}
			continue
		}
		made[at] = &reading{s, with}
		order = append(order, at)
	}
	type group struct {
		source healthdata.SourceType
		with   instrument
	}
	var groups []group
	var out []linking.PullItem
	for _, at := range order {
		g := group{at.source, made[at].with}
		i := slices.Index(groups, g)
		if i < 0 {
			i = len(groups)
			groups = append(groups, g)
			out = append(out, linking.PullItem{Source: healthdata.Source{Type: g.source}, Device: g.with.info(), TimeZone: m.site.Zone})
		}
		out[i].Samples = append(out[i].Samples, made[at].Sample)
	}
	if len(m.unparsed) > 0 {
		out = append(out, linking.PullItem{Source: healthdata.Source{Type: healthdata.SourceUnknown}, Unparsed: m.unparsed})
	}
	return out
}

// merge merges s, the sample of a later document with the same instant, into old. Amounts are added, notes are
// appended, and a glucose value replaces the previous one.
func (m *mapper) merge(old, s *healthdata.Sample) {
	switch m.resource {
	case "carbohydrates":
		old.Value.Number += s.Value.Number
	case "insulin_injection":
		old.Value.Number += s.Value.Number
		if s.End.After(old.End.Time) {
			old.End, old.DeliveryForm = s.End, s.DeliveryForm
		}
		if *s.BolusPurpose != *old.BolusPurpose {
			old.BolusPurpose = ptr("mixed")
		}
	case "note":
		if !slices.Contains(strings.Split(old.Value.Text, "\n"), s.Value.Text) {
			old.Value.Text += "\n" + s.Value.Text
		}
		for _, t := range s.Tags {
			if !slices.Contains(old.Tags, t) {
				old.Tags = append(old.Tags, t)
			}
		}
	default:
		*old = *s
	}
}

func ptr[T any](v T) *T { return &v }

// sample returns the sample of a document. ok is false if the document has no value of the resource, or an unreadable
// one, which is reported.
func (m *mapper) sample(d *document) (s healthdata.Sample, source healthdata.SourceType, ok bool) {
	s.Timestamp = healthlab.At(time.UnixMilli(int64(d.Date.v)))
	switch m.resource {
	case "glucose":
		return m.glucose(d, s)
	case "insulin_injection":
		return insulin(d, s)
	case "carbohydrates":
		s.Unit, s.Value = "g", healthdata.Number(d.Carbs.v)
		source, ok = healthdata.SourceApp, d.Carbs.v > 0
	default:
		text := strings.TrimSpace(d.Notes)
		s.Unit, s.Value, s.Tags = "text", healthdata.Text(text), tags(d)
		source, ok = healthdata.SourceApp, text != ""
	}
	s.Start, s.End = ptr(s.Timestamp), ptr(s.Timestamp)
	return s, source, ok
}

func (m *mapper) glucose(d *document, s healthdata.Sample) (healthdata.Sample, healthdata.SourceType, bool) {
	s.Unit = "mg/dL" // as entries always are
	switch {
	case d.Type == "sgv":
		s.Value = healthdata.Number(d.SGV.v)
		return s, healthdata.SourceAutomatic, d.SGV.v >= firstReading
	case d.Type == "mbg":
		s.Value = healthdata.Number(d.MBG.v)
		return s, healthdata.SourceFingerprick, d.MBG.v > 0
	case d.Type != "" || !strings.EqualFold(d.GlucoseType, "finger"):
		return s, "", false
	}
	if s.Unit = unitOf(d.Units); d.Units == "" {
		s.Unit = m.site.Unit
	}
	s.Value = healthdata.Number(d.Glucose.v)
	ok := d.Glucose.v > 0
	if ok && s.Unit == "" {
		var p healthlab.Problems
		p.Add("unit", "must be mg/dl or mmol, or the settings of the site must have units", "units")
		m.unparsed = append(m.unparsed, linking.UnparsedItem{Item: d.raw, Problems: p})
		ok = false
	}
	return s, healthdata.SourceFingerprick, ok
}

// insulin returns s with the bolus of a document, and its source type. It returns false if the amount is 0. Nightscout
// stores the immediate part of a combination bolus as insulin, and of the extended part the rate and the duration.
func insulin(d *document, s healthdata.Sample) (healthdata.Sample, healthdata.SourceType, bool) {
	amount, end, form := max(d.Insulin.v, 0), s.Timestamp, "standard"
	if d.Relative.v > 0 && d.Duration.v > 0 && d.Duration.v <= 24*60 {
		amount += d.Relative.v * d.Duration.v / 60
		end, form = healthlab.At(s.Timestamp.Add(time.Duration(d.Duration.v*float64(time.Minute)))), "extended"
	}
	purpose := "unknown"
	switch {
	case d.EventType == "Bolus Wizard" && d.Carbs.v > 0:
		purpose = "mixed"
	case d.EventType == "Correction Bolus", d.EventType == "SMB", d.IsSMB:
		purpose = "correction"
	case d.EventType == "Meal Bolus", d.EventType == "Snack Bolus", d.Carbs.v > 0:
		purpose = "meal"
	}
	s.Start, s.End, s.Unit, s.Value = ptr(s.Timestamp), &end, "unit", healthdata.Number(amount)
	s.Type, s.DeliveryMode, s.DeliveryForm, s.BolusPurpose = ptr("rapid_acting"), ptr("bolus"), &form, &purpose
	source := healthdata.SourceApp
	if d.PumpType != "" || d.PumpSerial != "" || d.IsSMB {
		source = healthdata.SourceInsulinPump
	}
	return s, source, amount > 0
}

// tags returns the tags of a note.
func tags(d *document) []string {
	var out []string
	if d.Carbs.v > 0 {
		out = append(out, "food")
	}
	if d.EventType == "Exercise" {
		out = append(out, "exercise")
	}
	if d.Insulin.v > 0 {
		out = append(out, "insulin_injection")
	}
	if out == nil {
		out = []string{"unspecified"}
	}
	return out
}

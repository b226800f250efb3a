package healthdata

import (
	"cmp"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Profile is the description of the person by one source.
type Profile struct {
	Head
	// Height is in cm.
	Height    *int64          `json:"height" wire:"tolerant"`
	BirthDate *healthlab.Date `json:"birth_date"`
	// WheelchairUse is true if the source states that the person uses a wheelchair, otherwise null; it is never false.
	WheelchairUse *bool `json:"wheelchair_use"`
	// Gender is female, male, other or unknown; Sex is female, male or other. Both
	// lists are open.
	Gender *string `json:"gender"`
	Sex    *string `json:"sex"`
}

func (f *Profile) naturalKey() string  { return healthlab.Date{}.String() }
func (f *Profile) index() time.Time    { return f.UpdatedAt.UTC() }
func (f *Profile) day() healthlab.Date { return healthlab.Date{} }

func (f *Profile) times() []moment { return nil }

func (f *Profile) zone() (**int, *string) { return nil, nil }

func (f *Profile) complete() { f.WheelchairUse = trueOrNull(f.WheelchairUse) }

func (f *Profile) check(p *healthlab.Problems) {
	if f.BirthDate != nil && f.BirthDate.Year < check.FirstYear {
		p.Add(check.CodeEarly, "must be 1900-01-01 or later", "birth_date")
	}
}

// Electrocardiogram is one recording, without its voltages: read the timeseries electrocardiogram_voltage
// between SessionStart and SessionEnd.
type Electrocardiogram struct {
	Head
	SessionStart healthlab.Time `json:"session_start" wire:"offset"`
	SessionEnd   healthlab.Time `json:"session_end" wire:"offset"`
	// VoltageSampleCount is how many voltages were recorded.
	VoltageSampleCount int64 `json:"voltage_sample_count" wire:"tolerant"`
	// HeartRateMean is in beats per minute.
	HeartRateMean *int64 `json:"heart_rate_mean" wire:"tolerant"`
	// SamplingFrequencyHz is in Hz.
	SamplingFrequencyHz *float64 `json:"sampling_frequency_hz"`
	// Classification is sinus_rhythm, atrial_fibrillation or inconclusive. Later versions may add values.
	Classification *string `json:"classification"`
	// InconclusiveCause is set only if Classification is inconclusive: high_heart_rate, low_heart_rate or poor_reading.
	// Later versions may add values.
	InconclusiveCause *string `json:"inconclusive_cause"`
	AlgorithmVersion  *string `json:"algorithm_version"`
	// TimeZone is an IANA identifier, null when the source gives none.
	TimeZone *string `json:"time_zone"`
	// TimezoneOffset is seconds east of UTC at SessionStart; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	flatSource
	// SourceDeviceModel is null if it is not known.
	SourceDeviceModel *string `json:"source_device_model"`
}

func (e *Electrocardiogram) naturalKey() string  { return e.key(instantKey(e.SessionStart)) }
func (e *Electrocardiogram) index() time.Time    { return e.SessionStart.UTC() }
func (e *Electrocardiogram) day() healthlab.Date { return localDay(e.SessionStart, e.TimezoneOffset) }

func (e *Electrocardiogram) times() []moment {
	return []moment{{"session_start", &e.SessionStart}, {"session_end", &e.SessionEnd}}
}

func (e *Electrocardiogram) zone() (**int, *string) { return &e.TimezoneOffset, e.TimeZone }

func (e *Electrocardiogram) complete() { e.fill(e.Source) }

func (e *Electrocardiogram) check(p *healthlab.Problems) {
	check.Session(p, e.SessionStart, e.SessionEnd, 0, "session_start", "session_end")
	check.Zone(p, e.TimeZone)
	if e.InconclusiveCause != nil && (e.Classification == nil || *e.Classification != "inconclusive") {
		p.Add("not_allowed", "must be left out unless the classification is inconclusive", "inconclusive_cause")
	}
	check.Numbers(p, e)
}

// MenstrualCycle is one cycle. The arrays are sorted by date and never null in JSON.
type MenstrualCycle struct {
	Head
	PeriodStart healthlab.Date `json:"period_start"`
	// PeriodEnd is the last day of bleeding.
	PeriodEnd *healthlab.Date `json:"period_end"`
	// CycleEnd is the day before the next period, if it is known.
	CycleEnd *healthlab.Date `json:"cycle_end"`
	// IsPredicted reports whether the cycle was predicted and not recorded.
	IsPredicted           bool              `json:"is_predicted" wire:"opt"`
	MenstrualFlow         []FlowDay         `json:"menstrual_flow" wire:"opt"`
	CervicalMucus         []MucusDay        `json:"cervical_mucus" wire:"opt"`
	IntermenstrualBleed   []Day             `json:"intermenstrual_bleeding" wire:"opt"`
	Contraceptive         []ContraceptiveIn `json:"contraceptive" wire:"opt"`
	DetectedDeviations    []DeviationDay    `json:"detected_deviations" wire:"opt"`
	OvulationTest         []TestDay         `json:"ovulation_test" wire:"opt"`
	HomePregnancyTest     []TestDay         `json:"home_pregnancy_test" wire:"opt"`
	HomeProgesteroneTest  []TestDay         `json:"home_progesterone_test" wire:"opt"`
	SexualActivity        []SexualActivity  `json:"sexual_activity" wire:"opt"`
	BasalBodyTemperatures []TemperatureDay  `json:"basal_body_temperature" wire:"opt"`
	flatSource
}

// Day is the date of an observation.
type Day struct {
	Date healthlab.Date `json:"date"`
}

// FlowDay is a day of bleeding: unspecified, none, light, medium or heavy.
type FlowDay struct {
	Date healthlab.Date `json:"date"`
	Flow string         `json:"flow"`
}

// MucusDay is a day's cervical mucus: dry, sticky, creamy, watery or egg_white.
type MucusDay struct {
	Date    healthlab.Date `json:"date"`
	Quality string         `json:"quality"`
}

// ContraceptiveIn is a contraceptive in use on a day: unspecified, implant, injection,
// iud, intravaginal_ring, oral or patch.
type ContraceptiveIn struct {
	Date healthlab.Date `json:"date"`
	Type string         `json:"type"`
}

// DeviationDay is a deviation that the source detected:
// persistent_intermenstrual_bleeding, prolonged_menstrual_periods,
// irregular_menstrual_cycles or infrequent_menstrual_cycles.
type DeviationDay struct {
	Date      healthlab.Date `json:"date"`
	Deviation string         `json:"deviation"`
}

// TestDay is a test taken at home and its result: negative, positive or
// indeterminate; for ovulation also luteinizing_hormone_surge and estrogen_surge.
type TestDay struct {
	Date       healthlab.Date `json:"date"`
	TestResult string         `json:"test_result"`
}

// SexualActivity is a day with sexual activity. ProtectionUsed is null if it is not stated.
type SexualActivity struct {
	Date           healthlab.Date `json:"date"`
	ProtectionUsed *bool          `json:"protection_used"`
}

// TemperatureDay is a basal body temperature in °C.
type TemperatureDay struct {
	Date  healthlab.Date `json:"date"`
	Value float64        `json:"value"`
}

func (c *MenstrualCycle) naturalKey() string  { return c.PeriodStart.String() }
func (c *MenstrualCycle) index() time.Time    { return c.PeriodStart.At(time.UTC) }
func (c *MenstrualCycle) day() healthlab.Date { return c.PeriodStart }

func (c *MenstrualCycle) times() []moment { return nil }

func (c *MenstrualCycle) zone() (**int, *string) { return nil, nil }

func (c *MenstrualCycle) complete() {
	c.fill(c.Source)
	sortDays(&c.MenstrualFlow, func(d FlowDay) healthlab.Date { return d.Date })
	sortDays(&c.CervicalMucus, func(d MucusDay) healthlab.Date { return d.Date })
	sortDays(&c.IntermenstrualBleed, func(d Day) healthlab.Date { return d.Date })
	sortDays(&c.Contraceptive, func(d ContraceptiveIn) healthlab.Date { return d.Date })
	sortDays(&c.DetectedDeviations, func(d DeviationDay) healthlab.Date { return d.Date })
	sortDays(&c.OvulationTest, func(d TestDay) healthlab.Date { return d.Date })
	sortDays(&c.HomePregnancyTest, func(d TestDay) healthlab.Date { return d.Date })
	sortDays(&c.HomeProgesteroneTest, func(d TestDay) healthlab.Date { return d.Date })
	sortDays(&c.SexualActivity, func(d SexualActivity) healthlab.Date { return d.Date })
	sortDays(&c.BasalBodyTemperatures, func(d TemperatureDay) healthlab.Date { return d.Date })
}

func (c *MenstrualCycle) check(p *healthlab.Problems) {
	if c.PeriodStart.IsZero() {
		p.Add("missing", "must be set: the first day of the period", "period_start")
	}
	if c.PeriodEnd != nil && c.PeriodEnd.Before(c.PeriodStart) {
		p.Add("order", "must not be before period_start", "period_end")
	}
	if c.CycleEnd != nil && c.CycleEnd.Before(c.PeriodStart) {
		p.Add("order", "must not be before period_start", "cycle_end")
	}
	for i, t := range c.BasalBodyTemperatures {
		if !check.Finite(t.Value) {
			check.NotFinite(p, "", "basal_body_temperature", i, "value")
		}
	}
}

func sortDays[T any](days *[]T, date func(T) healthlab.Date) {
	if *days == nil {
		*days = []T{}
	}
	slices.SortStableFunc(*days, func(a, b T) int { return cmp.Compare(date(a).Compare(date(b)), 0) })
}

// Body is one measurement of body composition.
type Body struct {
	Head
	// MeasuredAt is the instant of the measurement, in UTC. Uploads have it; published objects have only the
	// day.
	MeasuredAt healthlab.Time `json:"measured_at,omitzero" wire:"in,offset"`
	// CalendarDate is the local day of the measurement.
	CalendarDate healthlab.Date `json:"calendar_date" wire:"opt"`
	// TimezoneOffset is seconds east of UTC at MeasuredAt; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	// Date is midnight UTC of CalendarDate. Deprecated.
	Date healthlab.Time `json:"date" wire:"out"`
	// Weight is in kg.
	Weight *float64 `json:"weight"`
	// Fat is the percentage of body fat.
	Fat                  *float64 `json:"fat"`
	WaterPercentage      *float64 `json:"water_percentage"`
	MuscleMassPercentage *float64 `json:"muscle_mass_percentage"`
	// VisceralFatIndex is on the provider's own scale.
	VisceralFatIndex   *float64 `json:"visceral_fat_index"`
	BoneMassPercentage *float64 `json:"bone_mass_percentage"`
	// BodyMassIndex is in kg/m².
	BodyMassIndex                *float64 `json:"body_mass_index"`
	LeanBodyMassKilogram         *float64 `json:"lean_body_mass_kilogram"`
	WaistCircumferenceCentimeter *float64 `json:"waist_circumference_centimeter"`
}

func (b *Body) naturalKey() string  { return b.key(instantKey(b.MeasuredAt)) }
func (b *Body) index() time.Time    { return b.MeasuredAt.UTC() }
func (b *Body) day() healthlab.Date { return b.CalendarDate }

func (b *Body) times() []moment {
	return []moment{{"measured_at", &b.MeasuredAt}}
}

func (b *Body) zone() (**int, *string) { return &b.TimezoneOffset, nil }

func (b *Body) complete() {
	if b.CalendarDate.IsZero() {
		b.CalendarDate = localDay(b.MeasuredAt, b.TimezoneOffset)
	}
	b.Date = midnight(b.CalendarDate)
}

func (b *Body) check(p *healthlab.Problems) {
	if b.MeasuredAt.IsZero() {
		p.Add("missing", "must be set, and be 1900-01-01 or later", "measured_at")
	}
	check.Numbers(p, b)
}

package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Body is one measurement of body composition.
type Body struct {
	Head
	// MeasuredAt is the instant of the measurement, in UTC. It is given on the way
	// in; the published object says the day only.
	MeasuredAt healthlab.Time `json:"measured_at,omitzero" wire:"in"`
	// CalendarDate is the local day of the measurement.
	CalendarDate healthlab.Date `json:"calendar_date" wire:"opt"`
	// Date is midnight UTC of CalendarDate. Deprecated.
	Date healthlab.Time `json:"date" wire:"out"`
	// Weight is in kg.
	Weight *float64 `json:"weight"`
	// Fat is percent of the body.
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

	// offset is the one in force at MeasuredAt. The published object has no place
	// for it; the day is derived from it.
	offset *int
}

func (b *Body) naturalKey() string  { return b.key(instantKey(b.MeasuredAt)) }
func (b *Body) index() time.Time    { return b.MeasuredAt.UTC() }
func (b *Body) day() healthlab.Date { return b.CalendarDate }

func (b *Body) times() []moment {
	return []moment{{"measured_at", &b.MeasuredAt}}
}

func (b *Body) zone() (**int, *string) { return &b.offset, nil }

func (b *Body) complete() {
	if b.CalendarDate.IsZero() {
		b.CalendarDate = localDay(b.MeasuredAt, b.offset)
	}
	b.Date = midnight(b.CalendarDate)
}

func (b *Body) check(p *healthlab.Problems) {
	if b.MeasuredAt.IsZero() {
		p.Add("missing", "a measurement needs its instant", "measured_at")
	}
	check.Numbers(p, b)
}

package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Activity is the summary of one local day of one source. A day is usually updated many times. A provider that
// computes basal energy on its servers changes the day even if the device is not worn.
type Activity struct {
	Head
	// CalendarDate is the local day.
	CalendarDate healthlab.Date `json:"calendar_date"`
	// Date is midnight UTC of CalendarDate. Deprecated.
	Date healthlab.Time `json:"date" wire:"out"`
	// CaloriesTotal is the total energy of the day in kcal, basal energy included.
	CaloriesTotal *float64 `json:"calories_total"`
	// CaloriesActive is the energy of movement in kcal.
	CaloriesActive *float64 `json:"calories_active"`
	// Steps is the number of steps.
	Steps *int64 `json:"steps" wire:"tolerant"`
	// DailyMovement is the day's movement as an equivalent walking distance, in metres. Deprecated.
	DailyMovement *float64 `json:"daily_movement"`
	// Distance is in metres.
	Distance *float64 `json:"distance"`
	// Low, Medium and High are the minutes of activity at that intensity.
	Low    *float64 `json:"low"`
	Medium *float64 `json:"medium"`
	High   *float64 `json:"high"`
	// FloorsClimbed is the number of floors.
	FloorsClimbed *int64 `json:"floors_climbed" wire:"tolerant"`
	// TimeZone is an IANA identifier, null when the source gives none.
	TimeZone *string `json:"time_zone"`
	// TimezoneOffset is seconds east of UTC; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	// HeartRate is null when the source measured none.
	HeartRate *ActivityHeartRate `json:"heart_rate"`
	// WheelchairUse is true if the source states that the person uses a wheelchair, otherwise null; it is never false.
	WheelchairUse *bool `json:"wheelchair_use"`
	// WheelchairPush is the number of pushes.
	WheelchairPush *int64 `json:"wheelchair_push" wire:"tolerant"`
}

// ActivityHeartRate is the heart rate of a day, in beats per minute.
type ActivityHeartRate struct {
	AvgBPM        *float64 `json:"avg_bpm"`
	MinBPM        *float64 `json:"min_bpm"`
	MaxBPM        *float64 `json:"max_bpm"`
	RestingBPM    *float64 `json:"resting_bpm"`
	AvgWalkingBPM *float64 `json:"avg_walking_bpm"`
}

func (a *Activity) naturalKey() string  { return a.CalendarDate.String() }
func (a *Activity) index() time.Time    { return a.CalendarDate.At(time.UTC) }
func (a *Activity) day() healthlab.Date { return a.CalendarDate }

func (a *Activity) times() []moment { return nil }

func (a *Activity) zone() (**int, *string) { return &a.TimezoneOffset, a.TimeZone }

func (a *Activity) complete() {
	a.Date = midnight(a.CalendarDate)
	a.WheelchairUse = trueOrNull(a.WheelchairUse)
}

func (a *Activity) check(p *healthlab.Problems) {
	if a.CalendarDate.IsZero() {
		p.Add("missing", "must be set: a day of activity is kept by its date", "calendar_date")
	}
	check.Zone(p, a.TimeZone)
	check.Numbers(p, a)
}

func trueOrNull(b *bool) *bool {
	// WheelchairUse is never published as false.
	if b == nil || !*b {
		return nil
	}
	return b
}

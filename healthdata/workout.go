package healthdata

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// longestWorkout is the longest accepted workout.
const longestWorkout = 7 * 24 * time.Hour

// Workout is one sport session of one source. It is longer than zero, and at most 7 days long.
type Workout struct {
	Head
	Title *string `json:"title"`
	// TimezoneOffset is seconds east of UTC at TimeStart; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	SessionOffsets
	// AverageHR and MaxHR are in beats per minute.
	AverageHR *int64 `json:"average_hr" wire:"tolerant"`
	MaxHR     *int64 `json:"max_hr" wire:"tolerant"`
	// Distance is in metres.
	Distance *float64 `json:"distance"`
	// CalendarDate is normally the local day on which the workout started.
	CalendarDate healthlab.Date `json:"calendar_date" wire:"opt"`
	// TimeStart and TimeEnd are in UTC.
	TimeStart healthlab.Time `json:"time_start" wire:"offset"`
	TimeEnd   healthlab.Time `json:"time_end" wire:"offset"`
	// Calories is in kcal.
	Calories *float64 `json:"calories"`
	Sport    Sport    `json:"sport" wire:"opt"`
	// HRZones has the seconds in each of six heart rate zones, in percent of the maximum: below 50, 50-60, 60-70,
	// 70-80, 80-90, 90 and above. An upload with another number of zones is stored unchanged.
	HRZones []int64 `json:"hr_zones" wire:"opt,tolerant"`
	// MovingTime is in seconds.
	MovingTime *int64 `json:"moving_time" wire:"tolerant"`
	// TotalElevationGain, ElevHigh and ElevLow are in metres; the last two may be
	// negative.
	TotalElevationGain *float64 `json:"total_elevation_gain"`
	ElevHigh           *float64 `json:"elev_high"`
	ElevLow            *float64 `json:"elev_low"`
	// AverageSpeed and MaxSpeed are in m/s.
	AverageSpeed *float64 `json:"average_speed"`
	MaxSpeed     *float64 `json:"max_speed"`
	// AverageWatts, DeviceWatts, MaxWatts and WeightedAverageWatts are in watts.
	AverageWatts         *float64 `json:"average_watts"`
	DeviceWatts          *float64 `json:"device_watts"`
	MaxWatts             *float64 `json:"max_watts"`
	WeightedAverageWatts *float64 `json:"weighted_average_watts"`
	Steps                *int64   `json:"steps" wire:"tolerant"`
	Map                  *Map     `json:"map"`
	// ProviderID is the source's own id of the workout, or the service's id if the source has none.
	ProviderID string `json:"provider_id" wire:"opt"`

	zonesOfStream bool // zonesOfStream reports whether HRZones was computed from the stream
}

// Map is the route of a workout as encoded polylines.
type Map struct {
	Polyline *string `json:"polyline"`
	// SummaryPolyline is a polyline with fewer points.
	SummaryPolyline *string `json:"summary_polyline"`
}

// Sport is a kind of sport. The list of slugs is open.
type Sport struct {
	// ID differs between environments: never store it. Deprecated.
	ID   int    `json:"id" wire:"opt,tolerant"`
	Name string `json:"name" wire:"opt"`
	Slug string `json:"slug"`
}

// SportOf returns the sport of a slug such as road_biking.
func SportOf(slug string) Sport {
	if slug == "" {
		slug = "other"
	}
	first, size := utf8.DecodeRuneInString(slug)
	name := string(unicode.ToUpper(first)) + strings.ReplaceAll(slug[size:], "_", " ")
	return Sport{ID: SourceNumber(slug) & 0xffff, Name: name, Slug: slug}
}

// UnmarshalJSON reads an object, or the empty string or null that some producers
// write for an unknown sport.
func (s *Sport) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `""`, "null":
		*s = Sport{}
		return nil
	}
	type plain Sport
	var v plain
	if err := json.Unmarshal(b, &v); err != nil {
		var p healthlab.Problems
		p.Add("wrong_type", "must be an object with a slug, a text such as cycling; its name is a text, and its id a whole number")
		return p.Err()
	}
	*s = Sport(v)
	return nil
}

func (w *Workout) naturalKey() string  { return w.key(instantKey(w.TimeStart)) }
func (w *Workout) index() time.Time    { return w.TimeStart.UTC() }
func (w *Workout) day() healthlab.Date { return w.CalendarDate }

func (w *Workout) times() []moment {
	return []moment{{"time_start", &w.TimeStart}, {"time_end", &w.TimeEnd}}
}

func (w *Workout) zone() (**int, *string) { return &w.TimezoneOffset, nil }

func (w *Workout) session() (start, end *healthlab.Time) { return &w.TimeStart, &w.TimeEnd }

func (w *Workout) complete() {
	if w.CalendarDate.IsZero() {
		w.CalendarDate = localDay(w.TimeStart, w.TimezoneOffset)
	}
	if w.Sport.Name == "" || w.Sport.Slug == "" {
		w.Sport = SportOf(w.Sport.Slug)
	}
	if w.ProviderID == "" {
		w.ProviderID = w.ExternalID
	}
	if w.ProviderID == "" {
		w.ProviderID = w.ID.String()
	}
}

func (w *Workout) check(p *healthlab.Problems) {
	check.Session(p, w.TimeStart, w.TimeEnd, longestWorkout, "time_start", "time_end")
	check.Numbers(p, w)
}

// WorkoutStream is the recording of a workout as parallel arrays. Time is Unix seconds; every other array is
// empty or as long as Time, and its element i belongs to Time[i]. An element is null if nothing was measured.
type WorkoutStream struct {
	Time []int64 `json:"time" wire:"points,tolerant"`
	// Heartrate is in beats per minute.
	Heartrate []*int64 `json:"heartrate" wire:"opt,points,tolerant"`
	// Cadence is in revolutions per minute on a bike, in steps per minute on foot.
	Cadence []*float64 `json:"cadence" wire:"opt,points"`
	// Altitude is in metres.
	Altitude []*float64 `json:"altitude" wire:"opt,points"`
	// VelocitySmooth is in m/s.
	VelocitySmooth []*float64 `json:"velocity_smooth" wire:"opt,points"`
	// Lat and Lng are in degrees, WGS 84.
	Lat []*float64 `json:"lat" wire:"opt,points"`
	Lng []*float64 `json:"lng" wire:"opt,points"`
	// Distance is in metres since the start.
	Distance []*float64 `json:"distance" wire:"opt,points"`
	// Power is in watts.
	Power []*float64 `json:"power" wire:"opt,points"`
	// Resistance is on the provider's own scale.
	Resistance []*float64 `json:"resistance" wire:"opt,points"`
	// Temperature is in °C.
	Temperature []*float64 `json:"temperature" wire:"opt,points"`
}

// StreamNotice is the payload of the workout_stream events: the path at which a stream can be read.
type StreamNotice struct {
	UserID healthlab.UserID `json:"user_id"`
	Source Source           `json:"source"`
	// Message is a text for people with the path of the stream.
	Message    string    `json:"message"`
	ProviderID string    `json:"provider_id"`
	Sport      Sport     `json:"sport"`
	WorkoutID  uuid.UUID `json:"workout_id"`
}

// EncodePolyline returns positions, in degrees, as an encoded polyline of precision 5.
func EncodePolyline(lat, lng []float64) string {
	var b []byte
	var y, x int64
	put := func(v int64) {
		u := uint64(v<<1) ^ uint64(v>>63)
		for u >= 0x20 {
			b = append(b, byte(u&0x1f|0x20)+63)
			u >>= 5
		}
		b = append(b, byte(u)+63)
	}
	round := func(v float64) int64 {
		if v < 0 {
			return int64(v*1e5 - 0.5)
		}
		return int64(v*1e5 + 0.5)
	}
	for i := range lat {
		ny, nx := round(lat[i]), round(lng[i])
		put(ny - y)
		put(nx - x)
		y, x = ny, nx
	}
	return string(b)
}

// streamSlug is the resource of workout streams.
const streamSlug = "workout_stream"

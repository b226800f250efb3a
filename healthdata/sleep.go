package healthdata

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// SleepType is the kind of sleep of a session. The list is open.
type SleepType string

// The known sleep types.
const (
	// SleepLong is a session of three hours of sleep or more.
	SleepLong SleepType = "long_sleep"
	// SleepShort is a session of less than three hours of sleep.
	SleepShort SleepType = "short_sleep"
	// SleepNap is a nap that the user confirmed.
	SleepNap SleepType = "acknowledged_nap"
	// SleepUnknown is a session that is still being recorded.
	SleepUnknown SleepType = "unknown"
)

// longSleep is the least number of seconds of sleep in a long session.
const longSleep = 3 * 60 * 60

// longestSleep is the longest accepted sleep session.
const longestSleep = 36 * time.Hour

// Sleep is one sleep session of one source. It is longer than zero, and at most 36 hours long.
// Durations are in seconds.
type Sleep struct {
	Head
	// CalendarDate is normally the local day on which the session ended.
	CalendarDate healthlab.Date `json:"calendar_date" wire:"opt"`
	// Date is midnight UTC of CalendarDate. Deprecated.
	Date healthlab.Time `json:"date" wire:"out"`
	// BedtimeStart and BedtimeStop bound the session, in UTC.
	BedtimeStart healthlab.Time `json:"bedtime_start" wire:"offset"`
	BedtimeStop  healthlab.Time `json:"bedtime_stop" wire:"offset"`
	// Type is the source's own type, otherwise derived from the time asleep.
	Type SleepType `json:"type" wire:"opt"`
	// TimezoneOffset is seconds east of UTC at BedtimeStop; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	SessionOffsets
	// Duration is BedtimeStop minus BedtimeStart.
	Duration int64 `json:"duration" wire:"opt,tolerant"`
	// Total is the time asleep: the sum of REM, light and deep if all three are known, otherwise the source's own
	// number. Without such a number it is the sum of the known stages, or null if the summary is Partial.
	Total *int64 `json:"total" wire:"tolerant"`
	// Awake, Light, REM and Deep are null if they were not measured or cannot be read.
	Awake *int64 `json:"awake" wire:"tolerant"`
	Light *int64 `json:"light" wire:"tolerant"`
	REM   *int64 `json:"rem" wire:"tolerant"`
	Deep  *int64 `json:"deep" wire:"tolerant"`
	// Score is the source's sleep score, 1 to 100.
	Score *int64 `json:"score" wire:"tolerant"`
	// RecoveryReadinessScore is the source's recovery or readiness, 0 to 100.
	RecoveryReadinessScore *int64 `json:"recovery_readiness_score" wire:"tolerant"`
	// HRLowest is the lowest five-minute mean, in beats per minute.
	HRLowest  *int64 `json:"hr_lowest" wire:"tolerant"`
	HRAverage *int64 `json:"hr_average" wire:"tolerant"`
	HRResting *int64 `json:"hr_resting" wire:"tolerant"`
	// Efficiency is the percentage of the session asleep, 0 to 100.
	Efficiency *float64 `json:"efficiency"`
	// Latency is from BedtimeStart to the first five minutes of steady sleep.
	Latency *int64 `json:"latency" wire:"tolerant"`
	// TemperatureDelta is skin temperature minus its long-term mean, in °C.
	TemperatureDelta *float64 `json:"temperature_delta"`
	// SkinTemperature is in °C.
	SkinTemperature *float64 `json:"skin_temperature"`
	// HRDip is by how many percent the heart rate asleep is below the heart rate awake.
	HRDip *float64 `json:"hr_dip"`
	// State is tentative or confirmed. Few sources state it.
	State *string `json:"state"`
	// AverageHRV is the RMSSD in milliseconds.
	AverageHRV *float64 `json:"average_hrv"`
	// RespiratoryRate is in breaths per minute.
	RespiratoryRate *float64 `json:"respiratory_rate"`
	// SleepStream is always null: read the stream, or the sleep cycle. Deprecated.
	SleepStream *SleepStream `json:"sleep_stream" wire:"out"`
}

func (s *Sleep) naturalKey() string  { return s.key(instantKey(s.BedtimeStart)) }
func (s *Sleep) index() time.Time    { return s.BedtimeStop.UTC() }
func (s *Sleep) day() healthlab.Date { return s.CalendarDate }

func (s *Sleep) times() []moment {
	return []moment{{"bedtime_stop", &s.BedtimeStop}, {"bedtime_start", &s.BedtimeStart}}
}

func (s *Sleep) zone() (**int, *string) { return &s.TimezoneOffset, nil }

func (s *Sleep) session() (start, end *healthlab.Time) { return &s.BedtimeStart, &s.BedtimeStop }

func (s *Sleep) complete() {
	if s.CalendarDate.IsZero() {
		s.CalendarDate = localDay(s.BedtimeStop, s.TimezoneOffset)
	}
	s.Date = midnight(s.CalendarDate)
	s.Duration = wholeSeconds(s.BedtimeStop.Sub(s.BedtimeStart.Time))
	s.SleepStream = nil
	if !s.Partial {
		s.derive()
	}
}

// derive computes the time asleep, and a missing type and efficiency. A Partial summary is merged first.
func (s *Sleep) derive() {
	s.completeStages()
	if s.Type == "" {
		asleep := s.Duration
		if s.Total != nil && *s.Total > 0 {
			asleep = *s.Total
		}
		s.Type = SleepShort
		if asleep >= longSleep {
			s.Type = SleepLong
		}
	}
	if s.Efficiency == nil && s.Total != nil && *s.Total > 0 && s.Duration > 0 {
		e := min(100, 100*float64(*s.Total)/float64(s.Duration))
		s.Efficiency = &e
	}
}

func wholeSeconds(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }

// completeStages computes the time asleep. If all stages of sleep are zero, the source has no stages, and they
// become null.
func (s *Sleep) completeStages() {
	if staged := s.staged(); staged != 0 {
		known := s.REM != nil && s.Light != nil && s.Deep != nil
		if unmeasured(&s.Total); known || s.Total == nil && !s.Partial {
			s.Total = &staged
		}
		return
	}
	if positive := func(v *int64) bool { return v != nil && *v != 0 }; positive(s.Awake) && !positive(s.Total) {
		return // the person was awake for the whole session
	}
	for _, v := range [...]**int64{&s.Total, &s.Awake, &s.Light, &s.REM, &s.Deep} {
		unmeasured(v)
	}
}

func (s *Sleep) staged() (seconds int64) {
	for _, v := range [...]*int64{s.REM, s.Light, s.Deep} {
		if v != nil {
			seconds += *v
		}
	}
	return seconds
}

// AddStage adds a period of a stage to the lengths of the session. The first known stage sets the other stages
// to 0 seconds, so AddStage is for a source that lists all periods. A stage of unknown kind counts only as time asleep.
func (s *Sleep) AddStage(stage SleepStage, seconds int64) {
	add := func(to **int64, seconds int64) {
		if *to == nil {
			*to = new(int64)
		}
		**to += seconds
	}
	of := map[SleepStage]**int64{SleepStageDeep: &s.Deep, SleepStageLight: &s.Light, SleepStageREM: &s.REM}
	if of[stage] != nil {
		for _, v := range of {
			add(v, 0)
		}
		add(&s.Awake, 0)
		add(of[stage], seconds)
	}
	if stage == SleepStageAwake {
		add(&s.Awake, seconds)
	} else {
		add(&s.Total, seconds)
	}
}

func (s *Sleep) check(p *healthlab.Problems) {
	check.Session(p, s.BedtimeStart, s.BedtimeStop, longestSleep, "bedtime_start", "bedtime_stop")
	for _, d := range [...]struct {
		name  string
		value *int64
	}{{"total", s.Total}, {"awake", s.Awake}, {"light", s.Light}, {"rem", s.REM}, {"deep", s.Deep}} {
		if d.value != nil && *d.value < 0 {
			p.Add(check.CodeNegative, "must be zero or more", d.name)
		}
	}
	check.Numbers(p, s)
}

// SleepStage is a code for a stage of sleep. Unknown codes are stored unchanged.
type SleepStage int

// The known stages.
const (
	SleepStageMissing SleepStage = -1
	SleepStageDeep    SleepStage = 1
	SleepStageLight   SleepStage = 2
	SleepStageREM     SleepStage = 3
	SleepStageAwake   SleepStage = 4
	SleepStageByHand  SleepStage = 5
)

// SleepCycle is the sequence of stages of one sleep session. The three stage arrays
// have equal length, are sorted by start, lie within the session and do not overlap;
// gaps are allowed.
type SleepCycle struct {
	Head
	// SleepID is the id of the sleep summary to which the stages belong. If an upload has none, it is the id of the sleep
	// of the same source, app and device with the same ExternalID; without an ExternalID, of the sleep without one that
	// starts at SessionStart. The sleep may be stored later, or never.
	SleepID uuid.UUID `json:"sleep_id" wire:"opt"`
	// SessionStart and SessionEnd are in UTC.
	SessionStart healthlab.Time `json:"session_start" wire:"offset"`
	SessionEnd   healthlab.Time `json:"session_end" wire:"offset"`
	// StageStartOffsetSecond and StageEndOffsetSecond are seconds from SessionStart.
	StageStartOffsetSecond []int64      `json:"stage_start_offset_second" wire:"tolerant"`
	StageEndOffsetSecond   []int64      `json:"stage_end_offset_second" wire:"tolerant"`
	StageType              []SleepStage `json:"stage_type" wire:"tolerant"`
	// TimeZone is an IANA identifier, null when the source gives none.
	TimeZone *string `json:"time_zone"`
	// TimezoneOffset is seconds east of UTC at SessionEnd; never null on output.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	SessionOffsets
	flatSource
}

func (c *SleepCycle) naturalKey() string  { return c.key(c.SleepID.String()) }
func (c *SleepCycle) index() time.Time    { return c.SessionEnd.UTC() }
func (c *SleepCycle) day() healthlab.Date { return localDay(c.SessionEnd, c.TimezoneOffset) }

func (c *SleepCycle) times() []moment {
	return []moment{{"session_end", &c.SessionEnd}, {"session_start", &c.SessionStart}}
}

func (c *SleepCycle) zone() (**int, *string) { return &c.TimezoneOffset, c.TimeZone }

func (c *SleepCycle) session() (start, end *healthlab.Time) { return &c.SessionStart, &c.SessionEnd }

func (c *SleepCycle) complete() {
	c.fill(c.Source)
	c.normalizeStages()
}

// normalizeStages sorts the stages, clips them to the session and to each other, and drops empty ones. A summary is
// never refused because of its stages.
func (c *SleepCycle) normalizeStages() {
	type stage struct {
		start, end int64
		kind       SleepStage
	}
	n := min(len(c.StageStartOffsetSecond), len(c.StageEndOffsetSecond), len(c.StageType))
	stages := make([]stage, n)
	for i := range n {
		stages[i] = stage{c.StageStartOffsetSecond[i], c.StageEndOffsetSecond[i], c.StageType[i]}
	}
	slices.SortStableFunc(stages, func(a, b stage) int { return cmp.Compare(a.start, b.start) })
	length := wholeSeconds(c.SessionEnd.Sub(c.SessionStart.Time))
	c.StageStartOffsetSecond, c.StageEndOffsetSecond, c.StageType = make([]int64, 0, n), make([]int64, 0, n), make([]SleepStage, 0, n)
	from := int64(0)
	for _, s := range stages {
		s.start, s.end = max(s.start, from), min(s.end, length)
		if s.start >= s.end {
			continue
		}
		c.StageStartOffsetSecond = append(c.StageStartOffsetSecond, s.start)
		c.StageEndOffsetSecond = append(c.StageEndOffsetSecond, s.end)
		c.StageType = append(c.StageType, s.kind)
		from = s.end
	}
}

func (c *SleepCycle) check(p *healthlab.Problems) {
	check.Session(p, c.SessionStart, c.SessionEnd, longestSleep, "session_start", "session_end")
	check.Zone(p, c.TimeZone)
}

// flatSource has the source as flat JSON fields, for resources that publish both forms. It always equals [Head.Source].
type flatSource struct {
	// SourceProvider is the slug of the provider.
	SourceProvider string `json:"source_provider" wire:"out"`
	// SourceType says how the data was recorded.
	SourceType SourceType `json:"source_type" wire:"out"`
	// SourceAppID and SourceDeviceID are null when not known.
	SourceAppID    *string    `json:"source_app_id" wire:"out"`
	SourceDeviceID *uuid.UUID `json:"source_device_id" wire:"out"`
}

func (f *flatSource) fill(s Source) {
	f.SourceProvider, f.SourceType, f.SourceAppID, f.SourceDeviceID = s.Provider, s.Type, s.AppID, s.DeviceID
}

// SleepStream has the samples of one sleep session. Arrays are never null in JSON, and empty if nothing is
// known.
type SleepStream struct {
	HRV             []Sample `json:"hrv"`
	Heartrate       []Sample `json:"heartrate"`
	RespiratoryRate []Sample `json:"respiratory_rate"`
	// Hypnogram holds one interval per stage; its value is a [SleepStage].
	Hypnogram []Sample `json:"hypnogram"`
}

// SleepStream returns the samples of a sleep session from the session's own source: heart rate, heart rate
// variability and respiratory rate between its start and end, and its stages. healthlab.NotFound if the team has
// no such sleep.
func (s *Service) SleepStream(ctx context.Context, team healthlab.TeamID, sleep uuid.UUID) (*SleepStream, error) {
	owner, rec, err := s.data.Find(ctx, team, "sleep", sleep)
	if err == nil {
		_, err = s.users.live(ctx, team, owner)
	}
	if err != nil {
		return nil, fmt.Errorf("read sleep stream: %w", err)
	}
	session, err := rec.Decode()
	if err != nil {
		return nil, fmt.Errorf("read sleep stream: %w", err)
	}
	night := session.(*Sleep)
	var out *SleepStream
	err = s.data.View(ctx, team, owner, func(v View) error {
		out = &SleepStream{HRV: []Sample{}, Heartrate: []Sample{}, RespiratoryRate: []Sample{}, Hypnogram: []Sample{}}
		for slug, to := range map[string]*[]Sample{
			"hrv": &out.HRV, "heartrate": &out.Heartrate, "respiratory_rate": &out.RespiratoryRate,
		} {
			q := SampleQuery{
				Resource: slug, From: night.BedtimeStart.Time, To: night.BedtimeStop.Time,
				Provider: rec.Provider, sourceType: rec.SourceType,
			}
			if err := eachSample(ctx, v, q, func(sm Sample) { *to = append(*to, sm) }); err != nil {
				return err
			}
		}
		out.Hypnogram, err = readHypnogram(ctx, v, night)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read sleep stream: %w", err)
	}
	return out, nil
}

// readHypnogram returns the stages of a night as samples.
func readHypnogram(ctx context.Context, v View, night *Sleep) ([]Sample, error) {
	records, err := v.Records(ctx, RecordQuery{
		Resource: "sleep_cycle", From: night.BedtimeStart.Time, To: night.BedtimeStop.Add(time.Hour),
	})
	if err != nil {
		return nil, err
	}
	out := []Sample{}
	for i := range records {
		rec, err := records[i].Decode()
		if err != nil {
			return nil, err
		}
		cycle := rec.(*SleepCycle)
		if cycle.SleepID != night.ID {
			continue
		}
		offset := records[i].Offset
		for j, stage := range cycle.StageType {
			start := healthlab.At(cycle.SessionStart.Add(time.Duration(cycle.StageStartOffsetSecond[j]) * time.Second))
			end := healthlab.At(cycle.SessionStart.Add(time.Duration(cycle.StageEndOffsetSecond[j]) * time.Second))
			out = append(out, Sample{
				Timestamp: start, Start: &start, End: &end, TimezoneOffset: &offset,
				Unit: "stage", Value: Number(float64(stage)),
			})
		}
	}
	return out, nil
}

// SleepStreamUser returns the user to whom a sleep stream of [Service.SleepStream] belongs. It returns NotFound
// if the team has no such sleep.
func (s *Service) SleepStreamUser(ctx context.Context, team healthlab.TeamID, sleep uuid.UUID) (healthlab.UserID, error) {
	user, _, err := s.data.Find(ctx, team, "sleep", sleep)
	if err != nil {
		return healthlab.UserID{}, fmt.Errorf("read user of sleep stream: %w", err)
	}
	return user, nil
}

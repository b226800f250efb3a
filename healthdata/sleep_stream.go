package healthdata

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// SleepStream returns what the source of a sleep session measured during it: the
// samples of heart rate, its variability and breathing between the session's bounds,
// and its stages. healthlab.NotFound if the team has no such sleep.
func (s *Service) SleepStream(ctx context.Context, team healthlab.TeamID, sleep uuid.UUID) (*SleepStream, error) {
	owner, rec, err := s.data.Find(ctx, team, "sleep", sleep)
	if err == nil {
		_, err = s.live(ctx, team, owner)
	}
	if err != nil {
		return nil, fmt.Errorf("read sleep stream: %w", err)
	}
	session, err := rec.Decode()
	if err != nil {
		return nil, fmt.Errorf("read sleep stream: %w", err)
	}
	night := session.(*Sleep)
	out := &SleepStream{HRV: []Sample{}, Heartrate: []Sample{}, RespiratoryRate: []Sample{}, Hypnogram: []Sample{}}
	err = s.data.View(ctx, team, owner, func(v View) error {
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

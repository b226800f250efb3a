package healthdata

import (
	"encoding/json"

	"github.com/healthlab-dev/healthlab"
)

// summaryData returns a summary's event payload.
func (s *Service) summaryData(item Summary, res PutResult, now healthlab.Time) ([]byte, error) {
	s.publish(item, healthlab.At(res.CreatedAt), now)
	return shrink(item, s.opts.BatchBytes)
}

// shrink encodes a summary within a limit: one that is larger goes without what may
// be empty and is large, and says so.
func shrink(item Summary, limit int) ([]byte, error) {
	data, err := json.Marshal(item)
	if err != nil || len(data) <= limit {
		return data, err
	}
	if data, err = json.Marshal(withoutLargeParts(item)); err != nil {
		return nil, err
	}
	return append(data[:len(data)-1], `,"truncated":true}`...), nil
}

// withoutLargeParts returns a copy of a summary without what has no bound of its own: maps,
// foods, stages and days. What is left is a few texts and numbers.
func withoutLargeParts(item Summary) Summary {
	switch v := item.(type) {
	case *Workout:
		w := *v
		w.Map = nil
		if len(w.HRZones) > usualZones {
			w.HRZones = []int64{}
		}
		return &w
	case *Meal:
		m := *v
		m.Data, m.Micros = map[string]Food{}, nil
		return &m
	case *SleepCycle:
		c := *v
		c.StageStartOffsetSecond, c.StageEndOffsetSecond, c.StageType = []int64{}, []int64{}, []SleepStage{}
		return &c
	case *MenstrualCycle:
		c := MenstrualCycle{
			Head: v.Head, PeriodStart: v.PeriodStart, PeriodEnd: v.PeriodEnd, CycleEnd: v.CycleEnd,
			IsPredicted: v.IsPredicted, flatSource: v.flatSource,
		}
		c.complete()
		return &c
	default:
		return item
	}
}

// usualZones is how many zones of the heart rate there are; other numbers are kept.
const usualZones = 6

package healthdata

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Historical is the payload of the historical events, which report that the backfill of a resource is complete. The
// event contains no health data: read the data of Provider from StartDate to EndDate.
type Historical struct {
	UserID healthlab.UserID `json:"user_id"`
	// StartDate and EndDate bound the range that was fetched, even if it had no data.
	StartDate healthlab.Time `json:"start_date"`
	EndDate   healthlab.Time `json:"end_date"`
	// IsFinal is always true. Deprecated.
	IsFinal  bool   `json:"is_final"`
	Provider string `json:"provider"`
}

// HistoricalEvent returns the event which reports that the backfill of a resource between two times is complete.
// ok is false for a resource without such an event.
func (s *Service) HistoricalEvent(team healthlab.TeamID, user healthlab.UserID, provider, resource string, from, to time.Time,
) (e healthlab.Event, ok bool, err error) {
	r := ResourceBySlug(resource)
	if r == nil || !r.Events {
		return healthlab.Event{}, false, nil
	}
	data, err := json.Marshal(Historical{
		UserID: user, StartDate: healthlab.At(from), EndDate: healthlab.At(to), IsFinal: true, Provider: provider,
	})
	if err != nil {
		return healthlab.Event{}, false, fmt.Errorf("encode event: %w", err)
	}
	return healthlab.Event{
		ID: s.opts.NewID(), Type: historicalEvent(resource), Team: team, User: user, At: s.opts.now().Time, Data: data,
	}, true, nil
}

// SummaryDeleted is the payload of the deleted events of summaries and of workout streams.
type SummaryDeleted struct {
	// ID is the id of the summary, or the id of the workout of a stream.
	ID     uuid.UUID        `json:"id"`
	UserID healthlab.UserID `json:"user_id"`
	Source Source           `json:"source"`
}

// SamplesDeleted is the payload of the deleted events of timeseries: which samples of one source
// were removed, ascending by timestamp.
type SamplesDeleted struct {
	UserID healthlab.UserID `json:"user_id"`
	// SourceID is the service's number for the provider, as of [SourceNumber]. Receivers must not interpret it.
	SourceID int             `json:"source_id"`
	Source   Source          `json:"source"`
	Data     []DeletedSample `json:"data"`
}

// DeletedSample identifies a removed sample.
type DeletedSample struct {
	Timestamp healthlab.Time `json:"timestamp"`
	// Type is null for a sample without a type.
	Type *string `json:"type"`
}

// EventTypes lists the events that this package sends: daily.data.<slug>.created, .updated and .deleted, and
// historical.data.<slug>.created for each resource with events, and the events about connections and devices.
func EventTypes() []healthlab.EventType {
	var out []healthlab.EventType
	for _, r := range Resources() {
		if !r.Events {
			continue
		}
		mode, data, what := healthlab.Latest, any(StreamNotice{}), "The stream of a workout"
		deleted := any(SummaryDeleted{})
		switch r.Class {
		case ClassSummary:
			data, what = r.New(), "A summary of "+r.Slug
		case ClassTimeseries:
			mode, data, what = healthlab.Ordered, Batch{}, "A batch of "+r.Slug+" samples"
			deleted = SamplesDeleted{}
		}
		out = append(out,
			healthlab.EventType{
				Name: dailyEvent(r.Slug, verbCreated), Mode: mode, Data: data,
				Doc: what + " is created, or, unless the team tells the two apart, updated.",
			},
			healthlab.EventType{
				Name: dailyEvent(r.Slug, verbUpdated), Mode: mode, Data: data,
				Doc: what + " is updated, for teams that tell the two apart.",
			},
			healthlab.EventType{
				Name: dailyEvent(r.Slug, verbDeleted), Mode: mode, Data: deleted,
				Doc: what + " is removed. Deleting a user or disconnecting a provider sends none.",
			},
			healthlab.EventType{
				Name: historicalEvent(r.Slug), Mode: healthlab.Independent, Data: Historical{},
				Doc: "The backfill of " + r.Slug + " from one connection is complete.",
			})
	}
	return append(append(append(out, connectionEventTypes()...), consentEventType()), deviceEventTypes()...)
}

func (in *intake) summaryData(item Summary, res PutResult, now healthlab.Time) ([]byte, error) {
	in.providers.publish(item, healthlab.At(res.CreatedAt), now)
	return shrink(item, in.opts.BatchBytes)
}

// shrink encodes a summary. If the JSON is longer than limit bytes, shrink leaves out the parts of withoutLargeParts
// and adds the field truncated.
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

// withoutLargeParts returns a copy of a summary without its parts of unlimited size: the map of a workout, the foods of
// a meal, the stages of a night and the days of a menstrual cycle.
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

// usualZones is the usual number of heart rate zones. A longer array counts as a part of unlimited size.
const usualZones = 6

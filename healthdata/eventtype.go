package healthdata

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Historical is the payload of the historical events: that the backfill of a resource
// is complete. It carries no data; read it for the provider and range.
type Historical struct {
	UserID healthlab.UserID `json:"user_id"`
	// StartDate and EndDate bound the range that was searched, whatever was found.
	StartDate healthlab.Time `json:"start_date"`
	EndDate   healthlab.Time `json:"end_date"`
	// IsFinal is always true. Deprecated.
	IsFinal  bool   `json:"is_final"`
	Provider string `json:"provider"`
}

// HistoricalEvent returns the event that says that the backfill of a resource from from to
// to is complete. ok is false for resources that have none.
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
		ID: s.opts.NewID(), Type: historicalEvent(resource), Team: team, User: user, At: s.now().Time, Data: data,
	}, true, nil
}

// EventTypes lists the events that this package emits: for every resource that has
// them, daily.data.<slug>.created and .updated, and historical.data.<slug>.created;
// and those about connections and devices.
func EventTypes() []healthlab.EventType {
	var out []healthlab.EventType
	for _, r := range Resources() {
		if !r.Events {
			continue
		}
		mode, data, what := healthlab.Latest, any(StreamNotice{}), "The stream of a workout"
		switch r.Class {
		case ClassSummary:
			data, what = r.New(), "A summary of "+r.Slug
		case ClassTimeseries:
			mode, data, what = healthlab.Ordered, Batch{}, "A batch of "+r.Slug+" samples"
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
				Name: historicalEvent(r.Slug), Mode: healthlab.Independent, Data: Historical{},
				Doc: "The backfill of " + r.Slug + " from one connection is complete.",
			})
	}
	return append(append(append(out, connectionEventTypes()...), consentEventType()), deviceEventTypes()...)
}

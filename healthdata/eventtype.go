package healthdata

import (
	"github.com/healthlab-dev/healthlab"
)

// Verbs of health data. There is none for deletion.
const (
	verbCreated = "created"
	verbUpdated = "updated"
)

func dailyEvent(slug, verb string) string { return "daily.data." + slug + "." + verb }

func historicalEvent(slug string) string { return "historical.data." + slug + "." + verbCreated }

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

// EventTypes lists the events that this package emits: for every resource that has
// them, daily.data.<slug>.created and .updated, and historical.data.<slug>.created;
// and those about connections.
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
	return append(out, connectionEventTypes()...)
}

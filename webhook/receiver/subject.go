package receiver

import (
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// subject returns the key and version of an event's object. Without a key or a version both are empty, and the event is
// always applied.
func subject(e *Event) (key string, v Version) {
	v.Seq = e.Sequence
	switch d := e.Value.(type) {
	case healthdata.Summary:
		h := healthdata.HeadOf(d)
		key, v.At = e.Name.Resource+"/"+h.ID.String(), h.UpdatedAt.Time
	case *healthdata.StreamNotice:
		key = e.Name.Resource + "/" + d.WorkoutID.String()
	case *healthdata.ConnectionCreated:
		key = healthdata.ConnectionKey(d.UserID, d.Provider.Slug)
	case *healthdata.ConnectionDeleted:
		key = healthdata.ConnectionKey(d.UserID, d.Provider.Slug)
	case *healthdata.ConsentWithdrawn:
		key = healthdata.ConnectionKey(d.UserID, d.Provider.Slug)
	case *healthdata.ConnectionFailed:
		key = healthdata.ConnectionKey(d.UserID, d.Provider)
	case *orders.Order:
		key, v.Step, v.At = "order/"+d.ID.String(), d.LastEvent.ID, d.UpdatedAt.Time
	case *orders.Appointment:
		key = "appointment/" + d.ID.String()
		for _, step := range d.Events {
			if step.CreatedAt.After(v.At) {
				v.At = step.CreatedAt.Time
			}
		}
	case *healthdata.Device:
		key = "device/" + d.ID.String()
	case *labreport.PublishedJob:
		key, v.Step = "parsing_job/"+d.ID.String(), jobStep(d.Status)
	case *exchange.MatchReviewNotice:
		key = "match_review/" + d.ID.String()
	}
	if key == "" || v.IsZero() || strings.ContainsRune(key, 0) {
		return "", Version{}
	}
	return e.Team.String() + "/" + key, v
}

// jobStep returns a number that increases with the progress of a parsing job.
func jobStep(s labreport.Status) int64 {
	switch s {
	case labreport.Started:
		return 1
	case labreport.PendingReview:
		return 2
	case labreport.Completed, labreport.Failed:
		return 3
	default:
		return 0
	}
}

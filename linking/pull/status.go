package pull

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Release is the version of the rules by which the service pulls data, for [HistoryPull].
const Release = "1"

// StatusQuery selects the users of a status page.
type StatusQuery struct {
	Team healthlab.TeamID
	// User and Provider filter the result; zero means all.
	User     healthlab.UserID
	Provider string
	// Limit is the greatest number of users of a page: 1 to [MaxStatusUsers].
	Limit int
	// Cursor is empty for the first page, then the cursor of the previous result.
	Cursor string
}

// MaxStatusUsers is the largest page of users.
const MaxStatusUsers = 500

// UserResources is the status of the fetched resources of a user.
type UserResources struct {
	User healthlab.UserID `json:"user_id"`
	// Providers has the status of each fetched resource, by provider slug and resource slug.
	Providers map[string]map[string]Statistics `json:"provider"`
}

// Statistics is the status of one resource of a connection. It adds up the fetches of history, the fetches of new data,
// and uploads.
type Statistics struct {
	// LastAttempt is the last request to the provider, or the last accepted upload; null before the first.
	LastAttempt *Attempt `json:"last_attempt"`
	// Oldest and Newest are the times of the oldest and the newest stored data; null if nothing was stored.
	Oldest *healthlab.Time `json:"oldest_data"`
	Newest *healthlab.Time `json:"newest_data"`
	// Sent is the number of samples, summaries and streams that events have contained.
	Sent int64 `json:"sent_count"`
	// Stored is the number of samples, summaries and streams that were first stored on each UTC day, ascending: the
	// last [StoredDays] days with data; never nil.
	Stored []DayCount `json:"stored_by_day"`
	// Refused are the refused items, the latest first; never nil.
	Refused []RefusedItem `json:"refused"`
}

// Attempt is a request to a provider, or an accepted upload.
type Attempt struct {
	At healthlab.Time `json:"timestamp"`
	// Status is [Success] or [Failure].
	Status Status `json:"status"`
}

// UserHistories is the status of the histories of a user.
type UserHistories struct {
	User      healthlab.UserID             `json:"user_id"`
	Providers map[string]ProviderHistories `json:"provider"`
}

// ProviderHistories is the status of the histories of one connection.
type ProviderHistories struct {
	// Pulled are the histories by resource slug.
	Pulled map[string]HistoryPull `json:"pulled"`
	// NotPulled are the slugs of the provider's other resources, ascending; never nil.
	NotPulled []string `json:"not_pulled"`
}

// HistoryPull is the status of one history.
type HistoryPull struct {
	Status Status `json:"status"`
	// From and To are the limits of the history's time range; null if they are not set.
	From     *healthlab.Time `json:"range_start"`
	To       *healthlab.Time `json:"range_end"`
	Timeline Timeline        `json:"timeline"`
	// RangeDays is the number of days from From to To, and FetchedDays how many of them are fetched.
	RangeDays   int `json:"range_days"`
	FetchedDays int `json:"fetched_days"`
	// Days is the number of days with data.
	Days int `json:"days_with_data"`
	// Release is the constant [Release].
	Release string `json:"release"`
	// Trace is the id of the history's run in logs and traces; null if an app uploaded the history.
	Trace *string `json:"trace_id"`
	// Error is why the history waits or failed; null otherwise.
	Error *ErrorClass `json:"error_details"`
}

// Timeline has the times of a history pull. Null means not yet.
type Timeline struct {
	ScheduledAt healthlab.Time  `json:"scheduled_at"`
	StartedAt   *healthlab.Time `json:"started_at"`
	EndedAt     *healthlab.Time `json:"ended_at"`
}

// Resources returns a page of the status of users' resources, by user id, and the cursor of the next page; empty on the
// last one. Only the last page may have fewer users than its limit. It returns Invalid for a wrong limit or cursor.
func (s *Service) Resources(ctx context.Context, q StatusQuery) (list []UserResources, next string, err error) {
	people, next, err := s.userStatuses(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("read resources: %w", err)
	}
	list = make([]UserResources, 0, len(people))
	for _, p := range people {
		out := UserResources{User: p.User, Providers: map[string]map[string]Statistics{}}
		for _, slug := range p.Providers {
			out.Providers[slug] = map[string]Statistics{}
		}
		last := map[Key]time.Time{}
		for _, t := range p.Tasks {
			key := t.Key
			key.Kind = ""
			x := out.Providers[t.Provider][t.Resource]
			if t.LastTry.After(last[key]) {
				last[key] = t.LastTry
				x.LastAttempt = &Attempt{At: healthlab.At(t.LastTry), Status: Failure}
				if t.LastOK {
					x.LastAttempt.Status = Success
				}
			}
			if at := orNever(t.Oldest); at != nil && (x.Oldest == nil || at.Before(x.Oldest.Time)) {
				x.Oldest = at
			}
			if at := orNever(t.Newest); at != nil && (x.Newest == nil || at.After(x.Newest.Time)) {
				x.Newest = at
			}
			x.Sent += t.Sent
			if x.Stored == nil {
				x.Stored = []DayCount{}
			}
			for _, c := range t.Stored {
				x.Stored = addDay(x.Stored, c)
			}
			x.Refused = []RefusedItem{}
			out.Providers[t.Provider][t.Resource] = x
		}
		for _, r := range p.Refused {
			if x, ok := out.Providers[r.Provider][r.Resource]; ok {
				x.Refused = append(x.Refused, r)
				out.Providers[r.Provider][r.Resource] = x
			}
		}
		list = append(list, out)
	}
	return list, next, nil
}

// Histories returns a page of the status of users' histories, by user id, and the cursor of the next page. Pages and
// errors are those of [Service.Resources].
func (s *Service) Histories(ctx context.Context, q StatusQuery) (list []UserHistories, next string, err error) {
	people, next, err := s.userStatuses(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("read histories: %w", err)
	}
	list = make([]UserHistories, 0, len(people))
	for _, p := range people {
		out := UserHistories{User: p.User, Providers: map[string]ProviderHistories{}}
		for _, slug := range p.Providers {
			out.Providers[slug] = historiesOf(slug, s.users.Providers().Get(slug), p.Tasks)
		}
		list = append(list, out)
	}
	return list, next, nil
}

// historiesOf returns the histories of a user's connection to the provider slug, from all tasks of the user. p is the
// provider's record; nil if the provider is not configured.
func historiesOf(slug string, p *healthdata.Provider, tasks []Task) ProviderHistories {
	out := ProviderHistories{Pulled: map[string]HistoryPull{}, NotPulled: []string{}}
	for _, t := range tasks {
		if t.Provider != slug || t.Kind != History || p != nil && p.Backfill.Mode == modeNone {
			continue
		}
		x := HistoryPull{
			Status: t.Status, From: orNever(t.From), To: orNever(t.To), Days: t.DaysWithData(), Release: Release,
			Timeline: Timeline{ScheduledAt: healthlab.At(t.ScheduledAt), StartedAt: orNever(t.StartedAt), EndedAt: orNever(t.EndedAt)},
		}
		x.RangeDays, x.FetchedDays = t.historyDays()
		if t.Error != "" && (t.Status == Retrying || t.Status == Failure) {
			why := t.Error
			x.Error = &why
		}
		if p == nil || p.Class == classCloud {
			trace := t.trace()
			x.Trace = &trace
		}
		out.Pulled[t.Resource] = x
	}
	if p != nil {
		for _, r := range p.Resources {
			if _, ok := out.Pulled[r.Resource]; !ok {
				out.NotPulled = append(out.NotPulled, r.Resource)
			}
		}
	}
	slices.Sort(out.NotPulled)
	return out
}

// userStatuses returns the users of a page with their tasks, and the cursor of the next page; empty on the last one.
func (s *Service) userStatuses(ctx context.Context, q StatusQuery) ([]UserStatus, string, error) {
	var p healthlab.Problems
	if q.Limit < 1 || q.Limit > MaxStatusUsers {
		p.Add("range", fmt.Sprintf("must be from 1 to %d", MaxStatusUsers), "user_limit")
	}
	after, ok := q.after()
	if !ok {
		p.Add("cursor", "must be the cursor of an earlier page of the same query", "next_cursor")
	}
	if err := p.Err(); err != nil {
		return nil, "", err
	}
	list, err := s.store.UserStatuses(ctx, UserStatusQuery{Team: q.Team, User: q.User, Provider: q.Provider, After: after, N: q.Limit + 1})
	if err != nil || len(list) <= q.Limit {
		return list, "", err
	}
	list = list[:q.Limit]
	return list, q.cursor(list[len(list)-1].User), nil
}

func (q *StatusQuery) cursor(after healthlab.UserID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "look %s %s %d %s %s", q.Team, q.User, len(q.Provider), q.Provider, after))
	return base64.RawURLEncoding.EncodeToString(append(after.UUID[:], sum[:8]...))
}

// after returns the user id after which the page of q.Cursor begins; zero for the first page. It returns false if the
// cursor is not one of this query.
func (q *StatusQuery) after() (healthlab.UserID, bool) {
	if q.Cursor == "" {
		return healthlab.UserID{}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(b) != 24 {
		return healthlab.UserID{}, false
	}
	after := healthlab.UserID{UUID: uuid.UUID(b[:16])}
	return after, q.cursor(after) == q.Cursor
}

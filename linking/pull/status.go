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
)

// Release names the rules that pulls go by. It changes when they do.
const Release = "1"

// StatusQuery says whom to look at.
type StatusQuery struct {
	Team healthlab.TeamID
	// User and Provider narrow it down; zero means all.
	User     healthlab.UserID
	Provider string
	// Limit is how many users are on a page at most: 1 to [MaxStatusUsers].
	Limit int
	// Cursor is empty for the first page, then what the page before said.
	Cursor string
}

// MaxStatusUsers is the largest page of users.
const MaxStatusUsers = 500

// UserResources says how the fetching of a user's data goes.
type UserResources struct {
	User healthlab.UserID `json:"user_id"`
	// Providers has the slugs of what is connected, and below them those of the resources
	// that are fetched.
	Providers map[string]map[string]Statistics `json:"provider"`
}

// Statistics say what came of a resource: as history, as news, and uploaded.
type Statistics struct {
	// LastAttempt is the last request, or the last upload that was taken; null before the
	// first.
	LastAttempt *Attempt `json:"last_attempt"`
	// Oldest and Newest bound what was stored; null if nothing was.
	Oldest *healthlab.Time `json:"oldest_data"`
	Newest *healthlab.Time `json:"newest_data"`
	// Sent counts the objects that were announced one by one.
	Sent int64 `json:"sent_count"`
	// Stored counts what was stored for the first time by the UTC day on which it came, ascending;
	// of the last [StoredDays] days that have any; never nil.
	Stored []DayCount `json:"stored_by_day"`
	// Refused is what the provider sent and was not kept, the latest first; never nil.
	Refused []RefusedItem `json:"refused"`
}

// Attempt is a request to a provider.
type Attempt struct {
	At healthlab.Time `json:"timestamp"`
	// Status is [Success] or [Failure].
	Status Status `json:"status"`
}

// UserHistories says how the fetching of a user's history goes.
type UserHistories struct {
	User      healthlab.UserID             `json:"user_id"`
	Providers map[string]ProviderHistories `json:"provider"`
}

// ProviderHistories are the histories of one connection.
type ProviderHistories struct {
	// Pulled has the resources whose history was, is or will be fetched.
	Pulled map[string]HistoryPull `json:"pulled"`
	// NotPulled are the other resources that the provider delivers, ascending; never nil.
	NotPulled []string `json:"not_pulled"`
}

// HistoryPull is how one history is fetched.
type HistoryPull struct {
	Status Status `json:"status"`
	// From and To bound what is fetched; null if nothing is.
	From     *healthlab.Time `json:"range_start"`
	To       *healthlab.Time `json:"range_end"`
	Timeline Timeline        `json:"timeline"`
	// RangeDays is how many days From to To has, and FetchedDays how many of them are fetched.
	RangeDays   int `json:"range_days"`
	FetchedDays int `json:"fetched_days"`
	// Days counts the days that have data.
	Days int `json:"days_with_data"`
	// Release is [Release].
	Release string `json:"release"`
	// Trace is what logs and traces call it; null where an app walked the history.
	Trace *string `json:"trace_id"`
	// Error is why it waits or was given up; null if it does not and was not.
	Error *ErrorClass `json:"error_details"`
}

// Timeline is when a history was fetched. Null is not yet.
type Timeline struct {
	ScheduledAt healthlab.Time  `json:"scheduled_at"`
	StartedAt   *healthlab.Time `json:"started_at"`
	EndedAt     *healthlab.Time `json:"ended_at"`
}

// Resources says how the fetching of people's data goes, by user id. A page that has a
// next one may have fewer users than its limit. Errors: Invalid (the limit or the cursor).
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

// Histories says how the fetching of people's history goes, by user id. Pages and errors
// are those of [Service.Resources].
func (s *Service) Histories(ctx context.Context, q StatusQuery) (list []UserHistories, next string, err error) {
	people, next, err := s.userStatuses(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("read histories: %w", err)
	}
	list = make([]UserHistories, 0, len(people))
	for _, p := range people {
		out := UserHistories{User: p.User, Providers: map[string]ProviderHistories{}}
		for _, slug := range p.Providers {
			out.Providers[slug] = s.histories(slug, p.Tasks)
		}
		list = append(list, out)
	}
	return list, next, nil
}

// histories are those of a connection, out of all tasks of its user.
func (s *Service) histories(slug string, tasks []Task) ProviderHistories {
	out := ProviderHistories{Pulled: map[string]HistoryPull{}, NotPulled: []string{}}
	p := s.users.Providers().Get(slug)
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
			trace := t.Trace()
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

// userStatuses returns a page, and the cursor of the next one.
func (s *Service) userStatuses(ctx context.Context, q StatusQuery) ([]UserStatus, string, error) {
	var p healthlab.Problems
	if q.Limit < 1 || q.Limit > MaxStatusUsers {
		p.Add("range", "from 1 to 500", "user_limit")
	}
	after, ok := q.after()
	if !ok {
		p.Add("cursor", "damaged, or of another query", "next_cursor")
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

// after reads a cursor.
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

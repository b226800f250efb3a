package pull

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// Progress is how far the history of a connection has come.
type Progress struct {
	// Total is how many resources have a history to fetch; 0 before it is planned. Done is
	// how many of them have come to an end, and Failed how many of those without success.
	Total, Done, Failed int
	// Days is the length of the longest history, and FetchedDays the part of it that is fetched, by the days
	// of all histories; those that failed count as fetched.
	Days, FetchedDays int
}

// Progress says how far the history of a user's connection has come since it was linked
// last. It is zero where nothing is planned, as of a connection that is not there.
// NotFound if the team has no such user.
func (s *Service) Progress(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (Progress, error) {
	u, err := s.users.User(ctx, team, user)
	if err != nil {
		return Progress{}, fmt.Errorf("progress: %w", err)
	}
	tasks, err := s.store.Tasks(ctx, team, user)
	if err != nil {
		return Progress{}, fmt.Errorf("progress: %w", err)
	}
	var out Progress
	c := u.Connection(provider)
	all, fetched := 0, 0 // days of all histories
	for _, t := range tasks {
		if c == nil || t.Provider != provider || t.Kind != History || !t.Linked.Equal(c.LinkedAt) {
			continue
		}
		out.Total++
		days, got := t.historyDays()
		out.Days = max(out.Days, days)
		switch t.Status {
		case Failure:
			out.Done++
			out.Failed++
			got = days
		case Success:
			out.Done++
		case Scheduled, InProgress, Retrying:
		}
		all, fetched = all+days, fetched+got
	}
	if all > 0 {
		out.FetchedDays = out.Days * fetched / all
	}
	return out, nil
}

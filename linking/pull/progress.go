package pull

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// Progress is the progress of a connection's history.
type Progress struct {
	// Total is the number of resources with a history; 0 before the histories are planned. Done is the number of
	// resources whose history has ended, and Failed the number of those whose history failed.
	Total, Done, Failed int
	// Days is the length of the longest history in days. FetchedDays is Days times the fetched share of all histories
	// together; failed histories count as fetched.
	Days, FetchedDays int
}

// Progress returns the progress of the history of a user's connection since its last link. It is zero if nothing
// is planned, also if there is no connection. It returns NotFound if the team has no such user.
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

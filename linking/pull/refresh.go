package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// RefreshResult is the result of a refresh. Each entry is the slug of a provider, a slash, and the path of a
// resource. A resource is in exactly one of the lists.
type RefreshResult struct {
	Success bool             `json:"success"`
	User    healthlab.UserID `json:"user_id"`
	// Refreshed are the fetched resources, InProgress those whose fetch continues in the background, and Failed
	// those whose fetch failed. Each list is sorted and never nil.
	Refreshed  []string `json:"refreshed_sources"`
	InProgress []string `json:"in_progress_sources"`
	Failed     []string `json:"failed_sources"`
}

// RuleNoSources: the user has no source that could be refreshed.
const RuleNoSources = "NO_CONNECTED_SOURCES"

// RefreshLimitError reports that a user was refreshed too often. It unwraps to healthlab.Exhausted.
type RefreshLimitError struct{ Wait time.Duration }

// Error says that the user was refreshed too often.
func (*RefreshLimitError) Error() string { return "the user was refreshed too often" }

// Unwrap returns healthlab.Exhausted.
func (*RefreshLimitError) Unwrap() error { return healthlab.Exhausted }

// RetryAfter returns the time until the next refresh is allowed.
func (e *RefreshLimitError) RetryAfter() time.Duration { return e.Wait }

// Bounds of the waiting time of a refresh.
const (
	MinRefreshWait = 5 * time.Second
	MaxRefreshWait = time.Minute
)

// Intervals at which the progress of a refresh is checked, the first and the longest.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// Refresh fetches new data of all working connections of a user that are pulled, and waits for at most wait. Unfinished
// fetches continue in the background. If a fetch is already running, Refresh waits for it. The resources of a
// connection that failed for good, because its grant ended or its consent was withdrawn, are among Failed.
// [Service.Run] does the work.
//
// Errors: Invalid (wait is out of bounds), NotFound (no such user), a
// [*healthlab.RuleError] of type [RuleNoSources], a [*RefreshLimitError].
func (s *Service) Refresh(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, wait time.Duration) (RefreshResult, error) {
	out, err := s.refresh(ctx, team, user, wait)
	if err != nil {
		return RefreshResult{}, fmt.Errorf("refresh: %w", err)
	}
	return out, nil
}

func (s *Service) refresh(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, wait time.Duration) (RefreshResult, error) {
	if wait < MinRefreshWait || wait > MaxRefreshWait {
		var p healthlab.Problems
		p.Add("range", fmt.Sprintf("must be from %v to %v seconds", MinRefreshWait.Seconds(), MaxRefreshWait.Seconds()), "timeout")
		return RefreshResult{}, p.Err()
	}
	u, err := s.users.User(ctx, team, user)
	if err != nil {
		return RefreshResult{}, err
	}
	var refs []Ref
	var broken []string
	for i := range u.Connections {
		c := &u.Connections[i]
		switch {
		case s.puller(c) == nil || u.Closed(s.now()):
		case c.Status == healthdata.Connected:
			refs = append(refs, Ref{team, user, c.Provider})
		case c.Status == healthdata.ConnectionError:
			for _, r := range s.planner.pullable(s.users.Providers().Get(c.Provider), c) {
				broken = append(broken, refreshName(s.users.Providers(), c.Provider, r))
			}
		}
	}
	if len(refs)+len(broken) == 0 {
		return RefreshResult{}, &healthlab.RuleError{Type: RuleNoSources, Msg: "the user has no connected provider from which the service fetches data; connect one first"}
	}
	if err := s.countRefresh(ctx, team, user); err != nil {
		return RefreshResult{}, err
	}
	for _, ref := range refs { // a source that was linked a moment ago has no plan yet
		if err := s.maintainConnection(ctx, ref); err != nil {
			return RefreshResult{}, err
		}
	}
	asked, stopped, err := s.makeDueFirst(ctx, team, user, refs)
	if err != nil {
		return RefreshResult{}, err
	}
	for _, key := range stopped {
		c := u.Connection(key.Provider)
		if slices.Contains(s.planner.pullable(s.users.Providers().Get(key.Provider), c), key.Resource) {
			broken = append(broken, refreshName(s.users.Providers(), key.Provider, key.Resource))
		}
	}
	s.Wake()
	tasks, err := s.await(ctx, team, user, asked, wait)
	if err != nil {
		return RefreshResult{}, err
	}
	out := RefreshResult{Success: true, User: user, Refreshed: []string{}, InProgress: []string{}, Failed: append([]string{}, broken...)}
	out.add(s.users.Providers(), asked, tasks)
	return out, nil
}

// countRefresh counts a refresh against the user's limit.
func (s *Service) countRefresh(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	now := s.now()
	return s.store.UpdateBudgets(ctx, []BudgetKey{{Team: team, User: user, Name: "refresh"}}, func(b []Budget) error {
		if wait := b[0].countUse(now, refreshLimit, time.Hour); wait > 0 {
			return &RefreshLimitError{wait}
		}
		return nil
	})
}

// makeDueFirst makes the fetches of new data of some connections due, before all other tasks. It returns the number of
// ended tries of each of these tasks, and the tasks that are permanently stopped.
func (s *Service) makeDueFirst(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, refs []Ref) (asked map[Key]int64, stopped []Key, err error) {
	tasks, err := s.store.Tasks(ctx, team, user)
	if err != nil {
		return nil, nil, err
	}
	asked = map[Key]int64{}
	now := s.now()
	for _, t := range tasks {
		if t.Kind != News || !slices.Contains(refs, t.Ref) {
			continue
		}
		if t.Due.IsZero() {
			stopped = append(stopped, t.Key)
			continue
		}
		got, err := s.store.Update(ctx, t.Key, withoutEvents(func(t *Task) {
			if t.Due.IsZero() {
				return
			}
			t.Turn, t.Due = -1, earlier(t.Due, now)
		}))
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		asked[t.Key] = got.Ended
	}
	return asked, stopped, nil
}

// await waits until each task in asked has ended more tries than the given number or is stopped, or until wait has
// passed. It returns all tasks of the user.
func (s *Service) await(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, asked map[Key]int64, wait time.Duration) ([]Task, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for look := firstLook; ; look = min(2*look, lastLook) {
		tasks, err := s.store.Tasks(ctx, team, user)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(tasks, func(t Task) bool { n, ok := asked[t.Key]; return ok && t.Ended == n && !t.Due.IsZero() }) {
			return tasks, nil
		}
		next := time.NewTimer(look)
		select {
		case <-next.C:
		case <-over.C:
			next.Stop()
			return tasks, nil
		case <-ctx.Done():
			next.Stop()
			return nil, ctx.Err()
		}
	}
}

// add adds the resources of tasks to the lists and sorts the lists. asked has the number of ended tries of each task
// before the refresh.
func (out *RefreshResult) add(providers *healthdata.Providers, asked map[Key]int64, tasks []Task) {
	for key, before := range asked {
		name := refreshName(providers, key.Provider, key.Resource)
		i := slices.IndexFunc(tasks, func(t Task) bool { return t.Key == key })
		if i < 0 { // the connection was removed meanwhile
			out.Failed = append(out.Failed, name)
			continue
		}
		switch t := &tasks[i]; {
		case t.Ended == before && !t.Due.IsZero():
			out.InProgress = append(out.InProgress, name)
		case t.LastOK && t.Ended != before:
			out.Refreshed = append(out.Refreshed, name)
		default:
			out.Failed = append(out.Failed, name)
		}
	}
	for _, list := range [][]string{out.Refreshed, out.InProgress, out.Failed} {
		slices.SortFunc(list, strings.Compare)
	}
}

// refreshName returns the slug of a provider, a slash, and the path of a resource.
func refreshName(providers *healthdata.Providers, provider, resource string) string {
	if p := providers.Get(provider); p != nil {
		for _, r := range p.Resources {
			if r.Resource == resource && r.RefreshPath != "" {
				return provider + "/" + r.RefreshPath
			}
		}
	}
	if r := healthdata.ResourceBySlug(resource); r.Class == healthdata.ClassTimeseries {
		return provider + "/vitals/" + resource
	}
	return provider + "/" + resource
}

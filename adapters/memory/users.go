package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

type userStore struct {
	*database
	users  *userTable
	outbox *outbox
	orders *orderTable
}

func (v userStore) Insert(ctx context.Context, u healthdata.User, limit int) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	u, err := u.Normal()
	switch {
	case err != nil:
		return err
	case u.ID.IsZero() || u.Team.IsZero():
		return fmt.Errorf("%w: a user needs an id and a team", healthlab.Invalid)
	case !u.Live():
		return fmt.Errorf("%w: a new user is live", healthlab.Invalid)
	case v.users.byID[u.ID] != nil:
		return fmt.Errorf("%w: a user has this id already", healthlab.Conflict)
	}
	t := v.users.teams[u.Team]
	if t == nil {
		t = &teamUsers{live: map[string]*userRow{}}
		v.users.teams[u.Team] = t
	}
	if other := t.live[u.ClientUserID]; other != nil {
		return taken(other)
	}
	if limit > 0 && len(t.live) >= limit {
		return fmt.Errorf("%w: a team has at most %d users", healthlab.Exhausted, limit)
	}
	u.Revision = 1
	row, err := v.users.seal(ctx, u)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(t.rows, row, byCreation)
	t.rows = slices.Insert(t.rows, at, row)
	t.live[u.ClientUserID] = row
	v.users.byID[u.ID] = row
	v.users.planConnections(&healthdata.User{}, &row.user)
	return nil
}

func (v userStore) Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	if err := v.lock(ctx); err != nil {
		return healthdata.User{}, err
	}
	defer v.mu.Unlock()
	row := v.users.find(team, id)
	if row == nil {
		return healthdata.User{}, noUser()
	}
	return v.users.open(ctx, row)
}

func (v userStore) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (healthdata.User, error) {
	if err := v.lock(ctx); err != nil {
		return healthdata.User{}, err
	}
	defer v.mu.Unlock()
	return v.update(ctx, team, id, change)
}

// update is Update with the lock held.
func (v userStore) update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, change func(*healthdata.User) ([]healthlab.Event, error)) (healthdata.User, error) {
	row := v.users.find(team, id)
	if row == nil {
		return healthdata.User{}, noUser()
	}
	was := *row
	old := was.user
	edited, err := v.users.open(ctx, row)
	if err != nil {
		return healthdata.User{}, err
	}
	events, err := change(&edited)
	if err != nil {
		return healthdata.User{}, err
	}
	next, err := edited.Normal()
	if err != nil {
		return healthdata.User{}, err
	}
	next.ID, next.Team, next.CreatedOn, next.Revision = old.ID, old.Team, old.CreatedOn, old.Revision+1
	t := v.users.teams[team]
	if other := t.live[next.ClientUserID]; next.Live() && other != nil && other != row {
		return healthdata.User{}, taken(other)
	}
	sealed, err := v.users.seal(ctx, next)
	if err != nil {
		return healthdata.User{}, err
	}
	// The user first, so that the envelopes of the events name it as it is now.
	row.user, row.birth = sealed.user, sealed.birth
	if err := v.outbox.emit(ctx, events); err != nil {
		*row = was
		return healthdata.User{}, err
	}
	v.users.planConnections(&old, &row.user)
	if old.Live() {
		delete(t.live, old.ClientUserID)
	}
	if next.Live() {
		t.live[next.ClientUserID] = row
		delete(v.users.deleted, id)
	} else {
		v.users.deleted[id] = row
	}
	if old.Live() && !next.Live() {
		v.outbox.removeEvents(team, id)
		v.orders.dropAnswers(team, id)
	}
	return next.Clone(), nil
}

func (v userStore) List(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
	if err := v.lock(ctx); err != nil {
		return healthdata.UserPage{}, err
	}
	defer v.mu.Unlock()
	if q.Offset < 0 || q.Limit < 0 {
		return healthdata.UserPage{}, fmt.Errorf("%w: offset and limit are zero or more", healthlab.Invalid)
	}
	if err := healthlab.CheckText(q.ClientUserID, q.Prefix); err != nil {
		return healthdata.UserPage{}, err
	}
	page := healthdata.UserPage{Users: []healthdata.User{}}
	rows := v.users.matching(q)
	page.Total = len(rows)
	limit := cmp.Or(q.Limit, 100)
	rows = rows[min(q.Offset, len(rows)):]
	for _, r := range rows[:min(limit, len(rows))] {
		u, err := v.users.open(ctx, r)
		if err != nil {
			return healthdata.UserPage{}, err
		}
		page.Users = append(page.Users, u)
	}
	return page, nil
}

// matching returns the rows that fit a query, in its order.
func (t *userTable) matching(q healthdata.UserQuery) []*userRow {
	team := t.teams[q.Team]
	if team == nil {
		return nil
	}
	rows := team.rows
	if q.ClientUserID != "" && !q.Deleted {
		rows = nil
		if r := team.live[q.ClientUserID]; r != nil {
			rows = []*userRow{r}
		}
	}
	var out []*userRow
	for _, r := range rows {
		if r.user.Live() != q.Deleted &&
			(q.ClientUserID == "" || r.user.ClientUserID == q.ClientUserID) &&
			(hasPrefixFold(r.user.ClientUserID, q.Prefix) || hasPrefixFold(r.user.ID.String(), q.Prefix)) {
			out = append(out, r)
		}
	}
	if q.Deleted {
		slices.SortFunc(out, func(a, b *userRow) int {
			return cmp.Or(b.user.DeletedAt.Compare(a.user.DeletedAt), byID(a, b))
		})
	}
	return out
}

func (v userStore) Metrics(ctx context.Context, team healthlab.TeamID) (healthdata.TeamMetrics, error) {
	if err := v.lock(ctx); err != nil {
		return healthdata.TeamMetrics{}, err
	}
	defer v.mu.Unlock()
	m := healthdata.TeamMetrics{Team: team, ConnectedSourcesByWeek: []healthdata.WeekCount{}}
	t := v.users.teams[team]
	if t == nil {
		return m, nil
	}
	m.Users = len(t.live)
	weeks := map[healthlab.Date]int{}
	for _, r := range t.live {
		for _, c := range r.user.Connections {
			if c.Status == healthdata.Deregistered {
				continue
			}
			m.ConnectedSources++
			if c.Status == healthdata.ConnectionError {
				m.ErroredConnectedSources++
			}
			weeks[monday(c.CreatedOn)]++
		}
	}
	for day, n := range weeks {
		m.ConnectedSourcesByWeek = append(m.ConnectedSourcesByWeek, healthdata.WeekCount{Date: day, Value: n})
	}
	slices.SortFunc(m.ConnectedSourcesByWeek, func(a, b healthdata.WeekCount) int { return a.Date.Compare(b.Date) })
	all := 0
	for i := range m.ConnectedSourcesByWeek {
		all += m.ConnectedSourcesByWeek[i].Value
		m.ConnectedSourcesByWeek[i].All = all
	}
	return m, nil
}

func (v userStore) ClaimErasures(ctx context.Context, deletedBefore time.Time, n int, lease time.Duration,
) ([]healthdata.UserRef, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	now := v.clock()
	var due []*userRow
	for _, r := range v.users.deleted {
		if !r.user.DeletedAt.After(deletedBefore) && !r.leased.After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *userRow) int {
		return cmp.Or(a.user.DeletedAt.Compare(b.user.DeletedAt), byID(a, b))
	})
	var out []healthdata.UserRef
	for _, r := range due[:min(max(n, 0), len(due))] {
		r.leased = now.Add(lease)
		out = append(out, healthdata.UserRef{Team: r.user.Team, User: r.user.ID})
	}
	return out, nil
}

func taken(by *userRow) error {
	return &healthdata.ClientUserIDError{User: by.user.ID, CreatedOn: by.user.CreatedOn}
}

func byCreation(a, b *userRow) int {
	return cmp.Or(a.user.CreatedOn.Compare(b.user.CreatedOn.Time), byID(a, b))
}

// monday returns the first day of an instant's week in UTC.
func monday(t time.Time) healthlab.Date {
	t = t.UTC()
	daysSince := (int(t.Weekday()) + 6) % 7
	return healthlab.DateOf(t).AddDays(-daysSince)
}

// hasPrefixFold reports whether s begins with prefix, whatever the case of the letters
// A to Z.
func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != lower(prefix[i]) {
			return false
		}
	}
	return true
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

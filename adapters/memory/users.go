package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/personkey"
)

// userTable keeps the users of all teams.
type userTable struct {
	byID    map[healthlab.UserID]*userRow
	teams   map[healthlab.TeamID]*teamUsers
	deleted map[healthlab.UserID]*userRow
}

// teamUsers keeps the users of one team.
type teamUsers struct {
	rows []*userRow          // live and deleted, by CreatedOn, then ID
	live map[string]*userRow // by client user id
}

type userRow struct {
	user   healthdata.User // never handed out: see openUser; its birth date has no Value
	birth  []byte          // the birth date as YYYY-MM-DD, encrypted; nil for none
	leased time.Time       // until when an erasure has it
}

type userKey struct {
	team healthlab.TeamID
	user healthlab.UserID
}

func newUserTable() userTable {
	return userTable{
		byID:    map[healthlab.UserID]*userRow{},
		teams:   map[healthlab.TeamID]*teamUsers{},
		deleted: map[healthlab.UserID]*userRow{},
	}
}

// find returns a user of a team, or nil.
func (t *userTable) find(team healthlab.TeamID, id healthlab.UserID) *userRow {
	if r := t.byID[id]; r != nil && r.user.Team == team {
		return r
	}
	return nil
}

// of returns the users of a team.
func (t *userTable) of(team healthlab.TeamID) []*userRow {
	if u := t.teams[team]; u != nil {
		return u.rows
	}
	return nil
}

// isDeleted reports whether a user of a team is deleted, and not erased.
func (t *userTable) isDeleted(team healthlab.TeamID, id healthlab.UserID) bool {
	r := t.find(team, id)
	return r != nil && !r.user.Live()
}

// clientUserID returns the team's own name for a user, nil if there is no such user.
func (t *userTable) clientUserID(team healthlab.TeamID, id healthlab.UserID) *string {
	if r := t.find(team, id); r != nil {
		name := r.user.ClientUserID
		return &name
	}
	return nil
}

// userIsLive reports whether a team has a user that is not deleted. It is called with
// the lock held.
func (s *Store) userIsLive(team healthlab.TeamID, id healthlab.UserID) bool {
	r := s.users.find(team, id)
	return r != nil && r.user.Live()
}

// Users returns the store as a [healthdata.Users].
func (s *Store) Users() healthdata.Users { return users{s} }

type users struct{ s *Store }

func (v users) Insert(ctx context.Context, u healthdata.User, limit int) error {
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	u, err := u.Normal()
	switch {
	case err != nil:
		return err
	case u.ID.IsZero() || u.Team.IsZero():
		return fmt.Errorf("%w: a user needs an id and a team", healthlab.Invalid)
	case !u.Live():
		return fmt.Errorf("%w: a new user is live", healthlab.Invalid)
	case v.s.users.byID[u.ID] != nil:
		return fmt.Errorf("%w: a user has this id already", healthlab.Conflict)
	}
	t := v.s.users.teams[u.Team]
	if t == nil {
		t = &teamUsers{live: map[string]*userRow{}}
		v.s.users.teams[u.Team] = t
	}
	if other := t.live[u.ClientUserID]; other != nil {
		return taken(other)
	}
	if limit > 0 && len(t.live) >= limit {
		return fmt.Errorf("%w: a team has at most %d users", healthlab.Exhausted, limit)
	}
	u.Revision = 1
	row, err := v.s.sealUser(ctx, u)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(t.rows, row, byCreation)
	t.rows = slices.Insert(t.rows, at, row)
	t.live[u.ClientUserID] = row
	v.s.users.byID[u.ID] = row
	v.s.pulls.planConnections(&healthdata.User{}, &row.user)
	return nil
}

func (v users) Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (healthdata.User, error) {
	if err := v.s.lock(ctx); err != nil {
		return healthdata.User{}, err
	}
	defer v.s.mu.Unlock()
	row := v.s.users.find(team, id)
	if row == nil {
		return healthdata.User{}, noUser()
	}
	return v.s.openUser(ctx, row)
}

func (v users) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (healthdata.User, error) {
	if err := v.s.lock(ctx); err != nil {
		return healthdata.User{}, err
	}
	defer v.s.mu.Unlock()
	return v.update(ctx, team, id, change)
}

// update is Update with the lock held.
func (v users) update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, change func(*healthdata.User) ([]healthlab.Event, error)) (healthdata.User, error) {
	row := v.s.users.find(team, id)
	if row == nil {
		return healthdata.User{}, noUser()
	}
	was := *row
	old := was.user
	edited, err := v.s.openUser(ctx, row)
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
	t := v.s.users.teams[team]
	if other := t.live[next.ClientUserID]; next.Live() && other != nil && other != row {
		return healthdata.User{}, taken(other)
	}
	sealed, err := v.s.sealUser(ctx, next)
	if err != nil {
		return healthdata.User{}, err
	}
	// The user first, so that the envelopes of the events name it as it is now.
	row.user, row.birth = sealed.user, sealed.birth
	if err := v.s.emit(ctx, events); err != nil {
		*row = was
		return healthdata.User{}, err
	}
	v.s.pulls.planConnections(&old, &row.user)
	if old.Live() {
		delete(t.live, old.ClientUserID)
	}
	if next.Live() {
		t.live[next.ClientUserID] = row
		delete(v.s.users.deleted, id)
	} else {
		v.s.users.deleted[id] = row
	}
	if old.Live() && !next.Live() {
		v.s.removeEvents(team, id)
		v.s.orders.dropAnswers(team, id)
	}
	return next.Clone(), nil
}

func (v users) List(ctx context.Context, q healthdata.UserQuery) (healthdata.UserPage, error) {
	if err := v.s.lock(ctx); err != nil {
		return healthdata.UserPage{}, err
	}
	defer v.s.mu.Unlock()
	if q.Offset < 0 || q.Limit < 0 {
		return healthdata.UserPage{}, fmt.Errorf("%w: offset and limit are zero or more", healthlab.Invalid)
	}
	if err := healthlab.CheckText(q.ClientUserID, q.Prefix); err != nil {
		return healthdata.UserPage{}, err
	}
	page := healthdata.UserPage{Users: []healthdata.User{}}
	rows := v.s.users.matching(q)
	page.Total = len(rows)
	limit := cmp.Or(q.Limit, 100)
	rows = rows[min(q.Offset, len(rows)):]
	for _, r := range rows[:min(limit, len(rows))] {
		u, err := v.s.openUser(ctx, r)
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

func (v users) Metrics(ctx context.Context, team healthlab.TeamID) (healthdata.TeamMetrics, error) {
	if err := v.s.lock(ctx); err != nil {
		return healthdata.TeamMetrics{}, err
	}
	defer v.s.mu.Unlock()
	m := healthdata.TeamMetrics{Team: team, ConnectedSourcesByWeek: []healthdata.WeekCount{}}
	t := v.s.users.teams[team]
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

func (v users) ClaimErasures(ctx context.Context, deletedBefore time.Time, n int, lease time.Duration,
) ([]healthdata.UserRef, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	now := v.s.clock()
	var due []*userRow
	for _, r := range v.s.users.deleted {
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

func noUser() error { return fmt.Errorf("%w: the team has no such user", healthlab.NotFound) }

func taken(by *userRow) error {
	return &healthdata.ClientUserIDError{User: by.user.ID, CreatedOn: by.user.CreatedOn}
}

func byID(a, b *userRow) int { return bytes.Compare(a.user.ID.UUID[:], b.user.ID.UUID[:]) }

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

// sealUser returns the row of a user.
func (s *Store) sealUser(ctx context.Context, u healthdata.User) (*userRow, error) {
	row := &userRow{user: u.Clone()}
	if b := row.user.FallbackBirthDate; b != nil {
		var err error
		if row.birth, err = s.keys.Seal(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, []byte(b.Value.String())); err != nil {
			return nil, err
		}
		b.Value = healthlab.Date{}
	}
	return row, nil
}

// openUser returns a copy of the user of a row. A user whose key was deleted has no birth date.
func (s *Store) openUser(ctx context.Context, row *userRow) (healthdata.User, error) {
	u := row.user.Clone()
	if row.birth == nil {
		return u, nil
	}
	text, err := s.keys.Open(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, row.birth)
	if errors.Is(err, personkey.ErrErased) {
		u.FallbackBirthDate = nil
		return u, nil
	}
	if err == nil {
		u.FallbackBirthDate.Value, err = healthlab.ParseDate(string(text))
	}
	if err != nil {
		return healthdata.User{}, fmt.Errorf("birth date: %w", err)
	}
	return u, nil
}

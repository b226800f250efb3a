package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/personkey"
)

// userTable keeps the users of all teams.
type userTable struct {
	byID           map[healthlab.UserID]*userRow
	teams          map[healthlab.TeamID]*teamUsers
	deleted        map[healthlab.UserID]*userRow
	dueConnections work.Due[pull.Ref] // of live users
	keys           *personkey.Keys
}

// teamUsers keeps the users of one team.
type teamUsers struct {
	rows []*userRow          // live and deleted, by CreatedOn, then ID
	live map[string]*userRow // by client user id
}

type userRow struct {
	user   healthdata.User // never handed out: see open; its birth date has no Value
	birth  []byte          // the birth date as YYYY-MM-DD, encrypted; nil for none
	leased time.Time       // until when an erasure has it
}

func newUserTable(keys *personkey.Keys) *userTable {
	return &userTable{
		keys:    keys,
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

// isLive reports whether a team has a user that is not deleted.
func (t *userTable) isLive(team healthlab.TeamID, id healthlab.UserID) bool {
	r := t.find(team, id)
	return r != nil && r.user.Live()
}

// clientUserID returns the team's own name for a user, nil if there is no such user.
func (t *userTable) clientUserID(team healthlab.TeamID, id healthlab.UserID) *string {
	if r := t.find(team, id); r != nil {
		name := r.user.ClientUserID
		return &name
	}
	return nil
}

// accountTaken reports whether another live user of the team has a connection to this
// account.
func (t *userTable) accountTaken(team healthlab.TeamID, user healthlab.UserID, provider, external string) bool {
	if t.teams[team] == nil {
		return false
	}
	for _, r := range t.teams[team].live {
		c := r.user.Connection(provider)
		if r.user.ID != user && c != nil && c.Status != healthdata.Deregistered && c.ExternalUserID != nil && *c.ExternalUserID == external {
			return true
		}
	}
	return false
}

// planConnections replaces the due times of the connections of was by those of now, the same user.
// The connections of a deleted user are never due.
func (t *userTable) planConnections(was, now *healthdata.User) {
	for _, c := range was.Connections {
		t.dueConnections.Set(pull.Ref{Team: was.Team, User: was.ID, Provider: c.Provider}, time.Time{})
	}
	if !now.Live() {
		return
	}
	for _, c := range now.Connections {
		t.dueConnections.Set(pull.Ref{Team: now.Team, User: now.ID, Provider: c.Provider}, c.Due)
	}
}

// seal returns the row of a user.
func (t *userTable) seal(ctx context.Context, u healthdata.User) (*userRow, error) {
	row := &userRow{user: u.Clone()}
	if b := row.user.FallbackBirthDate; b != nil {
		var err error
		if row.birth, err = t.keys.Seal(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, []byte(b.Value.String())); err != nil {
			return nil, err
		}
		b.Value = healthlab.Date{}
	}
	return row, nil
}

// open returns a copy of the user of a row. A user whose key was deleted has no birth date.
func (t *userTable) open(ctx context.Context, row *userRow) (healthdata.User, error) {
	u := row.user.Clone()
	if row.birth == nil {
		return u, nil
	}
	text, err := t.keys.Open(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, row.birth)
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

func noUser() error { return fmt.Errorf("%w: the team has no such user", healthlab.NotFound) }

func byID(a, b *userRow) int { return bytes.Compare(a.user.ID.UUID[:], b.user.ID.UUID[:]) }

// erase removes the row of a deleted user.
func (t *userTable) erase(row *userRow) {
	team := t.teams[row.user.Team]
	team.rows = slices.DeleteFunc(team.rows, func(r *userRow) bool { return r == row })
	delete(t.byID, row.user.ID)
	delete(t.deleted, row.user.ID)
}

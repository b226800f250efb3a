package healthdata

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// NewUsers returns a Users that stores its rows in s, whose tables must include [UserTables].
func NewUsers(s store.Store, opts *UserOptions) Users { return usersOverRows{s, NewUserRows(opts)} }

type usersOverRows struct {
	s    store.Store
	rows *UserRows
}

func (v usersOverRows) Insert(ctx context.Context, u User, limit int) error {
	u, err := u.Normal()
	switch {
	case err != nil:
		return err
	case u.ID.IsZero() || u.Team.IsZero():
		return fmt.Errorf("%w: a user needs an id and a team", healthlab.Invalid)
	case !u.Live():
		return fmt.Errorf("%w: a new user must not be deleted", healthlab.Invalid)
	}
	u.Revision = 1
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		ids, err := userIDTable.Get(tx, store.Key{ID: store.UUID(u.ID.UUID)}, store.Shared)
		if err != nil {
			return err
		}
		if ids != nil {
			return fmt.Errorf("%w: a user of this or another team has this id already", healthlab.Conflict)
		}
		if err := claimClientUserID(tx, &u); err != nil {
			return err
		}
		if err := checkLimit(tx, u.Team, limit); err != nil {
			return err
		}
		if err := userTable.Insert(tx, &u); err != nil {
			return err
		}
		if err := userIDTable.Insert(tx, &teamOfUser{u.ID, u.Team}); err != nil {
			return err
		}
		return putConnections(tx, &User{}, &u)
	})
	var taken *store.TakenError
	if errors.As(err, &taken) && taken.Index < 0 {
		return fmt.Errorf("%w: a user of this or another team has this id already", healthlab.Conflict)
	}
	return err
}

// checkLimit returns Exhausted if a team has the greatest number of live users. It locks the team's row, so that
// concurrent calls do not exceed the limit.
func checkLimit(tx store.Tx, team healthlab.TeamID, limit int) error {
	if limit <= 0 {
		return nil
	}
	if err := insertLocked(tx, lockRow{Team: team, ID: "limit"}); err != nil {
		return err
	}
	q := store.LiveUsers(team)
	q.Limit, q.Bare, q.Lock = limit, true, store.Plain
	got, err := tx.Read(q)
	if err != nil {
		return err
	}
	if len(got[0]) >= limit {
		return fmt.Errorf("%w: a team has at most %d users", healthlab.Exhausted, limit)
	}
	return nil
}

func (v usersOverRows) Get(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error) {
	e, err := userTable.LookOne(ctx, v.s, store.UserKey(team, id))
	if err == nil && e == nil { // there is no such user, or the user's encryption key was deleted
		bare := store.User(team, id)
		bare.Bare = true
		var got [][]store.Row
		if got, err = v.s.Read(ctx, bare); err == nil {
			e, err = userTable.DecodedOne(got[0])
		}
	}
	switch {
	case err != nil:
		return User{}, err
	case e == nil:
		return User{}, noUser()
	}
	return e.Value, nil
}

// users reads the users of rows that were read without documents. A user whose encryption key was deleted has only the
// fields of its row.
func (v usersOverRows) users(ctx context.Context, bare []store.Row) ([]User, error) {
	got, err := v.documents(ctx, bare)
	if err != nil {
		return nil, err
	}
	out := make([]User, len(bare))
	for i, row := range bare {
		e, err := userTable.DecodedOne(append(got[i], row)[:1])
		if err != nil {
			return nil, err
		}
		out[i] = e.Value
	}
	return out, nil
}

// documents reads some rows again, with their documents. The result has an empty list for a row whose encryption key
// was deleted.
func (v usersOverRows) documents(ctx context.Context, bare []store.Row) ([][]store.Row, error) {
	q := make([]store.Query, len(bare))
	for i, row := range bare {
		q[i].Key = row.Key
	}
	return v.s.Read(ctx, q...)
}

func (v usersOverRows) Update(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*User) ([]healthlab.Event, error),
) (User, error) {
	var out User
	err := v.s.Update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		out, err = v.rows.Update(ctx, tx, team, id, change)
		return err
	})
	return out, err
}

// pageOfUsers is how many rows of a team's users are read at a time.
const pageOfUsers = 500

// walk calls each with the rows of a query, page by page.
func (v usersOverRows) walk(ctx context.Context, q store.Query, each func(store.Row) error) error {
	q.Limit = pageOfUsers
	for {
		got, err := v.s.Read(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range got[0] {
			if err := each(row); err != nil {
				return err
			}
		}
		if len(got[0]) < pageOfUsers {
			return nil
		}
		q = q.After(got[0][pageOfUsers-1].Index[1], pageOfUsers)
	}
}

func (v usersOverRows) List(ctx context.Context, q UserQuery) (UserPage, error) {
	if q.Offset < 0 || q.Limit < 0 {
		return UserPage{}, fmt.Errorf("%w: offset and limit must be 0 or more", healthlab.Invalid)
	}
	if err := healthlab.CheckText(q.ClientUserID, q.Prefix); err != nil {
		return UserPage{}, err
	}
	if q.Deleted {
		return v.listDeleted(ctx, q)
	}
	rows := store.LiveUsers(q.Team)
	if q.ClientUserID != "" {
		rows.By = store.ByFirst
		rows = rows.Equal(q.ClientUserID)
	}
	rows.Bare = q.Prefix == "" // otherwise the client user ids are read
	page := UserPage{Users: []User{}}
	var shown []store.Row
	err := v.walk(ctx, rows, func(row store.Row) error {
		if !store.StateOf([]store.Row{row}).Live {
			return nil
		}
		if q.Prefix != "" {
			name, err := store.ClientUserIDOf([]store.Row{row})
			if err != nil || !q.hasPrefix(name, store.UserIDOf(row)) {
				return err
			}
		}
		if page.Total >= q.Offset && len(shown) < cmp.Or(q.Limit, 100) {
			shown = append(shown, row)
		}
		page.Total++
		return nil
	})
	if err != nil {
		return UserPage{}, err
	}
	got, err := v.documents(ctx, shown)
	if err != nil {
		return UserPage{}, err
	}
	entries, err := userTable.Decoded(slices.Concat(got...)) // users whose encryption key was deleted are left out
	for _, e := range entries {
		page.Users = append(page.Users, e.Value)
	}
	return page, err
}

// listDeleted lists the deleted users of a team. It reads all of them, because they are few: they are erased
// after the grace period.
func (v usersOverRows) listDeleted(ctx context.Context, q UserQuery) (UserPage, error) {
	deleted := store.DeletedUsers(q.Team)
	deleted.Bare = true
	got, err := v.s.Read(ctx, deleted)
	if err != nil {
		return UserPage{}, err
	}
	found, err := v.users(ctx, got[0])
	if err != nil {
		return UserPage{}, err
	}
	users := []User{}
	for _, u := range found {
		if (q.ClientUserID == "" || q.ClientUserID == u.ClientUserID) && q.hasPrefix(u.ClientUserID, u.ID) {
			users = append(users, u)
		}
	}
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(b.DeletedAt.Compare(a.DeletedAt), bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
	})
	page := UserPage{Total: len(users)}
	users = users[min(q.Offset, len(users)):]
	page.Users = users[:min(cmp.Or(q.Limit, 100), len(users))]
	return page, nil
}

// hasPrefix reports whether the client user id or the id of a user begins with the prefix, both after
// [healthlab.FoldText].
func (q *UserQuery) hasPrefix(clientUserID string, id healthlab.UserID) bool {
	if q.Prefix == "" {
		return true
	}
	prefix := healthlab.FoldText(q.Prefix)
	return strings.HasPrefix(healthlab.FoldText(clientUserID), prefix) || strings.HasPrefix(id.String(), prefix)
}

func (v usersOverRows) Metrics(ctx context.Context, team healthlab.TeamID) (TeamMetrics, error) {
	m := TeamMetrics{Team: team, ConnectedSourcesByWeek: []WeekCount{}}
	weeks := map[healthlab.Date]int{}
	err := v.walk(ctx, store.LiveUsers(team), func(row store.Row) error {
		users, err := userTable.Decoded([]store.Row{row})
		if err != nil {
			return err
		}
		m.Users++
		for _, c := range users[0].Value.Connections {
			if c.Status == Deregistered {
				continue
			}
			m.ConnectedSources++
			if c.Status == ConnectionError {
				m.ErroredConnectedSources++
			}
			weeks[monday(c.CreatedOn)]++
		}
		return nil
	})
	for day, n := range weeks {
		m.ConnectedSourcesByWeek = append(m.ConnectedSourcesByWeek, WeekCount{Date: day, Value: n})
	}
	slices.SortFunc(m.ConnectedSourcesByWeek, func(a, b WeekCount) int { return a.Date.Compare(b.Date) })
	all := 0
	for i := range m.ConnectedSourcesByWeek {
		all += m.ConnectedSourcesByWeek[i].Value
		m.ConnectedSourcesByWeek[i].All = all
	}
	return m, err
}

func monday(t time.Time) healthlab.Date {
	t = t.UTC()
	daysSince := (int(t.Weekday()) + 6) % 7
	return healthlab.DateOf(t).AddDays(-daysSince)
}

func (v usersOverRows) ClaimErasures(ctx context.Context, deletedBefore time.Time, n int, lease time.Duration) ([]UserRef, error) {
	var out []UserRef
	err := v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		found, err := erasureTable.Find(tx, store.Query{By: store.ByDue, Until: deletedBefore, Lock: store.Plain})
		if err != nil {
			return err
		}
		for _, seen := range found {
			if len(out) >= n {
				break
			}
			if seen.Value.Leased.After(tx.Now()) {
				continue
			}
			e, err := erasureTable.Get(tx, erasureKey(seen.Value.Team, seen.Value.User), store.Skip)
			if err != nil {
				return err
			}
			if e == nil || e.Value.Leased.After(tx.Now()) || e.Value.DeletedAt.After(deletedBefore) {
				continue // another transaction has claimed or changed the user
			}
			e.Value.Leased = healthlab.At(tx.Now().Add(lease)).Time
			if err := erasureTable.Put(tx, e); err != nil {
				return err
			}
			out = append(out, UserRef{e.Value.Team, e.Value.User})
		}
		return nil
	})
	return out, err
}

// rowsAnErasure is how many rows one transaction of an erasure deletes.
const rowsAnErasure = 1000

// ErasingRows is the number of deleted rows between two calls of UserOptions.Erasing.
const ErasingRows = 50 * rowsAnErasure

func (v usersOverRows) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	others := 0 // number of rows of the user in other teams in the last read
	rows := 0   // number of deleted rows
	for first, done := true, false; !done; first = false {
		if rows > 0 && rows%ErasingRows == 0 && v.rows.opts.Erasing != nil {
			v.rows.opts.Erasing(team, id, rows)
		}
		rows += rowsAnErasure
		err := v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			q := store.User(team, id).Hold()
			q.Bare = true // the documents may be unreadable, because the user's encryption key may be deleted
			got, err := tx.Read(q)
			if err != nil {
				return err
			}
			switch u := store.StateOf(got[0]); {
			case !u.Known && first && !v.rows.opts.UsersElsewhere:
				return noUser()
			case u.Live:
				return fmt.Errorf("%w: a user must be deleted before it is erased", healthlab.Precondition)
			}
			if first {
				for _, hook := range v.rows.opts.OnErase {
					if err := hook(ctx, tx, team, id); err != nil {
						return err
					}
				}
			}
			others, done, err = eraseRows(tx, team, id, rowsAnErasure+others)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eraseRows reads at most limit rows of a user and deletes those of the team. others is the number of rows of other
// teams, which stay. It deletes the rows of the user and of the erasure last; done is then true.
func eraseRows(tx store.Tx, team healthlab.TeamID, id healthlab.UserID, limit int) (others int, done bool, err error) {
	got, err := tx.Read(store.Query{Key: store.Key{User: id}, By: store.ByUser, Limit: limit, Lock: store.Held, Bare: true})
	if err != nil {
		return 0, false, err
	}
	for _, row := range got[0] {
		switch {
		case row.Team != team && !row.Team.IsZero():
			others++
		case row.Table != store.UserTable && row.Table != erasureTable.Name:
			tx.Delete(row.Key)
		}
	}
	if len(got[0]) == limit {
		return others, false, nil
	}
	tx.Delete(store.UserKey(team, id), erasureTable.Key(erasureKey(team, id)))
	return others, true, nil
}

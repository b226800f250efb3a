package pull

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// statusPage is how many users are read at a time.
const statusPage = 200

// UserStatuses implements [Store].
func (r rowStore) UserStatuses(ctx context.Context, q UserStatusQuery) ([]UserStatus, error) {
	if err := healthlab.CheckText(q.Provider); err != nil {
		return nil, err
	}
	if q.N <= 0 {
		return nil, ctx.Err()
	}
	var out []UserStatus
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) (err error) {
		if out, err = r.connectedUsers(tx, &q); err != nil {
			return err
		}
		return addTasks(tx, q.Team, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// connectedUsers returns the users with a connection, and their providers.
func (r rowStore) connectedUsers(tx store.Tx, q *UserStatusQuery) (out []UserStatus, err error) {
	users := store.Query{
		Key: store.Key{Table: store.UserTable, Team: q.Team}, By: store.ByID, From: store.UUID(q.After.UUID) + "\x00",
		Limit: statusPage, Lock: store.Plain,
	}
	if !q.User.IsZero() {
		if bytes.Compare(q.User.UUID[:], q.After.UUID[:]) <= 0 {
			return nil, nil
		}
		users = store.User(q.Team, q.User).Unlocked()
	}
	for {
		got, err := tx.Read(users)
		if err != nil {
			return nil, err
		}
		for _, row := range got[0] {
			u, err := r.users.Get(tx, q.Team, store.UserIDOf(row), store.Plain) // no round trip: the row was read
			if err != nil {
				return nil, err
			}
			if list := q.providers(&u); len(list) > 0 {
				out = append(out, UserStatus{User: u.ID, Providers: list})
			}
			if len(out) == q.N {
				return out, nil
			}
		}
		if len(got[0]) < statusPage {
			return out, nil
		}
		users = users.After(got[0][statusPage-1].ID, statusPage)
	}
}

// providers returns the providers of the connections of a live user that are not Deregistered and match the
// query, ascending.
func (q *UserStatusQuery) providers(u *healthdata.User) (out []string) {
	for _, c := range u.Connections {
		if u.Live() && c.Status != healthdata.Deregistered && (q.Provider == "" || c.Provider == q.Provider) {
			out = append(out, c.Provider)
		}
	}
	slices.Sort(out)
	return out
}

// addTasks reads the tasks and refused items of users at the given providers, and adds them to users.
func addTasks(tx store.Tx, team healthlab.TeamID, users []UserStatus) error {
	var queries []store.Query
	for _, u := range users {
		for _, p := range u.Providers {
			prefix := refID(Ref{team, u.User, p})
			queries = append(queries, tasksOf(team, prefix, store.Plain), refusedOf(team, store.BySecond, prefix, MaxRefusedPerStatus))
		}
	}
	got, err := tx.Read(queries...)
	if err != nil {
		return err
	}
	for i := range users {
		u := &users[i]
		for range u.Providers {
			tasks, err := taskTable.Decoded(got[0])
			if err != nil {
				return err
			}
			refused, err := refusedItems(got[1])
			if err != nil {
				return err
			}
			u.Tasks, u.Refused, got = append(u.Tasks, values(tasks)...), append(u.Refused, refused...), got[2:]
		}
		slices.SortFunc(u.Refused, func(a, b RefusedItem) int {
			return cmp.Or(b.At.Compare(a.At.Time), bytes.Compare(a.ID[:], b.ID[:]))
		})
		u.Refused = u.Refused[:min(MaxRefusedPerStatus, len(u.Refused))]
	}
	return nil
}

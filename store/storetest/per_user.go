package storetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

func userRow(team healthlab.TeamID, user healthlab.UserID, id string) store.Row {
	return store.Row{Key: store.Key{Table: perUserTable, Team: team, User: user, ID: store.UUID(user.UUID) + id}}
}

// perUser tests a table that is declared PerUser, whose rows an engine may store on one machine per user: the
// answers, the refused writes, and that its rows commit together with rows of other tables.
func (s suite) perUser() {
	team, users := newTeam(), []healthlab.UserID{newUser(), newUser(), newUser(), newUser()}
	for _, user := range users {
		s.put(store.Row{Key: store.UserKey(team, user)})
	}
	all := func(user healthlab.UserID, lock store.Lock) store.Query {
		prefix := store.UUID(user.UUID)
		return store.Query{
			Key: store.Key{Table: perUserTable, Team: team, User: user}, By: store.ByID, From: prefix, To: store.End(prefix), Lock: lock,
		}
	}
	add := func(rows ...store.Row) error {
		return s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
			for _, user := range users {
				if _, err := store.LockUser(tx, team, user); err != nil {
					return err
				}
			}
			tx.Put(rows...)
			return nil
		})
	}
	for _, user := range users {
		var rows []store.Row
		for i, id := range []string{"a", "b", "b\x00", "c"} {
			r := userRow(team, user, id)
			r.Index = [2]string{store.UUID(user.UUID) + strconv.Itoa(9-i), id}
			rows = append(rows, r)
		}
		require.NoError(s, add(rows...))
	}
	own := func(rows []store.Row) []string {
		out := []string{}
		for _, r := range rows {
			out = append(out, r.ID[16:])
		}
		return out
	}
	user := users[0]
	id := func(id string) string { return store.UUID(user.UUID) + id }
	middle := all(user, store.Plain)
	middle.From, middle.To = id("b"), id("c")
	last := all(user, store.Plain)
	last.Desc, last.Limit = true, 2
	index := all(user, store.Plain)
	index.By, index.From, index.To = store.ByFirst, id("7"), store.End(id("8"))
	byUser := store.Query{Key: store.Key{User: user}, By: store.ByUser, Desc: true}
	got, err := s.Read(s.T.Context(), store.Query{Key: userRow(team, user, "b").Key}, middle, last, index, byUser)
	require.NoError(s, err)
	require.Equal(s, []string{"b"}, own(got[0]))
	require.Equal(s, []string{"b", "b\x00"}, own(got[1]))
	require.Equal(s, []string{"c", "b\x00"}, own(got[2]))
	require.Equal(s, []string{"b\x00", "b"}, own(got[3]))
	require.Equal(s, []string{"", "c", "b\x00", "b", "a"}, own(got[4]))
	keys, err := s.Read(s.T.Context(), store.Query{Key: userRow(team, user, "c").Key}, store.Query{Key: userRow(team, user, "none").Key},
		store.Query{Key: userRow(team, users[1], "a").Key}, store.Query{Key: userRow(team, user, "a").Key}, store.Query{Key: userRow(team, user, "c").Key})
	require.NoError(s, err)
	require.Equal(s, [][]string{{"c"}, {}, {"a"}, {"a"}, {"c"}}, [][]string{own(keys[0]), own(keys[1]), own(keys[2]), own(keys[3]), own(keys[4])})
	require.Equal(s, users[1], keys[2][0].User)
	found := s.read(store.Query{Key: key(perUserTable, team, ""), By: store.BySecond}.Equal("b"))
	require.Len(s, found, len(users), "without the user")

	blind := userRow(team, user, "a")
	blind.Revision = 7
	require.ErrorIs(s, add(blind), store.ErrStale)
	blind = userRow(team, user, "missing")
	blind.Revision = 1
	require.ErrorIs(s, add(blind), store.ErrStale)
	var taken *store.TakenError
	require.ErrorAs(s, add(userRow(team, users[1], "new"), store.Row{Key: key(plainTable, team, "beside")}, userRow(team, user, "a")), &taken)
	require.Equal(s, store.TakenError{Table: perUserTable, Index: -1}, *taken)
	require.Empty(s, s.read(store.Query{Key: key(plainTable, team, "beside")}))
	require.Len(s, s.read(all(users[1], store.Plain)), 4)

	s.update(func(tx store.Tx) error {
		got, err := tx.Read(store.User(team, user), all(user, store.Held))
		if err != nil {
			return err
		}
		tx.Delete(got[1][1].Key)
		r := got[1][0]
		r.Doc = []byte("changed")
		tx.Put(r, userRow(team, user, "d"))
		return nil
	})
	rows := s.read(all(user, store.Plain))
	require.Equal(s, []string{"a", "b\x00", "c", "d"}, own(rows))
	require.Equal(s, "changed", string(rows[0].Doc))
	require.EqualValues(s, 2, rows[0].Revision)
	s.perUserRaces(team, users)
}

// perUserRaces tests a PerUser table under concurrency: updates, snapshots, transactions of several users, and an
// erasure.
func (s suite) perUserRaces(team healthlab.TeamID, users []healthlab.UserID) {
	count := func(tx store.Tx, keys ...store.Key) error {
		queries := make([]store.Query, len(keys))
		for i, k := range keys {
			queries[i] = store.Query{Key: k}.Hold()
		}
		got, err := tx.Read(queries...)
		if err != nil {
			return err
		}
		for i, rows := range got {
			r := store.Row{Key: keys[i]}
			if len(rows) > 0 {
				r = rows[0]
			}
			r.Doc = strconv.AppendInt(nil, int64(number(r.Doc)+1), 10)
			tx.Put(r)
		}
		return nil
	}
	user := users[0]
	a, b, other := userRow(team, user, "count"), userRow(team, user, "count too"), userRow(team, users[1], "count")
	for round := range rounds() {
		beside := key(plainTable, team, fmt.Sprint("count ", round))
		for _, err := range s.race(func(i int, st store.Store) error {
			if i%4 == 3 { // one Read must not see a part of a commit
				got, err := st.Read(s.T.Context(), store.Query{Key: a.Key}, store.Query{Key: b.Key})
				if err == nil && !slices.EqualFunc(got[0], got[1], func(x, y store.Row) bool { return string(x.Doc) == string(y.Doc) }) {
					err = fmt.Errorf("one Read saw rows of two commits")
				}
				return err
			}
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				if _, err := tx.Read(store.User(team, user), store.User(team, users[1])); err != nil {
					return err
				}
				return count(tx, a.Key, b.Key, other.Key, beside)
			})
		}) {
			require.NoError(s, err)
		}
		require.Equal(s, workers*3/4, number(s.read(store.Query{Key: beside})[0].Doc))
		require.Equal(s, (round+1)*workers*3/4, number(s.read(store.Query{Key: other.Key})[0].Doc))
	}
	for range rounds() {
		user := newUser()
		s.put(store.Row{Key: store.UserKey(team, user)})
		for _, err := range s.race(func(i int, st store.Store) error {
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				q, all := store.User(team, user), store.Query{Key: store.Key{Table: perUserTable, User: user}, By: store.ByUser, Lock: store.Held, Bare: true}
				if i == workers-1 {
					q, all.Table = q.Hold(), ""
				}
				got, err := tx.Read(q, all)
				switch {
				case err != nil:
					return err
				case i == workers-1:
					for _, r := range got[1] {
						tx.Delete(r.Key)
					}
				case len(got[0]) > 0:
					tx.Put(userRow(team, user, fmt.Sprint(i)))
				}
				return nil
			})
		}) {
			require.NoError(s, err)
		}
		require.Empty(s, s.read(store.Query{Key: store.Key{User: user}, By: store.ByUser}))
	}
}

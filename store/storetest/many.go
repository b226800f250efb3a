package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// manyRows returns n rows of each table: with and without a user, an index value and a due time. Several rows of the
// plain table have the same index values.
func manyRows(team healthlab.TeamID, user healthlab.UserID, n int) []store.Row {
	out := []store.Row{{Key: store.UserKey(team, user), Doc: []byte{0}}}
	for i := range n {
		plain := store.Row{Key: key(plainTable, team, fmt.Sprintf("p%02d", i)), Doc: bytes.Repeat([]byte{byte(i)}, 1+i%3)}
		if i%2 == 0 {
			plain.Index[0] = fmt.Sprint(i % 5)
		}
		if i%3 == 0 {
			plain.User, plain.Index[1], plain.Due = user, fmt.Sprint(i%4), time.UnixMicro(int64(i)+1).UTC()
		}
		unique := store.Row{Key: key(uniqueTable, team, fmt.Sprintf("u%02d", i)), Doc: []byte{1}, Index: [2]string{fmt.Sprint("v", i)}}
		mine := store.Row{Key: store.Key{Table: perUserTable, Team: team, User: user, ID: store.UUID(user.UUID) + fmt.Sprintf("m%02d", i)}, Doc: []byte{2}}
		out = append(out, plain, unique, mine)
	}
	return out
}

// many tests updates of many rows of several tables: all of them are written, or none.
func (s suite) many() {
	team, user := newTeam(), newUser()
	rows := manyRows(team, user, 25)
	s.put(rows...)
	for i := range rows {
		rows[i].Revision = 1
	}
	s.requireRows(rows)

	var kept []store.Row
	s.update(func(tx store.Tx) error {
		kept = nil
		if _, err := store.LockUser(tx, team, user); err != nil {
			return err
		}
		for i, r := range rows {
			if i%7 == 3 {
				tx.Delete(r.Key)
				continue
			}
			if i > 0 {
				r.Doc = append([]byte("changed "), r.Doc...)
				if r.Table == plainTable {
					r.Index[1], r.Due = "moved", time.UnixMicro(99).UTC()
				}
				tx.Put(r)
				r.Revision++
			}
			kept = append(kept, r)
		}
		return nil
	})
	s.requireRows(kept)

	for i := 1; i < len(kept); i += 5 { // one of them is stale
		require.Error(s, s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
			if _, err := store.LockUser(tx, team, user); err != nil {
				return err
			}
			for n, r := range kept[1:] {
				if n+1 == i {
					r.Revision--
				}
				tx.Put(r)
			}
			return nil
		}))
	}
	for i := range 5 { // one of them has a value that is taken
		err := s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
			for n := range 5 {
				r := store.Row{Key: key(uniqueTable, team, fmt.Sprint("new", n)), Index: [2]string{fmt.Sprint("new", n)}}
				if n == i {
					r.Index[0] = "v0"
				}
				tx.Put(r)
			}
			return nil
		})
		var taken *store.TakenError
		require.ErrorAs(s, err, &taken)
		require.Equal(s, store.TakenError{Table: uniqueTable, Index: 0}, *taken)
	}
	s.requireRows(kept)
}

// requireRows requires that the store has exactly these rows of a team, and finds each by its key and by its values: in
// a Read, and with each lock in an Update.
func (s suite) requireRows(want []store.Row) {
	s.Helper()
	var q []store.Query
	var answers [][]store.Row
	add := func(by store.Query, has func(r *store.Row) bool) {
		var rows []store.Row
		for i := range want {
			if has(&want[i]) {
				rows = append(rows, want[i])
			}
		}
		q, answers = append(q, by), append(answers, rows)
	}
	for _, r := range want {
		add(store.Query{Key: r.Key}, func(o *store.Row) bool { return o.Key == r.Key })
		for i, v := range r.Index {
			if v == "" {
				continue
			}
			by := store.Query{Key: key(r.Table, r.Team, ""), By: store.ByFirst + store.By(i)}
			add(by.Equal(v), func(o *store.Row) bool { return o.Table == r.Table && o.Index[i] == v })
		}
	}
	absent := key(plainTable, want[0].Team, "absent")
	add(store.Query{Key: absent}, func(*store.Row) bool { return false })
	q, answers = append(q, q[0], q[len(q)/2]), append(answers, answers[0], answers[len(q)/2]) // asked twice

	check := func(got [][]store.Row, err error) {
		s.Helper()
		require.NoError(s, err)
		for i := range answers {
			require.Len(s, got[i], len(answers[i]), "%d", i)
			for n, r := range answers[i] {
				require.Equal(s, r, got[i][n])
			}
		}
	}
	check(s.Read(s.T.Context(), q...))
	for _, lock := range []store.Lock{store.Plain, store.Shared, store.Held, store.Skip} {
		locked := slices.Clone(q)
		for i := range locked {
			locked[i].Lock = lock
		}
		s.update(func(tx store.Tx) error { check(tx.Read(locked...)); return nil })
	}
	s.update(func(tx store.Tx) error { // each query with another lock
		mixed := slices.Clone(q)
		for i := range mixed {
			mixed[i].Lock = []store.Lock{store.Held, store.Plain, store.Shared}[i%3]
		}
		check(tx.Read(mixed...))
		return nil
	})
	for _, table := range []string{plainTable, uniqueTable} {
		got := s.read(store.Query{Key: key(table, want[0].Team, ""), By: store.ByID})
		var wanted []string
		for _, r := range want {
			if r.Table == table {
				wanted = append(wanted, r.ID)
			}
		}
		require.Equal(s, wanted, ids(got))
	}
}

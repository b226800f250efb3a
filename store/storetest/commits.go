package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// rollback tests that a failed update leaves no change.
func (s suite) rollback() {
	k := key(plainTable, newTeam(), "a")
	failed := errors.New("failed")
	err := s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
		tx.Put(store.Row{Key: k, Doc: []byte("one")})
		return failed
	})
	require.ErrorIs(s, err, failed)
	require.Empty(s, s.read(store.Query{Key: k}))

	unique := func(id string) store.Row {
		return store.Row{Key: key(uniqueTable, k.Team, id), Index: [2]string{"x"}}
	}
	s.put(unique("first"))
	err = s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
		tx.Put(store.Row{Key: k, Doc: []byte("two")}, unique("second"))
		return nil
	})
	require.ErrorIs(s, err, healthlab.Conflict)
	require.Empty(s, s.read(store.Query{Key: k}), "the row that was written beside the taken value")
}

// join tests that an inner Update commits together with the outer one, and that a failed inner Update undoes only
// its own writes.
func (s suite) join() {
	team := newTeam()
	row := func(id string) store.Row { return store.Row{Key: key(plainTable, team, id)} }
	undo := errors.New("undo")
	inner := func(ctx context.Context, id string, err error) error {
		return s.Update(ctx, func(_ context.Context, tx store.Tx) error { tx.Put(row(id)); return err })
	}
	all := store.Query{Key: key(plainTable, team, ""), By: store.ByID}

	require.ErrorIs(s, s.Update(s.T.Context(), func(ctx context.Context, _ store.Tx) error {
		require.NoError(s, inner(ctx, "a", nil))
		rows, err := s.Read(ctx, all)
		require.NoError(s, err)
		require.Len(s, rows[0], 1, "a Read with the context of the transaction sees what it put")
		return undo
	}), undo)
	require.Empty(s, s.read(all))

	require.NoError(s, s.Update(s.T.Context(), func(ctx context.Context, tx store.Tx) error {
		tx.Put(row("b"))
		require.ErrorIs(s, inner(ctx, "c", undo), undo)
		return inner(ctx, "d", nil)
	}))
	require.Equal(s, []string{"b", "d"}, ids(s.read(all)))
}

// revisions tests that a row's Revision counts its writes, and that a write with a wrong Revision fails.
func (s suite) revisions() {
	k := key(plainTable, newTeam(), "a")
	s.put(store.Row{Key: k})
	for want := int64(1); want < 4; want++ {
		require.Equal(s, want, s.read(store.Query{Key: k})[0].Revision)
		require.NoError(s, change(s.T.Context(), s, k, func([]byte) []byte { return []byte("x") }))
	}
	for name, r := range map[string]store.Row{
		"new":     {Key: k},
		"older":   {Key: k, Revision: 2},
		"later":   {Key: k, Revision: 9},
		"missing": {Key: key(plainTable, k.Team, "b"), Revision: 1},
	} {
		err := s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error { tx.Put(r); return nil })
		require.Error(s, err, name)
	}
	require.EqualValues(s, 4, s.read(store.Query{Key: k})[0].Revision)
	for _, id := range []string{"a", "new"} { // one transaction puts the same row three times
		k.ID = id
		next := int64(0)
		s.update(func(tx store.Tx) error {
			old, err := get(tx, store.Query{Key: k}.Hold())
			next = old.Revision
			for range 3 {
				tx.Put(store.Row{Key: k, Revision: next})
				next++
			}
			return err
		})
		require.Equal(s, next, s.read(store.Query{Key: k})[0].Revision)
	}
}

// unique tests that neither an insertion nor a change gives two rows of a team the same unique value.
func (s suite) unique() {
	team := newTeam()
	row := func(team healthlab.TeamID, id, v string) store.Row {
		return store.Row{Key: key(uniqueTable, team, id), Index: [2]string{v, "same"}}
	}
	s.put(row(team, "a", "x"), row(team, "b", "y"), row(newTeam(), "a", "x"), row(team, "c", ""), row(team, "d", ""))
	taken := func(r store.Row) {
		s.Helper()
		err := s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
			old, err := get(tx, store.Query{Key: r.Key}.Hold())
			r.Revision = old.Revision
			tx.Put(r)
			return err
		})
		var e *store.TakenError
		require.ErrorAs(s, err, &e)
		require.Equal(s, store.TakenError{Table: uniqueTable, Index: 0}, *e)
	}
	taken(row(team, "e", "x"))
	taken(row(team, "b", "x"))
	s.update(func(tx store.Tx) error { // two rows swap their unique values in one transaction
		for id, v := range map[string]string{"a": "y", "b": "x"} {
			old, err := get(tx, store.Query{Key: key(uniqueTable, team, id)}.Hold())
			if err != nil {
				return err
			}
			old.Index[0] = v
			tx.Put(old)
		}
		return nil
	})
	s.update(func(tx store.Tx) error { tx.Delete(key(uniqueTable, team, "a")); return nil })
	s.put(row(team, "f", "y"))
	byValue := store.Query{Key: key(uniqueTable, team, ""), By: store.ByFirst}
	require.Equal(s, []string{"b"}, ids(s.read(byValue.Equal("x"))))
	require.Equal(s, []string{"f"}, ids(s.read(byValue.Equal("y"))))
}

// bytes tests that ranges order ids and index values by bytes, and that From is inclusive and To exclusive.
func (s suite) bytes() {
	team := newTeam()
	sorted := []string{"\x00", "\x00\x00", "\x00\x01", "\x01", "a", "a\x00", "a\x00\xff", "a\x01", "ab", "b", "\xfe", "\xff", "\xff\xff"}
	for i := range sorted { // inserted in an order that is not sorted
		v := sorted[(i*5)%len(sorted)]
		s.put(store.Row{Key: key(plainTable, team, v), Index: [2]string{v, v}})
	}
	for _, by := range []store.By{store.ByID, store.ByFirst, store.BySecond} {
		all := store.Query{Key: key(plainTable, team, ""), By: by}
		require.Equal(s, sorted, ids(s.read(all)))
		for i, from := range sorted {
			for j := i; j < len(sorted); j++ {
				q := all
				q.From, q.To = from, sorted[j]
				require.Equal(s, sorted[i:j], append([]string{}, ids(s.read(q))...), "%d from %q to %q", by, q.From, q.To)
			}
			require.Equal(s, []string{from}, ids(s.read(all.Equal(from))))
		}
		require.Equal(s, []string{"a", "a\x00", "a\x00\xff", "a\x01", "ab"}, ids(s.read(func() store.Query {
			q := all
			q.From, q.To = "a", store.End("a")
			return q
		}())))
	}
}

// severalRanges tests that each of several queries of one Read has its own answer.
func (s suite) severalRanges() {
	team := newTeam()
	for i := range 6 {
		s.put(store.Row{Key: key(plainTable, team, fmt.Sprint(i)), Due: time.UnixMicro(int64(i + 1))})
	}
	q := func(by store.By, from, to string) store.Query {
		return store.Query{Key: key(plainTable, team, from), By: by, From: from, To: to, Until: time.UnixMicro(2)}
	}
	qs := []store.Query{q(store.ByID, "0", "2"), q(store.ByKey, "5", ""), q(store.ByID, "2", "4"), q(store.ByID, "9", ""), q(store.ByID, "4", "")}
	want := [][]string{{"0", "1"}, {"5"}, {"2", "3"}, {}, {"4", "5"}}
	check := func(got [][]store.Row, err error) {
		s.Helper()
		require.NoError(s, err)
		require.Len(s, got, len(want))
		for i := range want {
			require.Equal(s, want[i], append([]string{}, ids(got[i])...))
		}
	}
	check(s.Read(s.T.Context(), qs...))
	s.update(func(tx store.Tx) error { check(tx.Read(qs...)); check(tx.Read(qs...)); return nil })
}

// pages tests that a reader of pages gets each unchanged row exactly once while other rows are written.
func (s suite) pages() {
	team := newTeam()
	for i := range 60 {
		s.put(store.Row{Key: key(plainTable, team, fmt.Sprintf("stays %02d", i))})
	}
	seen := map[string]int{}
	last := ""
	for n := 0; ; n++ {
		rows := s.read(store.Query{Key: key(plainTable, team, ""), By: store.ByID}.After(last, 7))
		if len(rows) == 0 {
			break
		}
		for _, r := range rows {
			seen[r.ID]++
		}
		last = rows[len(rows)-1].ID
		s.put(store.Row{Key: key(plainTable, team, fmt.Sprintf("stays %02d beside", n*11%60))})
	}
	for i := range 60 {
		require.Equal(s, 1, seen[fmt.Sprintf("stays %02d", i)])
	}
	for id, n := range seen {
		require.Equal(s, 1, n, id)
	}
}

// rules tests that an update that breaks a rule of locks fails on every engine.
func (s suite) rules() {
	team, user := newTeam(), newUser()
	k := key(plainTable, team, "a")
	mine := store.Row{Key: store.Key{Table: plainTable, Team: team, User: user, ID: "mine"}}
	s.put(store.Row{Key: k}, store.Row{Key: store.UserKey(team, user)})
	for _, c := range []struct {
		name   string
		broken bool
		run    func(tx store.Tx) error
	}{
		{"put after Shared", true, func(tx store.Tx) error {
			r, err := get(tx, store.Query{Key: k})
			tx.Put(r)
			return err
		}},
		{"put after a Plain range", true, func(tx store.Tx) error {
			rows, err := tx.Read(store.Query{Key: key(plainTable, team, ""), By: store.ByID, Lock: store.Plain})
			tx.Put(rows[0]...)
			return err
		}},
		{"delete after Shared", true, func(tx store.Tx) error {
			_, err := get(tx, store.Query{Key: k})
			tx.Delete(k)
			return err
		}},
		{"new row of a user whose row was not read", true, func(tx store.Tx) error { tx.Put(mine); return nil }},
		{"new row of a user whose row was read as Plain", true, func(tx store.Tx) error {
			_, err := get(tx, store.User(team, user).Unlocked())
			tx.Put(mine)
			return err
		}},
		{"id that is too long", true, func(tx store.Tx) error {
			tx.Put(store.Row{Key: key(plainTable, team, strings.Repeat("x", store.MaxID+1))})
			return nil
		}},
		{"table that is not declared", true, func(tx store.Tx) error {
			tx.Put(store.Row{Key: key("unknown", team, "a")})
			return nil
		}},
		{"put after Held", false, func(tx store.Tx) error {
			if _, err := get(tx, store.Query{Key: k}); err != nil {
				return err
			}
			r, err := get(tx, store.Query{Key: k}.Hold())
			tx.Put(r)
			return err
		}},
		{"new row of a locked user", false, func(tx store.Tx) error {
			_, err := store.LockUser(tx, team, user)
			tx.Put(mine)
			return err
		}},
		{"longest id", false, func(tx store.Tx) error {
			tx.Put(store.Row{Key: key(plainTable, team, strings.Repeat("\x00", store.MaxID))})
			return nil
		}},
	} {
		err := s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error { return c.run(tx) })
		require.Equal(s, c.broken, err != nil, "%s: %v", c.name, err)
	}
}

// context tests that Update and Read fail and write nothing once their context has ended.
func (s suite) context() {
	k := key(plainTable, newTeam(), "a")
	ended, cancel := context.WithCancel(s.T.Context())
	cancel()
	require.ErrorIs(s, s.Update(ended, func(_ context.Context, tx store.Tx) error {
		tx.Put(store.Row{Key: k})
		return nil
	}), context.Canceled)
	_, err := s.Read(ended, store.Query{Key: k})
	require.ErrorIs(s, err, context.Canceled)
	during, cancel := context.WithCancel(s.T.Context())
	require.ErrorIs(s, s.Update(during, func(_ context.Context, tx store.Tx) error {
		tx.Put(store.Row{Key: k})
		cancel()
		return nil
	}), context.Canceled)
	require.Empty(s, s.read(store.Query{Key: k}))
}

// afterCommit tests that functions passed to AfterCommit are called only if the transaction commits.
func (s suite) afterCommit() {
	k := key(plainTable, newTeam(), "a")
	var called []string
	run := func(name string, fail error) error {
		return s.Update(s.T.Context(), func(ctx context.Context, tx store.Tx) error {
			tx.AfterCommit(func() { //nolint:contextcheck // the transaction of ctx has ended
				require.Len(s, s.read(store.Query{Key: k}), 1)
				called = append(called, name)
			})
			_ = s.Update(ctx, func(_ context.Context, tx store.Tx) error {
				tx.AfterCommit(func() { called = append(called, "undone") })
				return errors.New("undo")
			})
			tx.Put(store.Row{Key: k})
			return fail
		})
	}
	require.Error(s, run("failed", errors.New("fail")))
	require.NoError(s, run("committed", nil))
	require.Equal(s, []string{"committed"}, called)
}

// trips tests that an Update with one Read costs two round trips (the Read and the commit), and a Read outside of a
// transaction one.
func (s suite) trips() {
	if s.h.Trips == nil {
		s.Skip("the engine has no trips")
	}
	team, user := newTeam(), newUser()
	k := store.Key{Table: plainTable, Team: team, User: user, ID: "a"}
	s.put(store.Row{Key: store.UserKey(team, user)})
	count := func(want int, run func()) {
		s.Helper()
		before := s.h.Trips()
		run()
		require.Equal(s, want, s.h.Trips()-before)
	}
	count(2, func() {
		s.update(func(tx store.Tx) error {
			want := []store.Query{store.User(team, user), store.Query{Key: k}.Hold(), {Key: key(plainTable, team, ""), By: store.ByID, Limit: 3}}
			if _, err := tx.Read(want...); err != nil {
				return err
			}
			if _, err := store.LockUser(tx, team, user); err != nil { // the first Read has answered it, so it costs no trip
				return err
			}
			r, err := get(tx, want[1])
			r.Key = k
			tx.Put(r, store.Row{Key: key(plainTable, team, "b")})
			return err
		})
	})
	count(1, func() { s.read(store.Query{Key: k}) })
	count(1, func() { s.put(store.Row{Key: key(plainTable, team, "c")}) })
}

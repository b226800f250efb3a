package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/store"
)

// workers is the number of concurrent transactions.
const workers = 8

func rounds() int { return prove.Counts(10, 20, 200) }

// race calls work concurrently from several goroutines (workers) and returns their errors. The goroutines alternate
// between the stores of two processes, if the harness has a second one.
func (s suite) race(work func(i int, store store.Store) error) []error {
	errs := make([]error, workers)
	stores := s.storePair()
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range workers {
		all.Go(func() {
			<-start
			errs[i] = work(i, stores[i%2])
		})
	}
	close(start)
	all.Wait()
	return errs
}

func number(doc []byte) int {
	n, err := strconv.Atoi(string(doc))
	if err != nil {
		return 0
	}
	return n
}

// lostUpdate tests that no concurrent increment of a row is lost, neither of an existing row nor of one that the
// first increment inserts.
func (s suite) lostUpdate() {
	for round := range rounds() {
		k := key(plainTable, newTeam(), "count")
		if round%2 == 0 {
			s.put(store.Row{Key: k, Doc: []byte("0")})
		}
		for _, err := range s.race(func(_ int, st store.Store) error {
			return change(s.T.Context(), st, k, func(doc []byte) []byte { return strconv.AppendInt(nil, int64(number(doc)+1), 10) })
		}) {
			require.NoError(s, err)
		}
		require.Equal(s, workers, number(s.read(store.Query{Key: k})[0].Doc))
	}
}

// skewOverRows tests a rule about two rows (at least one must be on) while concurrent transactions each switch off
// one of them.
func (s suite) skewOverRows() {
	for range rounds() {
		team := newTeam()
		a, b := key(plainTable, team, "a"), key(plainTable, team, "b")
		s.put(store.Row{Key: a, Doc: []byte("1")}, store.Row{Key: b, Doc: []byte("1")})
		for _, err := range s.race(func(i int, st store.Store) error {
			mine, other := a, b
			if i%2 == 1 {
				mine, other = b, a
			}
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				got, err := tx.Read(store.Query{Key: mine}.Hold(), store.Query{Key: other})
				if err != nil {
					return err
				}
				if r := got[0][0]; number(got[1][0].Doc) == 1 && number(r.Doc) == 1 {
					r.Doc = []byte("0")
					tx.Put(r)
				}
				return nil
			})
		}) {
			require.NoError(s, err)
		}
		require.Equal(s, 1, number(s.read(store.Query{Key: a})[0].Doc)+number(s.read(store.Query{Key: b})[0].Doc))
	}
}

// skewOverRange tests a rule about the number of rows. Each transaction that adds a row reads one head row with the
// lock Held.
func (s suite) skewOverRange() {
	const most = 3
	for range rounds() {
		team := newTeam()
		head := key(plainTable, team, "head")
		s.put(store.Row{Key: head})
		for _, err := range s.race(func(i int, st store.Store) error {
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				got, err := tx.Read(store.Query{Key: head}.Hold(), store.Query{Key: key(plainTable, team, ""), By: store.ByID, From: "item", To: "itemz", Lock: store.Plain})
				if err != nil || len(got[1]) >= most {
					return err
				}
				tx.Put(store.Row{Key: key(plainTable, team, fmt.Sprint("item", i))})
				return nil
			})
		}) {
			require.NoError(s, err)
		}
		require.Len(s, s.read(store.Query{Key: key(plainTable, team, ""), By: store.ByID, From: "item", To: "itemz"}), most)
	}
}

// erasure tests that uploads during an erasure leave no row of the person.
func (s suite) erasure() {
	gone := errors.New("the user is gone")
	for range rounds() {
		team, user := newTeam(), newUser()
		s.put(store.Row{Key: store.UserKey(team, user)})
		for _, err := range s.race(func(i int, st store.Store) error {
			if i == workers-1 {
				return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
					got, err := tx.Read(store.User(team, user).Hold(), store.Query{Key: store.Key{User: user}, By: store.ByUser, Lock: store.Held, Bare: true})
					if err != nil {
						return err
					}
					for _, r := range got[1] {
						tx.Delete(r.Key)
					}
					return nil
				})
			}
			err := st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				got, err := tx.Read(store.User(team, user))
				switch {
				case err != nil:
					return err
				case len(got[0]) == 0:
					return gone
				}
				tx.Put(store.Row{Key: store.Key{Table: plainTable, Team: team, User: user, ID: fmt.Sprint(i)}})
				return nil
			})
			if errors.Is(err, gone) {
				return nil
			}
			return err
		}) {
			require.NoError(s, err)
		}
		require.Empty(s, s.read(store.Query{Key: store.Key{User: user}, By: store.ByUser}))
	}
}

// absentUser tests that a user without a row can be locked, for hosts that store their users elsewhere.
// Transactions that hold this lock can count the user's rows. A row that is added during an erasure is deleted by
// the erasure, or its transaction sees the mark of the erasure and adds nothing.
func (s suite) absentUser() {
	const most = 3
	for range rounds() {
		team, user := newTeam(), newUser()
		mark := key(plainTable, team, "erased")
		rows := store.Query{Key: store.Key{Table: uniqueTable, User: user}, By: store.ByUser, Lock: store.Plain}
		add := func(i int, st store.Store, q store.Query) error {
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				got, err := tx.Read(q, store.Query{Key: mark, Lock: store.Plain}, rows)
				if err != nil || len(got[1]) > 0 || q.Lock == store.Held && len(got[2]) >= most {
					return err
				}
				tx.Put(store.Row{Key: store.Key{Table: uniqueTable, Team: team, User: user, ID: fmt.Sprint(i)}})
				return nil
			})
		}
		for _, err := range s.race(func(i int, st store.Store) error { return add(i, st, store.User(team, user).Hold()) }) {
			require.NoError(s, err)
		}
		require.Len(s, s.read(rows), most)
		for _, err := range s.race(func(i int, st store.Store) error {
			if i != workers-1 {
				return add(most+workers+i, st, store.User(team, user))
			}
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				got, err := tx.Read(store.User(team, user).Hold(), store.Query{Key: store.Key{User: user}, By: store.ByUser, Lock: store.Held, Bare: true})
				if err != nil {
					return err
				}
				for _, r := range got[1] {
					tx.Delete(r.Key)
				}
				tx.Put(store.Row{Key: mark})
				return nil
			})
		}) {
			require.NoError(s, err)
		}
		require.Empty(s, s.read(rows))
	}
}

// madeUser tests that no user is inserted while a transaction that found no user adds rows: a transaction that
// finds the user sees all rows that were added before it.
func (s suite) madeUser() {
	for range rounds() {
		team, user := newTeam(), newUser()
		rows := store.Query{Key: store.Key{Table: plainTable, User: user}, By: store.ByUser, Lock: store.Plain}
		var seen atomic.Int64
		for _, err := range s.race(func(i int, st store.Store) error {
			for again := true; again; {
				err := st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
					again = false
					got, err := tx.Read(store.User(team, user), rows)
					switch {
					case err != nil:
						return err
					case i == workers-1:
						tx.Put(store.Row{Key: store.UserKey(team, user)})
					case i == workers-2:
						again = len(got[0]) == 0
						seen.Store(int64(len(got[1])))
					case len(got[0]) == 0:
						tx.Put(store.Row{Key: store.Key{Table: plainTable, Team: team, User: user, ID: fmt.Sprint(i)}})
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		}) {
			require.NoError(s, err)
		}
		require.Len(s, s.read(rows), int(seen.Load()))
	}
}

// order tests that commits have the order of their revisions: the stored value of a row is that of the change with
// the highest Revision.
func (s suite) order() {
	for range rounds() {
		team := newTeam()
		k := key(plainTable, team, "row")
		s.put(store.Row{Key: k})
		for _, err := range s.race(func(i int, st store.Store) error {
			return st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				r, err := get(tx, store.Query{Key: k}.Hold())
				if err != nil {
					return err
				}
				r.Doc = []byte(fmt.Sprint(i))
				tx.Put(r, store.Row{Key: key(plainTable, team, "event"+store.Int(r.Revision)), Doc: r.Doc})
				return nil
			})
		}) {
			require.NoError(s, err)
		}
		events := s.read(store.Query{Key: key(plainTable, team, ""), By: store.ByID, From: "event", To: "evenu"})
		require.Len(s, events, workers)
		require.Equal(s, s.read(store.Query{Key: k})[0].Doc, events[workers-1].Doc)
	}
}

// claims tests that two workers never claim the same row before its lease ends, and that rows are claimed in the
// order of Due.
func (s suite) claims() {
	team := newTeam()
	var rows []store.Row
	const all = 40
	for i := range all {
		rows = append(rows, store.Row{Key: key(plainTable, team, fmt.Sprintf("%02d", i)), Due: time.UnixMicro(int64(i + 1))})
	}
	s.put(rows...)
	due := func(until time.Time, n int) store.Query {
		return store.Query{Key: key(plainTable, team, ""), By: store.ByDue, Until: until, Limit: n, Lock: store.Skip}
	}
	s.update(func(tx store.Tx) error {
		got, err := tx.Read(due(time.UnixMicro(5), 0))
		require.NoError(s, err)
		require.Equal(s, []string{"00", "01", "02", "03", "04"}, ids(got[0]))
		return nil
	})
	var mu sync.Mutex
	claimed := map[string]int{}
	for _, err := range s.race(func(_ int, st store.Store) error {
		for {
			var mine []string
			err := st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
				mine = nil
				got, err := tx.Read(due(tx.Now(), 3))
				if err != nil {
					return err
				}
				for _, r := range got[0] {
					r.Due = tx.Now().Add(time.Hour)
					tx.Put(r)
					mine = append(mine, r.ID)
				}
				return nil
			})
			if err != nil {
				return err
			}
			mu.Lock()
			for _, id := range mine {
				claimed[id]++
			}
			done := len(claimed) == all
			mu.Unlock()
			if done {
				return nil
			}
		}
	}) {
		require.NoError(s, err)
	}
	for id, n := range claimed {
		require.Equal(s, 1, n, id)
	}
}

// snapshot tests that all queries of one Read see the same commits: no Read sees a part of a transaction.
func (s suite) snapshot() {
	team := newTeam()
	a, b := key(plainTable, team, "a"), key(plainTable, team, "b")
	s.put(store.Row{Key: a, Doc: []byte("0")}, store.Row{Key: b, Doc: []byte("0")})
	for _, err := range s.race(func(i int, st store.Store) error {
		for range 20 {
			if i%2 == 0 {
				err := st.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error {
					got, err := tx.Read(store.Query{Key: a}.Hold(), store.Query{Key: b}.Hold())
					if err != nil {
						return err
					}
					for _, rows := range got {
						r := rows[0]
						r.Doc = strconv.AppendInt(nil, int64(number(r.Doc)+1), 10)
						tx.Put(r)
					}
					return nil
				})
				if err != nil {
					return err
				}
				continue
			}
			got, err := st.Read(s.T.Context(), store.Query{Key: a}, store.Query{Key: b})
			if err != nil {
				return err
			}
			if x, y := string(got[0][0].Doc), string(got[1][0].Doc); x != y {
				return fmt.Errorf("one Read saw %s and %s", x, y)
			}
		}
		return nil
	}) {
		require.NoError(s, err)
	}
}

// numbers tests that a counter row gives each number once, even after the row with a number was deleted. It also tests
// that a row that is put after its deletion begins at Revision 1.
func (s suite) numbers() {
	team := newTeam()
	counter := key(plainTable, team, "counter")
	s.put(store.Row{Key: counter, Doc: []byte("0")})
	given := map[int]bool{}
	for range 10 {
		var n int
		s.update(func(tx store.Tx) error {
			r, err := get(tx, store.Query{Key: counter}.Hold())
			if err != nil {
				return err
			}
			n = number(r.Doc) + 1
			r.Doc = strconv.AppendInt(nil, int64(n), 10)
			tx.Put(r, store.Row{Key: key(plainTable, team, "item"+store.Int(int64(n)))})
			return nil
		})
		require.False(s, given[n], "number %d was given twice", n)
		given[n] = true
		s.update(func(tx store.Tx) error { tx.Delete(key(plainTable, team, "item"+store.Int(int64(n)))); return nil })
	}
	k := key(plainTable, team, "row") // a row that is put after its deletion begins at revision 1
	for range 3 {
		s.put(store.Row{Key: k})
		require.EqualValues(s, 1, s.read(store.Query{Key: k})[0].Revision)
		s.update(func(tx store.Tx) error { tx.Delete(k); return nil })
	}
}

package storetest_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// Each of these engines breaks one promise; the suite must find it.
func TestBrokenEngines_eachFailsTheSuite(t *testing.T) {
	list := func(name, subtest string, broken func(*memstore.Engine) store.Store) conformance.Broken {
		return conformance.Broken{Name: name, Subtest: subtest, Suite: func(t *testing.T) {
			storetest.Run(t, func(testing.TB) storetest.Harness {
				return storetest.Harness{Store: broken(engine(storetest.Tables()))}
			})
		}}
	}
	answers := func(mangle func(q []store.Query, rows [][]store.Row)) func(*memstore.Engine) store.Store {
		return func(e *memstore.Engine) store.Store { return tampered{Store: e, answers: mangle} }
	}
	queries := func(mangle func(q *store.Query)) func(*memstore.Engine) store.Store {
		return func(e *memstore.Engine) store.Store { return tampered{Store: e, queries: mangle} }
	}
	conformance.RunBroken(t, []conformance.Broken{
		list("no guard", "Anomaly/LostUpdate", func(e *memstore.Engine) store.Store { return unlocked{Engine: e, unguarded: true} }),
		list("swapped order", "Order", func(e *memstore.Engine) store.Store { return unlocked{Engine: e, unguarded: true} }),
		list("no lock on rows", "Anomaly/SkewOverRows", func(e *memstore.Engine) store.Store { return unlocked{Engine: e} }),
		list("no lock on ranges", "Anomaly/SkewOverRange", func(e *memstore.Engine) store.Store { return unlocked{Engine: e} }),
		list("no lock on users", "Anomaly/Erasure", func(e *memstore.Engine) store.Store { return unlocked{Engine: e} }),
		list("no lock on absent users", "Anomaly/AbsentUser", func(e *memstore.Engine) store.Store { return unlocked{Engine: e} }),
		list("users made beside a lock", "Anomaly/MadeUser", func(e *memstore.Engine) store.Store { return unlocked{Engine: e} }),
		list("no guard of rows of users", "PerUser", func(e *memstore.Engine) store.Store { return unlocked{Engine: e, unguarded: true} }),
		list("claims of all", "Claims", func(e *memstore.Engine) store.Store { return unlocked{Engine: e, unguarded: true} }),
		list("the first of several ranges alone", "Range/Several", answers(func(q []store.Query, rows [][]store.Row) {
			for i := range rows[1:] {
				if q[i+1].By != store.ByKey {
					rows[i+1] = nil
				}
			}
		})),
		list("upper border inclusive", "Range/Bytes", queries(func(q *store.Query) {
			if q.To != "" {
				q.To += "\x00"
			}
		})),
		list("lower border exclusive", "Range/Bytes", queries(func(q *store.Query) {
			if q.From != "" {
				q.From += "\x00"
			}
		})),
		list("due border exclusive", "Claims", queries(func(q *store.Query) { q.Until = q.Until.Add(-time.Microsecond) })),
		list("a row left out between pages", "Range/Pages", answers(func(q []store.Query, rows [][]store.Row) {
			if q[0].Limit > 1 && q[0].From != "" && len(rows[0]) > 0 {
				rows[0] = rows[0][1:]
			}
		})),
		list("one row for each of many values", "Many", answers(func(q []store.Query, rows [][]store.Row) {
			for i := range rows {
				if len(q) > 9 && q[i].By != store.ByKey && len(rows[i]) > 0 {
					rows[i] = rows[i][:1]
				}
			}
		})),
		list("no guard of many rows", "Many", func(e *memstore.Engine) store.Store { return unlocked{Engine: e, unguarded: true} }),
		list("ascending alone", "Histories", queries(func(q *store.Query) { q.Desc = false })),
		list("no limit", "Histories", queries(func(q *store.Query) { q.Limit = 0 })),
		list("a number given twice after a deletion", "Numbers", func(e *memstore.Engine) store.Store {
			return tampered{Store: e, puts: func(tx store.Tx, r *store.Row) {
				if string(r.Doc) != "" && r.ID == "counter" { // counts what is there
					rows, err := tx.Read(store.Query{Key: r.Key, By: store.ByID, From: "item", To: "itemz", Lock: store.Plain})
					if err == nil {
						r.Doc = []byte{byte('0' + len(rows[0]))}
					}
				}
			}}
		}),
		list("no unique values", "Unique", func(*memstore.Engine) store.Store {
			tables := storetest.Tables()
			for i := range tables {
				tables[i].Unique = [2]bool{}
			}
			return engine(tables)
		}),
		list("no joining", "Join", func(e *memstore.Engine) store.Store { return apart{e} }),
		list("no rollback", "Rollback", func(e *memstore.Engine) store.Store { return stubborn{e} }),
		list("no revisions", "Revisions", func(e *memstore.Engine) store.Store { return unlocked{Engine: e, unguarded: true} }),
		list("writes after the context ended", "Context", func(e *memstore.Engine) store.Store { return endless{e} }),
		list("a snapshot for each query", "Snapshot", func(e *memstore.Engine) store.Store { return oneByOne{e} }),
		list("calls before the commit", "AfterCommit", func(e *memstore.Engine) store.Store { return early{e} }),
	})
}

func engine(tables []store.Definition) *memstore.Engine {
	e, err := memstore.New(tables, nil)
	if err != nil {
		panic(err) // the tables have different names
	}
	return e
}

// unlocked runs updates beside each other on what they read without locks. Unguarded, it writes
// whatever revision is stored.
type unlocked struct {
	*memstore.Engine
	unguarded bool
}

func (u unlocked) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if joined, err := store.Join(ctx, u, run); joined {
		return err
	}
	for {
		b := store.NewBuffer(time.Now(), func(q []store.Query) ([][]store.Row, error) {
			rows, err := u.Engine.Read(ctx, q...)
			runtime.Gosched()
			return rows, err
		})
		if err := b.Run(ctx, u, run); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond) // others run between reading and writing
		err := u.Engine.Update(ctx, func(_ context.Context, tx store.Tx) error { return u.write(tx, b.Writes()) })
		if !errors.Is(err, store.ErrStale) {
			if err == nil {
				b.Committed()
			}
			return err
		}
	}
}

func (u unlocked) write(tx store.Tx, writes []store.Write) error {
	for _, w := range writes {
		r := w.Row
		r.Revision = w.Was
		if !r.User.IsZero() {
			if _, err := store.LockUser(tx, r.Team, r.User); err != nil {
				return err
			}
		}
		if u.unguarded {
			got, err := tx.Read(store.Query{Key: r.Key}.Hold())
			if err != nil {
				return err
			}
			r.Revision = 0
			if len(got[0]) > 0 {
				r.Revision = got[0][0].Revision
			}
		}
		if w.Gone {
			tx.Delete(r.Key)
		} else {
			tx.Put(r)
		}
	}
	return nil
}

func (u unlocked) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if rows, joined, err := store.JoinRead(ctx, u, q); joined {
		return rows, err
	}
	return u.Engine.Read(ctx, q...)
}

// tampered changes queries, answers or rows on their way.
type tampered struct {
	store.Store
	queries func(*store.Query)
	answers func([]store.Query, [][]store.Row)
	puts    func(store.Tx, *store.Row)
}

func (s tampered) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return run(ctx, tamperedTx{tx, s}) })
}

func (s tampered) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	return s.read(func(q ...store.Query) ([][]store.Row, error) { return s.Store.Read(ctx, q...) }, q)
}

func (s tampered) read(read func(...store.Query) ([][]store.Row, error), q []store.Query) ([][]store.Row, error) {
	asked := append([]store.Query{}, q...)
	for i := range asked {
		if s.queries != nil {
			s.queries(&asked[i])
		}
	}
	rows, err := read(asked...)
	if err == nil && s.answers != nil {
		s.answers(q, rows)
	}
	return rows, err
}

type tamperedTx struct {
	store.Tx
	s tampered
}

func (t tamperedTx) Read(q ...store.Query) ([][]store.Row, error) { return t.s.read(t.Tx.Read, q) }

func (t tamperedTx) Put(rows ...store.Row) {
	for _, r := range rows {
		if t.s.puts != nil {
			t.s.puts(t.Tx, &r)
		}
		t.Tx.Put(r)
	}
}

// apart runs an inner update in a transaction of its own.
type apart struct{ *memstore.Engine }

func (s apart) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	inner := engine(storetest.Tables())
	return s.Engine.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		return run(context.WithValue(context.WithoutCancel(ctx), noJoin{}, inner), tx)
	})
}

type noJoin struct{}

func (s apart) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if inner, ok := ctx.Value(noJoin{}).(*memstore.Engine); ok {
		return inner.Read(context.Background(), q...)
	}
	return s.Engine.Read(ctx, q...)
}

// stubborn commits what a failed run put.
type stubborn struct{ *memstore.Engine }

func (s stubborn) Update(ctx context.Context, run func(context.Context, store.Tx) error) (err error) {
	if lost := s.Engine.Update(ctx, func(ctx context.Context, tx store.Tx) error { err = run(ctx, tx); return nil }); lost != nil {
		return lost
	}
	return err
}

// endless does not look at the end of a context.
type endless struct{ *memstore.Engine }

func (s endless) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return s.Engine.Update(context.WithoutCancel(ctx), run)
}

// oneByOne answers each query from a snapshot of its own.
type oneByOne struct{ *memstore.Engine }

func (s oneByOne) Read(ctx context.Context, q ...store.Query) (out [][]store.Row, err error) {
	for _, one := range q {
		rows, err := s.Engine.Read(ctx, one)
		if err != nil {
			return nil, err
		}
		out = append(out, rows[0])
		time.Sleep(100 * time.Microsecond)
	}
	return out, nil
}

// early calls what is to be called after the commit at once.
type early struct{ *memstore.Engine }

func (s early) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return s.Engine.Update(ctx, func(ctx context.Context, tx store.Tx) error { return run(ctx, earlyTx{tx}) })
}

type earlyTx struct{ store.Tx }

func (t earlyTx) AfterCommit(f func()) { f() }

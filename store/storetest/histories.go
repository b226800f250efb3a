package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/store"
)

// model is the expected content of a store, as a slice of rows in no order. Queries scan all of it.
type model []store.Row

func (m model) clone() model { return slices.Clone(m) }

func (m model) at(k store.Key) int {
	return slices.IndexFunc(m, func(r store.Row) bool { return r.Table == k.Table && r.Team == k.Team && r.ID == k.ID })
}

// answer returns the rows that the store must answer a query with, as the comments of [store.By] say.
func (m model) answer(q store.Query) []store.Row {
	var out []store.Row
	within := func(v string) bool { return v >= q.From && (q.To == "" || v < q.To) }
	for _, r := range m {
		own := r.Table == q.Table && r.Team == q.Team
		fits := false
		switch q.By {
		case store.ByKey:
			fits = own && r.ID == q.ID
		case store.ByID:
			fits = own && within(r.ID)
		case store.ByFirst:
			fits = own && r.Index[0] != "" && within(r.Index[0])
		case store.BySecond:
			fits = own && r.Index[1] != "" && within(r.Index[1])
		case store.ByUser:
			fits = r.User == q.User && (q.Table == "" || r.Table == q.Table) && within(r.ID)
		case store.ByDue:
			fits = r.Table == q.Table && !r.Due.IsZero() && !r.Due.After(q.Until)
		}
		if fits {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b store.Row) int {
		by := []func(store.Row) string{func(r store.Row) string { return r.ID }}
		team := func(r store.Row) string { return string(r.Team.UUID[:]) }
		switch q.By {
		case store.ByFirst:
			by = append([]func(store.Row) string{func(r store.Row) string { return r.Index[0] }}, by...)
		case store.BySecond:
			by = append([]func(store.Row) string{func(r store.Row) string { return r.Index[1] }}, by...)
		case store.ByUser:
			by = append([]func(store.Row) string{func(r store.Row) string { return r.Table }, team}, by...)
		case store.ByDue:
			by = append([]func(store.Row) string{func(r store.Row) string { return store.Time(r.Due) }, team}, by...)
		case store.ByKey, store.ByID:
		}
		for _, f := range by {
			if c := strings.Compare(f(a), f(b)); c != 0 {
				if q.Desc {
					return -c
				}
				return c
			}
		}
		return 0
	})
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return store.CopyRows(out, q.Bare)
}

// write returns the model after a row was put, or deleted if gone.
func (m model) write(r store.Row, gone bool) model {
	i := m.at(r.Key)
	if gone {
		if i >= 0 {
			return slices.Delete(m, i, i+1)
		}
		return m
	}
	r.Revision++
	if i >= 0 {
		m[i] = r
		return m
	}
	return append(m, r)
}

// hasDuplicate reports whether two rows of one team share a unique value.
func (m model) hasDuplicate() bool {
	seen := map[string]bool{}
	for _, r := range m {
		if r.Index[0] == "" || r.Table == plainTable {
			continue
		}
		k := r.Table + "\x00" + string(r.Team.UUID[:]) + r.Index[0]
		if seen[k] {
			return true
		}
		seen[k] = true
	}
	return false
}

// history makes random transactions on few teams, users and ids, so that their writes often collide.
type history struct {
	*rand.Rand
	teams []healthlab.TeamID
	users []healthlab.UserID
}

var errUndo = errors.New("undo")

func newHistory(seed uint64) history {
	h := history{Rand: rand.New(rand.NewPCG(seed, 1))}
	id := func() (u uuid.UUID) {
		for i := range u {
			u[i] = byte(h.Uint32())
		}
		return u
	}
	h.teams = []healthlab.TeamID{{}, {UUID: id()}, {UUID: id()}}
	h.users = []healthlab.UserID{{}, {UUID: id()}, {UUID: id()}}
	return h
}

// value returns a random string of least to least+2 bytes that engines easily confuse, such as 0, 254 and 255.
func (h history) value(least int) string {
	const bytes = "\x00\x01ab\xfe\xff"
	b := make([]byte, least+h.IntN(3))
	for i := range b {
		b[i] = bytes[h.IntN(len(bytes))]
	}
	return string(b)
}

func (h history) table() string { return []string{plainTable, uniqueTable}[h.IntN(2)] }

func (h history) due() time.Time {
	if h.IntN(2) == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(h.IntN(6))).UTC()
}

func (h history) query() store.Query {
	q := store.Query{
		Key: store.Key{Table: h.table(), Team: h.teams[h.IntN(3)], User: h.users[1+h.IntN(2)], ID: h.value(1)},
		By:  store.By(h.IntN(6)), Until: time.UnixMicro(int64(h.IntN(6))).UTC(),
		Desc: h.IntN(2) == 0, Lock: store.Lock(h.IntN(3)), Bare: h.IntN(4) == 0,
	}
	if h.IntN(2) == 0 {
		q.Limit = 1 + h.IntN(4)
	}
	if h.IntN(2) == 0 {
		q.From = h.value(0)
	}
	if h.IntN(2) == 0 {
		q.To = h.value(0)
	}
	if q.By == store.ByUser && h.IntN(2) == 0 {
		q.Table = ""
	}
	return q
}

// steps makes random reads and writes both in a transaction and in the model, and requires equal answers. It
// returns the changed model.
func (h history) steps(s suite, ctx context.Context, tx store.Tx, m model) (model, error) { //nolint:revive // the context is that of the transaction
	for range 1 + h.IntN(4) {
		switch h.IntN(5) {
		case 0, 1:
			qs := make([]store.Query, 1+h.IntN(3))
			for i := range qs {
				qs[i] = h.query()
			}
			got, err := tx.Read(qs...)
			if err != nil {
				return m, err
			}
			for i, q := range qs {
				s.requireAnswer(m.answer(q), got[i], q)
			}
		case 2, 3:
			k := store.Key{Table: h.table(), Team: h.teams[h.IntN(3)], User: h.users[h.IntN(3)], ID: h.value(1)}
			if !k.User.IsZero() {
				if _, err := store.LockUser(tx, k.Team, k.User); err != nil {
					return m, err
				}
			}
			r, err := get(tx, store.Query{Key: k}.Hold())
			if err != nil {
				return m, err
			}
			if r.Revision > 0 && h.IntN(3) == 0 {
				tx.Delete(r.Key)
				m = m.write(r, true)
				continue
			}
			if r.Revision == 0 {
				r.Key = k
			}
			r.Due, r.Index, r.Doc = h.due(), [2]string{h.value(0), h.value(0)}, []byte(h.value(0)+"doc")
			tx.Put(r)
			was := r.Revision
			if i := m.at(r.Key); i >= 0 {
				was = m[i].Revision
			}
			r.Revision = was
			m = m.write(r, false)
		default:
			inner, fail := m.clone(), h.IntN(2) == 0
			err := s.Update(ctx, func(ctx context.Context, tx store.Tx) (err error) {
				if inner, err = h.steps(s, ctx, tx, inner); err != nil {
					return err
				}
				if fail {
					return errUndo
				}
				return nil
			})
			switch {
			case err == nil:
				m = inner
			case !errors.Is(err, errUndo):
				return m, err
			}
		}
	}
	return m, nil
}

// requireAnswer requires that a store's answer equals that of the model, except for revisions, which [suite.revisions]
// tests.
func (s suite) requireAnswer(want, got []store.Row, q store.Query) {
	s.Helper()
	require.Equal(s, len(want), len(got), "%+v", q)
	for i := range want {
		w, g := want[i], got[i]
		w.Revision, g.Revision = 0, 0
		if len(w.Doc) == 0 && len(g.Doc) == 0 {
			w.Doc, g.Doc = nil, nil
		}
		require.Equal(s, w, g, "%+v", q)
	}
}

// histories runs random transactions on the store and on a model, and requires equal answers.
func (s suite) histories() {
	for seed := range prove.Count(150, 2_000) {
		h := newHistory(uint64(seed))
		m := model{}
		for range 6 {
			var next model
			fail := h.IntN(5) == 0
			err := s.Update(s.T.Context(), func(ctx context.Context, tx store.Tx) (err error) {
				if next, err = h.steps(s, ctx, tx, m.clone()); err != nil {
					return err
				}
				if fail {
					return errUndo
				}
				return nil
			})
			switch {
			case err == nil:
				require.False(s, next.hasDuplicate(), "seed %d", seed)
				m = next
			case errors.Is(err, errUndo):
			case errors.Is(err, healthlab.Conflict):
				require.True(s, next.hasDuplicate(), "seed %d", seed)
			default:
				require.NoError(s, err, "seed %d", seed)
			}
			for range 4 {
				q := h.query()
				s.requireAnswer(m.answer(q), s.read(q), q)
			}
		}
		s.update(func(tx store.Tx) error { // the next history begins with an empty store
			for _, r := range m {
				tx.Delete(r.Key)
			}
			return nil
		})
	}
}

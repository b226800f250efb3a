package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/personkey"
)

const removeRecords = `
delete from healthlab.record where user_id = $1 and team_id = $2 and resource = $3 and id = any ($4)
returning index_at`

// Remove removes records under the lock of their user, as they are written, and samples under
// that of their series.
func (d data) Remove(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, r healthdata.Removal) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := healthdata.CheckRemoval(&r); err != nil {
		return 0, err
	}
	k := userKey{team, user}
	if err := d.s.samples.Load(ctx, []personkey.Ref{k.owner()}); err != nil {
		return 0, err
	}
	n := 0
	err := d.s.db.Do(ctx, team, db.Writing, func(u *db.Tx) error {
		n = 0
		parts := 0
		m := &merging{s: d.s, u: u}
		b := u.Batch()
		lock := shareLiveUser // a merge may hold a series and wait for its user
		if len(r.IDs)+len(r.PartIDs) > 0 {
			lock = lockLiveUser
		}
		b.Queue(lock, team.UUID, user.UUID).QueryRow(func(row pgx.Row) error {
			var found any
			return row.Scan(&found)
		})
		m.dropRecords(b, k, r.Resource, r.IDs, &n)
		m.dropRecords(b, k, r.Parts, r.PartIDs, &parts)
		wanted := map[healthdata.SeriesKey]*healthdata.SampleRemoval{}
		for i := range r.Samples {
			s := &r.Samples[i]
			if len(s.Times) == 0 {
				continue
			}
			wanted[s.Key] = s
			cells := s.Span.Points(s.Times)
			m.lines = append(m.lines, &line{userKey: k, key: s.Key, box: d.s.seriesOf(k, &s.Key), span: s.Span, parts: []*part{{cells: cells}}})
		}
		slices.SortFunc(m.lines, func(a, b *line) int { return a.key.Compare(b.key) })
		m.queueLock(b, m.lines)
		if err := u.Send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
			return noLiveUser()
		} else if err != nil {
			return err
		}
		m.lines = slices.DeleteFunc(m.lines, func(l *line) bool { return !l.found })
		if err := m.fetch(ctx, m.lines); err != nil {
			return err
		}
		var w seriesWrites
		for _, l := range m.lines {
			of := wanted[l.key]
			c, removed, err := series.Remove(l.body, l.log(), of.Times, of.Of, l.span)
			if err != nil {
				return db.Answer(err)
			}
			if removed == 0 {
				continue
			}
			n += removed
			m.news.add(k, l.key.Resource, of.Times[0], of.Times[len(of.Times)-1])
			if err := w.change(ctx, l, &c); err != nil {
				return err
			}
		}
		if n+parts == 0 {
			return nil
		}
		b = u.Batch()
		w.queue(b, d.s)
		m.news.queue(b)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// dropRecords removes records and counts those that were there.
func (m *merging) dropRecords(b *pgx.Batch, k userKey, resource string, ids []uuid.UUID, count *int) {
	if len(ids) == 0 {
		return
	}
	b.Queue(removeRecords, k.user.UUID, k.team.UUID, resource, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var at time.Time
			if err := rows.Scan(&at); err != nil {
				return err
			}
			m.news.add(k, resource, at.UnixMicro(), at.UnixMicro())
			*count++
		}
		return rows.Err()
	})
}

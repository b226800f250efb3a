package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/personkey"
)

const selectLiveUser = `select 1 from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null`

// View holds a connection and its snapshot for as long as read runs. In a host's
// transaction it sees what that sees: one state where the host chose repeatable read.
func (d data) View(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
	return d.s.db.Do(ctx, team, db.Reading, func(u *db.Tx) error {
		b := u.Batch()
		found := false
		b.Queue(selectLiveUser, team.UUID, user.UUID).Query(func(rows pgx.Rows) error {
			found = rows.Next()
			return rows.Err()
		})
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		if !found {
			return noLiveUser()
		}
		u.Once() // read runs once
		if err := read(&view{s: d.s, u: u, team: team, user: user}); err != nil {
			return db.Answer(err)
		}
		return nil
	})
}

// view is one user's data in one snapshot.
type view struct {
	s    *Store
	u    *db.Tx
	team healthlab.TeamID
	user healthlab.UserID
	// numbers are those of the series that were returned, so that Load need not ask.
	numbers map[healthdata.SeriesKey]int32
}

// ask runs one statement.
func (v *view) ask(ctx context.Context, read func(pgx.Rows) error, sql string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := v.u.Batch()
	b.Queue(sql, args...).Query(read)
	return db.Classify(ctx, v.u.Send(ctx, b))
}

func (v *view) Records(ctx context.Context, q healthdata.RecordQuery) ([]healthdata.Record, error) {
	if err := healthlab.CheckText(q.Resource, q.Provider); err != nil {
		return nil, err
	}
	from, to := db.Nullable(q.From), db.Nullable(q.To)
	if from != nil {
		// What is kept is whole microseconds; a bound between two keeps the later.
		*from = db.Instant(from.Add(time.Microsecond - time.Nanosecond))
	}
	if to != nil {
		*to = db.Instant(*to)
	}
	out := []healthdata.Record{}
	err := v.ask(ctx, func(rows pgx.Rows) error {
		for rows.Next() {
			r, err := scanRecord(rows)
			if err != nil {
				return err
			}
			out = append(out, r)
		}
		return rows.Err()
	}, selectRecords, v.user.UUID, v.team.UUID, q.Resource, from, to, q.Provider, db.Optional(q.ID), q.Raw)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if err := v.s.openRecord(ctx, personkey.Ref{Team: v.team, User: v.user}, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const (
	selectSeries = `
select series, resource, provider, source_type, part, case when tail_at < $5 and not tail_closed then tail end, segments > 0
from healthlab.series
where user_id = $1 and team_id = $2 and resource = any ($3) and ($6 = '' or provider = $6)
	and ($7::text is null or (resource, provider, source_type, part) = ($7, $8::text, $9::text, $10::text)) and last_at >= $4
order by resource, provider, source_type, part`

	// The chunk that reaches into a range from before it is the last one that begins
	// at or before it, since chunks do not overlap.
	selectHeaders = `
select c.series, c.start_at, c.header
from unnest($3::integer[]) as s (series)
join healthlab.chunk c on c.user_id = $1 and c.team_id = $2 and c.series = s.series and c.start_at < $5 and c.stop_at >= $4
	and c.start_at >= coalesce((select max(p.start_at) from healthlab.chunk p
		where p.user_id = $1 and p.series = s.series and p.start_at <= $4), $4)
order by c.series, c.start_at`

	selectSegments = `
select series, start_at, header, data
from healthlab.segment
where user_id = $1 and team_id = $2 and series = any ($3) and start_at < $5 and stop_at >= $4
order by series, seq`
)

func (v *view) Series(ctx context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := healthlab.CheckText(append([]string{q.Provider}, q.Resources...)...); err != nil {
		return nil, err
	}
	from, to := q.From, q.To
	if from == 0 && to == 0 {
		from, to = math.MinInt64, math.MaxInt64
	}
	args := []any{v.user.UUID, v.team.UUID, q.Resources, from, to, q.Provider, nil, nil, nil, nil}
	if k := q.Key; k != nil {
		if !k.Storable() {
			return []healthdata.Series{}, nil
		}
		args = append(args[:6], &k.Resource, k.Provider, string(k.SourceType), k.Part)
	}
	var found []numbered
	var numbers []int32
	var segments bool
	err := v.ask(ctx, func(rows pgx.Rows) error {
		var n numbered
		var some bool
		k := &n.Key
		_, err := pgx.ForEachRow(rows, []any{&n.number, &k.Resource, &k.Provider, (*string)(&k.SourceType), &k.Part, &n.tail, &some}, func() error {
			n.box = v.s.seriesOf(userKey{v.team, v.user}, k)
			found, numbers, segments = append(found, n), append(numbers, n.number), segments || some
			return nil
		})
		return err
	}, selectSeries, args...)
	if err != nil || len(found) == 0 {
		return []healthdata.Series{}, err
	}
	args = []any{v.user.UUID, v.team.UUID, numbers, from, to}
	of := byNumber(found)
	b := v.u.Batch()
	b.Queue(selectHeaders, args...).Query(func(rows pgx.Rows) error { return scanHeaders(ctx, rows, of) })
	if segments {
		b.Queue(selectSegments, args...).Query(func(rows pgx.Rows) error { return scanSegments(ctx, rows, of) })
	}
	if err := v.u.Send(ctx, b); err != nil {
		return nil, db.Classify(ctx, err)
	}
	if v.numbers == nil {
		v.numbers = map[healthdata.SeriesKey]int32{}
	}
	out := []healthdata.Series{}
	for _, s := range found {
		v.numbers[s.Key] = s.number
		if s.tail != nil {
			g, err := s.box.ReadTail(ctx, s.tail)
			if err != nil {
				return nil, err
			}
			if g.Overlaps(from, to) {
				s.Pending = append(s.Pending, g)
			}
		}
		if len(s.Chunks) > 0 || len(s.Pending) > 0 {
			out = append(out, s.Series)
		}
	}
	return out, nil
}

// scanHeaders reads the rows of selectHeaders.
func scanHeaders(ctx context.Context, rows pgx.Rows, of map[int32]*numbered) error {
	var number int32
	var start int64
	var header []byte
	_, err := pgx.ForEachRow(rows, []any{&number, &start, (*pgtype.DriverBytes)(&header)}, func() error {
		s := of[number]
		h, err := s.box.OpenHeader(ctx, start, header)
		s.Chunks = append(s.Chunks, series.Chunk{Header: h})
		return err
	})
	return err
}

// scanSegments reads the rows of selectSegments.
func scanSegments(ctx context.Context, rows pgx.Rows, of map[int32]*numbered) error {
	var number int32
	var start int64
	var header, data []byte
	_, err := pgx.ForEachRow(rows, []any{&number, &start, (*pgtype.DriverBytes)(&header), &data}, func() error {
		s := of[number]
		g, err := openSegment(ctx, &s.box, start, header, data)
		s.Pending = append(s.Pending, g)
		return err
	})
	return err
}

// numbered is a series with its number within the user.
type numbered struct {
	number int32
	tail   []byte // nil if nothing of it can be in the range
	box    seriesbox.Series
	healthdata.Series
}

func byNumber(list []numbered) map[int32]*numbered {
	out := make(map[int32]*numbered, len(list))
	for i := range list {
		out[list[i].number] = &list[i]
	}
	return out
}

const (
	selectNumber = `
select series from healthlab.series
where user_id = $1 and team_id = $2 and (resource, provider, source_type, part) = ($3, $4, $5, $6)`

	selectChunks = `
select start_at, header, data from healthlab.chunk
where user_id = $1 and team_id = $2 and series = $3 and start_at = any ($4)`
)

func (v *view) Load(ctx context.Context, key healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	number, known := v.numbers[key]
	if !known && key.Storable() {
		err := v.ask(ctx, func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&number); err != nil {
					return err
				}
			}
			return rows.Err()
		}, selectNumber, v.user.UUID, v.team.UUID, key.Resource, key.Provider, string(key.SourceType), key.Part)
		if err != nil {
			return nil, err
		}
	}
	if len(starts) == 0 {
		return []series.Chunk{}, ctx.Err()
	}
	at := make(map[int64]series.Chunk, len(starts))
	box := v.s.seriesOf(userKey{v.team, v.user}, &key)
	err := v.ask(ctx, func(rows pgx.Rows) error { return scanChunks(ctx, rows, &box, at) },
		selectChunks, v.user.UUID, v.team.UUID, number, starts)
	if err != nil {
		return nil, err
	}
	out := make([]series.Chunk, len(starts))
	for i, start := range starts {
		c, ok := at[start]
		if !ok {
			return nil, fmt.Errorf("%w: no such chunk", healthlab.NotFound)
		}
		out[i] = c
	}
	return out, nil
}

// scanChunks reads the rows of selectChunks.
func scanChunks(ctx context.Context, rows pgx.Rows, box *seriesbox.Series, to map[int64]series.Chunk) error {
	var start int64
	var header, data []byte
	_, err := pgx.ForEachRow(rows, []any{&start, (*pgtype.DriverBytes)(&header), (*pgtype.DriverBytes)(&data)}, func() error {
		if !personkey.Sealed(data) {
			data = bytes.Clone(data) // a box is decrypted into other bytes
		}
		c, err := box.Open(ctx, start, header, data)
		to[start] = c
		return err
	})
	return err
}

package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

func TestQueries_randomOnesAnswerLikeSQL(t *testing.T) {
	config, err := pgx.ParseConfig(pgtest.Empty(t))
	require.NoError(t, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no statement comes twice
	db, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	_, err = db.Exec(t.Context(), queryoracle.Table)
	require.NoError(t, err)
	// rapid draws 100 worlds each time, 30 in a plain go test; 600, 2,000 and 100,000 questions.
	const each = 20
	asked := 0
	for range prove.Count(1, 50) {
		rapid.Check(t, func(t *rapid.T) {
			w := queryoracle.Draw(t, false)
			s, err := aggregate.New(w.Person, nil)
			require.NoError(t, err)
			ctx := context.Background()
			_, err = db.Exec(ctx, "truncate sample")
			require.NoError(t, err)
			_, err = db.CopyFrom(ctx, pgx.Identifier{"sample"}, queryoracle.Columns, pgx.CopyFromRows(w.Values()))
			require.NoError(t, err)
			var questions []*queryoracle.Question
			b := &pgx.Batch{}
			for range each {
				q := queryoracle.DrawQuestion(t, "winner") // the others take a loop over the sources
				questions = append(questions, q)
				b.Queue(q.SQL())
			}
			answers := db.SendBatch(ctx, b)
			for _, q := range questions {
				req, err := s.Decode([]byte(q.Body), false)
				require.NoError(t, err, q.Body)
				out, err := s.Query(ctx, queryoracle.Team, queryoracle.User, &req)
				require.NoError(t, err, q.Body)
				rows, err := answers.Query()
				require.NoError(t, err, q.SQL())
				keys, values := readAnswer(t, q, rows)
				queryoracle.RequireAnswer(t, q, &out.Frames[0], keys, values)
			}
			require.NoError(t, answers.Close())
			asked += len(questions)
		})
	}
	t.Logf("%d questions", asked)
}

// readAnswer reads what PostgreSQL says.
func readAnswer(t require.TestingT, q *queryoracle.Question, rows pgx.Rows) (keys, values [][]any) {
	for rows.Next() {
		all, err := rows.Values()
		require.NoError(t, err)
		for i, v := range all {
			if at, ok := v.(time.Time); ok {
				all[i] = at.UTC()
			}
		}
		keys, values = append(keys, all[:q.Keys():q.Keys()]), append(values, all[q.Keys():])
	}
	require.NoError(t, rows.Err(), q.SQL())
	return keys, values
}

// oddZones are time zones in which programs often fail: half hours, changes at midnight,
// days that were left out, negative daylight saving, offsets with seconds.
var oddZones = []string{
	"Australia/Lord_Howe", "Pacific/Chatham", "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo",
	"Europe/Dublin", "Africa/Casablanca", "Antarctica/Troll", "Pacific/Kiritimati", "Africa/Cairo",
	"Asia/Tehran", "America/New_York", "Europe/Berlin", "Europe/London", "America/St_Johns",
	"America/Caracas", "Asia/Pyongyang", "Africa/Monrovia", "Asia/Gaza", "UTC",
}

// PostgreSQL truncates in every zone as we do, around every change of its clocks from
// 1970 to 2037. The offsets come from the server, so that there is one database of
// zones; ours only says where to look. What is compared is what a clock shows: for days
// and longer that of the zone, where at a bucket's start that the clock skipped both are
// moved as the clock was; for hours and minutes that of the instant itself, which PostgreSQL
// keeps for them.
func TestQueries_bucketsEqualThoseOfDateTrunc(t *testing.T) {
	db, err := pgx.Connect(t.Context(), pgtest.Empty(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	rows, err := db.Query(t.Context(), `select name from pg_timezone_names where name !~ '^posix|^right|localtime|Factory' order by name`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(oddZones, n) })
	zones := slices.Concat(oddZones, names)
	zones = zones[:min(prove.Count(20, len(zones)), len(zones))]
	compared := 0
	for _, zone := range zones {
		compared += compareZone(t, db, zone)
	}
	t.Logf("%d zones, %d truncations", len(zones), compared)
}

// around returns instants about every change of the clocks of a zone.
func around(t *testing.T, zone string) []int64 {
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	at, end := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)
	out := []int64{at.Unix(), end.Unix() - 1}
	for {
		_, next := at.In(loc).ZoneBounds()
		if next.IsZero() || !next.Before(end) {
			return out
		}
		for _, d := range []time.Duration{-25 * time.Hour, -time.Hour, -time.Second, 0, time.Second, 29 * time.Minute, time.Hour, 3 * time.Hour, 24 * time.Hour, 40 * 24 * time.Hour} {
			out = append(out, next.Add(d).Unix())
		}
		at = next
	}
}

func compareZone(t *testing.T, db *pgx.Conn, zone string) int {
	instants := around(t, zone)
	rows, err := db.Query(t.Context(), `
		select extract(epoch from to_timestamp(x.at) at time zone $1)::bigint from unnest($2::bigint[]) with ordinality as x (at, n) order by n`, zone, instants)
	require.NoError(t, err)
	walls, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	var at, ours, offsets []int64
	var names []string
	for _, unit := range []aggregate.Unit{aggregate.Minute, aggregate.Hour, aggregate.Day, aggregate.Week, aggregate.Month, aggregate.Year} {
		p := aggregate.Period{Unit: unit, Value: 1}
		for i, w := range walls {
			start := p.Start(time.Unix(w, 0).UTC()).Unix()
			at, names, ours = append(at, instants[i]), append(names, string(unit)), append(ours, start)
			offsets = append(offsets, w-instants[i])
		}
	}
	rows, err = db.Query(t.Context(), `
		select x.unit || ' of ' || to_timestamp(x.at)
		from unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) as x (at, unit, ours, shift),
			lateral (select date_trunc(x.unit, to_timestamp(x.at), $1) as theirs) y
		where case when x.unit in ('minute', 'hour') then extract(epoch from theirs) + x.shift <> x.ours
			else theirs at time zone $1 <> ((timestamp 'epoch' + x.ours * interval '1 second') at time zone $1) at time zone $1 end`,
		zone, at, names, ours, offsets)
	require.NoError(t, err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, wrong, zone)
	return len(at)
}

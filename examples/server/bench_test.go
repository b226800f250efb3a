package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// A month of one heart rate a second, by day, over HTTP and out of PostgreSQL: the time
// of the server, from the request to the last byte of the answer. The bar is 20 ms.
// Reference: the same question in SQL, over one row for each sample.
func BenchmarkMonthByDay(b *testing.B) {
	pool := pgtest.Connect(b, pgtest.Empty(b))
	store := rowsOf(b, pool)
	providers, err := readProviders("")
	require.NoError(b, err)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(b, err)
	team := teamOf("bench")
	u, err := health.CreateUser(b.Context(), team, healthdata.NewUser{ClientUserID: "bench"})
	require.NoError(b, err)

	const n = 30 * 24 * 3600
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	value := func(i int64) float64 { return float64(60 + (i/60)*7919%40 + i*31%5) }
	for day := range int64(30) {
		var block series.Block
		for i := day * 86_400; i < (day+1)*86_400; i++ {
			block.Append(series.Sample{Time: start + i*1_000_000, End: series.NoEnd, Value: value(i)})
		}
		require.NoError(b, store.Data().MergeSamples(b.Context(), team, u.ID, []healthdata.SampleBatch{{
			Key:     healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: healthdata.SourceWatch},
			Samples: &block, Span: series.PerSecond,
		}}, nil))
	}
	_, err = pool.Exec(b.Context(), `
		create table sample as select to_timestamp($1::float8 / 1000000 + i) as at, (60 + (i / 60) * 7919 % 40 + i * 31 % 5)::float8 as value
		from generate_series(0, $2::bigint - 1) i`, start, n)
	require.NoError(b, err)
	_, err = pool.Exec(b.Context(), `vacuum analyze`)
	require.NoError(b, err)

	questions, err := aggregate.New(health, nil)
	require.NoError(b, err)
	handler := httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Parquet:      parquet.Writer{},
		Parts:        (&httpapi.Services{Health: health, Aggregate: questions}).Parts(),
	})
	body := []byte(`{"timeframe":{"type":"relative","anchor":"2026-03-30","past":{"unit":"day","value":30}},"queries":[{"select":[
		{"func":"mean","arg":{"timeseries":"heartrate","field":"value"}},{"func":"min","arg":{"timeseries":"heartrate","field":"value"}},
		{"func":"max","arg":{"timeseries":"heartrate","field":"value"}},{"func":"count","arg":{"timeseries":"heartrate","field":"value"}}],
		"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"timeseries"}}]}]}`)
	b.Run("healthlab", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequest(http.MethodPost, "/aggregate/v1/user/"+u.ID.String()+"/query", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			require.Equal(b, http.StatusOK, w.Code)
			require.Equal(b, 30, bytes.Count(w.Body.Bytes(), []byte(",86400"))+bytes.Count(w.Body.Bytes(), []byte("[86400")))
		}
	})
	b.Run("sql-over-rows", func(b *testing.B) {
		for b.Loop() {
			rows, err := pool.Query(b.Context(), `select date_trunc('day', at, 'UTC') as d, avg(value), min(value), max(value), count(*) from sample group by d order by d`)
			require.NoError(b, err)
			days := 0
			for rows.Next() {
				days++
			}
			require.NoError(b, rows.Err())
			require.Equal(b, 30, days)
		}
	})
}

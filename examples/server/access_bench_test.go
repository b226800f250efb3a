package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// What the access log costs at load: the same requests in turn with it and without it, by callers
// who each wait for their answers, on PostgreSQL. One in three is an upload of five samples, the
// others are reads. The bar is a ratio of 1.05.
func BenchmarkAccessLog(b *testing.B) {
	for _, callers := range []int{64, 256} {
		b.Run(fmt.Sprint(callers, "_callers"), func(b *testing.B) { benchmarkAccessLog(b, callers) })
	}
}

func benchmarkAccessLog(b *testing.B, callers int) {
	const requests, users = 1280, 50 // requests of a turn
	pool := pgtest.Connect(b, pgtest.Empty(b))
	store := rowsOf(b, pool)
	providers, err := readProviders("")
	require.NoError(b, err)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(b, err)
	team := teamOf("bench")
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(b, err)
	access, err := accesslog.New(store.AccessLog(), key, nil)
	require.NoError(b, err)
	config := httpapi.Config{Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil }, Parts: (&httpapi.Services{Health: health}).Parts()}
	without := httpapi.Handler(config)
	config.Access = access
	with := httpapi.Handler(config)
	var ids []string
	for n := range users {
		u, err := health.CreateUser(b.Context(), team, healthdata.NewUser{ClientUserID: fmt.Sprint(n)})
		require.NoError(b, err)
		_, err = health.Connect(b.Context(), team, u.ID, healthdata.NewConnection{Provider: "apple_health_kit"})
		require.NoError(b, err)
		ids = append(ids, u.ID.String())
	}
	var sent atomic.Int64
	began := time.Now().UTC().Add(-1000 * time.Hour).Truncate(time.Minute)
	send := func(h http.Handler) {
		n := int(sent.Add(1))
		user := ids[n%users]
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v2/user/"+user, http.NoBody)
		switch n % 3 {
		case 0:
			var items []string
			for i := range 5 {
				items = append(items, fmt.Sprintf(`{"timestamp":%q,"value":60,"unit":"bpm"}`, began.Add(time.Duration(5*n+i)*time.Second).Format(time.RFC3339)))
			}
			body := `{"stage":"daily","provider":"apple_health_kit","source":{"type":"watch"},"data":[` + strings.Join(items, ",") + `]}`
			r = httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v2/timeseries/"+user+"/heartrate", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
		case 1:
			r = httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v2/summary/sleep/"+user+"?start_date=2026-01-01&end_date=2026-01-07", http.NoBody)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Errorf("%d: %s", w.Code, w.Body)
		}
	}
	turn := func(h http.Handler) time.Duration {
		start := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range requests / callers {
					send(h)
				}
			})
		}
		all.Wait()
		return time.Since(start)
	}
	turn(without)
	turn(with)
	var plain, logged time.Duration
	for b.Loop() {
		plain += turn(without)
		logged += turn(with)
	}
	b.ReportMetric(logged.Seconds()/plain.Seconds(), "ratio")
	b.ReportMetric(float64(b.N*requests)/plain.Seconds(), "without/s")
	b.ReportMetric(float64(b.N*requests)/logged.Seconds(), "with/s")
}

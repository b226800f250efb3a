package postgres_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// What the access log costs: the same requests by turns with it and without it, by callers who each wait for
// their answers. An upload has its line in its own transaction. A read stores its line in another one, before
// the answer. Lines are sealed between the turns. The ratio is the median over pairs of turns. The bar is
// 1.03 for uploads.
func BenchmarkAccessLog(b *testing.B) {
	for _, kind := range []string{"uploads", "reads"} {
		b.Run(kind, func(b *testing.B) { benchmarkAccessLog(b, kind == "uploads") })
	}
}

func benchmarkAccessLog(b *testing.B, uploads bool) {
	const callers, requests, users = 16, 320, 50 // requests of a turn
	s, _, _, team := onPostgres(b)
	api := s.API()
	with := httpapi.Handler(api)
	api.Access = nil
	without := httpapi.Handler(api)
	var paths []string
	for n := range users {
		u, err := s.Health.CreateUser(b.Context(), team, healthdata.NewUser{ClientUserID: strconv.Itoa(n)})
		require.NoError(b, err)
		_, err = s.Health.Connections().ConnectLinked(b.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
		require.NoError(b, err)
		if uploads {
			paths = append(paths, "/v2/timeseries/"+u.ID.String()+"/heartrate")
		} else {
			paths = append(paths, "/v2/user/"+u.ID.String(), "/v2/summary/sleep/"+u.ID.String()+"?start_date=2026-01-01&end_date=2026-01-07")
		}
	}
	var sent atomic.Int64
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	send := func(h http.Handler) {
		n := int(sent.Add(1))
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, paths[n%len(paths)], http.NoBody)
		if uploads {
			body := `{"provider":"manual","data":[{"value":60,"unit":"bpm","timestamp":"` + began.Add(time.Duration(n)*time.Second).Format(time.RFC3339) + `"}]}`
			r = httptest.NewRequestWithContext(b.Context(), http.MethodPost, r.URL.Path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Errorf("%d: %s", w.Code, w.Body)
		}
	}
	turn := func(h http.Handler) float64 {
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
		return time.Since(start).Seconds()
	}
	seal := func() float64 {
		start := time.Now()
		if err := s.Access.Seal(b.Context()); err != nil {
			b.Error(err)
		}
		return time.Since(start).Seconds()
	}
	turn(without)
	turn(with)
	seal()
	var ratios, sealed, plain, logged []float64
	for b.Loop() {
		var p, l float64
		if len(ratios)%2 == 0 {
			p, l = turn(without), turn(with)
		} else {
			l, p = turn(with), turn(without)
		}
		ratios, sealed, plain, logged = append(ratios, l/p), append(sealed, seal()), append(plain, p), append(logged, l)
	}
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(sealed)/requests*1e6, "µs-sealing/line")
	b.ReportMetric(requests/median(plain), "without/s")
	b.ReportMetric(requests/median(logged), "with/s")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

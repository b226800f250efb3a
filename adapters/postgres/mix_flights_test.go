package postgres_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// lockOfTeam finds statements that put a row of which a team has one, or lock it so that others wait.
var lockOfTeam = regexp.MustCompile(`^(?:insert into|with put as \(update|select .* from) "healthlab"\."(?:team_settings|access_head|order_event_counter|org_[a-z_]+|continuous_query)"(?: .* for update| set|\s*\()`)

// Each kind of request of the mix of examples/load has one transaction that writes, with its line in the access
// log, and takes as many trips as docs/performance.md says. None puts a row of its team, or waits for one.
func TestRequests_takeTheDocumentedRoundTripsAndOneWrite(t *testing.T) {
	s, w, _, team := onPostgres(t)
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
	require.NoError(t, err)
	_, err = s.Health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		s.Handler().ServeHTTP(out, r)
		return out
	}
	id, order, n := u.ID.String(), "", 0
	mix := []struct {
		name  string
		trips int64
		send  func() *httptest.ResponseRecorder
	}{
		{"ingest heart rate", 2, func() *httptest.ResponseRecorder {
			return upload(t.Context(), s, u.ID, "manual", "heartrate", time.Date(2026, 3, 10, 10, n, 0, 0, time.UTC))
		}},
		{"read samples", 2, func() *httptest.ResponseRecorder {
			return ask("GET", "/v2/timeseries/"+id+"/heartrate/grouped?start_date=2026-03-10", "")
		}},
		{"ingest sleep", 4, func() *httptest.ResponseRecorder {
			return ask("POST", "/v2/summary/sleep/"+id, fmt.Sprintf(`{"provider":"manual","source":{"type":"app"},"data":[
				{"bedtime_start":"2026-03-%02[1]dT22:00:00Z","bedtime_stop":"2026-03-%02[1]dT23:30:00Z"}]}`, n))
		}},
		{"read sleep", 2, func() *httptest.ResponseRecorder {
			return ask("GET", "/v2/summary/sleep/"+id+"?start_date=2026-03-01", "")
		}},
		{"read user", 2, func() *httptest.ResponseRecorder { return ask("GET", "/v2/user/"+id, "") }},
		{"query week by day", 2, func() *httptest.ResponseRecorder {
			return ask("POST", "/aggregate/v1/user/"+id+"/query", `{"timeframe":{"type":"relative","anchor":"2026-03-10","past":{"unit":"day","value":7}},
				"queries":[{"select":[{"func":"mean","arg":{"timeseries":"heartrate","field":"value"}}],
				"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"timeseries"}}]}]}`)
		}},
		{"place order", 2, func() *httptest.ResponseRecorder {
			out := placeOrder(t.Context(), s, u.ID, walkInTest, "")
			var placed struct{ Order struct{ ID string } }
			require.NoError(t, json.Unmarshal(out.Body.Bytes(), &placed))
			order = placed.Order.ID
			return out
		}},
		{"read order", 3, func() *httptest.ResponseRecorder { return ask("GET", "/v3/order/"+order, "") }},
		{"list orders", 3, func() *httptest.ResponseRecorder { return ask("GET", "/v3/orders?user_id="+id, "") }},
	}
	for _, m := range mix {
		t.Run(m.name, func(t *testing.T) {
			for n = 1; n <= 5; n++ {
				var mu sync.Mutex
				var sql []string
				if n > 2 { // others prepare statements, and take ids of events
					w.statement = func(q string) {
						mu.Lock()
						defer mu.Unlock()
						sql = append(sql, q)
					}
				}
				trips := w.trips.Load()
				out := m.send()
				w.statement = nil
				require.Equal(t, http.StatusOK, out.Code, out.Body)
				if n <= 2 {
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, m.trips, w.trips.Load()-trips, "trips:\n%s", strings.Join(sql, "\n"))
				writes, lines := 0, 0
				for _, q := range sql {
					require.NotRegexp(t, lockOfTeam, q)
					if strings.HasPrefix(q, "begin isolation level read committed") {
						writes++
					}
					if strings.HasPrefix(q, `insert into "healthlab"."access_line"`) {
						lines++
					}
				}
				require.Equal(t, 1, writes, "transactions that write")
				require.Equal(t, 1, lines)
			}
		})
	}
}

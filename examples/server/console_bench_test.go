package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// BenchmarkConsolePages measures the time at the server of each page, for a person with a million
// samples of heart rate, one every 30 seconds of a year. The bar is 100 ms a page.
func BenchmarkConsolePages(b *testing.B) {
	b.Run("folder", func(b *testing.B) { benchmarkPages(b, []string{"-data", b.TempDir()}) })
	b.Run("postgres", func(b *testing.B) {
		address := pgtest.Empty(b)
		benchmarkPages(b, []string{"-database-url", address, "-files", b.TempDir(), "-secret-file", filepath.Join(b.TempDir(), "secret")})
	})
}

func benchmarkPages(b *testing.B, args []string) {
	c, _, err := flags(append(args, "-management-key", "manager"), io.Discard)
	require.NoError(b, err)
	kept, err := openStorage(b.Context(), c.at(), nil)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, kept.close(context.WithoutCancel(b.Context()))) })
	t, err := newTelemetry(b.Context(), "")
	require.NoError(b, err)
	s, err := build(b.Context(), c, kept, t, "http://127.0.0.1")
	require.NoError(b, err)
	user := millionSamples(b, s)
	page := func(r *http.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w
	}
	in := httptest.NewRequest(http.MethodPost, consolePath+"/sign-in", strings.NewReader(url.Values{"key": {"manager"}}.Encode()))
	in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	signedIn := page(in)
	require.Equal(b, http.StatusSeeOther, signedIn.Code, signedIn.Body.String())
	cookie := signedIn.Result().Cookies()[0]
	open := func(path string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, consolePath+path, nil)
		if form != nil {
			r = httptest.NewRequest(http.MethodPost, consolePath+path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.AddCookie(cookie)
		return page(r)
	}
	order := completedOrder(b, open, user)
	now := time.Now().UTC()
	day, person := now.AddDate(0, 0, -1).Format(time.DateOnly), "/users/"+user
	year := "from=" + now.AddDate(-1, 0, 0).Format(time.DateOnly) + "&to=" + now.Format(time.DateOnly)
	for _, one := range []struct{ name, path, shows string }{
		{"home", "/", "Orders by status"}, {"users", "/users", "1 user"}, {"orders", "/orders", "1 order"}, {"order", order, "report .PDF."}, {"results", "/reviews", "No result"},
		{"reports", "/reports", "No lab report"}, {"events", "/events", "no webhook endpoint"}, {"query", "/query", "Query as JSON"},
		{"sources", "/sources", "No history"}, {"providers", "/providers", "sources that people"}, {"team", "/team", "API keys"}, {"sandbox", "/sandbox", "Push a sample"},
		{"day by minute", person + "?by=minute&from=" + day + "&to=" + day, "14[34][0-9] values between"},
		{"week by hour", person, "1[4-6][0-9] values between"}, {"year by day", person + "?" + year, "34[89] values between"},
		{"year by month", person + "?by=month&" + year, "1[23] values between"},
		{"sleep", person + "/sleep", "heart rate .bpm.: 48[01] values"}, {"workouts", person + "/workouts", "No workout"}, {"labs", person + "/labs", "34[89] values between"},
	} {
		b.Run(one.name, func(b *testing.B) {
			for b.Loop() {
				w := open(one.path, nil)
				require.Equal(b, http.StatusOK, w.Code)
				require.Regexp(b, one.shows, w.Body.String())
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/page")
		})
	}
}

// completedOrder orders a kit for a user and lets it be completed, and returns the path of its page.
func completedOrder(b *testing.B, open func(string, url.Values) *httptest.ResponseRecorder, user string) string {
	csrf := csrfToken.FindStringSubmatch(open("/sandbox", nil).Body.String())[1]
	placed := open("/sandbox/orders", url.Values{"csrf": {csrf}, "user_id": {user}, "lab_test_id": {tourLabTest}})
	require.Equal(b, http.StatusSeeOther, placed.Code, placed.Body.String())
	order := strings.TrimPrefix(placed.Header().Get("Location"), consolePath)
	moved := open(order+"/simulate", url.Values{"csrf": {csrf}, "final_status": {"completed.testkit.completed"}})
	require.Equal(b, http.StatusSeeOther, moved.Code, moved.Body.String())
	return order
}

// millionSamples makes a user with a million samples and returns its id.
func millionSamples(b *testing.B, s *host) string {
	send := func(path, body string) string {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("x-service-api-key", s.apiKey)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		require.Equal(b, http.StatusOK, w.Code, w.Body.String())
		return w.Body.String()
	}
	made := send("/v2/user/", `{"client_user_id":"million"}`)
	_, rest, _ := strings.Cut(made, `"user_id":"`)
	user := rest[:36]
	send("/v2/link/provider/manual/manual", fmt.Sprintf(`{"user_id":%q}`, user))
	const samples, batch = 1_000_000, 100_000
	first := time.Now().UTC().Truncate(time.Minute).Add(-samples * 30 * time.Second)
	for from := 0; from < samples; from += batch {
		var body strings.Builder
		body.WriteString(`{"provider":"manual","source":{"type":"watch"},"data":[`)
		for i := from; i < from+batch; i++ {
			if i > from {
				body.WriteByte(',')
			}
			at := healthlab.At(first.Add(time.Duration(i) * 30 * time.Second))
			fmt.Fprintf(&body, `{"timestamp":"%s","timezone_offset":0,"unit":"bpm","value":%d}`, at.Format(time.RFC3339), 60+i*7919%40)
		}
		body.WriteString(`]}`)
		require.Contains(b, send("/v2/timeseries/"+user+"/heartrate", body.String()), fmt.Sprintf(`"new":%d`, batch))
	}
	wake := time.Now().UTC().Truncate(24 * time.Hour).Add(-17 * time.Hour)
	send("/v2/summary/sleep/"+user, fmt.Sprintf(`{"provider":"manual","source":{"type":"watch"},"data":[{"bedtime_start":%q,"bedtime_stop":%q,"timezone_offset":0,
		"duration":28800,"total":28800,"awake":0,"light":28800,"rem":0,"deep":0}]}`, wake.Add(-8*time.Hour).Format(time.RFC3339), wake.Format(time.RFC3339)))
	return user
}

package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

func TestRun_signsInAndPullsWeights(t *testing.T) {
	var out bytes.Buffer
	run(t.Context(), &out)
	require.Regexp(t, `^signed in: success\n3[01] weights since \d{4}-\d{2}-\d{2}\n$`, out.String())
}

func TestRecord_isAValidProvider(t *testing.T) {
	_, err := healthdata.NewProviders([]healthdata.Provider{Record()})
	require.NoError(t, err)
}

func TestConnector_passesTheSuite(t *testing.T) {
	linkingtest.RunConnector(t, func(t testing.TB) linkingtest.ConnectorHarness {
		d := &double{tokens: map[string]bool{}}
		var fixed atomic.Pointer[http.HandlerFunc]
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer := fixed.Load(); answer != nil {
				answer.ServeHTTP(w, r)
				return
			}
			d.ServeHTTP(w, r)
		}))
		t.Cleanup(api.Close)
		to := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
		return linkingtest.ConnectorHarness{
			Connector:       NewConnector(api.URL).Flows(),
			Password:        linking.PasswordRequest{Username: "ann", Password: "correct horse"},
			RefusedPassword: linking.PasswordRequest{Username: "ann", Password: "wrong horse"},
			Record:          Record(), Resources: []string{"weight"}, From: to.AddDate(0, 0, -30), To: to,
			Known: map[string]healthdata.Sample{
				"weight": {Timestamp: healthlab.At(time.Date(2026, 3, 15, 7, 0, 0, 0, time.UTC)), Unit: "kg", Value: healthdata.Number(70.4)},
			},
			Answer: func(status int, header map[string][]string, body string) {
				answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					maps.Copy(w.Header(), header)
					w.WriteHeader(status)
					_, _ = io.WriteString(w, body) // a caller who has gone needs no answer
				})
				fixed.Store(&answer)
			},
		}
	})
}

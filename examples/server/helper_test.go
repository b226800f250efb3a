package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/stores"
)

func newServer(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// post sends JSON as the team, which must succeed.
func post(p *program, path, body string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+path, strings.NewReader(body))
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	r.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	answer.Body.Close()
	require.Less(p, answer.StatusCode, 300, path)
}

// residentBytes returns what a process keeps in memory, where the system says so in
// /proc; else 0.
func residentBytes(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

func rowsOf(t testing.TB, pool *pgxpool.Pool) *stores.Stores {
	t.Helper()
	engine, err := postgres.Open(t.Context(), pool, stores.Tables(), nil)
	require.NoError(t, err)
	return stores.New(engine, &stores.Options{Events: stores.Outbox})
}

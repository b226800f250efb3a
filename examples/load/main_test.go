package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/examples/internal/browse"
)

func TestMain(m *testing.M) {
	dir, err := folder()
	if err != nil {
		panic(err)
	}
	built = sync.OnceValues(func() (string, error) { return build(context.Background(), "", dir) })
	status := pgtest.Main(m, nil)
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// built builds the server, once for all tests, and returns its file.
var built func() (string, error)

func serverFile(t *testing.T) string {
	t.Helper()
	file, err := built()
	require.NoError(t, err)
	return file
}

// A short run has every operation, no failed request and all events, and its page has no
// finding of axe-core.
func TestLoad_shortRunHasNoFailedRequest(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no PostgreSQL
	file := filepath.Join(t.TempDir(), "report.html")
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-server", serverFile(t), "-rate", "100", "-duration", "5s", "-warmup", "100ms", "-users", "5", "-workers", "4", "-report", file}, &out))
	rows := map[string][]string{}
	for text := range strings.Lines(out.String()) {
		for _, op := range append(operations, operation{name: "all"}) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(text), op.name+" "); ok {
				rows[op.name] = strings.Fields(rest)
			}
		}
	}
	for _, op := range operations {
		require.NotEqual(t, "0", rows[op.name][0], op.name)
	}
	require.Equal(t, "0", rows["all"][1], "failed requests:\n%s", out.String())
	require.NotContains(t, out.String(), "\n0 events")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 3+3+len(operations), strings.Count(string(page), "<polyline"))

	b := browse.Start(t)
	b.LoadAxe()
	s := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	t.Cleanup(s.Close)
	tab := b.Open(t, browse.Person{})
	tab.Go(s.URL + "/report.html")
	tab.See("Load report", "Throughput over time", "Latency over time", "Distribution of latency by operation")
	tab.Shot("load-report")
	tab.Check()
}

// Both the server and the plain handler answer every request.
func TestLoad_bareHandlerAnswersEveryRequest(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no PostgreSQL
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-bare", "-server", serverFile(t), "-duration", "1s", "-warmup", "0s", "-users", "5", "-workers", "4"}, &out))
	require.Regexp(t, `(?m)^ +all +[1-9]\d* +0 +\S+ +\S+ +[1-9]\d* +0 `, out.String())
	require.Regexp(t, `ratio \d\.\d\d`, out.String())
	require.Len(t, bareWorks, len(operations))
}

func TestQuantile_returnsTheValueAtItsRank(t *testing.T) {
	require.Zero(t, quantile(nil, 0.5))
	sorted := make([]time.Duration, 100)
	for i := range sorted {
		sorted[i] = time.Duration(i+1) * time.Millisecond
	}
	for q, want := range map[float64]int{0: 0, 0.5: 49, 0.99: 98, 1: 99} {
		require.Equal(t, sorted[want], quantile(sorted, q))
	}
}

func TestOperations_weightsAddUpTo100(t *testing.T) {
	sum := 0
	for _, op := range operations {
		sum += op.weight
	}
	require.Equal(t, 100, sum)
}

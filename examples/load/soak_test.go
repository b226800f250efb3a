package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/examples/internal/browse"
)

// A short run with a kill of a server and one of PostgreSQL has no violation, and its page has no
// finding of axe-core.
func TestSoak_killedProcessesViolateNothing(t *testing.T) {
	t.Parallel()
	pgtest.Empty(t) // skips where there is no PostgreSQL
	file := filepath.Join(t.TempDir(), "report.html")
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"soak", "-server", serverFile(t), "-rate", "40", "-duration", "6s", "-kill-every", "2s", "-users", "5", "-workers", "4", "-report", file}, &out), "%s", &out)
	require.Contains(t, out.String(), "0 violations.")
	require.NotContains(t, out.String(), "\n0 kills")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(page), `class="mark"`)

	b := browse.Start(t)
	b.LoadAxe()
	s := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	t.Cleanup(s.Close)
	tab := b.Open(t, browse.Person{})
	tab.Go(s.URL + "/report.html")
	tab.See("Soak report", "Each acknowledged upload is read back", "Memory of the servers", "Queues")
	tab.Shot("soak-report")
	tab.Check()
}

func TestGrowth_reportsRisingMemoryAndQueues(t *testing.T) {
	const long = 30 * time.Minute
	run := func(change func(r *reading, i int)) []reading {
		var all []reading
		for i := range readings {
			r := reading{
				at: time.Duration(i) * long / readings, writes: 100 * i, memory: [2]int64{200 << 20, 0}, handles: [2]int{40, 0},
				tables: map[string]int64{"webhook_pending": 1 << 20, "chunk": int64(i) * 100_000}, log: 200 << 20, text: int64(i) * 1000,
			}
			change(&r, i)
			all = append(all, r)
		}
		return all
	}
	for _, tt := range []struct {
		name, wrong string
		change      func(r *reading, i int)
	}{
		{"flat", "", func(*reading, int) {}},
		{"memory grows", "Memory", func(r *reading, i int) { r.memory[0] = int64(i) << 20 }},
		{"the warm-up does not count", "", func(r *reading, i int) { r.memory[0] = int64(min(i, readings/3)) << 20 }},
		{"files are not closed", "Open files", func(r *reading, i int) { r.handles[0] = i }},
		{"a queue grows", "Queues", func(r *reading, i int) { r.tables["webhook_pending"] = int64(i) << 16 }},
		{"a table grows faster", "Other tables", func(r *reading, i int) { r.tables["chunk"] = int64(i*i) * 1000 }},
		{"the write-ahead log stays", "Write-ahead log", func(r *reading, _ int) { r.log = 2 * walLimit }},
		{"logs grow faster", "Logs", func(r *reading, i int) { r.text = int64(i * i * i) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var wrong []string
			for _, c := range growth(run(tt.change), long) {
				if len(c.Wrong) > 0 {
					wrong = append(wrong, c.Name)
				}
			}
			if tt.wrong == "" {
				require.Empty(t, wrong)
				return
			}
			require.Len(t, wrong, 1)
			require.Contains(t, wrong[0], tt.wrong)
		})
	}
	require.Empty(t, growth(run(func(*reading, int) {}), time.Second), "too short to judge")
}

func TestInbox_reportsMissingRepeatedAndUnorderedEvents(t *testing.T) {
	samples := func(minutes ...int) string {
		var data []map[string]any
		for _, m := range minutes {
			data = append(data, map[string]any{"timestamp": time.Unix(int64(60*m), 0).UTC()})
		}
		return message(t, "daily.data.heartrate.created", map[string]any{"data": data})
	}
	order := func(events int) string {
		return message(t, "labtest.order.updated", map[string]any{"id": "o", "events": make([]int, events)})
	}
	for _, tt := range []struct {
		name     string
		bodies   []string
		ids      []int // by default, each has its own
		wrong    string
		missing  int // of minutes 1 to 3, and two events of the order
		repeated int
	}{
		{name: "all", bodies: []string{samples(1, 2), samples(3), order(1), order(2)}},
		{name: "one id twice", bodies: []string{samples(1, 2, 3), samples(1, 2, 3), order(1), order(2)}, ids: []int{1, 1, 2, 3}, repeated: 1},
		{name: "an event with two ids", bodies: []string{samples(1, 2, 3), samples(3), order(1), order(2)}, wrong: "already sent in the message 0"},
		{name: "samples out of order", bodies: []string{samples(3), samples(1, 2), order(1), order(2)}, wrong: "older than the last of an earlier message", missing: 2},
		{name: "order out of order", bodies: []string{samples(1, 2, 3), order(2), order(1)}, wrong: "older than the last of an earlier message", missing: 1},
		{name: "a sample is lost", bodies: []string{samples(1, 3), order(1), order(2)}, missing: 1},
		{name: "an event of the order is lost", bodies: []string{samples(1, 2, 3), order(2)}, missing: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b inbox
			for i, body := range tt.bodies {
				if tt.ids != nil {
					i = tt.ids[i]
				}
				b.record(fmt.Sprint(i), []byte(body))
			}
			require.Equal(t, tt.missing, b.missing(map[string]map[int64]float64{"u": {60: 1, 120: 1, 180: 1}}, map[string]int{"o": 2}))
			require.Equal(t, tt.repeated, b.repeated)
			if tt.wrong == "" {
				require.Empty(t, b.wrong)
				return
			}
			require.Len(t, b.wrong, 1)
			require.Contains(t, b.wrong[0], tt.wrong)
		})
	}
}

func message(t *testing.T, name string, data any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"event_type": name, "user_id": "u", "data": data})
	require.NoError(t, err)
	return string(b)
}

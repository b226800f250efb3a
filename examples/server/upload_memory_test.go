package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// peakBytes returns the most that a process kept in memory so far, where the system says so in
// /proc; else 0.
func peakBytes(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// largeUpload is an upload of 9.6 MB. item returns the i-th item.
func largeUpload(item func(i int) string) string {
	var b strings.Builder
	b.WriteString(`{"provider":"manual","source":{"type":"app"},"data":[`)
	for i := 0; b.Len() < 9_600_000; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(i))
	}
	b.WriteString("]}")
	return b.String()
}

// Twenty uploads of 9.6 MB at once need less than 1 GB, whether their items are stored, are refused by
// a check, or cannot be read. The smallest summaries are the most items. One that finds no memory, or that is not
// stored in the time of a request, says when to come again; sent once more, it goes on where it ended.
func TestUpload_twentyConcurrentLargeUploadsStayBelow1GB(t *testing.T) {
	if prove.Race || !prove.All() {
		t.Skip("runs in CI and under make prove, without the race detector")
	}
	binary := filepath.Join(t.TempDir(), "server")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	sample := func(unit string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf(`{"timestamp":"2026-%02d-%02dT%02d:%02d:%02dZ","unit":%q,"value":%d}`, 1+i/2419200%3, 1+i/86400%28, i/3600%24, i/60%60, i%60, unit, 50+i%50)
		}
	}
	at := func(i int) string { return time.Unix(1_577_836_800+int64(i), 0).UTC().Format(time.RFC3339) }
	for path, item := range map[string]func(i int) string{
		"summary/body":     func(i int) string { return `{"measured_at":"` + at(i) + `"}` },
		"summary/activity": func(i int) string { return `{"calendar_date":"` + at(86400 * (i % 2000))[:10] + `"}` },
		"summary/sleep": func(i int) string {
			return `{"bedtime_start":"` + at(1000*i) + `","bedtime_stop":"` + at(1000*i+600) + `"}`
		},
	} {
		t.Run(path, func(t *testing.T) { measureUploads(t, binary, "/v2/"+path+"/%s", largeUpload(item)) })
	}
	for name, item := range map[string]func(i int) string{
		"valid": sample("bpm"), "refused": sample("furlong"),
		"half refused": func(i int) string { return sample([]string{"bpm", "furlong"}[i%2])(i) },
		"unread":       func(int) string { return `{}` },
		"types": func(i int) string {
			return strings.TrimSuffix(sample("bpm")(i), "}") + fmt.Sprintf(`,"type":"t%d"}`, i%1000)
		},
	} {
		t.Run(name, func(t *testing.T) { measureUploads(t, binary, "/v2/timeseries/%s/heartrate", largeUpload(item)) })
	}
}

// measureUploads sends a body for twenty users at once to a server of its own. path has a place for the user.
func measureUploads(t *testing.T, binary, path, body string) {
	cmd := exec.CommandContext(t.Context(), binary, "-addr", "127.0.0.1:0", "-data", filepath.Join(t.TempDir(), "data"))
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	p := &program{T: t}
	lines := bufio.NewScanner(pipe)
	for p.key == "" && lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			p.url = url
		}
		if key, ok := strings.CutPrefix(lines.Text(), "api key: "); ok {
			p.key = key
		}
	}
	send := func(user string) (status int, after string, counts healthdata.Counts) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+fmt.Sprintf(path, user), strings.NewReader(body))
		if err != nil {
			return 0, "", counts
		}
		r.Header.Set("x-service-api-key", p.key)
		r.Header.Set("content-type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, "", counts
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			err = json.NewDecoder(answer.Body).Decode(&counts)
		}
		if err != nil {
			return 0, "", counts
		}
		return answer.StatusCode, answer.Header.Get("retry-after"), counts
	}
	var all sync.WaitGroup
	users, statuses, after := make([]string, 20), make([]int, 20), make([]string, 20)
	for i := range users {
		var user struct {
			ID string `json:"user_id"`
		}
		ask(p, "POST", "/v2/user/", fmt.Sprintf(`{"client_user_id":"u%d"}`, i), 200, &user)
		post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+user.ID+`"}`)
		users[i] = user.ID
	}
	for i := range users {
		all.Go(func() { statuses[i], after[i], _ = send(users[i]) })
	}
	all.Wait()
	peak := peakBytes(cmd.Process.Pid)
	t.Logf("most memory: %d MB; statuses %v", peak>>20, statuses)
	require.Less(t, peak, int64(1e9))
	for i, status := range statuses {
		require.Contains(t, []int{200, 422, 429, 503}, status)
		require.Equal(t, status == 429 || status == 503, after[i] != "")
		if status != 503 {
			continue
		}
		var counts healthdata.Counts
		for tries := 0; status == 503 && tries < 10; tries++ { // as a client does; each goes on where the last one ended
			status, _, counts = send(users[i])
		}
		require.Equal(t, 200, status)
		require.NotZero(t, counts.Same, "it goes on where it ended")
	}
}

package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// program is the server running inside the test.
type program struct {
	*testing.T
	lines  chan string
	stderr *bytes.Buffer
	stop   context.CancelFunc
	done   chan error
	url    string
	key    string
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := launch(t, args...)
	p.listens(args)
	return p
}

// launch runs the server on a free port.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	p := &program{T: t, lines: make(chan string, 1000), stderr: new(bytes.Buffer), stop: stop, done: make(chan error, 1)}
	go func() {
		p.done <- run(ctx, append([]string{"-addr", "127.0.0.1:0"}, inMemory(args)...), in, p.stderr)
		in.Close()
	}()
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	return p
}

// inMemory adds -store memory to flags that name no store.
func inMemory(args []string) []string {
	named := func(arg string) bool {
		return slices.Contains([]string{"-data", "-database-url", "-store", "-tour"}, arg)
	}
	production := slices.Contains(args, "production")
	if slices.ContainsFunc(args, named) || production {
		return args
	}
	return append([]string{"-store", "memory"}, args...)
}

// listens waits until the program listens, and reads its address and its key.
func (p *program) listens(args []string) {
	p.Helper()
	p.url = strings.TrimPrefix(p.until("listening on "), "listening on ")
	if i := slices.Index(args, "-api-key"); i >= 0 {
		p.key = args[i+1]
	} else {
		p.key = strings.TrimPrefix(p.until("api key: "), "api key: ")
	}
	p.until("stop: ")
}

// until reads lines up to one that begins with a text.
func (p *program) until(prefix string) string {
	p.Helper()
	for line := range p.lines {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	require.FailNow(p, "the program ended", "before a line beginning with %q: %v", prefix, <-p.done)
	return ""
}

// quit stops the server as a signal would, and returns what it still said.
func (p *program) quit() []string {
	p.Helper()
	p.stop()
	var rest []string
	for line := range p.lines {
		rest = append(rest, line)
	}
	require.NoError(p, <-p.done)
	return rest
}

// get asks the server as the team, and decodes the answer.
func (p *program) get(path string, out any) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.url+path, nil)
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	require.Equal(p, http.StatusOK, answer.StatusCode, string(b))
	require.NoError(p, json.Unmarshal(b, out))
}

func TestTour_endsWithOKAndRemovesItsFolder(t *testing.T) {
	t.Parallel()
	p := start(t, "-tour")
	var said []string
	for line := range p.lines {
		said = append(said, line)
		if strings.HasPrefix(line, "tour: ") {
			break
		}
	}
	all := strings.Join(said, "\n")
	require.Equal(t, "tour: ok", said[len(said)-1], all)
	for _, want := range []string{
		"daily.data.heartrate.created", "daily.data.sleep.created", "labtest.order.created", "signature verified",
		"provider.connection.created", "historical.data.meal.created", "  fern_diary/vitals/water",
		"completed.testkit.completed", "transaction is completed", "requisition/pdf of ", "labels/pdf of ", "collection_instruction_pdf of ", "result/pdf of ",
		"of the watch", "of the phone", "daily.data.workouts.created", "The log is in ",
	} {
		require.Contains(t, all, want)
	}
	// It goes on serving.
	var users struct {
		Total int `json:"total"`
	}
	p.get("/v2/user/", &users)
	require.Equal(t, 1, users.Total)
	require.Equal(t, []string{"stopping", "stopped: the folder of the tour is removed"}, p.quit())
}

// The tour on a cluster whose users are spread over two workers.
func TestTour_runsOnACluster(t *testing.T) {
	t.Parallel()
	if !pgtest.Spread() {
		t.Skip("no cluster: " + pgtest.EnvCitus + " starts one")
	}
	p := start(t, "-tour", "-database-url", pgtest.Empty(t), "-distribute", "8", "-secret-file", secretFile(t), "-files", t.TempDir())
	p.until("tour: ok")
	p.quit()
}

// realData returns the path of a recording of a real device, or skips.
func realData(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("HEALTHLABTEST_REAL_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "real")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no real recordings at hand; HEALTHLABTEST_REAL_DATA names their folder: %v", err)
	}
	return path
}

func TestImport_flagImportsARecording(t *testing.T) {
	t.Parallel()
	p := start(t, "-import", realData(t, "fit/run_b.fit"), "-import-user", "runner")
	p.until("import: ")
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/runner", &user)
	var workouts struct {
		Workouts []struct {
			ID    string `json:"id"`
			Sport struct {
				Slug string `json:"slug"`
			} `json:"sport"`
		} `json:"workouts"`
	}
	p.get("/v2/summary/workouts/"+user.ID+"?start_date=2000-01-01", &workouts)
	require.Len(t, workouts.Workouts, 1)
	require.Equal(t, "running", workouts.Workouts[0].Sport.Slug)
	var stream struct {
		Time      []int64  `json:"time"`
		Heartrate []*int64 `json:"heartrate"`
	}
	p.get("/v2/timeseries/workouts/"+workouts.Workouts[0].ID+"/stream", &stream)
	require.NotEmpty(t, stream.Time)
	require.Len(t, stream.Heartrate, len(stream.Time))
	var page struct {
		Groups map[string][]struct {
			Data []json.RawMessage `json:"data"`
		} `json:"groups"`
	}
	p.get("/v2/timeseries/"+user.ID+"/heartrate/grouped?start_date=2000-01-01", &page)
	require.NotEmpty(t, page.Groups["manual"][0].Data)
	p.quit()
}

// The archive of an account export is imported as a recording is.
func TestImport_flagImportsAnAccountExport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "my_whoop_data.zip")
	f, err := os.Create(file)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	require.NoError(t, w.AddFS(os.DirFS("../../adapters/devices/fileimport/testdata/whoop")))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	p := start(t, "-import", file, "-import-user", "sleeper")
	p.until("import: ")
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/sleeper", &user)
	var sleep struct {
		Sleep []struct {
			CalendarDate string `json:"calendar_date"`
			Type         string `json:"type"`
			Duration     int    `json:"duration"`
		} `json:"sleep"`
	}
	p.get("/v2/summary/sleep/"+user.ID+"?start_date=2026-03-09&end_date=2026-03-09", &sleep)
	require.Len(t, sleep.Sleep, 2, "the night and the nap")
	durations := map[string]int{}
	for _, s := range sleep.Sleep {
		require.Equal(t, "2026-03-09", s.CalendarDate)
		durations[s.Type] = s.Duration
	}
	require.Equal(t, map[string]int{"long_sleep": 6*3600 + 31*60 + 52, "acknowledged_nap": 42 * 60}, durations)
	p.quit()
}

// Local times of a file are those of -import-zone.
func TestImport_localTimesAreOfTheImportZone(t *testing.T) {
	t.Parallel()
	file := "../../adapters/devices/fileimport/testdata/clarity/Clarity_Export_Exempel_Robin_2026-03-30.csv"
	p := start(t, "-import", file, "-import-user", "wearer", "-import-zone", "Europe/Berlin")
	p.until("import: ")
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/wearer", &user)
	var page struct {
		Groups map[string][]struct {
			Data []struct {
				Timestamp string  `json:"timestamp"`
				Value     float64 `json:"value"`
			} `json:"data"`
		} `json:"groups"`
	}
	p.get("/v2/timeseries/"+user.ID+"/carbohydrates/grouped?start_date=2026-03-29&end_date=2026-03-29", &page)
	require.Len(t, page.Groups["manual"], 1)
	require.Len(t, page.Groups["manual"][0].Data, 1)
	require.Equal(t, 45.0, page.Groups["manual"][0].Data[0].Value)
	require.Contains(t, page.Groups["manual"][0].Data[0].Timestamp, "2026-03-29T05:31:00")
	p.quit()

	err := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", "memory", "-import", file, "-import-zone", "Berlin"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "-import-zone: must be an IANA zone such as Europe/Berlin")
	err = run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", "memory", "-import", file}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "the times of the file are local: the time zone of the person, such as Europe/Berlin, must be set (-import-zone)")
	err = run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", "memory", "-import", file, "-import-date-order", "dmy"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "-import-date-order: must be day_first or month_first")
}

// A file of no format that is read ends the program. One that is damaged is imported as far as it
// can be read, see package fileimport.
func TestImport_unknownFormatEndsTheProgram(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "night.fit")
	require.NoError(t, os.WriteFile(bad, []byte("a note, and no recording"), 0o600))
	err := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", "memory", "-import", bad}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "import: ")
	require.NotContains(t, err.Error(), "note")
}

func TestStop_deliversEventsThatWaitForASlowReceiver(t *testing.T) {
	t.Parallel()
	// A receiver that is slow at first: what is held when the stop comes still
	// arrives.
	got := make(chan struct{}, 100)
	release := make(chan struct{})
	slow := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		got <- struct{}{}
		w.WriteHeader(http.StatusNoContent)
	})
	p := start(t, "-webhook-url", slow)
	secret := p.until("webhook secret: ")
	require.True(t, strings.HasPrefix(secret, "webhook secret: whsec_"))
	post(p, "/v2/user/", `{"client_user_id":"a"}`)
	var page struct {
		Users []struct {
			ID string `json:"user_id"`
		} `json:"users"`
	}
	p.get("/v2/user/", &page)
	post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+page.Users[0].ID+`"}`)
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	require.Equal(t, []string{"stopping", "stopped: nothing is held"}, p.quit())
	require.Len(t, got, 1)
}

func TestFlags_invalidValuesAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-env", "moon"}, {"-paper", "a5"}, {"-font", "/nowhere"}, {"-tour", "-env", "production"}, {"-webhook-secret", "whsec_x"}, {"extra"}, {"-nonsense"}, {"-lease", "1ms"},
		{"-providers", "no-such-file.json"}, {"-api-key", "not-a-key", "-addr", "nowhere"},
		{"-portal-url", "portal.example.com"}, {"-portal-url", "ftp://portal.example.com"}, {"-webhook-proxy", "proxy.example.com:3128"}, {"-webhook-proxy", "http://"}, {"-otlp-endpoint", "127.0.0.1:4318"},
	} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard), args)
	}
}

// A flag wins over the environment, the environment over the file, and secrets are not
// printed.
func TestSettings_flagBeatsEnvironmentBeatsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.conf")
	require.NoError(t, os.WriteFile(file, []byte("# a comment\nbrand From the file\nbrand-color 112233\npaper a4\nmanagement-key mk_from_file\n"), 0o600))
	t.Setenv("HEALTHLAB_BRAND_COLOR", "445566")
	t.Setenv("HEALTHLAB_PAPER", "a4")
	t.Setenv("HEALTHLAB_DATABASE_URL", "postgres://clinic:hidden@db.example.com/clinic")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-config", file, "-paper", "letter", "-secret-file", secretFile(t), "-files", t.TempDir(), "-print-config"}, &out, io.Discard))
	for _, line := range []string{"brand From the file", "brand-color 445566", "paper letter", "management-key (set)",
		"database-url postgres://clinic:xxxxx@db.example.com/clinic", "webhook-secret"} {
		require.Contains(t, strings.Split(out.String(), "\n"), line)
	}
	require.NotContains(t, out.String(), "mk_from_file")
	require.NotContains(t, out.String(), "hidden")

	err := run(t.Context(), []string{"-api-key", "mykey"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "-api-key")
	require.ErrorContains(t, err, "sk_us_")
	require.NotContains(t, err.Error(), "mykey")
	require.Error(t, run(t.Context(), []string{"-config", "no-such-file"}, io.Discard, io.Discard))
}

// BenchmarkStart measures the built program as a whole: from its start to the line that
// says it listens, and what it keeps in memory when idle.
func BenchmarkStart(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "server")
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(b, err, string(out))
	var rss int64
	for b.Loop() {
		cmd := exec.Command(binary, "-addr", "127.0.0.1:0")
		pipe, err := cmd.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		line, err := bufio.NewReader(pipe).ReadString('\n')
		require.NoError(b, err)
		require.True(b, strings.HasPrefix(line, "listening on http://"))
		b.StopTimer()
		rss = max(rss, residentBytes(cmd.Process.Pid))
		require.NoError(b, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
		b.StartTimer()
	}
	b.ReportMetric(float64(rss)/(1<<20), "MiB-RSS")
}

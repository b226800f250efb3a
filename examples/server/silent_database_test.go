//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// The limits that callers are promised while the database does not answer, and after it.
const (
	answerLimit = 10 * time.Second
	readyLimit  = 3 * time.Second
	returnLimit = 2 * time.Second
)

// storeRequest is a request that needs the database.
type storeRequest struct {
	name, method, path, body string
	header                   []string // pairs
	while                    int      // the status while the database does not answer
	limit                    time.Duration
}

// silentDatabase is a server in a process of its own, with a PostgreSQL of its own.
type silentDatabase struct {
	*program
	process  *os.Process
	database *pgtest.Server
	requests []storeRequest
}

func startSilentDatabase(t *testing.T) *silentDatabase {
	pgtest.Empty(t) // skips where there is no server
	database, err := pgtest.Start(t.Context(), pgtest.Fast)
	require.NoError(t, err)
	t.Cleanup(database.Remove)
	// Collecting often, its memory is what it keeps.
	p, process := spawnWith(t, []string{"env", "GOGC=20"}, "-database-url", database.URL("postgres"), "-secret-file", secretFile(t), "-files", t.TempDir(),
		"-management-key", "manager", "-invite")
	p.until("link pages of user")
	s := &silentDatabase{program: p, process: process, database: database}
	s.prepare(p.until("http"))
	return s
}

// prepare makes what the requests are about.
func (s *silentDatabase) prepare(linkPages string) {
	user, order := plant(s.T, s.program, "silent")
	ask(s.program, "POST", "/v2/link/provider/manual/manual", `{"user_id":"`+user+`"}`, 200, nil)
	connect(s.program, user, "fern_diary", "ann")
	console := newConsoleClient(s.T, s.program)
	status, _, _ := console.open("/sign-in", url.Values{"key": {"manager"}})
	require.Equal(s, 200, status)
	at, err := url.Parse(s.url + consolePath + "/")
	require.NoError(s, err)
	cookies := console.Jar.Cookies(at)
	require.NotEmpty(s, cookies)
	link, err := url.Parse(linkPages)
	require.NoError(s, err)
	team := "/v1/org/" + orgOf(s.program) + "/team/" + teamOf(s.key).String() + "/sandbox"

	sample := `{"provider":"manual","data":[{"timestamp":"2026-03-01T08:00:00Z","unit":"bpm","value":60}]}`
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, `,{"timestamp":%q,"unit":"bpm","value":60}`, time.Date(2026, 3, 2, 0, 0, i, 0, time.UTC).Format(time.RFC3339))
	}
	upload := `{"provider":"manual","data":[` + many.String()[1:] + `]}`
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	require.NoError(s, parts.WriteField("user_id", user))
	file, err := parts.CreateFormFile("file", "report.pdf")
	require.NoError(s, err)
	_, err = file.Write(reportPDF())
	require.NoError(s, err)
	require.NoError(s, parts.Close())
	json := []string{"content-type", "application/json", "x-service-api-key", s.key}
	key := []string{"x-service-api-key", s.key}
	manager := []string{"x-management-key", "manager"}
	s.requests = []storeRequest{
		{"read", "GET", "/v2/user/" + user, "", key, 503, answerLimit},
		{"list", "GET", "/v2/user/", "", key, 503, answerLimit},
		{"write", "POST", "/v2/timeseries/" + user + "/heartrate", sample, json, 503, answerLimit},
		{"large upload", "POST", "/v2/timeseries/" + user + "/heartrate", upload, json, 503, answerLimit},
		{"report upload", "POST", "/lab_report/v1/parser/job", form.String(), append([]string{"content-type", parts.FormDataContentType()}, key...), 503, answerLimit},
		{"samples", "GET", "/v2/timeseries/" + user + "/heartrate?start_date=2026-01-01&end_date=2026-12-31", "", key, 503, answerLimit},
		{"grouped samples", "GET", "/v2/timeseries/" + user + "/heartrate/grouped?start_date=2026-01-01&end_date=2026-12-31", "", key, 503, answerLimit},
		{"aggregate", "POST", "/aggregate/v1/user/" + user + "/query",
			`{"timeframe":{"type":"relative","anchor":"2026-03-02","past":{"unit":"day","value":7}},"queries":[{"select":[{"func":"count","arg":{"index":"sleep"}}]}]}`, json, 503, answerLimit},
		{"orders", "GET", "/v3/orders", "", key, 503, answerLimit},
		{"order", "GET", "/v3/order/" + order, "", key, 503, answerLimit},
		{"refresh", "POST", "/v2/user/refresh/" + user, "", key, 503, answerLimit},
		{"access log stream", "GET", team + "/access_log", "", manager, 503, answerLimit},
		{"management", "GET", team + "/settings", "", manager, 503, answerLimit},
		{"link page", "GET", link.RequestURI(), "", nil, 503, answerLimit},
		{"console", "GET", consolePath + "/users", "", []string{"cookie", cookies[0].String()}, 503, answerLimit},
		{"sandbox", "POST", controlPath + "/fern_diary/withdraw", "name=nobody", append([]string{"content-type", "application/x-www-form-urlencoded"}, key...), 503, answerLimit},
		{"unknown key", "GET", "/v2/user/", "", []string{"x-service-api-key", "sk_us_unknown"}, 0, answerLimit},
		{"readiness", "GET", "/readyz", "", nil, 503, readyLimit},
		{"liveness", "GET", "/healthz", "", nil, 200, readyLimit},
		{"metrics", "GET", metricsPath, "", nil, 200, answerLimit},
	}
	s.addContract(user, order)
}

// addContract adds every operation of the contract, about a user and an order. One that fails
// before it needs the database may answer so.
func (s *silentDatabase) addContract(user, order string) {
	var contract struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	s.get("/openapi.json", &contract)
	fill := strings.NewReplacer("{user_id}", user, "{order_id}", order, "{org_id}", orgOf(s.program), "{team_id}", teamOf(s.key).String(),
		"{environment}", "sandbox", "{resource}", "heartrate", "{provider}", "manual")
	for path, methods := range contract.Paths {
		path = fill.Replace(path)
		for begin := strings.IndexByte(path, '{'); begin >= 0; begin = strings.IndexByte(path, '{') {
			path = path[:begin] + uuid.NewString() + path[begin+strings.IndexByte(path[begin:], '}')+1:]
		}
		for method := range methods {
			// Changes would remove what the other requests are about.
			if method = strings.ToUpper(method); method != "GET" {
				continue
			}
			header := []string{"x-service-api-key", s.key}
			if strings.HasPrefix(path, "/v1/org") {
				header = []string{"x-management-key", "manager"}
			}
			s.requests = append(s.requests, storeRequest{"contract", method, path, "", header, 0, answerLimit})
		}
	}
}

// outcome is the answer to a request, or the error of the client.
type outcome struct {
	status int
	later  string // Retry-After
	took   time.Duration
	err    error
}

// send sends a request over a connection of its own.
func (s *silentDatabase) send(r *storeRequest) (o outcome) {
	began := time.Now()
	ctx, stop := context.WithTimeout(s.Context(), 2*answerLimit)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, r.method, s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return outcome{err: err}
	}
	for i := 0; i < len(r.header); i += 2 {
		request.Header.Set(r.header[i], r.header[i+1])
	}
	transport := &http.Transport{} // net/http reads no body of a request with "Connection: close", and resets it
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return outcome{err: err, took: time.Since(began)}
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return outcome{answer.StatusCode, answer.Header.Get("Retry-After"), time.Since(began), err}
}

// sendAll sends all requests at once.
func (s *silentDatabase) sendAll() []outcome {
	out := make([]outcome, len(s.requests))
	var all sync.WaitGroup
	for i := range s.requests {
		all.Go(func() { out[i] = s.send(&s.requests[i]) })
	}
	all.Wait()
	return out
}

// checkSilent sends all requests while the database does not answer.
func (s *silentDatabase) checkSilent(state string) {
	s.Helper()
	for i, o := range s.sendAll() {
		r := &s.requests[i]
		what := fmt.Sprintf("%s, %s: %s %s", state, r.name, r.method, r.path)
		require.NoError(s, o.err, what)
		require.LessOrEqual(s, o.took, r.limit, what)
		if r.while != 0 {
			require.Equal(s, r.while, o.status, what)
		}
		if o.status >= 500 {
			require.Contains(s, []int{501, 503}, o.status, what)
		}
		if o.status == 503 {
			require.NotEmpty(s, o.later, what)
		}
	}
}

// checkReturned sends each request until it has the answer of before, for as long as a return
// may take.
func (s *silentDatabase) checkReturned(state string, before []outcome, returned time.Time) {
	s.Helper()
	var all sync.WaitGroup
	last := make([]outcome, len(s.requests))
	for i := range s.requests {
		all.Go(func() {
			for {
				last[i] = s.send(&s.requests[i])
				if last[i].status != 503 && last[i].err == nil || time.Since(returned) > returnLimit {
					return
				}
			}
		})
	}
	all.Wait()
	for i := range s.requests {
		require.Equal(s, before[i].status, last[i].status, "%s, %s: %s", state, s.requests[i].name, s.requests[i].path)
	}
}

// size is what the server's process holds.
type size struct {
	goroutines, files int
	memory            int64
}

func (s *silentDatabase) size() size {
	s.Helper()
	status, text := fetch(s.program, metricsPath)
	require.Equal(s, 200, status)
	out := size{memory: residentBytes(s.process.Pid)}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			var err error
			out.goroutines, err = strconv.Atoi(strings.TrimSpace(rest))
			require.NoError(s, err)
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process.Pid))
	require.NoError(s, err)
	out.files = len(files)
	return out
}

func (n size) within(before size) bool {
	const pools = connections + keyConnections + 1
	const garbage = 64 << 20 // until it is collected
	return n.goroutines <= before.goroutines+2*pools && n.files <= before.files+pools && n.memory <= before.memory+garbage
}

// While the database does not answer, every kind of request has its answer in time and the
// process does not grow; after its return all answers are as before.
func TestDatabase_thatDoesNotAnswerDelaysNoRequestForever(t *testing.T) {
	s := startSilentDatabase(t)
	before := s.sendAll()
	for i, o := range before {
		r := &s.requests[i]
		require.NoError(t, o.err, r.path)
		if r.while != 0 && r.name != "sandbox" { // it knows no such account
			require.Less(t, o.status, 400, "%s: %s", r.name, r.path)
		}
		require.Less(t, o.status, 502, "%s: %s", r.name, r.path)
	}
	held := s.size()
	for _, state := range []struct {
		name  string
		begin func() (end func())
	}{
		{"frozen", func() func() {
			thaw, err := s.database.Freeze()
			require.NoError(t, err)
			t.Cleanup(thaw)
			return thaw
		}},
		{"gone", func() func() {
			s.database.Crash()
			return func() { require.NoError(t, s.database.Up(t.Context())) }
		}},
	} {
		end := state.begin()
		began := time.Now()
		rounds := 0
		var early size
		for lasts := time.Duration(prove.Count(0, 300)) * time.Second; rounds < 2 || time.Since(began) < lasts; rounds++ {
			s.checkSilent(state.name)
			if rounds == 1 {
				early = s.size()
			}
		}
		late := s.size()
		require.True(t, late.within(early), "%s: %+v after two rounds, %+v after %d", state.name, early, late, rounds)
		require.True(t, late.within(held), "%s: %+v before, %+v after %d rounds", state.name, held, late, rounds)
		end()
		returned := time.Now()
		s.checkReturned(state.name, before, returned)
		t.Logf("%s: %d rounds of %d requests; before %+v, after two rounds %+v, at the end %+v, then %+v", state.name, rounds, len(s.requests), held, early, late, s.size())
		require.Eventually(t, func() bool { return s.size().within(held) }, time.Minute, 100*time.Millisecond, state.name)
	}
	s.kill(s.process)
}

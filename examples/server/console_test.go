package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/examples/internal/browse"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// consoleClient is a browser without scripts.
type consoleClient struct {
	*testing.T
	http.Client
	url string
}

func newConsoleClient(t *testing.T, p *program) *consoleClient {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &consoleClient{T: t, Client: http.Client{Jar: jar}, url: p.url + consolePath}
}

// open returns the status and the text of a page, and the address after redirects.
func (c *consoleClient) open(path string, form url.Values) (status int, page, at string) {
	c.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	require.NoError(c, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w, err := c.Do(r)
	require.NoError(c, err)
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	require.NoError(c, err)
	return w.StatusCode, string(text), w.Request.URL.Path
}

var csrfToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func TestConsole_signInOpensEveryPageUntilSignOut(t *testing.T) {
	t.Parallel()
	p := start(t, "-management-key", "manager", "-tour")
	p.until("tour: ok")
	c := newConsoleClient(t, p)

	_, page, at := c.open("/users", nil)
	require.Equal(t, "/console/sign-in", at, "no page without a session")
	require.Contains(t, page, "Management key")
	status, page, _ := c.open("/sign-in", url.Values{"key": {"wrong"}})
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, page, "wrong\"")
	status, page, at = c.open("/sign-in", url.Values{"key": {"manager"}})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "/console/", at)
	require.Contains(t, page, "connected sources")
	require.NotContains(t, page, p.key)
	require.NotContains(t, page, "manager")
	csrf := csrfToken.FindStringSubmatch(page)[1]

	for _, path := range []string{"/users", "/orders", "/reviews", "/critical", "/reports", "/events", "/query", "/signature", "/sources", "/providers", "/team", "/sandbox"} {
		status, page, _ := c.open(path, nil)
		require.Equal(t, http.StatusOK, status, page)
	}
	user, order := consoleLinks(c)
	status, page, _ = c.open(user, nil)
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "<svg")
	status, page, _ = c.open(order, nil)
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "Timeline")
	id := strings.TrimPrefix(user, "/users/")
	_, page, _ = c.open("/query", nil)
	text := regexp.MustCompile(`(?s)<textarea[^>]*>(.*)</textarea>`).FindStringSubmatch(page)[1]
	text = strings.ReplaceAll(text, "&#34;", `"`)
	status, page, _ = c.open("/query", url.Values{"csrf": {csrf}, "user": {id}, "text": {text}})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "<h2>Result</h2>")
	status, _, _ = c.open("/query", url.Values{"csrf": {csrf}, "user": {id}, "text": {"{"}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	status, _, _ = c.open("/users/00000000-0000-4000-8000-000000000000", nil)
	require.Equal(t, http.StatusNotFound, status)
	status, _, _ = c.open("/sign-out", url.Values{"csrf": {"wrong"}})
	require.Equal(t, http.StatusForbidden, status)
	_, _, at = c.open("/sign-out", url.Values{"csrf": {csrf}})
	require.Equal(t, "/console/sign-in", at)
	_, _, at = c.open("/users", nil)
	require.Equal(t, "/console/sign-in", at, "the session is over")
	p.quit()
}

// consoleLinks returns the first links to a user and to an order.
func consoleLinks(c *consoleClient) (user, order string) {
	c.Helper()
	_, page, _ := c.open("/users", nil)
	m := regexp.MustCompile(`/console(/users/[0-9a-f-]{36})"`).FindStringSubmatch(page)
	require.NotNil(c, m, page)
	user = m[1]
	_, page, _ = c.open("/orders", nil)
	m = regexp.MustCompile(`/console(/orders/[0-9a-f-]{36})"`).FindStringSubmatch(page)
	require.NotNil(c, m, page)
	return user, m[1]
}

// The link that the tour prints leads to the chart of a night in two clicks.
func TestTour_linkReachesTheChartOfANightInTwoClicks(t *testing.T) {
	t.Parallel()
	b := browse.Start(t)
	p := start(t, "-tour")
	line := p.until("The console shows last night: ")
	p.until("tour: ok")
	tab := b.Open(t, browse.Person{NoScript: true})
	clicks := []func(){
		func() { tab.Go(strings.TrimPrefix(line, "The console shows last night: ")) },
		func() { tab.Press("Open the console") },
	}
	for _, click := range clicks {
		click()
	}
	require.Len(t, clicks, 2)
	tab.See("Night to", "asleep", "heart rate (bpm)", "sleep stages", "awake", "REM")
	w := newConsoleClient(t, p)
	status, _, _ := w.open(strings.TrimPrefix(line, "The console shows last night: "+p.url+consolePath), nil)
	require.Equal(t, http.StatusNotFound, status, "a link works once")
	p.quit()
}

func TestTour_linkOpensTheChartOfANight(t *testing.T) {
	t.Parallel()
	p := start(t, "-tour")
	line := p.until("The console shows last night: ")
	p.until("tour: ok")
	c := newConsoleClient(t, p)
	path := strings.TrimPrefix(line, "The console shows last night: "+p.url+consolePath)
	status, page, _ := c.open(path, nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "Open the console")
	_, page, at := c.open(path, url.Values{})
	require.Regexp(t, `/console/users/[0-9a-f-]{36}/sleep`, at)
	require.Regexp(t, `aria-label="heart rate and sleep stages: .*heart rate \(bpm\): [0-9]{3} values .*; sleep stages: [0-9]+ stages`, page)
	p.quit()
}

// consolePages returns the path of every page by name: a person of the tour, a person with a
// history of the sandbox, an order and a lab report under review.
func consolePages(p *program, c *consoleClient) map[string]string {
	p.Helper()
	tourUser, order := consoleLinks(c)
	_, page, _ := c.open("/sandbox", nil)
	csrf := csrfToken.FindStringSubmatch(page)[1]
	status, page, user := c.open("/sandbox/people", url.Values{"csrf": {csrf}, "client_user_id": {"story"}, "provider": {"acme_ring"}, "time_zone": {"Europe/Berlin"}})
	require.Equal(p, http.StatusOK, status, page)
	user = strings.TrimPrefix(user, consolePath)
	status, page, _ = c.open("/sandbox/results", url.Values{"csrf": {csrf}})
	require.Equal(p, http.StatusOK, status, page)
	var held string
	wait(p, func() bool {
		_, page, _ := c.open("/reviews", nil)
		m := regexp.MustCompile(`/console(/reviews/[0-9a-f-]{36})"`).FindStringSubmatch(page)
		if m != nil {
			held = m[1]
		}
		return m != nil
	})
	measured := "/users/" + measuredPerson(p)
	status, answer := send(p, strings.TrimPrefix(tourUser, "/users/"), "report.pdf", reportPDF(), "needs_human_review")
	require.Equal(p, http.StatusOK, status, string(answer))
	var job struct {
		Job struct {
			ID string `json:"id"`
		} `json:"job"`
		ID string `json:"id"`
	}
	require.NoError(p, json.Unmarshal(answer, &job))
	report := "/reports/" + cmp.Or(job.ID, job.Job.ID)
	wait(p, func() bool {
		_, page, _ := c.open(report, nil)
		return strings.Contains(page, "pending review")
	})
	return map[string]string{
		"home": "/", "users": "/users", "person": user, "sleep": tourUser + "/sleep", "workouts": measured + "/workouts", "labs": tourUser + "/labs",
		"sources-of-a-person": measured, "glucose": measured + "?resource=glucose", "no-data": measured + "/sleep",
		"result": held, "sources": "/sources", "missing": "/nothing", "person-query": "/query?user=" + strings.TrimPrefix(user, "/users/"),
		"orders": "/orders", "order": order, "results": "/reviews", "reports": "/reports", "report": report, "events": "/events",
		"signature": "/signature", "query": "/query", "providers": "/providers", "team": "/team", "sandbox": "/sandbox",
	}
}

// A reviewer corrects, drops and adds results; the page shows what changed.
func TestConsole_reviewerCorrectsALabReport(t *testing.T) {
	t.Parallel()
	p := start(t, "-management-key", "manager")
	user := postJSON(p, "/v2/user/", map[string]any{"client_user_id": "reported"})["user_id"].(string)
	status, answer := send(p, user, "report.pdf", reportPDF(), "needs_human_review")
	require.Equal(t, http.StatusOK, status, string(answer))
	c := newConsoleClient(t, p)
	c.open("/sign-in", url.Values{"key": {"manager"}})
	var report, page string
	wait(t, func() bool {
		_, page, _ = c.open("/reports", nil)
		m := regexp.MustCompile(`/console(/reports/[0-9a-f-]{36})"`).FindStringSubmatch(page)
		if m != nil {
			report = m[1]
		}
		return m != nil
	})
	_, page, _ = c.open(report, nil)
	require.Contains(t, page, `<rect class="mark" id="box7"`)
	require.Contains(t, page, `href="#box7"`)
	csrf := csrfToken.FindStringSubmatch(page)[1]
	_, page, _ = c.open(report, url.Values{"csrf": {csrf}, "action": {"approve"}, "reviewed_by": {"Ann"}, "r0.value": {"113"}, "r1.drop": {"1"},
		"add.test_name": {"Chloride"}, "add.value": {"101"}, "add.units": {"mmol/L"}})
	for _, want := range []string{"<strong>completed</strong>", "reviewed by Ann", "Result 1, value: 113", "Result 2 dropped", "Result added: Chloride 101 mmol/L", `value="113"`} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "Complete with these values")
	p.quit()
}

// The console of a team opens nothing of another team, and keys of another team do not sign in.
func TestConsole_opensNothingOfAnotherTeam(t *testing.T) {
	t.Parallel()
	p := start(t, "-management-key", "manager")
	c := newConsoleClient(t, p)
	_, page, _ := c.open("/sign-in", url.Values{"key": {"manager"}})
	csrf := csrfToken.FindStringSubmatch(page)[1]
	_, page, _ = c.open("/team/teams", url.Values{"csrf": {csrf}, "name": {"Second team"}})
	require.Contains(t, page, "Second team")
	first := regexp.MustCompile(`this console</span></th><td>([0-9a-f-]{36})`).FindStringSubmatch(page)[1]
	second := regexp.MustCompile(`Second team</th><td>([0-9a-f-]{36})`).FindStringSubmatch(page)[1]
	org := organisationOf(healthlab.TeamID{UUID: uuid.MustParse(first)}).String()
	manage := func(method, path, body string) map[string]any {
		r, err := http.NewRequestWithContext(t.Context(), method, p.url+"/v1/org/"+org+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("x-management-key", "manager")
		r.Header.Set("content-type", "application/json")
		w, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer w.Body.Close()
		var out map[string]any
		require.NoError(t, json.NewDecoder(w.Body).Decode(&out))
		require.Equal(t, http.StatusOK, w.StatusCode, out)
		return out
	}
	other := *p
	other.key = manage(http.MethodPost, "/team_api_keys/sandbox/us", `{"team_id":"`+second+`","label":"other"}`)["value"].(string)
	person := postJSON(&other, "/v2/user/", map[string]any{"client_user_id": "of the second team"})["user_id"].(string)
	webhook := manage(http.MethodPost, "/team/"+second+"/sandbox/webhook", `{"url":"http://127.0.0.1:1080"}`)["id"].(string)

	_, page, _ = c.open("/users", nil)
	require.Contains(t, page, "0 users")
	_, page, _ = c.open("/users?q=of+the+second", nil)
	require.NotContains(t, page, person)
	for _, path := range []string{"", "/sleep", "/workouts", "/labs"} {
		status, page, _ := c.open("/users/"+person+path, nil)
		require.Equal(t, http.StatusNotFound, status)
		require.NotContains(t, page, "of the second team")
	}
	status, page, _ := c.open("/events?webhook="+webhook, nil)
	require.Equal(t, http.StatusNotFound, status, page)
	status, _, _ = c.open("/users/"+person+"/refresh", url.Values{"csrf": {csrf}})
	require.Equal(t, http.StatusNotFound, status)
	p.quit()
}

// A key of a role sees its pages alone, and the log of the server has nothing of a person.
func TestConsole_roleSeesOnlyItsPages(t *testing.T) {
	t.Parallel()
	key, _, err := httpapi.NewKey(rand.Reader, healthlab.Sandbox, httpapi.US)
	require.NoError(t, err)
	p := start(t, "-api-key", key, "-management-key", "manager", "-tour", "-team-management-key", "looker="+teamOf(key).String()+"=viewer")
	p.until("tour: ok")
	admin, viewer := newConsoleClient(t, p), newConsoleClient(t, p)
	admin.open("/sign-in", url.Values{"key": {"manager"}})
	user, _ := consoleLinks(admin)
	_, page, _ := admin.open(user, nil)
	name := regexp.MustCompile(`<h1>User ([^<]+)</h1>`).FindStringSubmatch(page)[1]
	status, page, at := viewer.open("/sign-in", url.Values{"key": {"looker"}})
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, "/console/", at)
	require.Contains(t, page, "deliveries a minute")
	require.NotContains(t, page, "reports in review")
	for _, path := range []string{user, user + "/sleep", "/users", "/orders", "/reviews", "/query", "/sandbox", "/reports"} {
		status, page, _ := viewer.open(path, nil)
		require.Equal(t, http.StatusForbidden, status, path)
		require.NotContains(t, page, name)
	}
	_, page, _ = viewer.open("/team", nil)
	require.NotContains(t, page, "New key")
	p.quit()
	require.NotContains(t, p.stderr.String(), name)
}

// measuredPerson makes a person with heart rate of two devices, glucose, and a run with its route.
func measuredPerson(p *program) string {
	p.Helper()
	answer := postJSON(p, "/v2/user/", map[string]any{"client_user_id": "measured"})
	id := answer["user_id"].(string)
	postJSON(p, "/v2/link/provider/manual/manual", map[string]any{"user_id": id})
	today := time.Now().UTC().Truncate(24 * time.Hour)
	sample := func(at time.Time, unit string, value float64) map[string]any {
		return map[string]any{"timestamp": at.Format(time.RFC3339), "timezone_offset": 0, "unit": unit, "value": math.Round(10*value) / 10}
	}
	series := map[string][]any{}
	for at := today.AddDate(0, 0, -6); at.Before(today); at = at.Add(15 * time.Minute) {
		hour := float64(at.Hour()) + float64(at.Minute())/60
		day := float64(at.YearDay())
		beat := 62 + 14*math.Sin((hour-9)/24*2*math.Pi) + 3*math.Sin(7*hour+day)
		series["watch"] = append(series["watch"], sample(at, "bpm", beat))
		if at.Hour() >= 8 && at.Hour() < 20 {
			series["chest_strap"] = append(series["chest_strap"], sample(at, "bpm", beat+5))
		}
		meals := math.Exp(-math.Pow(hour-8.5, 2)) + math.Exp(-math.Pow(hour-13.5, 2)) + math.Exp(-math.Pow(hour-19.5, 2))
		series["cgm"] = append(series["cgm"], sample(at, "mmol/L", 5.1+(4+math.Sin(day))*meals+0.4*math.Sin(hour+day)))
	}
	for source, data := range series {
		resource := map[bool]string{true: "glucose", false: "heartrate"}[source == "cgm"]
		postJSON(p, "/v2/timeseries/"+id+"/"+resource, map[string]any{"provider": "manual", "source": map[string]any{"type": source}, "data": data})
	}
	start := today.Add(-8 * time.Hour)
	postJSON(p, "/v2/summary/workouts/"+id, map[string]any{"provider": "manual", "source": map[string]any{"type": "watch"}, "data": []any{map[string]any{
		"title": "Lunch run", "time_start": start.Format(time.RFC3339), "time_end": start.Add(30 * time.Minute).Format(time.RFC3339), "timezone_offset": 0,
		"sport": map[string]any{"id": 1, "name": "Running", "slug": "running"}, "distance": 5200, "moving_time": 1800, "average_hr": 148, "max_hr": 171,
	}}})
	var workouts struct {
		Workouts []struct {
			ID string `json:"id"`
		} `json:"workouts"`
	}
	p.get("/v2/summary/workouts/"+id+"?start_date="+today.AddDate(0, 0, -2).Format(time.DateOnly), &workouts)
	stream := map[string][]any{}
	for i := range 181 {
		turn := float64(i) / 180 * 2 * math.Pi
		stream["time"] = append(stream["time"], start.Unix()+int64(10*i))
		stream["heartrate"] = append(stream["heartrate"], math.Round(120+40*(1-math.Exp(-float64(i)/40))+6*math.Sin(turn*5)))
		stream["velocity_smooth"] = append(stream["velocity_smooth"], 2.9+0.3*math.Sin(turn*3))
		stream["altitude"] = append(stream["altitude"], 210+25*math.Sin(turn))
		stream["lat"] = append(stream["lat"], 52.52+0.006*math.Sin(turn)+0.001*math.Sin(5*turn))
		stream["lng"] = append(stream["lng"], 13.40+0.012*math.Cos(turn))
	}
	postJSON(p, "/v2/timeseries/"+id+"/workouts/"+workouts.Workouts[0].ID+"/stream", map[string]any{"provider": "manual", "stream": stream})
	return id
}

// postJSON sends a body as the team and returns the answer.
func postJSON(p *program, path string, body any) (out map[string]any) {
	p.Helper()
	b, err := json.Marshal(body)
	require.NoError(p, err)
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+path, bytes.NewReader(b))
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	r.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	require.Equal(p, http.StatusOK, answer.StatusCode, string(text))
	require.NoError(p, json.Unmarshal(text, &out))
	return out
}

// screens are the widths of a phone, a tablet and a desktop.
var screens = []int64{390, 768, 1280}

// Every page has no violation of accessibility on a phone, a tablet and a desktop, light and dark, and
// works without scripts. docs/console.md shows the pictures that it takes. A plain run checks every
// sixth page.
func TestConsole_pagesAreAccessibleAndWorkWithoutScripts(t *testing.T) {
	t.Parallel()
	b := browse.Start(t)
	b.LoadAxe()
	p := start(t, "-management-key", "manager", "-tour", "-webhook-url", newServer(t, func(http.ResponseWriter, *http.Request) {}))
	p.until("tour: ok")
	c := newConsoleClient(t, p)
	c.open("/sign-in", url.Values{"key": {"manager"}})
	pages := consolePages(p, c)
	tab, plain := b.Open(t, browse.Person{Desktop: true}), b.Open(t, browse.Person{NoScript: true})
	tab.Go(p.url + consolePath)
	tab.CheckWidths(screens...)
	for _, tab := range []*browse.Tab{tab, plain} {
		tab.Go(p.url + consolePath)
		tab.Enter("Management key", "manager")
		tab.Press("Sign in")
	}
	for i, name := range slices.Sorted(maps.Keys(pages)) {
		if i%prove.Counts(6, 1, 1) != 0 {
			continue
		}
		tab.Go(p.url + consolePath + pages[name])
		tab.See("Sign out")
		tab.CheckWidths(screens...)
		tab.Picture(name, 1200)
		require.Empty(t, tab.Refusals(), name)
	}
	// Names complete in the editor.
	tab.Go(p.url + consolePath + pages["person-query"])
	require.Equal(t, "heartrate", browse.Eval[string](tab, `(() => {
		const editor = document.getElementById("text"), box = document.getElementById("names")
		editor.value = '"heartra'
		editor.selectionStart = editor.selectionEnd = editor.value.length
		editor.dispatchEvent(new Event("input"))
		box.querySelector("button").click()
		return editor.value.slice(1)
	})()`))
	tab.Go(p.url + consolePath + pages["person-query"])
	tab.Press("Run")
	tab.See("Result", "As code")
	tab.CheckWidths(screens...)
	tab.Picture("query-result", 1200)
	// Home takes new numbers without a request of the person, and can be paused.
	tab.Go(p.url + consolePath + "/")
	tab.Wait("Pause updates")
	before := browse.Eval[string](tab, `document.querySelector("#live time").dateTime`)
	tab.WaitFor(fmt.Sprintf(`document.querySelector("#live time").dateTime > %q`, before))
	tab.WaitFor(`document.querySelector("#live input[type=range]")`) // the new pictures, too, show their values
	tab.Touch("Pause updates")
	tab.Wait("Resume updates")

	// Without scripts.
	plain.Go(p.url + consolePath + pages["person-query"])
	plain.Press("Run")
	plain.See("Result", "As code", "mean")
	plain.Go(p.url + consolePath + pages["sources-of-a-person"])
	plain.See("chest_strap", "watch", "Source used by the merge")
	plain.Press("month")
	plain.See("Means, with the lowest and highest value, by day and source")
	plain.Go(p.url + consolePath + "/orders")
	plain.Choose("status", "completed")
	plain.Press("Filter")
	plain.See("1 order")
	plain.Press("Filter")
	plain.Go(p.url + consolePath + pages["result"])
	plain.Choose("Action", "reject")
	plain.Press("Decide")
	plain.See("Result under review", "resolved", "Decision: reject")
	plain.Miss("Decide")
	plain.Go(p.url + consolePath + pages["report"])
	plain.Enter("Reviewer", "Ann")
	plain.Press("Complete with these values")
	plain.See("completed", "reviewed by Ann")
	tab.Go(p.url + consolePath + pages["report"])
	tab.CheckWidths(screens...)
	plain.Go(p.url + consolePath + "/events")
	plain.Press("Send again")
	wait(t, func() bool {
		_, page, _ := c.open("/events", nil)
		return strings.Contains(page, "Trigger: retry")
	})
	plain.Go(p.url + consolePath + pages["person"])
	plain.Press("Read sources")
	plain.See("Acme Ring")
	p.quit()
}

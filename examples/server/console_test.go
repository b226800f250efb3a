package main

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/browse"
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

func TestConsole(t *testing.T) {
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

	for _, path := range []string{"/users", "/orders", "/reviews", "/reports", "/events", "/query", "/signature", "/providers", "/team", "/sandbox"} {
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
func TestTwoClicksFromTheTourToTheNight(t *testing.T) {
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

func TestTourOpensTheNight(t *testing.T) {
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
	status, page, user := c.open("/sandbox", url.Values{"csrf": {csrf}, "client_user_id": {"story"}, "provider": {"acme_ring"}, "time_zone": {"Europe/Berlin"}})
	require.Equal(p, http.StatusOK, status, page)
	user = strings.TrimPrefix(user, consolePath)
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
	require.Eventually(p, func() bool {
		_, page, _ := c.open(report, nil)
		return strings.Contains(page, "pending review")
	}, 20*time.Second, 50*time.Millisecond)
	return map[string]string{
		"home": "/", "users": "/users", "person": user, "sleep": tourUser + "/sleep", "workouts": user + "/workouts", "labs": tourUser + "/labs",
		"orders": "/orders", "order": order, "results": "/reviews", "reports": "/reports", "report": report, "events": "/events",
		"signature": "/signature", "query": "/query", "providers": "/providers", "team": "/team", "sandbox": "/sandbox",
	}
}

// Every page has no violation of accessibility on a phone and on a desktop, light and dark, and
// works without scripts. docs/console.md shows the pictures that it takes.
func TestConsoleInTheBrowser(t *testing.T) {
	b := browse.Start(t)
	b.LoadAxe()
	p := start(t, "-management-key", "manager", "-tour", "-webhook-url", newServer(t, func(http.ResponseWriter, *http.Request) {}))
	p.until("tour: ok")
	c := newConsoleClient(t, p)
	c.open("/sign-in", url.Values{"key": {"manager"}})
	pages := consolePages(p, c)
	tab, plain := b.Open(t, browse.Person{Desktop: true}), b.Open(t, browse.Person{NoScript: true})
	for _, tab := range []*browse.Tab{tab, plain} {
		tab.Go(p.url + consolePath)
		tab.Enter("Management key", "manager")
		tab.Press("Sign in")
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		tab.Go(p.url + consolePath + pages[name])
		tab.See("Sign out")
		tab.CheckWidths(360, 1440)
		tab.Picture(name, 1200)
		require.Empty(t, tab.Refusals(), name)
		plain.Go(p.url + consolePath + pages[name])
		plain.See("Sign out")
	}
	tab.Go(p.url + consolePath + "/query")
	tab.Enter("User id", strings.TrimPrefix(pages["person"], "/users/"))
	tab.Press("Run")
	tab.See("Result", "As code")
	tab.CheckWidths(360, 1440)
	tab.Picture("query-result", 1200)
	_, page, _ := c.open(pages["report"], nil)
	csrf := csrfToken.FindStringSubmatch(page)[1]
	status, page, _ := c.open(pages["report"], url.Values{"csrf": {csrf}, "action": {"approve"}, "reviewed_by": {"Ann"}, "r0.value": {"113"}})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "<strong>completed</strong>")
	require.Contains(t, page, "reviewed by Ann")
	p.quit()
}

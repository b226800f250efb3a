package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

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

	for _, path := range []string{"/users", "/orders", "/reviews", "/events", "/query"} {
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

func TestConsoleInTheBrowser(t *testing.T) {
	b := browse.Start(t)
	b.LoadAxe()
	p := start(t, "-management-key", "manager", "-tour")
	p.until("tour: ok")
	c := newConsoleClient(t, p)
	c.open("/sign-in", url.Values{"key": {"manager"}})
	user, order := consoleLinks(c)
	tab := b.Open(t, browse.Person{})
	tab.Go(p.url + consolePath)
	tab.Check()
	tab.Enter("Management key", "manager")
	tab.Press("Sign in")
	for name, path := range map[string]string{
		"home": "/", "users": "/users", "user": user, "orders": "/orders", "order": order,
		"reviews": "/reviews", "events": "/events", "query": "/query",
	} {
		tab.Go(p.url + consolePath + path)
		tab.See("Sign out")
		tab.Check()
		tab.Shot("console-" + name)
	}
	p.quit()
}

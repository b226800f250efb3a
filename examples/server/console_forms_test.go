package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// htmlForm is a form of a page with the values that a browser sends if the person changes none.
type htmlForm struct {
	action string
	values url.Values
	fields map[string]bool // names of the controls
}

// formTo returns the form of a page whose action ends with a path below the console.
func (c *consoleClient) formTo(page, action string) htmlForm {
	c.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(c, err)
	for n := range root.Descendants() {
		if n.Data == "form" && attributeOf(n, "action") == consolePath+action {
			return readForm(n)
		}
	}
	require.FailNow(c, "the page has no form", "%s: %s", action, page)
	return htmlForm{}
}

func attributeOf(n *html.Node, name string) string {
	i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return n.Attr[i].Val
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func readForm(form *html.Node) htmlForm {
	f := htmlForm{action: strings.TrimPrefix(attributeOf(form, "action"), consolePath), values: url.Values{}, fields: map[string]bool{}}
	for n := range form.Descendants() {
		name := attributeOf(n, "name")
		if n.Type != html.ElementNode || name == "" {
			continue
		}
		f.fields[name] = true
		switch {
		case n.Data == "input" && attributeOf(n, "type") == "checkbox":
			if has(n, "checked") {
				f.values.Add(name, attributeOf(n, "value"))
			}
		case n.Data == "input":
			f.values.Add(name, attributeOf(n, "value"))
		case n.Data == "textarea":
			f.values.Add(name, text(n))
		case n.Data == "select":
			f.values.Add(name, chosen(n))
		}
	}
	return f
}

// text returns the text of an element.
func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// chosen returns the value of the chosen option of a select, else that of the first.
func chosen(n *html.Node) string {
	var values []string
	for o := range n.Descendants() {
		if o.Data != "option" {
			continue
		}
		value := attributeOf(o, "value")
		if !has(o, "value") {
			value = text(o)
		}
		if has(o, "selected") {
			return value
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// submit opens a page and sends one of its forms with changed values, and returns the page that follows.
// A value "" of a checkbox takes the tick off.
func (c *consoleClient) submit(path, action string, change map[string]string) (status int, page, at string) {
	c.Helper()
	_, page, _ = c.open(path, nil)
	f := c.formTo(page, action)
	for name, value := range change {
		require.True(c, f.fields[name], "the form %s has no field %s", action, name)
		f.values.Set(name, value)
		if value == "" {
			f.values.Del(name)
		}
	}
	return c.open(f.action, f.values)
}

// consoleOf starts a server with a console and signs in.
func consoleOf(t *testing.T, args ...string) (*program, *consoleClient) {
	p := start(t, append([]string{"-management-key", "manager"}, args...)...)
	c := newConsoleClient(t, p)
	status, page, _ := c.open("/sign-in", url.Values{"key": {"manager"}})
	require.Equal(t, http.StatusOK, status, page)
	return p, c
}

// eventually waits until a page shows a text.
func (c *consoleClient) eventually(path, want string) (page string) {
	c.Helper()
	wait(c, func() bool {
		_, page, _ = c.open(path, nil)
		return strings.Contains(page, want)
	}, want)
	return page
}

// A window of messages that an endpoint did not get is sent once more; other times are not.
func TestConsole_resendsAWindowOfMissedMessages(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	p, c := consoleOf(t, "-webhook-url", newServer(t, func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	_, page, _ := c.open("/events", nil)
	id := regexp.MustCompile(`/events/([^/"]+)/recover"`).FindStringSubmatch(page)[1]
	endpoints := "/v1/org/" + orgOf(p) + "/team/" + teamOf(p.key).String() + "/sandbox/webhook"
	routed := make(chan struct{}, 1)
	other := newServer(t, func(http.ResponseWriter, *http.Request) {
		select {
		case routed <- struct{}{}:
		default:
		}
	})
	ask(p, "POST", endpoints, `{"url":"`+other+`"}`, 200, nil, "x-management-key", "manager")
	endpoint, events := endpoints+"/"+id, "/events?webhook="+id
	ask(p, "PATCH", endpoint, `{"disabled":true}`, 200, nil, "x-management-key", "manager")
	user := postJSON(p, "/v2/user/", map[string]any{"client_user_id": "replayed"})["user_id"].(string)
	postJSON(p, "/v2/link/provider/manual/manual", map[string]any{"user_id": user})
	<-routed // A message is routed to all endpoints at once, and to one that is enabled by then too.
	ask(p, "PATCH", endpoint, `{"disabled":false}`, 200, nil, "x-management-key", "manager")
	require.Zero(t, got.Load())

	_, page, _ = c.submit(events, "/events/"+id+"/recover", map[string]string{"since": "2026-01-01T00:00", "until": "2026-01-02T00:00"})
	require.Contains(t, page, "Messages that are queued: 0.")
	status, page, _ := c.submit(events, "/events/"+id+"/recover", map[string]string{"since": "yesterday"})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "since: must be a date and time like 2026-01-31T08:30")
	status, page, at := c.submit(events, "/events/"+id+"/recover", nil)
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, "/console/events", at)
	require.Contains(t, page, "Messages that are queued: 1.")
	page = c.eventually(events, "Trigger: recover")
	require.Contains(t, page, "Trigger: recover")
	require.Equal(t, int32(1), got.Load())
	p.quit()
}

// A key is made, shown once, rotated and deleted; the API takes it in between and not after.
func TestConsole_createsRotatesAndDeletesAPIKeys(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	opens := func(key string, want int) {
		t.Helper()
		one := *p
		one.key = key
		ask(&one, "GET", "/v2/user/", "", want, nil)
	}
	shown := regexp.MustCompile(`is shown once.*\n?.*<code>(sk_[^<]+)</code>`)
	status, page, _ := c.submit("/team", "/team/keys", map[string]string{"label": "a <reader>", "scope": "data:read", "expires": time.Now().AddDate(0, 0, 3).Format(time.DateOnly)})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "a &lt;reader&gt;")
	require.Contains(t, page, `<span class="tag">data:read</span>`)
	first := shown.FindStringSubmatch(page)[1]
	opens(first, http.StatusOK)
	one := *p
	one.key = first
	ask(&one, "POST", "/v2/user/", `{"client_user_id":"refused"}`, http.StatusForbidden, nil)
	_, page, _ = c.open("/team", nil)
	require.NotContains(t, page, first, "a key is shown once")

	id := regexp.MustCompile(`(?s)"row">a &lt;reader&gt;.*?/team/keys/([^/"]+)/rotate"`).FindStringSubmatch(page)[1]
	status, page, _ = c.submit("/team", "/team/keys/"+id+"/rotate", nil)
	require.Equal(t, http.StatusOK, status, page)
	second := shown.FindStringSubmatch(page)[1]
	require.NotEqual(t, first, second)
	opens(first, http.StatusOK)
	opens(second, http.StatusOK)

	ids := regexp.MustCompile(`(?s)"row">a &lt;reader&gt;.*?/team/keys/([^/"]+)/delete"`).FindAllStringSubmatch(page, -1)
	require.Len(t, ids, 2)
	for _, m := range ids {
		status, page, _ = c.submit("/team", "/team/keys/"+m[1]+"/delete", nil)
		require.Equal(t, http.StatusOK, status, page)
	}
	require.NotContains(t, page, "a &lt;reader&gt;")
	opens(first, http.StatusUnauthorized)
	opens(second, http.StatusUnauthorized)

	status, page, _ = c.submit("/team", "/team/keys", map[string]string{"label": "late", "expires": "2020-01-01"})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, `role="alert">expires_at: `)
	p.quit()
}

// The form of settings changes those that were changed, and no other.
func TestConsole_settingsFormChangesOnlyWhatWasChanged(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	settings := func() (out map[string]any) {
		ask(p, "GET", "/v1/org/"+orgOf(p)+"/team/"+teamOf(p.key).String()+"/sandbox/settings", "", 200, &out, "x-management-key", "manager")
		return out
	}
	before := settings()
	status, page, at := c.submit("/team", "/team/settings", map[string]string{
		"set.verb_mode": "split", "set.event_body_retention_days": "3", "set.explicit_connect": "true", "set.texts_enabled": "", "set.event_type_prefixes": "daily.\r\nlabtest.\r\n",
		"set.critical_result_notification_email": "desk@clinic.example",
		"set.brand_information.company_name":     "Clinic", "set.brand_information.logo_url": "https://clinic.example/logo.png",
		"set.critical_result_escalation.0.after_minutes": "10", "set.critical_result_escalation.3.after_minutes": "90", "set.critical_result_escalation.3.to": "desk",
		"set.data_pull_preferences.0.provider": "acme_ring", "set.data_pull_preferences.0.days": "30", "set.data_pull_preferences.0.resources": "sleep 60",
		"set.event_destination_preferences.preferred": "webhook", "set.event_destination_preferences.enabled": "webhook",
	})
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, "/console/team", at)
	require.Contains(t, page, "The settings are saved.")
	after := settings()
	require.Equal(t, "split", after["verb_mode"])
	require.Equal(t, 3.0, after["event_body_retention_days"])
	require.Equal(t, true, after["explicit_connect"])
	require.Equal(t, false, after["texts_enabled"])
	require.Equal(t, []any{"daily.", "labtest."}, after["event_type_prefixes"])
	require.Equal(t, "desk@clinic.example", after["critical_result_notification_email"])
	require.Equal(t, "Clinic", after["brand_information"].(map[string]any)["company_name"])
	steps := after["critical_result_escalation"].([]any)
	require.Len(t, steps, 4)
	require.Equal(t, 10.0, steps[0].(map[string]any)["after_minutes"])
	require.Equal(t, map[string]any{"after_minutes": 90.0, "to": "desk"}, steps[3])
	require.Equal(t, map[string]any{"acme_ring": map[string]any{"default": map[string]any{"historical_days_to_pull": 30.0},
		"resource_overrides": map[string]any{"sleep": map[string]any{"historical_days_to_pull": 60.0}}}}, after["data_pull_preferences"])
	require.Equal(t, map[string]any{"preferred": "webhook", "enabled": []any{"webhook"}}, after["event_destination_preferences"])
	changed := []string{"verb_mode", "event_body_retention_days", "explicit_connect", "texts_enabled", "event_type_prefixes", "critical_result_notification_email", "brand_information",
		"critical_result_escalation", "data_pull_preferences", "event_destination_preferences"}
	for name, was := range before {
		if !slices.Contains(changed, name) {
			require.Equal(t, was, after[name], name)
		}
	}
	status, _, _ = c.submit("/team", "/team/settings", map[string]string{
		"set.critical_result_notification_email": "", "set.brand_information.company_name": "", "set.brand_information.logo_url": "", "set.event_type_prefixes": "",
		"set.critical_result_escalation.1.after_minutes": "", "set.critical_result_escalation.1.to": "", "set.data_pull_preferences.0.days": "",
	})
	require.Equal(t, http.StatusOK, status)
	again := settings()
	require.Nil(t, again["critical_result_notification_email"])
	require.Equal(t, before["brand_information"], again["brand_information"])
	require.Len(t, again["critical_result_escalation"], 3, "an entry without values is removed")
	require.Empty(t, again["data_pull_preferences"])
	require.Equal(t, "split", again["verb_mode"], "what the form did not change stays")
	for field, want := range map[string]string{"set.critical_result_escalation.0.after_minutes": "critical_result_escalation.after_minutes: must be a whole number", "set.brand_information.logo_url": "brand_information", "set.event_body_retention_days": "event_body_retention_days: must be a whole number", "set.critical_result_notification_email": "critical_result_notification_email"} {
		status, page, _ = c.submit("/team", "/team/settings", map[string]string{field: "none of these {"})
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, page, want)
		require.NotContains(t, page, "none of these")
	}
	p.quit()
}

// An endpoint is made, changed, tried and deleted in forms; its secret is shown on demand alone.
func TestConsole_createsTestsAndDeletesEndpoints(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	var got atomic.Pointer[http.Header]
	receiver := newServer(t, func(_ http.ResponseWriter, r *http.Request) { got.Store(&r.Header) })
	status, page, at := c.submit("/events", "/endpoints", map[string]string{"url": receiver, "description": "desk", "filter_types": "daily.data.sleep.created\r\ndaily.data.steps.created", "rate_limit": "5"})
	require.Equal(t, http.StatusOK, status, page)
	own := strings.TrimPrefix(at, consolePath)
	require.Contains(t, page, "The endpoint is made.")
	require.NotContains(t, page, "whsec_")
	form := c.formTo(page, own)
	require.Equal(t, []string{"desk", "5", "daily.data.sleep.created\ndaily.data.steps.created"}, []string{form.values.Get("description"), form.values.Get("rate_limit"), strings.TrimSpace(form.values.Get("filter_types"))})

	_, page, _ = c.submit(own, own+"/headers", map[string]string{"headers": "X-Desk: 12\r\n"})
	require.Contains(t, page, "X-Desk: 12")
	_, page, _ = c.submit(own, own+"/test", map[string]string{"event_type": "daily.data.sleep.created"})
	require.Contains(t, page, "Test message daily.data.sleep.created: the receiver took it, status 200")
	require.Equal(t, "12", got.Load().Get("X-Desk"))
	_, page, _ = c.submit(own, own+"/secret", nil)
	first := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`).FindString(html.UnescapeString(page))
	require.NotEmpty(t, first)
	c.submit(own, own+"/rotate", nil)
	_, page, _ = c.submit(own, own+"/secret", nil)
	require.NotContains(t, html.UnescapeString(page), first)

	_, page, _ = c.submit(own, own, map[string]string{"filter_types": "", "rate_limit": "", "description": "front desk"})
	form = c.formTo(page, own)
	require.Equal(t, []string{"front desk", "", ""}, []string{form.values.Get("description"), form.values.Get("rate_limit"), strings.TrimSpace(form.values.Get("filter_types"))})
	_, page, _ = c.submit(own, own+"/state", nil)
	require.Contains(t, page, "disabled: manual")
	_, page, _ = c.submit(own, own+"/state", nil)
	require.Contains(t, page, ">delivers<")
	for field, wrong := range map[string]string{"url": "ftp://receiver.example", "rate_limit": "many", "filter_types": "Not A Type!"} {
		status, page, _ = c.submit(own, own, map[string]string{field: wrong})
		require.Equal(t, http.StatusUnprocessableEntity, status, field)
		require.Contains(t, page, field)
	}
	status, page, _ = c.submit(own, own+"/headers", map[string]string{"headers": "no colon"})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "headers: each line must be a name, a colon and a value")
	_, page, _ = c.submit(own, own+"/delete", nil)
	require.Contains(t, page, "The team has no webhook endpoint.")
	p.quit()
}

// The team's own id of a user is taken wherever a user id is, and suggested for what is typed.
func TestConsole_acceptsAndSuggestsClientUserIDs(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	const own = "member 7/a"
	user := postJSON(p, "/v2/user/", map[string]any{"client_user_id": own})["user_id"].(string)
	uuidLike := "11111111-2222-4333-8444-555555555555"
	other := postJSON(p, "/v2/user/", map[string]any{"client_user_id": uuidLike})["user_id"].(string)
	for _, path := range []string{"", "/sleep", "/workouts", "/labs"} {
		status, page, at := c.open("/users/"+url.PathEscape(own)+path, nil)
		require.Equal(t, http.StatusOK, status, page)
		require.Equal(t, consolePath+"/users/"+user+path, at)
	}
	status, page, _ := c.submit("/sandbox", "/sandbox/data", map[string]string{"user_id": own, "resource": "heartrate", "value": "61.5"})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "New samples that are stored: 1.")
	status, page, _ = c.submit("/sandbox", "/sandbox/orders", map[string]string{"user_id": uuidLike})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, consolePath+"/users/"+other)
	_, page, _ = c.open("/orders?user_id="+uuidLike, nil)
	require.Contains(t, page, "1 order")
	_, page, _ = c.open("/query", nil)
	asked := url.Values{"csrf": {csrfToken.FindStringSubmatch(page)[1]}, "user": {own}, "text": {`{"timeframe":{"type":"relative","anchor":"2026-01-31","past":{"unit":"day","value":7}},
		"queries":[{"select":[{"func":"count","arg":{"timeseries":"heartrate","field":"value"}}]}]}`}}
	status, page, _ = c.open("/query", asked)
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "<h2>Result</h2>")
	for _, path := range []string{"/users/nobody", "/orders?user_id=nobody"} {
		status, page, _ = c.open(path, nil)
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, page, "user: no user of the team has this user id or own id")
	}
	for typed, want := range map[string]string{"mem": user, "11111111-2": other, "": user, "x": user} {
		_, page, _ = c.open("/people?q="+typed, nil)
		require.Contains(t, page, want, typed)
	}
	p.quit()
}

// The keys of another team of the organisation are shown and made in its name.
func TestConsole_managesKeysOfAnotherTeamOfTheOrganisation(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	_, page, _ := c.submit("/team", "/team/teams", map[string]string{"name": "Second team"})
	second := regexp.MustCompile(`Second team</th><td>([0-9a-f-]{36})`).FindStringSubmatch(page)[1]
	status, page, _ := c.submit("/team", "/team/keys", map[string]string{"label": "of the second", "team": second})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "The key of the second is shown once")
	_, page, _ = c.open("/team", nil)
	require.NotContains(t, page, "of the second</th>")
	_, page, _ = c.open("/team?team="+second, nil)
	require.Contains(t, page, "of the second</th>")
	p.quit()
}

// The sandbox stores a pushed sample, orders a kit, moves it, and makes a person with results.
func TestConsole_sandboxPushesDataAndMovesOrders(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	user := postJSON(p, "/v2/user/", map[string]any{"client_user_id": "tried"})["user_id"].(string)
	status, page, at := c.submit("/sandbox", "/sandbox/data", map[string]string{"user_id": user, "resource": "heartrate", "value": "61.5"})
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, "/console/sandbox", at)
	require.Contains(t, page, "New samples that are stored: 1.")
	_, page, _ = c.open("/users/"+user, nil)
	require.Contains(t, page, "1 value between 61.5 and 61.5")
	status, page, _ = c.submit("/sandbox", "/sandbox/data", map[string]string{"user_id": user, "value": "much"})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "value: must be a number like 61.5")

	status, page, order := c.submit("/sandbox", "/sandbox/orders", map[string]string{"user_id": user})
	require.Equal(t, http.StatusOK, status, page)
	require.Regexp(t, `^/console/orders/[0-9a-f-]{36}$`, order)
	order = strings.TrimPrefix(order, consolePath)
	require.Contains(t, page, "No results yet.")
	require.NotContains(t, page, "report (PDF)", "a document that does not exist has no link")
	status, page, _ = c.submit(order, order+"/simulate", map[string]string{"final_status": "collecting_sample.testkit.with_customer"})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "<strong>with customer</strong>")
	status, page, _ = c.submit(order, order+"/simulate", map[string]string{"interpretation": "abnormal"})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "<strong>completed</strong>")
	require.Contains(t, page, `<td class="bad">abnormal</td>`)
	links := regexp.MustCompile(`href="/console(/orders/[^"]+/documents/[^"]+)"`).FindAllStringSubmatch(page, -1)
	require.Len(t, links, 4)
	for _, m := range links {
		status, file, _ := c.open(m[1], nil)
		require.Equal(t, http.StatusOK, status, m[1])
		require.True(t, strings.HasPrefix(file, "%PDF-"), m[1])
	}
	status, page, _ = c.submit(order, order+"/simulate", map[string]string{"final_status": "received.testkit.ordered"})
	require.Equal(t, http.StatusBadRequest, status, page)
	require.Contains(t, page, "final_status: must be reachable")

	status, page, at = c.submit("/sandbox", "/sandbox/people", map[string]string{
		"client_user_id": "with results", "provider": "acme_ring", "second_provider": "acme_watch", "interpretation": "critical"})
	require.Equal(t, http.StatusOK, status, page)
	for _, want := range []string{"User with results", "Acme Ring", "Acme Watch"} {
		require.Contains(t, page, want)
	}
	user = strings.TrimPrefix(at, consolePath)
	c.eventually(user, "Source used by the merge")
	_, page, _ = c.open(user+"/labs", nil)
	require.Contains(t, page, `<td class="bad">`)
	p.quit()
}

// A held result is accepted for the order that it names, on the page of the order and on its own.
func TestConsole_reviewerAcceptsAnUnmatchedResult(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	held := func() (review, order string) {
		t.Helper()
		status, page, _ := c.submit("/sandbox", "/sandbox/results", map[string]string{"case": "match_demo"})
		require.Equal(t, http.StatusOK, status, page)
		page = c.eventually("/reviews", "<td>pending customer review</td>")
		review = regexp.MustCompile(`/console(/reviews/[0-9a-f-]{36})"`).FindStringSubmatch(page)[1]
		_, page, _ = c.open(review, nil)
		return review, regexp.MustCompile(`/console(/orders/[0-9a-f-]{36})"`).FindStringSubmatch(page)[1]
	}
	review, order := held()
	_, page, _ := c.open(order, nil)
	require.Contains(t, page, "<td>match demo</td>")
	status, page, at := c.submit(order, review, nil)
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, consolePath+review, at)
	require.Contains(t, page, "<p>resolved")
	_, page, _ = c.open(order, nil)
	require.Contains(t, page, "No result under review names this order.")
	require.NotContains(t, page, "No results yet.")
	require.Contains(t, page, "<strong>completed</strong>")

	review, order = held()
	_, page, _ = c.open(review, nil)
	csrf := csrfToken.FindStringSubmatch(page)[1]
	status, page, _ = c.open(review, url.Values{"csrf": {csrf}, "action": {"accept"}, "order_id": {strings.TrimPrefix(order, "/orders/")}, "note": {"by telephone"}})
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "by telephone")
	status, page, _ = c.open(review, url.Values{"csrf": {csrf}, "action": {"accept"}, "order_id": {strings.TrimPrefix(order, "/orders/")}})
	require.Equal(t, http.StatusNotFound, status, page)
	require.Contains(t, page, "the result is not open for review")
	_, page, _ = c.open("/reviews?status=resolved", nil)
	require.Contains(t, page, "2 results")
	_, page, _ = c.open("/reviews?status=resolved&decision_code=no_match", nil)
	require.Contains(t, page, "No result fits the filter.")
	p.quit()
}

// The workbench downloads Parquet, and its snippets run as they are shown.
func TestConsole_queryGivesParquetAndRunnableSnippets(t *testing.T) {
	t.Parallel()
	p, c := consoleOf(t)
	user := measuredPerson(p)
	_, page, _ := c.open("/query?user="+user, nil)
	var form htmlForm
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Data == "form" && !has(n, "action") {
			form = readForm(n)
		}
	}
	require.Equal(t, user, form.values.Get("user"))
	form.values.Set("text", strings.ReplaceAll(form.values.Get("text"), `"queries"`, `"config": {"overlap_policy": "all"}, "queries"`))
	form.values.Set("as", "parquet")
	status, file, _ := c.open("/query", form.values)
	require.Equal(t, http.StatusOK, status)
	requireParquet(t, strings.NewReader(file))
	form.values.Set("as", "table")
	status, page, _ = c.open("/query", form.values)
	require.Equal(t, http.StatusOK, status, page)
	root, err = html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	code := map[string]string{}
	for n := range root.Descendants() {
		if n.Data == "details" && n.FirstChild != nil && n.FirstChild.NextSibling != nil {
			code[text(n.FirstChild)] = text(n.FirstChild.NextSibling)
		}
	}
	dir := t.TempDir()
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "API_KEY="+p.key, "GOWORK=off", "GOFLAGS=-mod=mod")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		require.NoError(t, err, said.String())
		return string(out)
	}
	if _, err := exec.LookPath("curl"); err == nil {
		require.Contains(t, command("sh", "-c", code["curl"]), `"results"`)
		command("sh", "-c", code["Parquet with curl"])
		archive, err := os.Open(filepath.Join(dir, "query.tar.gz"))
		require.NoError(t, err)
		defer archive.Close()
		requireParquet(t, archive)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(code["Go"]), 0o600))
	require.Contains(t, command("go", "run", "main.go"), `"results"`)
	p.quit()
}

// requireParquet checks that an archive holds one Parquet file.
func requireParquet(t *testing.T, r io.Reader) {
	t.Helper()
	z, err := gzip.NewReader(r)
	require.NoError(t, err)
	files := tar.NewReader(z)
	head, err := files.Next()
	require.NoError(t, err)
	require.Equal(t, "0.parquet", head.Name)
	b, err := io.ReadAll(files)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(b, []byte("PAR1")) && bytes.HasSuffix(b, []byte("PAR1")))
	_, err = files.Next()
	require.True(t, errors.Is(err, io.EOF))
}

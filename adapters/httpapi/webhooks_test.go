package httpapi_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/mock/gomock"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhookmock"
)

func webhookPairs() []contract.Pair {
	// The client checks every answer.
	return nil
}

func acceptingNotifier(t *testing.T) webhook.Notifier {
	n := webhookmock.NewMockNotifier(gomock.NewController(t))
	n.EXPECT().Notify(gomock.Any(), gomock.Any()).Return(webhook.Result{Class: webhook.ClassOK, Status: 204, Duration: 12 * time.Millisecond}).AnyTimes()
	return n
}

func newWebhooks(t *testing.T, store *memory.Store, n webhook.Notifier, now func() time.Time) *webhook.Service {
	t.Helper()
	return newWebhooksWith(t, store, n, now, 100_000)
}

func newWebhooksWith(t *testing.T, store *memory.Store, n webhook.Notifier, now func() time.Time, perMinute int) *webhook.Service {
	t.Helper()
	types, err := webhook.NewCatalogue(healthdata.EventTypes(), webhook.EventTypes())
	require.NoError(t, err)
	s, err := webhook.NewService(types, store.Webhooks(), n, newSealer(t), &webhook.ServiceOptions{
		Now: now, Guard: &webhook.Guard{Plain: true}, PerMinute: perMinute,
	})
	require.NoError(t, err)
	return s
}

func newSealer(t *testing.T) healthlab.Sealer {
	t.Helper()
	s, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)})
	require.NoError(t, err)
	return s
}

// backOffice is the management of webhooks over HTTP, with a clock of its own and a
// notifier that remembers.
type backOffice struct {
	*contract.Client
	t     *testing.T
	base  string
	store *memory.Store
	now   time.Time
	sent  []webhook.Notification
	reply webhook.Result

	handler http.Handler
	teamKey string
}

const (
	managementKey = "mk_0123456789abcdef0123456789abcdef"
	firstSecret   = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	secondSecret  = "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="
)

var org = uuid.MustParse("6f1c0b52-0000-4000-8000-0000000000aa")

func newBackOffice(t *testing.T) *backOffice { return newBackOfficeWith(t, 100_000) }

// newBackOfficeWith lets the team ask for so much in a minute.
func newBackOfficeWith(t *testing.T, perMinute int) *backOffice {
	t.Helper()
	o := &backOffice{
		t: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC),
		base:  "/v1/org/" + org.String() + "/team/" + team.String() + "/sandbox/webhook",
		reply: webhook.Result{Class: webhook.ClassOK, Status: 204, Duration: 12 * time.Millisecond},
	}
	clock := func() time.Time { return o.now }
	o.store = memory.New(&memory.Options{Now: clock})
	key, sum, err := httpapi.NewKey(rand.Reader, healthlab.Sandbox, httpapi.US)
	require.NoError(t, err)
	authenticate, err := httpapi.KeyAuth(httpapi.Keys{{Team: team, Sum: sum}}, healthlab.Sandbox, httpapi.US, nil)
	require.NoError(t, err)
	o.teamKey = key
	o.handler = httpapi.Handler(httpapi.Config{
		Authenticate: authenticate,
		AuthenticateManagement: httpapi.ManagementAuth([]httpapi.ManagementKey{{
			Sum:     httpapi.SumKey(managementKey),
			Mandate: func(which uuid.UUID, tm healthlab.TeamID) bool { return which == org && tm == team },
		}}, nil),
		Environment: healthlab.Sandbox,
		Parts:       (&httpapi.Services{Health: newHealth(t, o.store), Webhooks: newWebhooksWith(t, o.store, o, clock, perMinute)}).Parts(),
	})
	o.Client = contract.NewClient(t, o.handler, httpapi.OpenAPI()).With("x-management-key", managementKey)
	return o
}

func newHealth(t *testing.T, store *memory.Store) *healthdata.Service {
	t.Helper()
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	s, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	return s
}

// Notify remembers what was sent, and answers as it is told.
func (o *backOffice) Notify(_ context.Context, n webhook.Notification) webhook.Result {
	o.sent = append(o.sent, n)
	return o.reply
}

// register adds an endpoint and returns its path.
func (o *backOffice) register(body object) string {
	o.t.Helper()
	var e struct {
		ID string `json:"id"`
	}
	o.Send(o.t, "POST", o.base, body).Want(o.t, 200).JSON(o.t, &e)
	return o.base + "/" + e.ID
}

func (o *backOffice) get(path string) object {
	o.t.Helper()
	var out object
	o.Send(o.t, "GET", path, nil).Want(o.t, 200).JSON(o.t, &out)
	return out
}

func TestWebhook_isCreatedReadPatchedAndDeleted(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in", "secret": firstSecret})
	want := object{
		"id": at[len(o.base)+1:], "url": "https://receiver.example.com/in", "description": "", "rate_limit": nil,
		"disabled": false, "disabled_reason": nil, "failing_since": nil, "filter_types": nil, "order_scope": "key",
		"created_at": "2026-03-04T12:00:00+00:00", "updated_at": "2026-03-04T12:00:00+00:00",
	}
	require.Equal(t, want, o.get(at))

	o.now = o.now.Add(time.Minute)
	var got object
	o.Send(t, "PATCH", at, object{
		"description": "the clinic", "rate_limit": 5, "filter_types": []string{"daily.data.sleep.created"}, "disabled": true,
	}).Want(t, 200).JSON(t, &got)
	want["description"], want["rate_limit"], want["filter_types"] = "the clinic", 5.0, []any{"daily.data.sleep.created"}
	want["disabled"], want["disabled_reason"], want["updated_at"] = true, "manual", "2026-03-04T12:01:00+00:00"
	require.Equal(t, want, got)
	o.Send(t, "PATCH", at, object{"rate_limit": nil, "filter_types": nil, "disabled": nil, "url": nil}).Want(t, 200).JSON(t, &got)
	want["rate_limit"], want["filter_types"] = nil, nil
	require.Equal(t, want, got)
	o.Send(t, "PATCH", at, object{}).Want(t, 200)

	o.Send(t, "DELETE", at, nil).Want(t, 204)
	for _, method := range []string{"GET", "DELETE"} {
		require.Equal(t, "NOT_FOUND", o.Send(t, method, at, nil).Want(t, 404).ErrorType(t))
	}
}

func TestWebhooks_areListedNewestFirstInPages(t *testing.T) {
	o := newBackOffice(t)
	var want []string
	for i := range 5 {
		o.now = o.now.Add(time.Second)
		at := o.register(object{"url": fmt.Sprintf("https://receiver.example.com/%d", i), "order_scope": "user", "disabled": i == 3})
		want = append([]string{at[len(o.base)+1:]}, want...)
	}
	var got []string
	for path := o.base + "?limit=2"; path != ""; {
		var page struct {
			Data []struct{ ID string }
			Next *string `json:"next_cursor"`
		}
		o.Send(t, "GET", path, nil).Want(t, 200).JSON(t, &page)
		require.LessOrEqual(t, len(page.Data), 2)
		for _, e := range page.Data {
			got = append(got, e.ID)
		}
		path = ""
		if page.Next != nil {
			path = o.base + "?limit=2&next_cursor=" + *page.Next
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, []string{"query.next_cursor"}, o.Send(t, "GET", o.base+"?next_cursor=%21", nil).Want(t, 422).Locs(t))
	require.Equal(t, []string{"query.limit"}, o.Send(t, "GET", o.base+"?limit=251", nil).Want(t, 422).Locs(t))
}

func TestWebhook_invalidInputIsRefusedByField(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in"})
	const url = "https://receiver.example.com/secret-77"
	for _, tt := range []struct {
		name, method, path string
		body               any
		want               []string
	}{
		{"no body", "POST", o.base, nil, []string{"body"}},
		{"no url", "POST", o.base, object{}, []string{"body.url"}},
		{"unknown key", "POST", o.base, object{"url": url, "filter": "secret-77"}, []string{"body.filter"}},
		{"bad url", "POST", o.base, object{"url": "ftp://receiver.example.com/secret-77"}, []string{"body.url"}},
		{"private address", "POST", o.base, object{"url": "https://127.0.0.1/secret-77"}, []string{"body.url"}},
		{"empty filter", "POST", o.base, object{"url": url, "filter_types": []string{}}, []string{"body.filter_types"}},
		{"bad filter", "POST", o.base, object{"url": url, "filter_types": []string{"a.b.c", "secret-77"}}, []string{"body.filter_types.1"}},
		{"bad rate", "POST", o.base, object{"url": url, "rate_limit": 0}, []string{"body.rate_limit"}},
		{"rate too large", "POST", o.base, object{"url": url, "rate_limit": 2147483648}, []string{"body.rate_limit"}},
		{"bad scope", "POST", o.base, object{"url": url, "order_scope": "secret-77"}, []string{"body.order_scope"}},
		{"empty scope", "POST", o.base, object{"url": url, "order_scope": ""}, []string{"body.order_scope"}},
		{"bad secret", "POST", o.base, object{"url": url, "secret": "secret-77"}, []string{"body.secret"}},
		{"empty secret", "POST", o.base, object{"url": url, "secret": ""}, []string{"body.secret"}},
		{"all at once", "POST", o.base, object{"url": "secret-77", "rate_limit": -1, "secret": "secret-77"}, []string{"body.url", "body.rate_limit", "body.secret"}},
		{"patch", "PATCH", at, object{"url": "http://", "filter_types": []string{}}, []string{"body.url", "body.filter_types"}},
		{"patch secret", "PATCH", at, object{"secret": "secret-77"}, []string{"body.secret"}},
		{"no headers", "PUT", at + "/headers", object{}, []string{"body.headers"}},
		{"refused header", "PUT", at + "/headers", object{"headers": object{"Webhook-Id": "secret-77"}}, []string{"body.headers.0"}},
		{"bad header", "PUT", at + "/headers", object{"headers": object{"x": "secret-77\n"}}, []string{"body.headers.0"}},
		{"bad key", "POST", at + "/secret/rotate", object{"key": "secret-77"}, []string{"body.key"}},
		{"empty key", "POST", at + "/secret/rotate", object{"key": ""}, []string{"body.key"}},
		{"unknown type", "POST", at + "/test", object{"event_type": "secret-77"}, []string{"body.event_type"}},
		{"no since", "POST", at + "/recover", object{}, []string{"body.since"}},
		{"bad since", "POST", at + "/recover", object{"since": "secret-77"}, []string{"body.since"}},
		{"unknown parameter", "GET", at + "/attempt?event=secret-77", nil, []string{"query.event"}},
		{"bad id", "GET", o.base + "/secret-77", nil, []string{"path.webhook_id"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := o.Send(t, tt.method, tt.path, tt.body).Want(t, 422)
			require.ElementsMatch(t, tt.want, r.Locs(t))
			require.NotContains(t, string(r.Body), "secret-77")
		})
	}
	var list struct{ Data []any }
	o.Send(t, "GET", o.base, nil).Want(t, 200).JSON(t, &list)
	require.Len(t, list.Data, 1, "what was refused left something behind")
}

func TestWebhookSecret_isRotatedAndShownOnlyByItsOwnOperation(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in", "secret": firstSecret})
	read := func() any {
		r := o.Send(t, "GET", at+"/secret", nil).Want(t, 200)
		require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
		var out object
		r.JSON(t, &out)
		return out["key"]
	}
	require.Equal(t, firstSecret, read())
	o.Send(t, "POST", at+"/secret/rotate", object{"key": secondSecret}).Want(t, 204)
	require.Equal(t, secondSecret, read())
	for _, body := range []any{object{"key": nil}, object{}, nil} {
		before := read()
		o.Send(t, "POST", at+"/secret/rotate", body).Want(t, 204)
		require.NotEqual(t, before, read())
		require.Contains(t, read(), "whsec_")
	}
	// The old ones still sign, the newest first.
	o.Send(t, "POST", at+"/test", object{"event_type": "endpoint.disabled"}).Want(t, 200)
	require.Len(t, o.sent[0].Secrets, 5)
	require.Equal(t, read(), o.sent[0].Secrets[0].Text())
	require.Equal(t, firstSecret, o.sent[0].Secrets[4].Text())

	// No list and no endpoint shows any of them.
	for _, path := range []string{o.base, at} {
		require.NotContains(t, string(o.Send(t, "GET", path, nil).Want(t, 200).Body), "whsec_")
	}
}

func TestWebhookHeaders_sensitiveValuesAreNotShown(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in"})
	require.Equal(t, object{"headers": object{}, "sensitive": []any{}}, o.get(at+"/headers"))
	o.Send(t, "PUT", at+"/headers", object{"headers": object{"x-clinic": "north", "authorization": "secret-77", "X-My-Token": "secret-77"}}).Want(t, 204)
	r := o.Send(t, "GET", at+"/headers", nil).Want(t, 200)
	var got object
	r.JSON(t, &got)
	require.Equal(t, object{"headers": object{"X-Clinic": "north"}, "sensitive": []any{"Authorization", "X-My-Token"}}, got)
	require.NotContains(t, string(r.Body), "secret-77")
	o.Send(t, "POST", at+"/test", object{"event_type": "endpoint.disabled"}).Want(t, 200)
	require.Equal(t, "secret-77", o.sent[0].Headers.Get("Authorization"))
	o.Send(t, "PUT", at+"/headers", object{"headers": object{}}).Want(t, 204)
	require.Equal(t, object{"headers": object{}, "sensitive": []any{}}, o.get(at+"/headers"))
}

func TestWebhookTest_answersTheOutcomeOfTheDelivery(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in", "disabled": true})
	for _, tt := range []struct {
		reply webhook.Result
		want  object
	}{
		{webhook.Result{Class: webhook.ClassOK, Status: 204, Duration: 12 * time.Millisecond}, object{"outcome": "ok", "status_code": 204.0, "duration_ms": 12.0}},
		{webhook.Result{Class: webhook.ClassDNS, Duration: time.Millisecond}, object{"outcome": "dns", "status_code": nil, "duration_ms": 1.0}},
	} {
		o.reply = tt.reply
		var got object
		o.Send(t, "POST", at+"/test", object{"event_type": "daily.data.sleep.created"}).Want(t, 200).JSON(t, &got)
		require.Equal(t, tt.want, got)
	}
	require.Len(t, o.sent, 2)
	require.Contains(t, o.sent[0].ID, "msg_test")
	require.Contains(t, string(o.sent[0].Body), `"event_type":"daily.data.sleep.created"`)
	require.Equal(t, []any{}, o.get(at + "/attempt")["data"])
}

// happen writes an event and delivers it once, with what the notifier says.
func (o *backOffice) happen(eventType, key string) string {
	o.t.Helper()
	e := healthlab.Event{
		ID: uuid.Must(uuid.NewV7()), Type: eventType, Team: team, Key: key, At: o.now, Data: json.RawMessage(`{"secret":"secret-77"}`),
	}
	require.NoError(o.t, o.store.Outbox().Append(o.t.Context(), []healthlab.Event{e}))
	return webhook.MessageID(e.ID)
}

// deliver routes, and records an outcome for everything that is due as o.reply says.
func (o *backOffice) deliver() {
	o.t.Helper()
	d := o.store.Deliveries()
	_, err := d.Route(o.t.Context(), map[string]healthlab.Mode{"test.thing.changed": healthlab.Independent}, 100)
	require.NoError(o.t, err)
	due, err := d.Due(o.t.Context())
	require.NoError(o.t, err)
	for _, to := range due {
		claimed, err := d.Claim(o.t.Context(), webhook.Claim{Quotas: []webhook.Quota{{Endpoint: to, Max: 100}}, Lease: time.Minute})
		require.NoError(o.t, err)
		var outcomes []webhook.Outcome
		for _, one := range claimed.Deliveries {
			out := webhook.Outcome{
				Delivery: one, State: webhook.Succeeded, Sent: true, Status: o.reply.Status, Class: o.reply.Class,
				Duration: o.reply.Duration, Head: o.reply.Head, Response: o.reply.Response,
			}
			if o.reply.Class != webhook.ClassOK {
				out.State, out.Reason = webhook.Failed, webhook.ReasonExhausted
			}
			outcomes = append(outcomes, out)
		}
		_, err = d.RecordOutcomes(o.t.Context(), outcomes)
		require.NoError(o.t, err)
	}
}

func TestWebhookAttempts_areListedAndMessagesReplayed(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in"})
	o.now = o.now.Add(time.Second)
	o.reply = webhook.Result{Class: webhook.ClassRefused, Status: 500, Duration: 30 * time.Millisecond, Head: []byte("HTTP/1.1 500 No\xff\nServer: x"), Response: []byte("oh\xff")}
	lost := o.happen("test.thing.changed", "thing/1")
	o.deliver()
	o.reply = webhook.Result{Class: webhook.ClassOK, Status: 204, Duration: 3 * time.Millisecond}
	o.now = o.now.Add(time.Second)
	sent := o.happen("test.thing.changed", "thing/2")
	o.deliver()

	line := object{
		"at": "2026-03-04T12:00:01+00:00", "webhook_id": at[len(o.base)+1:], "message_id": lost, "event_type": "test.thing.changed",
		"attempt": 1.0, "trigger": "event", "outcome": "refused", "status_code": 500.0, "duration_ms": 30.0,
		"state": "failed", "reason": "exhausted", "response_head": "HTTP/1.1 500 No\uFFFD\nServer: x", "response": "oh\uFFFD",
	}
	attempts := func(query string) []any { return o.get(at + "/attempt" + query)["data"].([]any) }
	all := attempts("")
	require.Len(t, all, 2)
	require.Equal(t, line, all[1])
	require.Equal(t, sent, all[0].(object)["message_id"])
	require.Nil(t, all[0].(object)["reason"])
	require.Nil(t, all[0].(object)["response_head"])
	require.Nil(t, all[0].(object)["response"])
	require.Equal(t, []any{line}, attempts("?message_id="+lost))
	page := o.get(at + "/attempt?limit=1")
	require.Len(t, page["data"], 1)
	require.Equal(t, []any{line}, attempts("?limit=1&next_cursor="+page["next_cursor"].(string)))
	require.Equal(t, []string{"query.next_cursor"}, o.Send(t, "GET", at+"/attempt?next_cursor=%21", nil).Want(t, 422).Locs(t))

	// One message again, and then what was missed since the beginning.
	var queued object
	o.Send(t, "POST", at+"/message/"+sent+"/retry", nil).Want(t, 200).JSON(t, &queued)
	require.Equal(t, object{"queued": 1.0}, queued)
	o.deliver()
	require.Equal(t, "retry", attempts("")[0].(object)["trigger"])
	o.Send(t, "POST", at+"/recover", object{"since": "2026-03-04T12:00:00+00:00", "until": "2026-03-04T12:00:01+00:00"}).Want(t, 200).JSON(t, &queued)
	require.Equal(t, object{"queued": 0.0}, queued, "the lost message was written at the end of the window")
	o.Send(t, "POST", at+"/recover", object{"since": "2026-03-04T12:00:00+00:00", "until": "2026-03-04T12:00:02+00:00"}).Want(t, 200).JSON(t, &queued)
	require.Equal(t, object{"queued": 1.0}, queued)
	o.deliver()
	again := attempts("")[0].(object)
	require.Equal(t, []any{"recover", lost, "succeeded"}, []any{again["trigger"], again["message_id"], again["state"]})

	// Ids that no message has, however they look.
	for _, id := range []string{
		webhook.MessageID(uuid.New()), "msg_1", "msg_" + strings.Repeat("z", 27), sent[:30] + "!", sent[:30] + map[bool]string{true: "1", false: "0"}[sent[30] == '0'], "x" + sent[1:], "%00",
	} {
		o.Send(t, "POST", at+"/message/"+id+"/retry", nil).Want(t, map[bool]int{true: 422, false: 404}[id == "%00"])
	}
	o.Send(t, "GET", at+"/attempt?message_id=msg_1", nil).Want(t, 404)

	require.Nil(t, o.get(at)["failing_since"])
	id, err := uuid.Parse(at[len(o.base)+1:])
	require.NoError(t, err)
	_, err = o.store.Endpoints().Update(t.Context(), team, webhook.EndpointID{UUID: id}, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
		e.Health, _ = e.Health.Fail(o.now)
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, healthlab.At(o.now).Format("2006-01-02T15:04:05-07:00"), o.get(at)["failing_since"])

	o.Send(t, "PATCH", at, object{"disabled": true}).Want(t, 200)
	o.Send(t, "POST", at+"/message/"+sent+"/retry", nil).Want(t, 400)
	o.Send(t, "POST", at+"/recover", object{"since": "2026-03-04T12:00:00Z"}).Want(t, 400)
}

// A team has a maximum number of endpoints, which is a rule, and a maximum number of requests
// a minute, which is a rate limit.
func TestWebhook_limitsEndpointsAndRequests(t *testing.T) {
	o := newBackOffice(t)
	const most = 50
	var last string
	for range most {
		last = o.register(object{"url": "https://receiver.example.com/in"})
	}
	r := o.Send(t, "POST", o.base, object{"url": "https://receiver.example.com/in"}).Want(t, 400)
	require.Equal(t, "WEBHOOK_LIMIT_REACHED", r.ErrorType(t))
	require.Empty(t, r.Header.Get("Retry-After"))
	o.Send(t, "DELETE", last, nil).Want(t, 204)
	o.register(object{"url": "https://receiver.example.com/in"})

	few := newBackOfficeWith(t, 3)
	at := few.register(object{"url": "https://receiver.example.com/in"})
	few.now = few.now.Add(10 * time.Second)
	few.Send(t, "POST", at+"/test", object{"event_type": "endpoint.disabled"}).Want(t, 200)
	few.Send(t, "PATCH", at, object{"url": "https://receiver.example.com/other"}).Want(t, 200)
	for _, ask := range []struct {
		method, path string
		body         any
	}{
		{"POST", few.base, object{"url": "https://receiver.example.com/in"}},
		{"PATCH", at, object{"url": "https://receiver.example.com/in"}},
		{"POST", at + "/test", object{"event_type": "endpoint.disabled"}},
		{"POST", at + "/message/" + webhook.MessageID(uuid.New()) + "/retry", nil},
		{"POST", at + "/recover", object{"since": "2026-03-04T12:00:00Z"}},
	} {
		r := few.Send(t, ask.method, ask.path, ask.body).Want(t, 429)
		require.Equal(t, "50", r.Header.Get("Retry-After"), ask.path)
		require.Equal(t, "RATE_LIMITED", r.ErrorType(t))
	}
	require.Len(t, few.sent, 1)
	few.Send(t, "PATCH", at, object{"description": "what makes no request is not counted"}).Want(t, 200)
	few.now = few.now.Add(50 * time.Second)
	few.Send(t, "POST", at+"/recover", object{"since": "2026-03-04T12:00:00Z"}).Want(t, 200)
}

// A management key opens the teams of its mandate in this environment; for other teams the
// answer is NotFound.
func TestManagementKey_accessesOnlyItsTeamsAndEnvironment(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in"})
	for _, tt := range []struct {
		name, path, header, key string
		want                    int
	}{
		{"the team", at, "x-management-key", managementKey, 200},
		{"no key", at, "x-other", "", 401},
		{"another key", at, "x-management-key", managementKey + "0", 401},
		{"an empty key", at, "x-management-key", "", 401},
		{"the team's own key", at, "x-service-api-key", o.teamKey, 401},
		{"the team's own key in the other's place", at, "x-management-key", o.teamKey, 401},
		{"another team", strings.Replace(at, team.String(), uuid.NewString(), 1), "x-management-key", managementKey, 404},
		{"another organisation", strings.Replace(at, org.String(), uuid.NewString(), 1), "x-management-key", managementKey, 404},
		{"no team", strings.Replace(at, team.String(), uuid.Nil.String(), 1), "x-management-key", managementKey, 404},
		{"the other environment", strings.Replace(at, "sandbox", "production", 1), "x-management-key", managementKey, 404},
		{"no environment", strings.Replace(at, "sandbox", "SANDBOX", 1), "x-management-key", managementKey, 404},
		{"a team that is no id", strings.Replace(at, team.String(), "secret-77", 1), "x-management-key", managementKey, 422},
		{"another endpoint", o.base + "/" + uuid.NewString(), "x-management-key", managementKey, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := contract.NewClient(t, o.handler, httpapi.OpenAPI()).With(tt.header, tt.key)
			for _, path := range []string{"", "/headers", "/secret", "/attempt"} {
				r := c.Send(t, "GET", tt.path+path, nil).Want(t, tt.want)
				require.NotContains(t, string(r.Body), "secret-77")
			}
		})
	}
	// The team's API takes the team's key and no other.
	for key, want := range map[string]int{o.teamKey: 200, managementKey: 401} {
		contract.NewClient(t, o.handler, httpapi.OpenAPI()).With("x-service-api-key", key).Send(t, "GET", "/v2/user/", nil).Want(t, want)
	}
	o.With("x-management-key", managementKey).Send(t, "GET", "/v2/user/", nil).Want(t, 401)
}

// Each operation authenticates the caller first, and finds nothing of other teams.
func TestWebhookOperations_authenticateAndFindNothingOfOtherTeams(t *testing.T) {
	o := newBackOffice(t)
	at := o.register(object{"url": "https://receiver.example.com/in", "secret": firstSecret})
	o.now = o.now.Add(time.Second)
	message := o.happen("test.thing.changed", "thing/1")
	o.deliver()
	before := o.get(at)
	calls := []struct {
		method, path string
		body         any
	}{
		{"GET", o.base, nil},
		{"POST", o.base, object{"url": "https://evil.example.com/in"}},
		{"GET", at, nil},
		{"PATCH", at, object{"url": "https://evil.example.com/in", "disabled": true}},
		{"GET", at + "/headers", nil},
		{"PUT", at + "/headers", object{"headers": object{"x-evil": "1"}}},
		{"GET", at + "/secret", nil},
		{"POST", at + "/secret/rotate", object{"key": secondSecret}},
		{"POST", at + "/test", object{"event_type": "endpoint.disabled"}},
		{"GET", at + "/attempt", nil},
		{"POST", at + "/message/" + message + "/retry", nil},
		{"POST", at + "/recover", object{"since": "2026-03-04T12:00:00Z"}},
		{"DELETE", at, nil},
	}
	nobody := contract.NewClient(t, o.handler, httpapi.OpenAPI())
	for _, call := range calls {
		for _, c := range []*contract.Client{nobody, nobody.With("x-management-key", managementKey+"0"), nobody.With("x-service-api-key", o.teamKey), nobody.With("x-management-key", o.teamKey)} {
			r := c.Send(t, call.method, call.path, call.body).Want(t, 401)
			require.Equal(t, "UNAUTHORIZED", r.ErrorType(t))
		}
		for was, now := range map[string]string{team.String(): uuid.NewString(), org.String(): uuid.NewString(), "/sandbox/": "/production/"} {
			r := o.Send(t, call.method, strings.Replace(call.path, was, now, 1), call.body).Want(t, 404)
			require.Equal(t, "NOT_FOUND", r.ErrorType(t))
		}
		if call.path != o.base {
			o.Send(t, call.method, strings.Replace(call.path, at, o.base+"/"+uuid.NewString(), 1), call.body).Want(t, 404)
		}
	}
	require.Equal(t, before, o.get(at))
	require.Equal(t, firstSecret, o.get(at + "/secret")["key"])
	require.Empty(t, o.get(at + "/headers")["headers"])
	require.Len(t, o.get(o.base)["data"], 1)
	require.Len(t, o.get(at + "/attempt")["data"], 1)
	require.Empty(t, o.sent)
}

func TestManagementAuth_acceptsKeysOfItsList(t *testing.T) {
	keys := []httpapi.ManagementKey{
		{Sum: httpapi.SumKey("one"), Mandate: httpapi.EveryTeam},
		{Sum: httpapi.SumKey("void")},
	}
	auth := httpapi.ManagementAuth(keys, &httpapi.ManagementOptions{Header: "x-acme-management"})
	for _, tt := range []struct {
		name   string
		header http.Header
		good   bool
	}{
		{"its header", http.Header{"X-Acme-Management": {"one"}}, true},
		{"the usual header", http.Header{"X-Management-Key": {"one"}}, false},
		{"twice", http.Header{"X-Acme-Management": {"one", "one"}}, false},
		{"good for nothing", http.Header{"X-Acme-Management": {"void"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			by, err := auth(&http.Request{Header: tt.header})
			if !tt.good {
				require.ErrorIs(t, err, healthlab.Unauthenticated)
				return
			}
			require.NoError(t, err)
			require.True(t, by.Mandate(org, team))
			require.Equal(t, httpapi.RoleAdmin, by.Role)
			require.Len(t, by.Name, 8)
		})
	}
}

func TestRoutes_webhooksNeedManagementAuthAndAnEnvironment(t *testing.T) {
	c, _ := full(t)
	for _, change := range []func(*mount){
		func(c *mount) { c.AuthenticateManagement = nil },
		func(c *mount) { c.Environment = "" },
		func(c *mount) { c.Environment = "staging" },
	} {
		less := c
		change(&less)
		require.Panics(t, func() { httpapi.Routes(less.of()) })
		less.Webhooks = nil
		require.Panics(t, func() { httpapi.Routes(less.of()) }, "continuous queries need it, too")
		less.Continuous = nil
		require.Panics(t, func() { httpapi.Routes(less.of()) }, "EHR pipelines, too")
		less.Pipelines = nil
		require.Panics(t, func() { httpapi.Routes(less.of()) }, "team settings, too")
		less.Teams = nil
		require.Panics(t, func() { httpapi.Routes(less.of()) }, "and organisations")
		less.Organisations = nil
		require.NotPanics(t, func() { httpapi.Routes(less.of()) })
	}
	c.AuthenticateManagement = func(*http.Request) (httpapi.Manager, error) { return httpapi.Manager{}, nil }
	contract.NewClient(t, c.handler(), httpapi.OpenAPI()).
		Send(t, "GET", "/v1/org/"+org.String()+"/team/"+team.String()+"/sandbox/webhook", nil).Want(t, 401)
}

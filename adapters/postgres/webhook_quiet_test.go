package postgres_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/webhook"
)

// marker is planted in everything that is private.
const marker = "planted-hiv-positive"

// lockedBuffer is a log that many write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// quietHouse is all of webhooks on a store, logging everything.
type quietHouse struct {
	s       *postgres.Store
	service *webhook.Service
	run     *webhook.Dispatcher
	logs    lockedBuffer
	sealed  chan struct{} // closed when secrets did not open
}

// fickle does not open the first box.
type fickle struct {
	healthlab.Sealer
	opened atomic.Bool
}

func (f *fickle) Open(ctx context.Context, box healthlab.Sealed, place []byte) ([]byte, error) {
	if !f.opened.Swap(true) {
		return nil, fmt.Errorf("%w: %s", healthlab.Unavailable, marker)
	}
	return f.Sealer.Open(ctx, box, place)
}

func newQuietHouse(t *testing.T, s *postgres.Store) *quietHouse {
	t.Helper()
	h := &quietHouse{s: s, sealed: make(chan struct{})}
	guard := &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	over := webhook.NewHTTP(&webhook.HTTPOptions{Guard: guard})
	t.Cleanup(over.Close)
	send := notifierFunc(func(ctx context.Context, n webhook.Notification) webhook.Result {
		if strings.Contains(n.URL, "/panics") {
			panic(marker)
		}
		return over.Notify(ctx, n)
	})
	log := slog.New(slog.NewTextHandler(&h.logs, &slog.HandlerOptions{Level: slog.LevelDebug - 100, AddSource: true}))
	var err error
	h.service, err = webhook.NewService(faultTypes(), s.Deliveries(), s.Endpoints(), s.WebhookLog(), send, faultSealer(),
		&webhook.ServiceOptions{Guard: guard, Log: log})
	require.NoError(t, err)
	h.run, err = webhook.NewDispatcher(faultTypes(), s.Deliveries(), s.Endpoints(), send, &fickle{Sealer: faultSealer()},
		&webhook.Options{
			Log: log, Schedule: webhook.Delays(time.Millisecond), Busy: 5 * time.Millisecond, Idle: 5 * time.Millisecond,
			Hooks: webhook.Hooks{
				SealError: sync.OnceFunc(func() { close(h.sealed) }),
				Ended:     func(r webhook.Reason) { log.Info("ended", "reason", r) },
				Attempt:   func(c webhook.Class, n int, _, _ time.Duration, _ bool) { log.Info("attempt", "class", c, "n", n) },
			},
		})
	require.NoError(t, err)
	return h
}

// A marker in a body, a secret, a header, a path and a query appears in no log, in no error,
// and in no row but those of the message and of the endpoint's URL, whatever the result of
// the delivery.
func TestWebhooksKeepQuiet(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	clock := &serverClock{t: t, pool: pool}
	s := postgres.New(pool, nil)
	u := newPerson(t, s)
	// A receiver that says everything back that it is told.
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "https://elsewhere.example.com/?"+r.URL.RawQuery)
		w.Header().Set("Set-Cookie", "ward="+r.Header.Get("X-Ward"))
		switch {
		case strings.HasPrefix(r.URL.Path, "/refuses"):
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasPrefix(r.URL.Path, "/moved"):
			w.WriteHeader(http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/gone"):
			w.WriteHeader(http.StatusGone)
		case strings.HasPrefix(r.URL.Path, "/resets"):
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(body)
	}))
	defer receiver.Close()
	h := newQuietHouse(t, s)
	closed := httptest.NewServer(nil)
	closed.Close()
	query := "/" + marker + "?q=" + marker
	for _, url := range []string{
		receiver.URL + "/accepts" + query, receiver.URL + "/refuses" + query, receiver.URL + "/moved" + query, receiver.URL + "/gone" + query,
		receiver.URL + "/resets" + query, receiver.URL + "/panics" + query, closed.URL + query, "https://receiver.invalid" + query,
	} {
		e, err := h.service.Create(t.Context(), u.Team, webhook.NewEndpoint{
			URL: url, FilterTypes: []string{healthdata.EventConnectionCreated},
			Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(marker+"-of-an-endpoint")),
		})
		require.NoError(t, err)
		require.NoError(t, h.service.SetHeaders(t.Context(), u.Team, e.ID, map[string]string{"X-Ward": marker}))
	}
	e := event(u, "k")
	e.Data = []byte(`{"diagnosis":"` + marker + `"}`)
	appendEvents(t, s, e)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.run.Run(ctx) }()
	unfinished := func() int { return rows(t, pool, "webhook_pending") + rows(t, pool, "webhook_delivery") }
	<-h.sealed
	await := func(most int) {
		for unfinished() > most {
			require.NoError(t, t.Context().Err())
			time.Sleep(5 * time.Millisecond) // as often as the dispatcher looks
		}
	}
	await(1)
	clock.advance(2 * time.Minute) // what did not open is tried again
	await(0)
	stop()
	require.NoError(t, <-ended)

	states := texts(t, pool, `select distinct class || ' ' || state || ' ' || reason from healthlab.webhook_attempt order by 1`)
	for _, want := range []string{"ok succeeded ", "refused failed exhausted", "redirect failed exhausted", "gone waiting ", " cancelled disabled", "dns failed exhausted", "reset failed exhausted", "crashed failed exhausted", "connect failed exhausted"} {
		require.Contains(t, states, want)
	}
	require.Contains(t, h.logs.String(), "panic while sending")
	require.Contains(t, h.logs.String(), "do not open")
	require.NotContains(t, h.logs.String(), marker)

	for _, table := range []string{"webhook_attempt", "webhook_delivery", "webhook_pending"} {
		requireNoMarker(t, texts(t, pool, `select t::text from healthlab.`+table+` t`))
	}
	requireNoMarker(t, texts(t, pool, `select (to_jsonb(t) - 'url')::text from healthlab.webhook_endpoint t`))
	for _, err := range hostileCalls(t, h, u.Team) {
		require.Error(t, err)
		requireNoMarker(t, []string{err.Error(), fmt.Sprintf("%+v", err)})
	}
}

// requireNoMarker looks for the marker as text and as the bytes of a column.
func requireNoMarker(t *testing.T, where []string) {
	t.Helper()
	for _, text := range where {
		require.NotContains(t, text, marker)
		require.NotContains(t, text, hex.EncodeToString([]byte(marker)))
		require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(marker))[:24])
	}
}

// hostileCalls are the errors of calls that bring the marker themselves.
func hostileCalls(t *testing.T, h *quietHouse, team healthlab.TeamID) []error {
	t.Helper()
	page, err := h.service.List(t.Context(), webhook.EndpointQuery{Team: team})
	require.NoError(t, err)
	to := page.Endpoints[0].ID
	var errs []error
	for _, n := range []webhook.NewEndpoint{
		{URL: marker}, {URL: "https://" + marker + "@receiver.example.com"}, {URL: "https://127.0.0.1:22/" + marker},
		{URL: "https://receiver.example.com/", Secret: marker}, {URL: "https://receiver.example.com/", FilterTypes: []string{marker}},
		{URL: "https://receiver.example.com/", OrderScope: marker}, {URL: "https://receiver.example.com/", Description: marker + "\x00"},
	} {
		_, err := h.service.Create(t.Context(), team, n)
		errs = append(errs, err)
	}
	errs = append(errs,
		h.service.Rotate(t.Context(), team, to, marker),
		h.service.SetHeaders(t.Context(), team, to, map[string]string{marker + " ": "x"}),
		h.service.SetHeaders(t.Context(), team, to, map[string]string{"x": marker + "\n"}),
		h.service.SetHeaders(t.Context(), team, to, map[string]string{"Webhook-" + marker: "x"}),
	)
	_, err = h.service.SendTest(t.Context(), team, to, marker)
	errs = append(errs, err)
	_, err = h.service.Retry(t.Context(), team, to, uuid.New())
	errs = append(errs, err)
	_, err = h.service.List(t.Context(), webhook.EndpointQuery{Team: team, Cursor: marker})
	errs = append(errs, err)
	_, err = h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Cursor: marker})
	return append(errs, err)
}

package receiver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// post signs a body and sends it, changed as asked.
func (d *fixture) post(id string, body io.Reader, change func(*http.Request)) *httptest.ResponseRecorder {
	d.t.Helper()
	sent, err := io.ReadAll(body)
	require.NoError(d.t, err)
	r := httptest.NewRequestWithContext(d.t.Context(), http.MethodPost, "/events", bytes.NewReader(sent))
	webhook.SetSignature(r.Header, id, d.now, sent, d.secret)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	require.Empty(d.t, w.Body.String())
	return w
}

// brief is an error that asks for patience.
type brief struct{ error }

func (b brief) Unwrap() error           { return b.error }
func (brief) RetryAfter() time.Duration { return 1500 * time.Millisecond }

func TestHandler_eachOutcomeHasItsStatusCode(t *testing.T) {
	var answer error
	d := newFixture(t, receiver.Options{MaxBody: 10_000})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { return answer })
	good := string(render(t, sleepCreated, sleepAt(1), 0))
	for _, tt := range []struct {
		name   string
		body   string
		change func(*http.Request)
		answer error
		want   int
		header string
	}{
		{name: "applied", body: good, want: 204},
		{name: "known", body: good, want: 204},
		{name: "older", body: string(render(t, sleepCreated, sleepAt(0), 0)), want: 204},
		{name: "unknown type", body: string(render(t, "a.b.c", object{}, 0)), want: 204},
		{name: "no envelope", body: `{"secret-77":1}`, want: 400},
		{name: "no JSON", body: `secret-77`, want: 400},
		{name: "empty", body: ``, want: 400},
		{name: "payload that does not fit", body: strings.Replace(good, `"total":1`, `"total":"secret-77"`, 1), want: 400},
		{name: "body that breaks off", body: good, change: func(r *http.Request) { r.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{})) }, want: 400},
		{name: "too large", body: good + strings.Repeat(" ", 10_000), want: 413},
		{name: "forged", body: good, change: func(r *http.Request) { r.Header.Set("webhook-signature", "v1,c2VjcmV0LTc3") }, want: 401},
		{name: "unsigned", body: good, change: func(r *http.Request) { r.Header = http.Header{} }, want: 401},
		{name: "get", body: good, change: func(r *http.Request) { r.Method = http.MethodGet }, want: 405},
		{name: "the function fails", body: good, answer: errors.New("secret-77"), want: 500},
		{name: "the function says invalid", body: good, answer: healthlab.Invalid, want: 500},
		{name: "the function says who are you", body: good, answer: healthlab.Unauthenticated, want: 500},
		{name: "the function says later", body: good, answer: fmt.Errorf("x: %w", healthlab.Unavailable), want: 503},
		{name: "the function says when", body: good, answer: brief{healthlab.Unavailable}, want: 503, header: "2"},
		{name: "the function runs out of time", body: good, answer: context.DeadlineExceeded, want: 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer = tt.answer
			w := d.post("msg_"+strings.ReplaceAll(tt.name, "known", "applied"), strings.NewReader(tt.body), tt.change)
			require.Equal(t, tt.want, w.Code)
			require.Equal(t, tt.header, w.Header().Get("Retry-After"))
			require.NotContains(t, fmt.Sprint(w.Header()), "secret-77")
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// failing is a memory out of reach.
type failing struct{ err error }

func (f failing) Claim(context.Context, receiver.Claim) (receiver.Verdict, error) { return 0, f.err }
func (f failing) Done(context.Context, receiver.Claim) error                      { return f.err }
func (f failing) Release(context.Context, receiver.Claim) error                   { return f.err }

// busy is a [receiver.Seen] in which another process has claimed every message.
type busy struct{ failing }

func (busy) Claim(context.Context, receiver.Claim) (receiver.Verdict, error) {
	return receiver.Busy, nil
}

func TestHandler_seenStoreErrorsHaveTheirStatusCode(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen receiver.Seen
		want int
	}{
		{"out of reach", failing{healthlab.Unavailable}, 503},
		{"broken", failing{errors.New("secret-77")}, 500},
		{"busy", busy{}, 409},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t, receiver.Options{})
			var err error
			d.Receiver, err = receiver.New([]webhook.Secret{d.secret}, tt.seen, &receiver.Options{Wait: 1})
			require.NoError(t, err)
			receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { return nil })
			w := d.post("msg_1", bytes.NewReader(render(t, sleepCreated, sleepAt(1), 0)), nil)
			require.Equal(t, tt.want, w.Code)
		})
	}
}

func TestObserve_receivesEachOutcomeAndError(t *testing.T) {
	var got []string
	d := newFixture(t, receiver.Options{Observe: func(_ context.Context, e receiver.Event, o receiver.Outcome, err error) {
		got = append(got, strings.Join([]string{e.ID, string(o), healthlab.KindOf(err).Error()}, "|"))
	}})
	receiver.On(d.Receiver, func(context.Context, receiver.Event, *healthdata.Sleep) error { return nil })
	body := render(t, sleepCreated, sleepAt(1), 0)
	for _, b := range [][]byte{body, body, []byte("x"), bytes.Repeat([]byte("x"), 2<<20)} {
		d.post("msg_1", bytes.NewReader(b), nil)
	}
	require.Equal(t, []string{
		"msg_1|applied|unknown fault", "msg_1|duplicate|unknown fault", "||invalid", "||invalid",
	}, got)
}

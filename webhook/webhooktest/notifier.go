package webhooktest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// NotifierHarness is a notifier under test and its receivers.
type NotifierHarness struct {
	Notifier webhook.Notifier
	// URL is the address of a receiver that accepts every message.
	URL string
	// Unreachable is a valid address without a receiver.
	Unreachable string
	// Received returns the messages of the receiver at URL, in order, with their headers and the signed body.
	Received func(t testing.TB) []Message
	// Silent is the address of a receiver that never answers. Empty if the test cannot have one.
	Silent string
	// Refusing is the address of a receiver that refuses every message. Empty if the test
	// cannot have one.
	Refusing string
	// Refused returns the number of messages that reached Refusing.
	Refused func(t testing.TB) int
}

// Message is a received message.
type Message struct {
	Header http.Header
	Body   []byte
}

// noon is the signing time of the messages.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// notification returns a new message with two active secrets, as an endpoint has during a rotation.
func notification(t testing.TB, url, body string) webhook.Notification {
	t.Helper()
	var secrets []webhook.Secret
	for _, b := range []byte{7, 9} {
		s, err := webhook.GenerateSecret(bytes.NewReader(bytes.Repeat([]byte{b}, 64)))
		require.NoError(t, err)
		secrets = append(secrets, s)
	}
	return webhook.Notification{
		URL: url, Team: healthlab.TeamID{UUID: uuid.MustParse("11111111-1111-4111-8111-111111111111")},
		Type: "daily.data.sleep.created", Headers: http.Header{"X-Ward": {"seven"}},
		ID: webhook.MessageID(uuid.New()), At: noon, Secrets: secrets, Body: []byte(body),
	}
}

// RunNotifier runs the contract of [webhook.Notifier]. newNotifier returns a fresh notifier
// and a fresh receiver. Cases whose receiver is missing from the harness are skipped.
func RunNotifier(t *testing.T, newNotifier func(t testing.TB) NotifierHarness) {
	const body = `{"event_type":"daily.data.sleep.created","data":{"id":1}}`
	send := func(t *testing.T, h NotifierHarness, n webhook.Notification) webhook.Result {
		t.Helper()
		r := h.Notifier.Notify(t.Context(), n)
		require.GreaterOrEqual(t, r.Duration, time.Duration(0))
		return r
	}
	t.Run("Deliver", func(t *testing.T) {
		h := newNotifier(t)
		n := notification(t, h.URL, body)
		require.Equal(t, webhook.ClassOK, send(t, h, n).Class)
		got := h.Received(t)
		require.Len(t, got, 1, "one call makes one request")
		require.Equal(t, body, string(got[0].Body))
		require.Equal(t, "seven", got[0].Header.Get("X-Ward"), "a custom header is sent")
	})
	t.Run("Signature", func(t *testing.T) {
		h := newNotifier(t)
		n := notification(t, h.URL, body)
		require.Equal(t, webhook.ClassOK, send(t, h, n).Class)
		got := h.Received(t)
		require.Len(t, got, 1)
		require.Equal(t, n.ID, got[0].Header.Get(webhook.HeaderID))
		for _, s := range n.Secrets {
			require.NoError(t, webhook.Verifier{}.Verify(got[0].Body, got[0].Header, n.At, s), "each active secret signs the message at At")
		}
	})
	t.Run("ForgedHeaders", func(t *testing.T) {
		h := newNotifier(t)
		n := notification(t, h.URL, body)
		n.Headers = http.Header{webhook.HeaderID: {"msg_forged"}, webhook.HeaderTimestamp: {"1"}, webhook.HeaderSignature: {"v1,forged"}}
		require.Equal(t, webhook.ClassOK, send(t, h, n).Class)
		got := h.Received(t)
		require.Len(t, got, 1)
		require.Equal(t, n.ID, got[0].Header.Get(webhook.HeaderID), "custom headers replace no header of the protocol")
		require.NoError(t, webhook.Verifier{}.Verify(got[0].Body, got[0].Header, n.At, n.Secrets...))
	})
	t.Run("LargeBody", func(t *testing.T) {
		h := newNotifier(t)
		n := notification(t, h.URL, `{"data":"`+strings.Repeat("ab ", 10_000)+`"}`)
		require.Equal(t, webhook.ClassOK, send(t, h, n).Class)
		got := h.Received(t)
		require.Len(t, got, 1)
		require.Equal(t, string(n.Body), string(got[0].Body))
	})
	t.Run("Repeat", func(t *testing.T) {
		h := newNotifier(t)
		n := notification(t, h.URL, body)
		for range 2 {
			require.Equal(t, webhook.ClassOK, send(t, h, n).Class, "a message may be sent again after any result")
		}
		got := h.Received(t)
		require.NotEmpty(t, got)
		for _, m := range got {
			require.Equal(t, n.ID, m.Header.Get(webhook.HeaderID), "the receiver tells repeats by the message id")
		}
	})
	t.Run("InputUnchanged", func(t *testing.T) {
		h := newNotifier(t)
		n := notification(t, h.URL, body)
		headers := n.Headers.Clone()
		require.Equal(t, webhook.ClassOK, send(t, h, n).Class)
		require.Equal(t, headers, n.Headers, "the headers are the caller's")
		require.Equal(t, body, string(n.Body), "the body is the caller's")
	})
	t.Run("Unreachable", func(t *testing.T) {
		h := newNotifier(t)
		r := send(t, h, notification(t, h.Unreachable, body))
		require.NotEmpty(t, r.Class)
		require.NotEqual(t, webhook.ClassOK, r.Class)
		require.False(t, r.Class.Ambiguous(), "nothing was sent, so that nothing is ambiguous")
	})
	t.Run("BadURL", func(t *testing.T) {
		h := newNotifier(t)
		for _, url := range []string{"", "::", "\x00"} {
			r := send(t, h, notification(t, url, body))
			require.NotEmpty(t, r.Class)
			require.NotEqual(t, webhook.ClassOK, r.Class)
		}
	})
	t.Run("Refused", func(t *testing.T) {
		h := newNotifier(t)
		if h.Refusing == "" {
			t.Skip("the harness has no receiver that refuses")
		}
		require.NotEqual(t, webhook.ClassOK, send(t, h, notification(t, h.Refusing, body)).Class)
		require.LessOrEqual(t, h.Refused(t), 1, "a request of which a byte was written is not repeated")
	})
	t.Run("ContextEnded", func(t *testing.T) {
		h := newNotifier(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NotEqual(t, webhook.ClassOK, h.Notifier.Notify(ctx, notification(t, h.URL, body)).Class)
		require.Empty(t, h.Received(t))
	})
	t.Run("Silent", func(t *testing.T) {
		h := newNotifier(t)
		if h.Silent == "" {
			t.Skip("the harness has no receiver that never answers")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		done := make(chan webhook.Result, 1)
		n := notification(t, h.Silent, body)
		go func() { done <- h.Notifier.Notify(ctx, n) }()
		select {
		case r := <-done:
			require.True(t, r.Class.Ambiguous(), "the receiver may have the message; the class is %s", r.Class)
		case <-time.After(time.Minute):
			require.Fail(t, "Notify did not return after its context ended")
		}
	})
	t.Run("Concurrent", func(t *testing.T) {
		h := newNotifier(t)
		var wg sync.WaitGroup
		sent := map[string]string{}
		results := make([]webhook.Result, 16)
		for i := range results {
			n := notification(t, h.URL, fmt.Sprintf(`{"data":{"id":%d}}`, i))
			sent[n.ID] = string(n.Body)
			wg.Go(func() { results[i] = h.Notifier.Notify(t.Context(), n) })
		}
		wg.Wait()
		for _, r := range results {
			require.Equal(t, webhook.ClassOK, r.Class)
		}
		got := h.Received(t)
		require.Len(t, got, len(results))
		secrets := notification(t, h.URL, body).Secrets
		for _, m := range got {
			require.Equal(t, sent[m.Header.Get(webhook.HeaderID)], string(m.Body), "each message has its own body")
			require.NoError(t, webhook.Verifier{}.Verify(m.Body, m.Header, noon, secrets...))
		}
	})
}

package webhooktest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// receiver keeps the messages that it gets by path: / accepts, /refusing refuses, and
// /silent never answers.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	accepted []webhooktest.Message
	refused  int
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{}
	end := make(chan struct{})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		if req.URL.Path == "/silent" {
			<-end
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if req.URL.Path == "/refusing" {
			r.refused++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.accepted = append(r.accepted, webhooktest.Message{Header: req.Header, Body: body})
	}))
	t.Cleanup(func() { close(end); r.Close() })
	return r
}

func nowhere() string {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return s.URL
}

// harness is webhook.HTTP, as broken changes it, and a receiver.
func harness(t testing.TB, broken func(webhook.Notifier) webhook.Notifier) webhooktest.NotifierHarness {
	r := newReceiver(t)
	sender := webhook.NewHTTP(&webhook.HTTPOptions{Guard: &webhook.Guard{
		Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}})
	t.Cleanup(sender.Close)
	return webhooktest.NotifierHarness{
		Notifier: broken(sender), URL: r.URL, Unreachable: nowhere(), Silent: r.URL + "/silent", Refusing: r.URL + "/refusing",
		Received: func(testing.TB) []webhooktest.Message {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Clone(r.accepted)
		},
		Refused: func(testing.TB) int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.refused
		},
	}
}

func TestHTTPNotifier_passesTheSuite(t *testing.T) {
	webhooktest.RunNotifier(t, func(t testing.TB) webhooktest.NotifierHarness {
		return harness(t, func(n webhook.Notifier) webhook.Notifier { return n })
	})
}

// notifier is a Notifier made of a function.
type notifier func(context.Context, webhook.Notification) webhook.Result

func (f notifier) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	return f(ctx, n)
}

func TestBrokenNotifiers_eachFailsTheSuite(t *testing.T) {
	suite := func(broken func(next webhook.Notifier) notifier) func(*testing.T) {
		return func(t *testing.T) {
			webhooktest.RunNotifier(t, func(t testing.TB) webhooktest.NotifierHarness {
				return harness(t, func(n webhook.Notifier) webhook.Notifier { return broken(n) })
			})
		}
	}
	// edited changes the message before it is sent.
	edited := func(edit func(*webhook.Notification)) func(*testing.T) {
		return suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				edit(&n)
				return next.Notify(ctx, n)
			}
		})
	}
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "sends nothing", Subtest: "Deliver", Suite: suite(func(webhook.Notifier) notifier {
			return func(context.Context, webhook.Notification) webhook.Result {
				return webhook.Result{Class: webhook.ClassOK}
			}
		})},
		{Name: "drops custom headers", Subtest: "Deliver", Suite: edited(func(n *webhook.Notification) { n.Headers = nil })},
		{Name: "changes the body", Subtest: "Deliver", Suite: edited(func(n *webhook.Notification) { n.Body = append(slices.Clone(n.Body), '\n') })},
		{Name: "signs with the newest secret alone", Subtest: "Signature", Suite: edited(func(n *webhook.Notification) { n.Secrets = n.Secrets[:1] })},
		{Name: "signs at another time", Subtest: "Signature", Suite: edited(func(n *webhook.Notification) { n.At = n.At.AddDate(0, 0, 1) })},
		{Name: "takes the id from a custom header", Subtest: "ForgedHeaders", Suite: edited(func(n *webhook.Notification) {
			if id := n.Headers.Get(webhook.HeaderID); id != "" {
				n.ID = id
			}
		})},
		{Name: "cuts large bodies", Subtest: "LargeBody", Suite: edited(func(n *webhook.Notification) { n.Body = n.Body[:min(len(n.Body), 1<<10)] })},
		{Name: "gives a repeat a new id", Subtest: "Repeat", Suite: suite(func(next webhook.Notifier) notifier {
			calls := 0
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				calls++
				n.ID += strings.Repeat("x", calls-1)
				return next.Notify(ctx, n)
			}
		})},
		{Name: "writes its headers into the caller's", Subtest: "InputUnchanged", Suite: edited(func(n *webhook.Notification) { n.Headers.Set("X-Sent", "1") })},
		{Name: "compacts the caller's body", Subtest: "InputUnchanged", Suite: edited(func(n *webhook.Notification) { copy(n.Body, bytes.ToUpper(n.Body)) })},
		{Name: "reports every message as delivered", Subtest: "Unreachable", Suite: suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				r := next.Notify(ctx, n)
				r.Class = webhook.ClassOK
				return r
			}
		})},
		{Name: "reports a failed connection as a timeout", Subtest: "Unreachable", Suite: suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				r := next.Notify(ctx, n)
				if r.Class == webhook.ClassConnect {
					r.Class = webhook.ClassTimeout
				}
				return r
			}
		})},
		{Name: "takes any URL for delivered", Subtest: "BadURL", Suite: suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				r := next.Notify(ctx, n)
				if r.Class == webhook.ClassBlocked {
					r.Class = webhook.ClassOK
				}
				return r
			}
		})},
		{Name: "retries by itself", Subtest: "Refused", Suite: suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				if r := next.Notify(ctx, n); r.Class == webhook.ClassOK {
					return r
				}
				return next.Notify(ctx, n)
			}
		})},
		{Name: "sends after its context ended", Subtest: "ContextEnded", Suite: suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				if ctx.Err() != nil {
					ctx = context.WithoutCancel(ctx)
				}
				return next.Notify(ctx, n)
			}
		})},
		{Name: "reports a silent receiver as a failed connection", Subtest: "Silent", Suite: suite(func(next webhook.Notifier) notifier {
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				r := next.Notify(ctx, n)
				if r.Class.Ambiguous() {
					r.Class = webhook.ClassConnect
				}
				return r
			}
		})},
		{Name: "keeps one body for all messages", Subtest: "Concurrent", Suite: suite(func(next webhook.Notifier) notifier {
			var first atomic.Pointer[[]byte]
			return func(ctx context.Context, n webhook.Notification) webhook.Result {
				first.CompareAndSwap(nil, &n.Body)
				n.Body = *first.Load()
				return next.Notify(ctx, n)
			}
		})},
	})
}

package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Options adjusts a Connector. The zero value, and nil, mean the defaults.
type Options struct {
	// Guard decides which addresses may be reached. Default: https and public addresses
	// only.
	Guard *webhook.Guard
	// Timeout limits one request including its answer. Default 20 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Origin replaces the scheme and host of every URL of the provider, so that tests can use a test double. Empty: no
	// change.
	Origin string
	// VerifyToken is the token that the provider repeats in the handshake of its messages. Empty: the provider uses
	// none.
	VerifyToken string
	// MessageURL is the URL of this service to which the provider pushes messages, such as https://HOST/v2/link/push/SLUG.
	// If the provider has subscriptions per person, the connector subscribes MessageURL after each sign-in. Empty: the
	// connector does not subscribe.
	MessageURL string
	// MaxBytes is the size of the largest accepted response body, in bytes. Default 16 MiB.
	MaxBytes int64
}

func (o *Options) withDefaults() Options {
	out := Options{}
	if o != nil {
		out = *o
	}
	out.Guard = cmp.Or(out.Guard, &webhook.Guard{})
	if out.Timeout <= 0 {
		out.Timeout = 20 * time.Second
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.MaxBytes <= 0 {
		out.MaxBytes = 16 << 20
	}
	return out
}

// formType is the media type of forms.
const formType = "application/x-www-form-urlencoded"

// HTTP sends requests to addresses that a guard allows. Safe for concurrent use.
type HTTP struct {
	client *http.Client
	max    int64
	now    func() time.Time
}

// NewHTTP returns an HTTP that uses Guard, Timeout, Now and MaxBytes of opts.
func NewHTTP(opts *Options) *HTTP {
	o := opts.withDefaults()
	return &HTTP{webhook.NewClient(&webhook.ClientOptions{Guard: o.Guard, Timeout: o.Timeout}), o.MaxBytes, o.Now}
}

// Answer is a response of a provider, whose body was read.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// unavailableError is the error of a request that failed, but may succeed later. It contains nothing that was sent or
// received.
type unavailableError struct {
	what string
	wait time.Duration
}

func (e *unavailableError) Error() string {
	return fmt.Sprintf("%v: the provider %s", healthlab.Unavailable, e.what)
}

// Unwrap returns healthlab.Unavailable.
func (*unavailableError) Unwrap() error { return healthlab.Unavailable }

// RetryAfter returns how long the provider asks to wait; zero if it does not say.
func (e *unavailableError) RetryAfter() time.Duration { return e.wait }

// Unavailable returns an error of kind healthlab.Unavailable. what completes its text "the provider …", such as
// "answers with status 503". The method RetryAfter of the error returns wait.
func Unavailable(what string, wait time.Duration) error { return &unavailableError{what, wait} }

// Do sends one request, and reads the response with any status. It fails if the provider cannot be reached, exceeds the
// timeout, or sends too many bytes. A context error is returned as it is.
func (h *HTTP) Do(req *http.Request) (*Answer, error) {
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, unreachable(req.Context(), err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, h.max+1))
	switch {
	case err != nil:
		return nil, unreachable(req.Context(), err)
	case int64(len(body)) > h.max:
		return nil, Unavailable(fmt.Sprintf("answers with more than %d bytes, the configured maximum", h.max), 0)
	}
	return &Answer{resp.StatusCode, resp.Header, body}, nil
}

// RetryAfter returns how long the header Retry-After of a response asks to wait, at most 24 hours; zero if
// it is absent, malformed or past.
func (h *HTTP) RetryAfter(a *Answer) time.Duration {
	return webhook.ParseRetryAfter(a.Header.Get("Retry-After"), h.now())
}

// unreachable returns the error of a failed request. It omits the cause, because the cause contains the URL.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("the provider answers too late: %w", context.DeadlineExceeded)
	}
	return Unavailable("cannot be reached", 0)
}

package oauthrest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// answer is what a provider said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// laterError says that a provider does not answer as it should, and for how long it asks
// us to wait. It holds nothing that was sent or received.
type laterError struct {
	what string
	wait time.Duration
}

func (e *laterError) Error() string {
	return fmt.Sprintf("%v: the provider %s", healthlab.Unavailable, e.what)
}

// Unwrap returns healthlab.Unavailable.
func (*laterError) Unwrap() error { return healthlab.Unavailable }

// RetryAfter is what the provider asks for.
func (e *laterError) RetryAfter() time.Duration { return e.wait }

func later(what string) error { return &laterError{what: what} }

// ask makes one request. What cannot be reached, answers too late or too much, is an
// error; a context that has ended stays one.
func (c *Connector) ask(req *http.Request) (*answer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(req.Context(), err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.bytes+1))
	switch {
	case err != nil:
		return nil, unreachable(req.Context(), err)
	case int64(len(body)) > c.bytes:
		return nil, later("answers more than is read")
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// unreachable names a failure of the network. The cause holds an address, and with it what
// was asked for, and is left out.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("the provider answers too late: %w", context.DeadlineExceeded)
	}
	return later("cannot be reached")
}

// verdict says what an answer without data means. Nil is one with data; nothing says that
// it has none.
func (c *Connector) verdict(a *answer) (nothing bool, err error) {
	if a.status/100 == 2 {
		return a.status == http.StatusNoContent || len(strings.TrimSpace(string(a.body))) == 0, nil
	}
	for _, o := range c.config.API.Over {
		if o.Status == a.status && a.says(o.At, o.Equals) {
			return false, &linking.GrantError{Type: orText(o.Type, healthdata.FailureDeregistered)}
		}
	}
	wait := webhook.ParseRetryAfter(a.header.Get("Retry-After"), c.now())
	switch {
	case a.status == http.StatusUnauthorized:
		return false, fmt.Errorf("%w: the provider does not accept the token", healthlab.Unauthenticated)
	case a.status == http.StatusTooManyRequests:
		return false, &linking.RateError{Scope: linking.RateScope(orText(c.config.API.RateScope, rateApp)), Wait: wait}
	case slices.Contains(c.config.API.NothingStatus, a.status):
		return true, nil
	case a.status == http.StatusForbidden && strings.Contains(a.header.Get("WWW-Authenticate"), `error="insufficient_scope"`):
		return false, fmt.Errorf("%w: the person has not granted what this resource needs", healthlab.Invalid) // RFC 6750, 3.1
	case a.status == http.StatusForbidden, a.status == http.StatusRequestTimeout:
		return false, &laterError{"refuses for now", wait}
	case a.status/100 == 4:
		return false, fmt.Errorf("%w: the provider does not take this request", healthlab.Invalid)
	case a.status/100 == 3:
		return false, later("sends us elsewhere")
	}
	return false, &laterError{"fails", wait}
}

// says reports whether a body has a text at a place. An empty place asks for nothing.
func (a *answer) says(place, want string) bool {
	if place == "" {
		return true
	}
	doc, err := tree(a.body, nil)
	if err != nil {
		return false
	}
	v, _ := (&item{inside: []any{doc}}).find(place)
	got, ok := text(v)
	return ok && got == want
}

// rates are what an answer's headers tell of limits.
func (c *Connector) rates(a *answer) []linking.Rate {
	var out []linking.Rate
	for _, r := range c.config.API.Rates {
		left, err := strconv.Atoi(a.header.Get(r.Remaining))
		reset, bad := strconv.ParseFloat(a.header.Get(r.Reset), 64)
		if err != nil || bad != nil || left < 0 || !(reset >= 0 && reset < maxMillis/1000) {
			continue
		}
		at := c.now().Add(time.Duration(min(reset, maxSeconds) * float64(time.Second)))
		if r.ResetUnix {
			at = time.Unix(int64(reset), 0)
		}
		out = append(out, linking.Rate{Scope: linking.RateScope(orText(r.Scope, rateApp)), Remaining: left, Reset: at.UTC()})
	}
	return out
}

package oauthrest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// checkStatus judges the status of an answer. nothing means that the person has no data, which is no error. err is the
// error of any other answer without data. from names the keys of the configuration from which the request was made.
func (c *Connector) checkStatus(a *rest.Answer, from string) (nothing bool, err error) {
	if a.Status/100 == 2 {
		return a.Status == http.StatusNoContent || len(strings.TrimSpace(string(a.Body))) == 0, nil
	}
	for _, o := range c.config.API.Over {
		if o.Status == a.Status && hasText(a, o.At, o.Equals) {
			return false, &linking.GrantError{Type: orText(o.Type, healthdata.FailureDeregistered)}
		}
	}
	wait := c.http.RetryAfter(a)
	switch {
	case a.Status == http.StatusUnauthorized:
		return false, fmt.Errorf("%w: the provider does not accept the token", healthlab.Unauthenticated)
	case a.Status == http.StatusTooManyRequests:
		return false, &linking.RateLimitError{Scope: linking.RateScope(orText(c.config.API.RateScope, rateApp)), Wait: wait}
	case slices.Contains(c.config.API.NothingStatus, a.Status):
		return true, nil
	case a.Status == http.StatusForbidden && strings.Contains(a.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`):
		return false, fmt.Errorf("%w: the person has not granted a scope that this resource requires", healthlab.Invalid) // RFC 6750, 3.1
	case a.Status == http.StatusForbidden, a.Status == http.StatusRequestTimeout:
		return false, rest.Unavailable(fmt.Sprintf("answers with status %d; the request is repeated later", a.Status), wait)
	case a.Status/100 == 4:
		return false, fmt.Errorf("%w: the provider answered with status %d, which means that the request is wrong: check %s", healthlab.Invalid, a.Status, from)
	case a.Status/100 == 3:
		return false, rest.Unavailable(fmt.Sprintf("answers with status %d, a redirect, which is not followed", a.Status), 0)
	}
	return false, rest.Unavailable(fmt.Sprintf("answers with status %d", a.Status), wait)
}

// hasText reports whether the value at the JSON pointer place in the body of an answer has the text want. An empty
// place always matches.
func hasText(a *rest.Answer, place, want string) bool {
	if place == "" {
		return true
	}
	doc, err := tree(a.Body, nil)
	if err != nil {
		return false
	}
	v, _ := (&item{inside: []any{doc}}).find(place)
	got, ok := text(v)
	return ok && got == want
}

// rates returns the rate limits in the headers of an answer.
func (c *Connector) rates(a *rest.Answer) []linking.RateLimit {
	var out []linking.RateLimit
	for _, r := range c.config.API.Rates {
		left, err := strconv.Atoi(a.Header.Get(r.Remaining))
		reset, bad := strconv.ParseFloat(a.Header.Get(r.Reset), 64)
		if err != nil || bad != nil || left < 0 || !(reset >= 0 && reset < maxMillis/1000) {
			continue
		}
		at := c.now().Add(time.Duration(min(reset, maxSeconds) * float64(time.Second)))
		if r.ResetUnix {
			at = time.Unix(int64(reset), 0)
		}
		out = append(out, linking.RateLimit{Scope: linking.RateScope(orText(r.Scope, rateApp)), Remaining: left, Reset: at.UTC()})
	}
	return out
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// check is one run of the program against one provider.
type check struct {
	config    config
	connector *rest.Connector
	record    healthdata.Provider
	out       io.Writer
	now       func() time.Time
	sleep     func(context.Context, time.Duration) error

	grant  linking.Grant
	failed int
}

// First words of the printed lines: the result of a step.
const (
	right   = "ok"
	notice  = "note"
	failure = "FAIL"
)

func (k *check) reportf(word, part, format string, args ...any) {
	if word == failure {
		k.failed++
	}
	fmt.Fprintf(k.out, "%-5s %-22s %s\n", word, part, fmt.Sprintf(format, args...))
}

func (k *check) run(ctx context.Context) error {
	fmt.Fprintf(k.out, "%s (%s)\n", k.record.Name, k.record.Slug)
	if err := k.signIn(ctx); err != nil {
		return err
	}
	k.scopes()
	k.renewal(ctx)
	keep, err := newStorage(ctx, k.record, k.grant.ExternalUserID, k.now)
	if err != nil {
		return err
	}
	for _, kind := range k.connector.Collections() {
		if err := k.checkKind(ctx, kind, keep); err != nil {
			return err
		}
	}
	if k.config.revoke {
		k.revocation(ctx)
	}
	if k.failed > 0 {
		return errFailed
	}
	return nil
}

// signIn gets the provider's tokens: from the file of -token-file, or by a sign-in in a browser.
func (k *check) signIn(ctx context.Context) (err error) {
	if k.config.token != "" {
		t, err := readToken(k.config.token)
		if err != nil {
			return err
		}
		if k.grant.Secret, err = k.connector.Encode(t); err != nil {
			return err
		}
		k.grant.ExternalUserID = k.config.account
		k.reportf(right, "token", "read from the file")
		return nil
	}
	if k.grant, err = k.browser(ctx); err != nil {
		return err
	}
	k.reportf(right, "sign-in", "%s", lasts(k.grant.ExpiresAt, k.now()))
	if k.grant.ExternalUserID == "" {
		k.reportf(notice, "account", "the provider does not name the person")
	} else {
		k.reportf(right, "account", "the provider names the person")
	}
	return nil
}

func lasts(until, now time.Time) string {
	if until.IsZero() {
		return "a token came; the provider does not say how long it works"
	}
	return "a token came, which works for " + until.Sub(now).Round(time.Minute).String()
}

// requiredScopes returns the OAuth scopes that all kinds of data together need.
func (k *check) requiredScopes() []string {
	out := slices.Clone(k.connector.OAuth.Minimum)
	for _, s := range k.record.Scopes {
		out = append(out, s.Required...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (k *check) scopes() {
	wanted := k.requiredScopes()
	missing := slices.DeleteFunc(slices.Clone(wanted), func(s string) bool { return slices.Contains(k.grant.Scopes, s) })
	switch {
	case len(wanted) == 0:
		k.reportf(right, "scopes", "the provider has none")
	case k.grant.Scopes == nil:
		k.reportf(notice, "scopes", "the provider does not say which were granted")
	case len(missing) == 0:
		k.reportf(right, "scopes", "all %d are granted", len(wanted))
	case slices.ContainsFunc(k.connector.OAuth.Minimum, func(s string) bool { return slices.Contains(missing, s) }):
		k.reportf(failure, "scopes", "not granted, and needed by all kinds: %s", strings.Join(missing, ", "))
	default:
		k.reportf(notice, "scopes", "not granted: %s", strings.Join(missing, ", "))
	}
}

// renewal exchanges the refresh token for new tokens, and prints whether that worked.
func (k *check) renewal(ctx context.Context) {
	before, err := k.connector.Decode(k.grant.Secret)
	if err != nil || before.Refresh == "" || k.config.clients == "" {
		k.reportf(notice, "renewal", "there is no refresh token, or no client to use it")
		return
	}
	if err := k.renew(ctx); err != nil {
		k.reportf(failure, "renewal", "%v", err)
		return
	}
	after, err := k.connector.Decode(k.grant.Secret)
	what := "the refresh token stays"
	if err != nil || after.Refresh != before.Refresh {
		what = "the refresh token rotates"
	}
	k.reportf(right, "renewal", "%s; %s", lasts(k.grant.ExpiresAt, k.now()), what)
}

func (k *check) renew(ctx context.Context) error {
	return k.retry(ctx, func() error {
		fresh, err := k.connector.Refresh(ctx, k.grant.Secret)
		if err == nil {
			k.grant.Secret, k.grant.ExpiresAt = fresh.Secret, fresh.ExpiresAt
		}
		return err
	})
}

func (k *check) revocation(ctx context.Context) {
	revoker := k.connector.Flows().Revoker
	if revoker == nil {
		k.reportf(notice, "revocation", "the provider has no way")
		return
	}
	if err := k.retry(ctx, func() error { return revoker.Revoke(ctx, k.grant.Secret) }); err != nil {
		k.reportf(failure, "revocation", "%v", err)
		return
	}
	k.reportf(right, "revocation", "the grant has ended")
}

const (
	// tries is the highest number of attempts at one request.
	tries = 4
	// pause is the time to wait before the next attempt if the provider states none.
	pause = 2 * time.Second
)

// retry calls do up to [tries] times. It waits and repeats the call if the error has a RetryAfter method, which
// means that the provider is unavailable or its rate limit is exceeded. It gives up if the provider requires a longer
// wait than -wait.
func (k *check) retry(ctx context.Context, do func() error) (err error) {
	for range tries {
		err = do()
		var said interface{ RetryAfter() time.Duration }
		if err == nil || !errors.As(err, &said) {
			return err
		}
		wait := said.RetryAfter()
		if wait <= 0 {
			wait = pause
		}
		if wait > k.config.wait {
			return fmt.Errorf("%w; the provider asks to wait for %s, which is longer than -wait", err, wait.Round(time.Second))
		}
		if slept := k.sleep(ctx, wait); slept != nil {
			return slept
		}
	}
	return err
}

// checkKind requests one page of the kind of data with this name, stores it in keep to check it, and prints the result.
// A failed check is printed and is no error; the error is for failures after which the program must stop.
func (k *check) checkKind(ctx context.Context, name string, keep *storage) error {
	now := k.now()
	request := linking.PullRequest{From: now.AddDate(0, 0, -k.config.days), To: now.Add(24 * time.Hour), Zone: time.UTC}
	if id := k.grant.ExternalUserID; id != "" {
		request.ExternalUserID = &id
	}
	var probe rest.Probe
	requests, renewed := 0, false
	try := func() (err error) {
		request.Secret = k.grant.Secret
		probe, err = k.connector.Probe(ctx, name, request)
		request.Cursor = probe.Cursor
		requests += probe.Requests
		return err
	}
	err := k.retry(ctx, func() error {
		err := try()
		if errors.Is(err, healthlab.Unauthenticated) && !renewed && k.config.clients != "" {
			if renewed = true; k.renew(ctx) == nil {
				err = try()
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	missing := slices.DeleteFunc(slices.Clone(probe.Scopes), func(s string) bool {
		return k.grant.Scopes == nil || slices.Contains(k.grant.Scopes, s)
	})
	switch {
	case err != nil && len(missing) > 0:
		k.reportf(notice, name, "not granted: %s", strings.Join(missing, ", "))
		return nil
	case err != nil:
		k.reportf(failure, name, "%v", err)
		return nil
	case len(probe.Data) == 0:
		k.reportf(notice, name, "no data in %d days (requests: %d)", k.config.days, requests)
		return nil
	}
	problems, err := keep.storeData(ctx, probe.Data)
	if err != nil {
		return err
	}
	word := right
	if len(problems) > 0 {
		word = failure
	}
	k.reportf(word, name, "%s (requests: %d)", pageSummary(&probe), requests)
	for _, text := range slices.Sorted(maps.Keys(problems)) {
		fmt.Fprintf(k.out, "%29s%d times: %s\n", "", problems[text], text)
	}
	return nil
}

// pageSummary returns a text for people: the number of items on a page by resource, and the resources without items.
func pageSummary(p *rest.Probe) string {
	var parts, none []string
	for _, resource := range p.Resources {
		n := 0
		for i := range p.Data[resource] {
			x := &p.Data[resource][i]
			n += len(x.Samples) + len(x.Summaries)
			if resource == "device" && x.Device != nil {
				n++
			}
		}
		if n == 0 {
			none = append(none, resource)
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, resource))
	}
	text := fmt.Sprintf("%d items: %s", p.Items, strings.Join(parts, ", "))
	if len(none) > 0 {
		text += "; no " + strings.Join(none, ", ")
	}
	return text
}

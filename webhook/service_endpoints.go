package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// NewEndpoint describes an endpoint to register.
type NewEndpoint struct {
	URL         string
	Description string
	RateLimit   *int     // attempts per second, from 1; nil means unlimited
	FilterTypes []string // nil means all types; an empty list is refused
	OrderScope  OrderScope
	Disabled    bool
	Secret      string // text form; empty to generate one
}

// Create registers an endpoint. It returns Invalid with every invalid field, a [*healthlab.RuleError] of type
// [RuleEndpointLimit], or a [*RateLimitError].
func (s *Service) Create(ctx context.Context, team healthlab.TeamID, n NewEndpoint) (Endpoint, error) {
	if err := s.allow(team); err != nil {
		return Endpoint{}, err
	}
	var p healthlab.Problems
	u := s.checkURL(&p, n.URL)
	checkDescription(&p, n.Description)
	checkFilter(&p, n.FilterTypes)
	checkRate(&p, n.RateLimit)
	switch n.OrderScope {
	case "":
		n.OrderScope = OrderKey
	case OrderKey, OrderUser:
	default:
		p.Add("unknown_value", "must be one of key, user", "order_scope")
	}
	if n.Secret != "" {
		if _, err := ParseSecret(n.Secret); err != nil {
			p.Add("bad_secret", badSecret, "secret")
		}
	}
	if err := p.Err(); err != nil {
		return Endpoint{}, fmt.Errorf("create endpoint: %w", err)
	}
	at := s.clock()
	e := Endpoint{
		ID: EndpointID{s.opts.NewID()}, Team: team, URL: u.String(), Description: n.Description,
		FilterTypes: n.FilterTypes, OrderScope: n.OrderScope, Disabled: n.Disabled,
		CreatedAt: at, UpdatedAt: at,
	}
	if n.RateLimit != nil {
		e.RateLimit = *n.RateLimit
	}
	if n.Disabled {
		e.DisabledReason = DisabledManual
	}
	fresh, err := s.newSecret(ctx, &e, n.Secret)
	if err != nil {
		return Endpoint{}, fmt.Errorf("create endpoint: %w", err)
	}
	e.Secrets = []SealedSecret{fresh}
	err = s.endpoints.Insert(ctx, e, maxEndpoints)
	if errors.Is(err, healthlab.Exhausted) {
		err = &healthlab.RuleError{Type: RuleEndpointLimit, Msg: fmt.Sprintf("a team has at most %d webhooks; delete one first", maxEndpoints)}
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("create endpoint: %w", err)
	}
	e.Revision = 1
	return e, nil
}

// Get returns one endpoint of the team. It returns NotFound if the team has no endpoint with this id.
func (s *Service) Get(ctx context.Context, team healthlab.TeamID, id EndpointID) (Endpoint, error) {
	e, err := s.endpoints.Get(ctx, team, id)
	if err != nil {
		return Endpoint{}, fmt.Errorf("get endpoint: %w", err)
	}
	return e, nil
}

// List returns one page of a team's endpoints, the newest first.
func (s *Service) List(ctx context.Context, q EndpointQuery) (EndpointPage, error) {
	page, err := s.endpoints.List(ctx, q)
	if err != nil {
		return EndpointPage{}, fmt.Errorf("list endpoints: %w", err)
	}
	return page, nil
}

// Patch lists the changes of an endpoint. A nil field is not changed.
type Patch struct {
	URL         *string
	Description *string
	RateLimit   **int     // a pointer to nil removes the limit
	FilterTypes *[]string // a pointer to nil removes the filter
	Disabled    *bool
}

// Patch changes an endpoint. Enabling it resets its failures; cancelled messages are not resent, see
// [Service.Recover]. It returns Invalid with every invalid field, NotFound if the team has no such endpoint, or
// a [*RateLimitError] if it changes the URL.
func (s *Service) Patch(ctx context.Context, team healthlab.TeamID, id EndpointID, c Patch) (Endpoint, error) {
	var p healthlab.Problems
	var u *url.URL
	if c.URL != nil {
		if err := s.allow(team); err != nil {
			return Endpoint{}, err
		}
		u = s.checkURL(&p, *c.URL)
	}
	if c.Description != nil {
		checkDescription(&p, *c.Description)
	}
	if c.RateLimit != nil {
		checkRate(&p, *c.RateLimit)
	}
	if c.FilterTypes != nil {
		checkFilter(&p, *c.FilterTypes)
	}
	if err := p.Err(); err != nil {
		return Endpoint{}, fmt.Errorf("patch endpoint: %w", err)
	}
	at := s.clock()
	e, err := s.endpoints.Update(ctx, team, id, func(e *Endpoint) ([]healthlab.Event, error) {
		if u != nil {
			e.URL = u.String()
		}
		if c.Description != nil {
			e.Description = *c.Description
		}
		if c.RateLimit != nil {
			e.RateLimit = 0
			if *c.RateLimit != nil {
				e.RateLimit = **c.RateLimit
			}
		}
		if c.FilterTypes != nil {
			e.FilterTypes = *c.FilterTypes
		}
		if c.Disabled != nil && *c.Disabled != e.Disabled {
			e.setEnabled(!*c.Disabled)
		}
		e.UpdatedAt = at
		return nil, nil
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("patch endpoint: %w", err)
	}
	return e, nil
}

// setEnabled enables an endpoint and resets its health, or disables it with the reason DisabledManual.
func (e *Endpoint) setEnabled(on bool) {
	if on {
		e.Disabled, e.DisabledReason, e.Health = false, "", Health{}
		return
	}
	e.Disabled, e.DisabledReason = true, DisabledManual
}

// Delete removes an endpoint and cancels its undelivered messages. It returns NotFound if the team has no
// endpoint with this id.
func (s *Service) Delete(ctx context.Context, team healthlab.TeamID, id EndpointID) error {
	if err := s.endpoints.Delete(ctx, team, id); err != nil {
		return fmt.Errorf("delete endpoint: %w", err)
	}
	return nil
}

func (s *Service) checkURL(p *healthlab.Problems, raw string) *url.URL {
	u, problems := s.opts.Guard.checkURL(raw)
	p.Under(problems, "url")
	return u
}

func checkDescription(p *healthlab.Problems, text string) {
	if utf8.RuneCountInString(text) > maxDescription || !utf8.ValidString(text) || containsNUL(text) {
		p.Add("bad_description", fmt.Sprintf("must have at most %d characters, and no NUL", maxDescription), "description")
	}
}

func containsNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

// maxRate is the largest rate limit of an endpoint, in attempts per second.
const maxRate = 10_000

func checkRate(p *healthlab.Problems, rate *int) {
	if rate != nil && (*rate < 1 || *rate > maxRate) {
		p.Add("range", fmt.Sprintf("must be 1 to %d attempts per second, or null for no limit", maxRate), "rate_limit")
	}
}

func checkFilter(p *healthlab.Problems, types []string) {
	if types != nil && (len(types) == 0 || len(types) > maxFilterTypes) {
		p.Add("bad_length", fmt.Sprintf("must have 1 to %d event types; leave it out for all", maxFilterTypes), "filter_types")
	}
	seen := map[string]bool{}
	for i, t := range types {
		switch {
		case !ValidType(t):
			p.Add("bad_type", "must be the name of an event type, such as daily.data.sleep.created", "filter_types", i)
		case seen[t]:
			p.Add("duplicate", "must not come twice", "filter_types", i)
		}
		seen[t] = true
	}
}

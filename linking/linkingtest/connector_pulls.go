package linkingtest

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// limitedFor is the Retry-After of answers with status 429.
const limitedFor = 90 * time.Second

// dayRange is how far an item may be outside of the requested range. Providers return whole days in the person's time
// zone, and sessions that begin before the range and end in it.
const dayRange = 48 * time.Hour

// eachResource signs in, and calls check with the items of each resource in the range From to To.
func (h *ConnectorHarness) eachResource(t *testing.T, check func(slug string, items []linking.PullItem, g linking.Grant)) {
	t.Helper()
	g := h.signIn(t)
	for _, slug := range h.Resources {
		check(slug, h.pages(t, h.request(g, slug)), g)
	}
}

var pullCases = []connectorCase{
	{"Pull/Resources", puller, func(t *testing.T, h *ConnectorHarness) {
		require.NotEmpty(t, h.Resources, "ConnectorHarness.Resources is required for a connector with a Puller")
		seen := map[string]bool{}
		for _, set := range append([][]string{h.Resources}, h.Connector.Together...) {
			for _, slug := range set {
				require.NotNil(t, healthdata.ResourceBySlug(slug), "%s is no resource of the catalogue", slug)
			}
		}
		for _, set := range h.Connector.Together {
			for _, slug := range set {
				require.False(t, seen[slug], "%s is in one set of Together at most", slug)
				seen[slug] = true
			}
		}
		if h.Record.Slug == "" {
			return
		}
		for _, slug := range h.Resources {
			require.True(t, h.Record.Supports(slug), "%s is a resource of ConnectorHarness.Record", slug)
		}
		g := h.signIn(t)
		for _, r := range h.Record.Resources {
			if class := healthdata.ResourceBySlug(r.Resource).Class; class == healthdata.ClassTimeseries || class == healthdata.ClassSummary {
				_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, r.Resource))
				require.NoError(t, err, "%s is a resource of the record, so that it is pulled", r.Resource)
			}
		}
	}},
	{"Pull/Shape", puller, func(t *testing.T, h *ConnectorHarness) {
		h.eachResource(t, func(slug string, items []linking.PullItem, g linking.Grant) {
			found := 0
			for i := range items {
				found += len(items[i].Samples) + len(items[i].Summaries)
				checkItem(t, slug, &items[i], g)
			}
			require.Positive(t, found, "no data of %s", slug)
			checkOnce(t, slug, items)
			checkTotals(t, healthdata.ResourceBySlug(slug), items)
		})
	}},
	{"Pull/Stored", puller, func(t *testing.T, h *ConnectorHarness) {
		h.eachResource(t, func(slug string, items []linking.PullItem, _ linking.Grant) {
			h.newJudge(t).receive(t, slug, items)
		})
	}},
	{"Pull/Known", allNeeds(puller, requirement("ConnectorHarness.Known is nil", func(h *ConnectorHarness) bool { return h.Known != nil })), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		for slug, want := range h.Known {
			items := h.pages(t, h.request(g, slug))
			h.newJudge(t).receive(t, slug, items)
			require.True(t, containsSample(t, healthdata.ResourceBySlug(slug), items, &want), "%s: the known sample is not there at its time with its value", slug)
		}
	}},
	{"Pull/Scale", puller, func(t *testing.T, h *ConnectorHarness) {
		h.eachResource(t, func(slug string, items []linking.PullItem, _ linking.Grant) {
			h.newJudge(t).receive(t, slug, items) // completes the summaries
			h.checkScale(t, slug, items)
		})
	}},
	{"Pull/Range", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		const day = 24 * time.Hour
		for _, slug := range h.Resources {
			if slices.Contains(h.Whole, slug) {
				continue
			}
			for _, from := range []time.Time{h.From, h.To.Add(-day)} {
				r := h.request(g, slug)
				r.From, r.To = from, from.Add(day)
				j := h.newJudge(t)
				j.receive(t, slug, h.pages(t, r))
				for _, at := range j.kept.at {
					require.False(t, at.Before(r.From.Add(-dayRange)) || at.After(r.To.Add(dayRange)), "%s: the items are those of the range that was asked for", slug)
				}
			}
		}
	}},
	{"Pull/Limits", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		for _, slug := range h.Resources {
			page, err := h.Connector.Puller.Pull(t.Context(), h.request(g, slug))
			require.NoError(t, err)
			for _, l := range page.RateLimits {
				require.Contains(t, []linking.RateScope{linking.RateApp, linking.RateUser}, l.Scope, "a limit says whose it is")
				require.False(t, l.Remaining < 0 || l.Reset.Before(h.From), "a limit is of requests until an instant to come")
			}
		}
	}},
	{"Pull/Repeat", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		for _, slug := range h.Resources {
			require.Equal(t, valuesByKey(h.pages(t, h.request(g, slug))), valuesByKey(h.pages(t, h.request(g, slug))), slug)
		}
	}},
	{"Pull/Halves", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		middle := h.From.Add(h.To.Sub(h.From) / 2).Truncate(24 * time.Hour)
		for _, slug := range h.Resources {
			want := valuesByKey(h.pages(t, h.request(g, slug)))
			first, second := h.request(g, slug), h.request(g, slug)
			first.To, second.From = middle, middle
			got := valuesByKey(append(h.pages(t, first), h.pages(t, second)...))
			for key := range want {
				_, ok := got[key]
				require.True(t, ok, "%s: a range in two parts loses what the whole has", slug)
			}
			for key := range got {
				_, ok := want[key]
				require.True(t, ok, "%s: the whole range loses what its parts have", slug)
			}
		}
	}},
	{"Pull/Together", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		for _, set := range h.Connector.Together {
			set = slices.DeleteFunc(slices.Clone(set), func(slug string) bool { return !slices.Contains(h.Resources, slug) })
			if len(set) < 2 {
				continue
			}
			r := h.request(g, set[0])
			r.With = set[1:]
			got := h.pullAll(t, r)
			for _, slug := range set {
				require.Equal(t, valuesByKey(h.pages(t, h.request(g, slug))), valuesByKey(got[slug]), "%s comes with %s as it does alone", slug, set[0])
			}
		}
	}},
	{"Pull/UnknownResource", puller, func(t *testing.T, h *ConnectorHarness) {
		_, err := h.Connector.Puller.Pull(t.Context(), h.request(h.signIn(t), nonsense))
		require.True(t, errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Unimplemented), "asking again does not help")
		h.requireNoSecret(t, err)
	}},
	{"Pull/ForeignSecret", puller, func(t *testing.T, h *ConnectorHarness) {
		r := h.request(h.signIn(t), h.Resources[0])
		r.Secret = []byte(nonsense)
		_, err := h.Connector.Puller.Pull(t.Context(), r)
		require.True(t, isGrantError(err) || errors.Is(err, healthlab.Invalid), "trying later does not help")
		h.requireNoSecret(t, err, nonsense)
	}},
	{"Pull/Revoked", allNeeds(puller, revoker), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		require.NoError(t, h.Connector.Revoker.Revoke(t.Context(), g.Secret))
		_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, h.Resources[0]))
		require.True(t, isGrantError(err), "a revoked grant gives no data")
		h.requireNoSecret(t, err)
	}},
	{"Pull/Outage", allNeeds(puller, outage), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.Outage()
		_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, h.Resources[0]))
		h.requireRetryable(t, err)
	}},
	{"Pull/Answers", allNeeds(puller, answer), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.eachFailure(t, func(t *testing.T) {
			for _, slug := range h.Resources {
				_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, slug))
				h.requireRetryable(t, err)
				h.requireNoSecret(t, err, nonsense)
			}
		})
	}},
	{"Pull/Limited", allNeeds(puller, answer), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.Answer(429, map[string][]string{"Retry-After": {"90"}}, nonsense)
		for _, slug := range h.Resources {
			_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, slug))
			h.requireRateLimit(t, err, limitedFor)
			h.requireNoSecret(t, err, nonsense)
		}
	}},
	{"Pull/Unauthorized", allNeeds(puller, answer), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.Answer(401, nil, nonsense)
		_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, h.Resources[0]))
		require.True(t, isGrantError(err), "status 401 is Unauthenticated, or a GrantError where secrets cannot be renewed")
		h.requireNoSecret(t, err, nonsense)
	}},
	{"Pull/ContextEnded", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		_, err := h.Connector.Puller.Pull(cancelledContext(t), h.request(g, h.Resources[0]))
		h.requireRetryable(t, err)
	}},
	{"Pull/Concurrent", puller, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		r := h.request(g, h.Resources[0])
		want, err := h.Connector.Puller.Pull(t.Context(), r)
		require.NoError(t, err)
		var wg sync.WaitGroup
		got, errs := make([]linking.PullPage, 8), make([]error, 8)
		for i := range got {
			wg.Go(func() { got[i], errs[i] = h.Connector.Puller.Pull(t.Context(), r) })
		}
		wg.Wait()
		for i := range got {
			require.NoError(t, errs[i])
			require.Equal(t, valuesByKey(want.Items), valuesByKey(got[i].Items))
		}
	}},
}

var listenCases = []connectorCase{
	{"Listen/Repeat", listener, func(t *testing.T, h *ConnectorHarness) {
		m := h.Message(t)
		first, err := h.Connector.Listener.Listen(t.Context(), m)
		require.NoError(t, err)
		require.True(t, len(first.Notifications) > 0 || len(first.Reply) > 0, "a message of the provider says something")
		second, err := h.Connector.Listener.Listen(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, first, second, "nothing is kept between calls")
	}},
	{"Listen/Notifications", listener, func(t *testing.T, h *ConnectorHarness) {
		m := h.Message(t)
		got, err := h.Connector.Listener.Listen(t.Context(), m)
		require.NoError(t, err)
		for _, n := range got.Notifications {
			require.NotEmpty(t, n.ExternalUserID, "a notification says whose account it is about")
			require.False(t, n.Since.After(m.At), "what is new was recorded before the message came")
			for _, slug := range n.Resources {
				require.NotNil(t, healthdata.ResourceBySlug(slug), "%s is no resource of the catalogue", slug)
			}
			for _, d := range n.Data {
				require.NotNil(t, healthdata.ResourceBySlug(d.Resource), "%s is no resource of the catalogue", d.Resource)
				for i := range d.Items {
					if d.Resource != "workout_stream" && d.Resource != "device" {
						checkItem(t, d.Resource, &d.Items[i], linking.Grant{ExternalUserID: n.ExternalUserID})
					}
				}
				if class := healthdata.ResourceBySlug(d.Resource).Class; class == healthdata.ClassTimeseries || class == healthdata.ClassSummary {
					h.newJudge(t).receive(t, d.Resource, d.Items)
				}
			}
		}
	}},
	{"Listen/Forged", listener, func(t *testing.T, h *ConnectorHarness) {
		m := h.Forged(t)
		got, err := h.Connector.Listener.Listen(t.Context(), m)
		require.ErrorIs(t, err, healthlab.Unauthenticated)
		require.Empty(t, got.Notifications)
		h.requireNoSecret(t, err, string(m.Body))
	}},
	{"Listen/Nonsense", listener, func(t *testing.T, h *ConnectorHarness) {
		for i, m := range []linking.Message{{}, {Method: "POST"}, {Method: "POST", Body: []byte(nonsense)}, {Method: "GET"}} {
			m.At = h.To
			_, err := h.Connector.Listener.Listen(t.Context(), m)
			require.True(t, errors.Is(err, healthlab.Unauthenticated) || errors.Is(err, healthlab.Invalid), "message "+strconv.Itoa(i))
			h.requireNoSecret(t, err, nonsense)
		}
	}},
}

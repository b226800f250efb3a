package webhook_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

func TestTeamSettings_chooseEventsByPrefixAndDestination(t *testing.T) {
	const over, queue = "https://receiver.example.com/in", "nats://healthlab.events"
	for _, c := range []struct {
		name string
		team webhook.TeamSettings
		kind string
		url  string
		want bool
	}{
		{"nothing chosen", webhook.TeamSettings{}, "daily.data.sleep.created", over, true},
		{"a prefix", webhook.TeamSettings{Prefixes: []string{"labtest.", "daily.data.sl"}}, "daily.data.sleep.created", over, true},
		{"another prefix", webhook.TeamSettings{Prefixes: []string{"labtest."}}, "daily.data.sleep.created", over, false},
		{"in the middle", webhook.TeamSettings{Prefixes: []string{"data."}}, "daily.data.sleep.created", over, false},
		{"a kind", webhook.TeamSettings{Kinds: []string{"nats", webhook.KindWebhook}}, "x", over, true},
		{"a kind in clear", webhook.TeamSettings{Kinds: []string{webhook.KindWebhook}}, "x", "HTTP://receiver.example.com", true},
		{"another kind", webhook.TeamSettings{Kinds: []string{"nats"}}, "x", over, false},
		{"a queue", webhook.TeamSettings{Kinds: []string{"nats"}}, "x", queue, true},
		{"no queue", webhook.TeamSettings{Kinds: []string{webhook.KindWebhook}}, "x", queue, false},
		{"both must hold", webhook.TeamSettings{Kinds: []string{"nats"}, Prefixes: []string{"y"}}, "x", queue, false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.team.Wants(c.kind, c.url)) })
	}
}

// Events that a team does not want are cancelled. Wanted events behind them are sent, and a
// changed choice takes effect soon.
func TestDispatcher_cancelsEventsThatTheTeamDoesNotWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		e := h.create(t)
		var mu sync.Mutex
		settings, fault := webhook.TeamSettings{Prefixes: []string{"labtest."}}, error(nil)
		set := func(s webhook.TeamSettings, err error) {
			mu.Lock()
			defer mu.Unlock()
			settings, fault = s, err
		}
		h.opts.Settings = func(_ context.Context, of healthlab.TeamID) (webhook.TeamSettings, error) {
			mu.Lock()
			defer mu.Unlock()
			if of != team {
				return webhook.TeamSettings{}, healthlab.NotFound
			}
			return settings, fault
		}
		sent := func() (out []string) {
			synctest.Wait()
			for _, r := range h.to.all() {
				out = append(out, r.Type)
			}
			return out
		}
		stop := h.run(t)
		h.write(t, "daily.data.sleep.created", "k")
		h.write(t, "labtest.order.updated", "k")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"labtest.order.updated"}, sent())
		page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Endpoint: e.ID})
		require.NoError(t, err)
		require.Len(t, page.Attempts, 2)
		require.Equal(t, webhook.ReasonUnwanted, page.Attempts[1].Reason)

		set(webhook.TeamSettings{}, errors.New("planted"))
		h.write(t, "daily.data.sleep.created", "k")
		time.Sleep(time.Minute)
		require.Len(t, sent(), 1, "while nobody knows what is wanted, it waits")
		set(webhook.TeamSettings{Kinds: []string{"webhook"}}, nil)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"labtest.order.updated", "daily.data.sleep.created"}, sent())
		set(webhook.TeamSettings{Kinds: []string{"nats"}}, nil)
		time.Sleep(time.Minute)
		h.write(t, "labtest.order.updated", "k")
		time.Sleep(time.Minute)
		require.Len(t, sent(), 2, "none there")
		stop()
	})
}

// An event that the team wants by now is sent, although the settings that were read for an earlier one did not want it.
func TestDispatcher_sendsWantedEventsAtOnceAfterAChangeOfSettings(t *testing.T) {
	for name, unwanted := range map[string]webhook.TeamSettings{
		"prefixes": {Prefixes: []string{"labtest."}}, "kinds": {Kinds: []string{"nats"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newFixture(t)
				h.create(t)
				var settings atomic.Pointer[webhook.TeamSettings]
				settings.Store(&unwanted)
				h.opts.CacheFor = time.Hour
				h.opts.Settings = func(context.Context, healthlab.TeamID) (webhook.TeamSettings, error) { return *settings.Load(), nil }
				defer h.run(t)()
				h.write(t, "daily.data.sleep.created", "first")
				time.Sleep(2 * time.Second)
				require.Empty(t, h.to.all())
				settings.Store(&webhook.TeamSettings{})
				next := h.write(t, "daily.data.sleep.created", "next")
				time.Sleep(2 * time.Second)
				require.Len(t, h.to.all(), 1)
				require.Equal(t, webhook.MessageID(next), h.to.all()[0].ID)
			})
		})
	}
}

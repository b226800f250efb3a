package webhook_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Bodies are emptied after the team's retention while the dispatcher runs.
func TestBodies_areEmptiedAfterTheTeamsRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		types, err := webhook.NewCatalogue(webhook.EventTypes())
		require.NoError(t, err)
		short, usual := healthlab.TeamID{UUID: uuid.New()}, healthlab.TeamID{UUID: uuid.New()}
		seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
		require.NoError(t, err)
		d, err := webhook.NewDispatcher(types, store.Webhooks(), webhook.NewHTTP(nil), seal, &webhook.Options{
			Idle: time.Hour, Bodies: store.EventBodies(),
			Settings: func(_ context.Context, team healthlab.TeamID) (webhook.TeamSettings, error) {
				if team == short {
					return webhook.TeamSettings{BodyRetention: 24 * time.Hour}, nil
				}
				return webhook.TeamSettings{}, nil
			},
		})
		require.NoError(t, err)
		ids := map[healthlab.TeamID]uuid.UUID{}
		for _, team := range []healthlab.TeamID{short, usual} {
			ids[team] = uuid.New()
			require.NoError(t, store.Outbox().Append(t.Context(), []healthlab.Event{{ID: ids[team], Type: webhook.EventTypes()[0].Name, Team: team, At: time.Now(), Data: []byte(`{}`)}}))
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		kept := func() (n int) {
			for team, id := range ids {
				m, err := store.WebhookLog().Message(t.Context(), team, id)
				require.NoError(t, err)
				if len(m.Body) > 0 {
					n++
				}
			}
			return n
		}
		time.Sleep(20 * time.Hour)
		require.Equal(t, 2, kept())
		time.Sleep(10 * time.Hour)
		require.Equal(t, 1, kept(), "the team keeps bodies for a day")
		time.Sleep(7 * 24 * time.Hour)
		require.Zero(t, kept())
		stop()
		require.NoError(t, <-done)
	})
}

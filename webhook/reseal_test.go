package webhook_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Reseal moves all secrets and headers to the newer key, after which the older one is not needed,
// and changes nothing when it is called again.
func TestReseal(t *testing.T) {
	h := newFixture(t)
	var want []string
	var ids []webhook.EndpointID
	for range 3 {
		e := h.create(t)
		require.NoError(t, h.service.Rotate(t.Context(), team, e.ID, "")) // two secrets sign
		require.NoError(t, h.service.SetHeaders(t.Context(), team, e.ID, map[string]string{"X-Ward": "7", "Authorization": "Bearer planted"}))
		secret, err := h.service.Secret(t.Context(), team, e.ID)
		require.NoError(t, err)
		ids, want = append(ids, e.ID), append(want, secret.Text())
	}
	service := func(current string, keys ...string) *webhook.Service {
		t.Helper()
		all := map[string][]byte{"second": bytes.Repeat([]byte{8}, 32)}
		for _, key := range keys {
			all[key] = bytes.Repeat([]byte{7}, 32)
		}
		seal, err := healthlab.NewAESSealer(current, all)
		require.NoError(t, err)
		s, err := webhook.NewService(h.types, h.store.Deliveries(), h.store.Endpoints(), h.store.WebhookLog(), h.to, seal, nil)
		require.NoError(t, err)
		return s
	}
	after := service("second")
	_, err := after.Reseal(t.Context(), team)
	require.ErrorIs(t, err, healthlab.Unavailable, "the older key is needed")

	both := service("second", "first")
	n, err := both.Reseal(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = both.Reseal(t.Context(), team)
	require.NoError(t, err)
	require.Zero(t, n)
	for i, id := range ids {
		secret, err := after.Secret(t.Context(), team, id)
		require.NoError(t, err)
		require.Equal(t, want[i], secret.Text())
		_, err = after.SendTest(t.Context(), team, id, "labtest.order.updated")
		require.NoError(t, err)
		sent := h.to.all()[i]
		require.Len(t, sent.Secrets, 2)
		require.Equal(t, "Bearer planted", sent.Headers.Get("Authorization"))
		require.Equal(t, "7", sent.Headers.Get("X-Ward"))
	}
}

package orderstest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// MessengerHarness is a messenger with its test channels.
type MessengerHarness struct {
	Messenger orders.Messenger
	// Sent returns the number of messages that reached an address, on any channel.
	Sent func(t testing.TB, to string) int
	// Fail makes the next n sends fail, like an outage of the channel. Nil if the test cannot do that.
	Fail func(n int)
}

// RunMessenger runs the contract tests of [orders.Messenger]. newMessenger returns a fresh messenger whose
// channels deliver inside the test only.
func RunMessenger(t *testing.T, newMessenger func(t testing.TB) MessengerHarness) {
	message := func(channel orders.Channel, to string) orders.PatientMessage {
		return orders.PatientMessage{
			ID: uuid.New(), Team: healthlab.TeamID{UUID: uuid.New()}, Order: orders.OrderID{UUID: uuid.New()},
			User: healthlab.UserID{UUID: uuid.New()}, Channel: channel, To: to, Moment: orders.RemindKit,
			Method: catalogue.Testkit, FirstName: "Amara", At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		}
	}
	const phone, email = "+15555550100", "amara@example.com"
	t.Run("Channels", func(t *testing.T) {
		h := newMessenger(t)
		require.NoError(t, h.Messenger.Send(t.Context(), message(orders.SMS, phone)))
		require.NoError(t, h.Messenger.Send(t.Context(), message(orders.Email, email)))
		require.Equal(t, 1, h.Sent(t, phone))
		require.Equal(t, 1, h.Sent(t, email))
	})
	t.Run("WithoutName", func(t *testing.T) {
		h := newMessenger(t)
		m := message(orders.Email, email)
		m.FirstName = ""
		require.NoError(t, h.Messenger.Send(t.Context(), m))
		require.Equal(t, 1, h.Sent(t, email))
	})
	t.Run("Repeat", func(t *testing.T) {
		h := newMessenger(t)
		m := message(orders.SMS, phone)
		for range 3 {
			require.NoError(t, h.Messenger.Send(t.Context(), m))
		}
		require.Equal(t, 1, h.Sent(t, phone), "a message is sent once, whatever the number of calls")
	})
	t.Run("EqualText", func(t *testing.T) {
		h := newMessenger(t)
		m := message(orders.SMS, phone)
		require.NoError(t, h.Messenger.Send(t.Context(), m))
		m.ID = uuid.New()
		require.NoError(t, h.Messenger.Send(t.Context(), m))
		require.Equal(t, 2, h.Sent(t, phone), "messages are told apart by ID only")
	})
	t.Run("ContextEnds", func(t *testing.T) {
		h := newMessenger(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m := message(orders.SMS, phone)
		require.Error(t, h.Messenger.Send(ctx, m))
		require.Zero(t, h.Sent(t, phone))
		require.NoError(t, h.Messenger.Send(t.Context(), m), "a message that failed is sent by the next call")
		require.Equal(t, 1, h.Sent(t, phone))
	})
	t.Run("Outage", func(t *testing.T) {
		h := newMessenger(t)
		if h.Fail == nil {
			t.Skip("the harness causes no outage")
		}
		h.Fail(1)
		m := message(orders.SMS, phone)
		err := h.Messenger.Send(t.Context(), m)
		require.Error(t, err)
		require.NotErrorIs(t, err, healthlab.Invalid, "Invalid would end the attempts")
		require.NotContains(t, err.Error(), phone)
		require.NotContains(t, err.Error(), m.FirstName)
		require.NoError(t, h.Messenger.Send(t.Context(), m), "a message that failed is sent by the next call")
		require.Equal(t, 1, h.Sent(t, phone))
	})
	t.Run("Concurrent", func(t *testing.T) {
		h := newMessenger(t)
		m := message(orders.SMS, phone)
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { errs[i] = h.Messenger.Send(t.Context(), m) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, 1, h.Sent(t, phone), "a message is sent once, whatever the number of calls")
	})
}

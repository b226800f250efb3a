package orders_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// What a laboratory sends is stored once its access is recorded, and not before.
func TestReceive_storesLabResultsOnlyAfterTheAccessIsRecorded(t *testing.T) {
	var users []healthlab.UserID
	var fault error
	d := newReviewFixture(t, func(o *options) {
		o.Accessed = func(_ context.Context, _ healthlab.TeamID, user healthlab.UserID) error {
			users = append(users, user)
			return fault
		}
	})
	o := d.requisitioned("walk-in")
	require.Empty(t, users)

	fault = errors.New("not recorded")
	result, uncertain := d.report(o), d.report(o, bySample, func(m *exchange.Message) { m.SampleID = "another" })
	require.ErrorIs(t, d.Receive(t.Context(), result), fault)
	require.ErrorIs(t, d.Receive(t.Context(), uncertain), fault)
	require.Equal(t, orders.RequisitionCreated, d.get(o).LowLevel())
	require.Empty(t, d.waiting())

	fault, users = nil, nil
	require.NoError(t, d.Receive(t.Context(), result))
	require.NoError(t, d.Receive(t.Context(), uncertain))
	require.Equal(t, []healthlab.UserID{d.user, {}}, users)
	require.Len(t, d.waiting(), 1)
}

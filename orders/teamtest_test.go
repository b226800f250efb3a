package orders_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
)

func ownTest() orders.LabTestRequest {
	return orders.LabTestRequest{Name: "Own", Method: orders.WalkInTest, MarkerIDs: []int{11, 12, 11}}
}

func TestLabTestsThatWaitForApproval(t *testing.T) {
	tests := memory.New(nil).LabTests()
	d := newDesk(t, func(o *orders.Options) { o.LabTests, o.HoldLabTests = tests, true })
	made, err := d.CreateLabTest(t.Context(), d.team, ownTest())
	require.NoError(t, err)
	require.Equal(t, orders.LabTestPendingApproval, made.Status)
	require.Equal(t, []int{11, 12}, made.MarkerIDs(), "each once")

	order := d.asks("kit")
	order.OrderSet, order.LabTestID = nil, &made.ID
	_, err = d.Place(t.Context(), d.team, order)
	requireRule(t, err, orders.LabTestNotOrderable, healthlab.Precondition)
	yes, no := true, false
	_, err = d.ChangeLabTest(t.Context(), d.team, made.ID, orders.LabTestChange{Active: &yes})
	requireRule(t, err, orders.LabTestPending, healthlab.Precondition)
	same, err := d.ChangeLabTest(t.Context(), d.team, made.ID, orders.LabTestChange{Active: &no})
	require.NoError(t, err)
	require.Equal(t, orders.LabTestPendingApproval, same.Status, "it cannot be brought into use by way of out of use")

	approved, err := d.ApproveLabTest(t.Context(), d.team, made.ID)
	require.NoError(t, err)
	require.Equal(t, orders.LabTestActive, approved.Status)
	_, err = d.ApproveLabTest(t.Context(), healthlab.TeamID{UUID: id("other team")}, made.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	off, err := d.ChangeLabTest(t.Context(), d.team, made.ID, orders.LabTestChange{Active: &no})
	require.NoError(t, err)
	again, err := d.ApproveLabTest(t.Context(), d.team, made.ID)
	require.NoError(t, err)
	require.Equal(t, off, again, "approval does not bring a test back")
}

func TestLabTestWithoutAStore(t *testing.T) {
	d := newDesk(t)
	_, err := d.CreateLabTest(t.Context(), d.team, ownTest())
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

// A test whose markers have left the catalogue cannot be ordered.
func TestLabTestWhoseMarkerIsGone(t *testing.T) {
	tests := memory.New(nil).LabTests()
	d := newDesk(t, func(o *orders.Options) { o.LabTests = tests })
	made, err := d.CreateLabTest(t.Context(), d.team, ownTest())
	require.NoError(t, err)
	_, err = tests.UpdateLabTest(t.Context(), d.team, made.ID, func(t *orders.TeamTest) error {
		t.MarkerIDs = append(t.MarkerIDs, 987654)
		return nil
	})
	require.NoError(t, err)
	got, err := d.LabTest(t.Context(), d.team, nil, made.ID)
	require.NoError(t, err)
	require.Equal(t, orders.LabTestInactive, got.Status)
	require.False(t, got.IsActive)
}

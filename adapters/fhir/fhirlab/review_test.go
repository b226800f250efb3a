package fhirlab_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// A person decides on each report of an uncertain patient once, and an accepted result stays beside the laboratory's.
func TestReview_decidedResultsDoNotComeAgain(t *testing.T) {
	b := newBench(t)
	id, n := b.ana()
	item := func() exchange.UnmatchedResult {
		page, err := b.labs.Operations().Waiting(t.Context(), exchange.ResultQuery{Team: b.team})
		require.NoError(t, err)
		require.Len(t, page.Results, 1)
		return page.Results[0]
	}
	who, other := patient("p", "Roe", "Ana"), patient("p", "Other", "Ana")
	require.NoError(t, b.send(bundle("message", other, reported("one", n, "a"), observed("a", "4598", "10"))))
	_, err := b.labs.Operations().Reject(t.Context(), b.team, item().ID, nil)
	require.NoError(t, err)

	again := reported("one", n, "a", "b")
	again["issued"] = "2026-03-03T11:00:00Z"
	require.NoError(t, b.send(bundle("message", other, again, observed("a", "4598", "10"), observed("b", "7573", "20"))))
	require.Len(t, item().Markers, 1)
	require.Equal(t, "20", item().Markers[0].Result)
	_, err = b.labs.Operations().Accept(t.Context(), b.team, item().ID, exchange.AcceptRequest{OrderID: &id})
	require.NoError(t, err)
	require.Equal(t, "20\n", b.resultTexts(id))

	require.NoError(t, b.send(bundle("message", who, reported("two", n, "c"), observed("c", "4598", "30"))))
	require.Equal(t, "30\n20\n", b.resultTexts(id))
	o, err := b.service.Get(t.Context(), b.team, id)
	require.NoError(t, err)
	require.Equal(t, orders.Completed, o.LowLevel())
}

package orders_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func TestMerge_newerResultsReplaceOlderOnesByCode(t *testing.T) {
	found := func(slug, loinc, code, result string, read labresult.Interpretation) labresult.Result {
		r := labresult.Result{Slug: slug, Result: result, Interpretation: read}
		if loinc != "" {
			r.LOINC = &loinc
		}
		if code != "" {
			r.ProviderID = &code
		}
		return r
	}
	lost := func(slug string) labresult.Missing { return labresult.Missing{Slug: slug} }
	first := labresult.Report{
		Metadata: labresult.Metadata{SpecimenNumber: "1"},
		Results: []labresult.Result{found("a", "2345-7", "x", "1", labresult.Critical), found("b", "", "code", "2", labresult.Abnormal),
			found("c", "", "", "3", labresult.Normal)},
		MissingResults:    []labresult.Missing{lost("d"), lost("e")},
		SampleInformation: map[string]labresult.SampleData{"1": {}},
	}
	second := labresult.Report{
		Metadata:          labresult.Metadata{SpecimenNumber: "2"},
		Results:           []labresult.Result{found("other", "2345-7", "y", "10", labresult.Normal), found("d", "", "", "40", labresult.Normal)},
		MissingResults:    []labresult.Missing{lost("f"), lost("c")},
		SampleInformation: map[string]labresult.SampleData{"2": {}},
	}
	got := labresult.Merge(labresult.Final, []labresult.Report{first, second})
	var texts []string
	for _, r := range got.Results {
		texts = append(texts, r.Result)
	}
	require.Equal(t, []string{"10", "2", "3", "40"}, texts)
	require.Equal(t, []labresult.Missing{lost("f"), lost("c"), lost("e")}, got.MissingResults)
	require.Equal(t, "2", got.Metadata.SpecimenNumber)
	require.Equal(t, labresult.Final, got.Metadata.Status)
	require.Equal(t, labresult.Abnormal, *got.Metadata.Interpretation)
	require.Len(t, got.SampleInformation, 2)
	require.Len(t, first.Results, 3, "the parts are as they were")
	require.Equal(t, "1", first.Results[0].Result)
	got = labresult.Merge(labresult.Partial, []labresult.Report{first})
	require.Equal(t, labresult.Partial, got.Metadata.Status)
}

func TestTransactionResults_joinTheOrderAndItsRedraw(t *testing.T) {
	d := newFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
	d.settings.Redraws = true
	o := d.placed("walk-in", withOutcome("missing"))
	_, err := d.TransactionResults(t.Context(), d.team, o.OrderTransaction.ID)
	requireRule(t, err, orders.ResultNotFound, healthlab.NotFound)
	d.advance(day)
	got, err := d.TransactionResults(t.Context(), d.team, o.OrderTransaction.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Partial, got.Metadata.Status)
	redraw := d.get(o).OrderTransaction.Orders[1].ID
	_, err = d.Simulate(t.Context(), d.team, redraw, "", orders.SimulationFlags{})
	require.NoError(t, err)
	got, err = d.TransactionResults(t.Context(), d.team, o.OrderTransaction.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Final, got.Metadata.Status)
	require.Len(t, got.Results, 3)
	require.Empty(t, got.MissingResults)
	_, err = d.TransactionResults(t.Context(), d.team, orders.TransactionID{UUID: id("nothing")})
	requireRule(t, err, orders.TransactionNotFound, healthlab.NotFound)
}

// vanishing is a store of orders in which one is gone as soon as it was listed.
type vanishing struct {
	orders.Store
	gone orders.OrderID
}

func (v vanishing) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	if id == v.gone {
		return orders.Record{}, healthlab.NotFound
	}
	return v.Store.Update(ctx, team, id, change)
}

// Orders that are erased during a resend of the latest events are left out.
func TestResend_leavesOutOrdersErasedMeanwhile(t *testing.T) {
	d := newFixture(t)
	var all []orders.OrderID
	for range 3 {
		all = append(all, d.placed("kit").ID)
		d.advance(time.Second)
	}
	s, err := orders.New(vanishing{d.store.Orders(), all[1]}, people.UsersFunc(d.hasUser), book(t), &d.opts.orderOptions)
	require.NoError(t, err)
	got, err := s.Resend(t.Context(), d.team, orders.ResendRequest{OrderIDs: all})
	require.NoError(t, err)
	require.Equal(t, []orders.OrderID{all[0], all[2]}, got)
}

func TestResend_repeatsTheLatestEventOfSelectedOrders(t *testing.T) {
	d := newFixture(t)
	old := d.placed("walk-in", withOutcome("never_again"))
	d.advance(day)
	fresh := d.placed("kit")
	at := func(by time.Duration) *healthlab.Time { return ptr(healthlab.At(d.now().Add(by))) }
	ids := func(list ...orders.Order) []orders.OrderID {
		out := []orders.OrderID{}
		for _, o := range list {
			out = append(out, o.ID)
		}
		return out
	}
	for _, tc := range []struct {
		name string
		req  orders.ResendRequest
		want []orders.OrderID
	}{
		{"named", orders.ResendRequest{OrderIDs: append(ids(fresh, old), orders.OrderID{UUID: id("nothing")})}, ids(old, fresh)},
		{"since", orders.ResendRequest{StartAt: at(0)}, ids(fresh)},
		{"window", orders.ResendRequest{StartAt: at(-day), EndAt: at(-day)}, ids(old)},
		{"both", orders.ResendRequest{OrderIDs: ids(old), StartAt: at(0)}, ids()},
		{"widest window", orders.ResendRequest{StartAt: at(-60 * day)}, ids(old, fresh)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := d.get(fresh)
			got, err := d.Resend(t.Context(), d.team, tc.req)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			require.Equal(t, before, d.get(fresh))
		})
	}
	messages := d.messages(fresh)
	require.Len(t, messages, 4)
	require.Equal(t, orders.EventOrderCreated, messages[3].Type, "it has one event only")
	require.Equal(t, orders.EventOrderUpdated, d.messages(old)[4].Type)
	for _, bad := range []orders.ResendRequest{{}, {EndAt: at(0)}} {
		_, err := d.Resend(t.Context(), d.team, bad)
		requireRule(t, err, orders.ResendSelectionMissing, healthlab.Precondition)
	}
	for _, bad := range []orders.ResendRequest{{StartAt: at(time.Second)}, {StartAt: at(-60*day - time.Microsecond)}} {
		_, err := d.Resend(t.Context(), d.team, bad)
		requireRule(t, err, orders.ResendWindowInvalid, healthlab.Precondition)
	}
}

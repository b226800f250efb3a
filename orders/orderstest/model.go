package orderstest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// RunStoreModel compares a store of orders with a plain map under random sequences of
// calls. Every sequence has a fresh team, so one store serves them all.
func RunStoreModel(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	s := newOrdersT(newStore(t))
	rapid.Check(t, func(rt *rapid.T) {
		m := &ordersModel{t: t, store: s, team: healthlab.TeamID{UUID: uuid.New()}, kept: map[orders.OrderID]*orders.Record{}}
		rt.Repeat(map[string]func(*rapid.T){
			"insert": m.insert,
			"apply":  m.apply,
			"sample": m.sample,
			"list":   m.list,
			"":       m.check,
		})
	})
}

type ordersModel struct {
	t     *testing.T
	store *ordersT
	team  healthlab.TeamID
	kept  map[orders.OrderID]*orders.Record
	ids   []orders.OrderID
	calls int
}

func (m *ordersModel) insert(t *rapid.T) {
	r := newRecord("", "")
	r.ID, r.TeamID = orders.OrderID{UUID: uuid.New()}, m.team
	r.OrderTransaction.ID = orders.TransactionID{UUID: uuid.New()}
	r.CreatedAt = healthlab.At(noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "hours")) * time.Hour))
	method := rapid.SampledFrom(catalogue.CollectionMethods()).Draw(t, "method")
	r.Details = orders.NewDetails(method, conformance.Named("details"), conformance.Named("shipment"), r.CreatedAt)
	if len(m.ids) > 0 && rapid.Bool().Draw(t, "same id") {
		r.ID = rapid.SampledFrom(m.ids).Draw(t, "id")
		_, err := m.store.Insert(m.t.Context(), r, begin)
		require.ErrorIs(t, err, healthlab.Conflict)
		return
	}
	if len(m.ids) > 0 && rapid.Bool().Draw(t, "join") {
		r.OrderTransaction.ID = m.kept[rapid.SampledFrom(m.ids).Draw(t, "joined")].OrderTransaction.ID
	}
	stored, err := m.store.Insert(m.t.Context(), r, begin)
	require.NoError(t, err)
	m.ids = append(m.ids, r.ID)
	m.kept[r.ID] = &stored
}

func (m *ordersModel) apply(t *rapid.T) {
	if len(m.ids) == 0 {
		return
	}
	id := rapid.SampledFrom(m.ids).Draw(t, "order")
	on := rapid.SampledFrom(orders.Triggers()).Draw(t, "trigger")
	want := *m.kept[id]
	_, ok := orders.Next(want.Method(), want.LowLevel(), on, want.Facts())
	got, err := m.store.Update(m.t.Context(), m.team, id, applies(on))
	if !ok {
		require.ErrorIs(t, err, healthlab.Precondition)
		return
	}
	require.NoError(t, err)
	require.Equal(t, want.Revision+1, got.Revision)
	require.Equal(t, want.Events, got.Events[:len(want.Events)])
	require.Len(t, got.Events, len(want.Events)+1)
	m.kept[id] = &got
}

func (m *ordersModel) sample(t *rapid.T) {
	if len(m.ids) == 0 {
		return
	}
	id := rapid.SampledFrom(m.ids).Draw(t, "order")
	// Sample ids are unique in a store, so each sequence of calls has its own.
	sample := m.team.String() + rapid.SampledFrom([]string{"A1", "a1", "A2"}).Draw(t, "sample")
	taken := slices.ContainsFunc(m.ids, func(other orders.OrderID) bool {
		s := m.kept[other].SampleID
		return other != id && s != nil && *s == sample
	})
	got, err := m.store.Update(m.t.Context(), m.team, id, edits(func(r *orders.Record) { r.SampleID = &sample }))
	if taken {
		require.ErrorIs(t, err, healthlab.Conflict)
		return
	}
	require.NoError(t, err)
	m.kept[id] = &got
	found, err := m.store.FindSample(m.t.Context(), m.team, sample)
	require.NoError(t, err)
	require.Equal(t, id, found.ID)
}

func (m *ordersModel) list(t *rapid.T) {
	q := orders.Query{
		Team: m.team, Page: rapid.IntRange(1, 3).Draw(t, "page"), Size: rapid.IntRange(1, 4).Draw(t, "size"),
		Sort:      rapid.SampledFrom([]orders.SortKey{"", orders.SortCreatedAt, orders.SortLastStatus}).Draw(t, "sort"),
		Direction: rapid.SampledFrom([]catalogue.Direction{"", catalogue.Ascending, catalogue.Descending}).Draw(t, "direction"),
		Methods:   rapid.SliceOfN(rapid.SampledFrom(catalogue.CollectionMethods()), 0, 2).Draw(t, "methods"),
	}
	q, err := q.Normal()
	require.NoError(t, err)
	var want []orders.OrderID
	for _, id := range m.ids {
		if q.Match(&m.kept[id].Order) {
			want = append(want, id)
		}
	}
	slices.SortFunc(want, func(a, b orders.OrderID) int {
		if q.Less(&m.kept[a].Order, &m.kept[b].Order) {
			return -1
		}
		return 1
	})
	page, err := m.store.List(m.t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, len(want), page.Total)
	first := min((q.Page-1)*q.Size, len(want))
	got := []orders.OrderID{}
	for _, o := range page.Orders {
		got = append(got, o.ID)
	}
	require.Equal(t, append([]orders.OrderID{}, want[first:min(first+q.Size, len(want))]...), got)
}

// check does nothing in three of four calls. In the fourth it requires that each order of the model is stored as the
// model has it, with one event for each change.
func (m *ordersModel) check(t *rapid.T) {
	if m.calls++; m.calls%4 != 0 {
		return
	}
	for _, id := range m.ids {
		got, err := m.store.Get(m.t.Context(), m.team, id)
		require.NoError(t, err)
		want := *m.kept[id]
		members := []orders.TransactionMember{}
		for _, other := range m.ids {
			if k := m.kept[other]; k.OrderTransaction.ID == want.OrderTransaction.ID {
				members = append(members, k.Member())
			}
		}
		want.OrderTransaction = orders.NewTransaction(want.OrderTransaction.ID, members)
		require.Equal(t, asJSON(m.t, want), asJSON(m.t, got))
		events := m.store.Events(m.t, m.team, id.String())
		require.Len(t, events, len(got.Events), "one event for every change, and none without")
		for i, e := range events {
			require.Equal(t, i+2, strings.Count(string(e.Body), `"status_detail"`))
		}
	}
}

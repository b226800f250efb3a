package orderstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/webhook"
)

// StoreHarness is a fresh, empty store for the suite of orders.
type StoreHarness struct {
	// Orders is the interface under test.
	Orders orders.Store
	// Messages lists the events that Orders wrote. It reads the same store.
	Messages webhook.Log
	// SetClock sets the store's clock to an instant, at which it stops.
	SetClock func(now time.Time)
}

// ordersT is a store under test that records the events passed to it.
type ordersT struct {
	orders.Store
	messages webhook.Log
	setClock func(now time.Time)
	mu       sync.Mutex
	given    map[string][]uuid.UUID // passed events by key
}

func newOrdersT(h StoreHarness) *ordersT {
	h.SetClock(noon)
	return &ordersT{Store: h.Orders, messages: h.Messages, setClock: h.SetClock, given: map[string][]uuid.UUID{}}
}

func (s *ordersT) watched(change orders.Change) orders.Change {
	return func(r *orders.Record) ([]healthlab.Event, error) {
		events, err := change(r)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range events {
			if !slices.Contains(s.given[e.Key], e.ID) { // a change may run more than once
				s.given[e.Key] = append(s.given[e.Key], e.ID)
			}
		}
		return events, err
	}
}

func (s *ordersT) Insert(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	return s.Store.Insert(ctx, r, s.watched(change))
}

func (s *ordersT) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	return s.Store.Update(ctx, team, id, s.watched(change))
}

func (s *ordersT) InsertAfter(ctx context.Context, parent orders.OrderID, child orders.Record, change orders.PairChange) (orders.Record, orders.Record, error) {
	return s.Store.InsertAfter(ctx, parent, child, func(p, c *orders.Record) ([]healthlab.Event, error) {
		return s.watched(func(*orders.Record) ([]healthlab.Event, error) { return change(p, c) })(p)
	})
}

// Events returns the written events of a key, in the order of their Seq.
func (s *ordersT) Events(t require.TestingT, team healthlab.TeamID, key string) []webhook.Message {
	var out []webhook.Message
	for _, id := range s.given[key] {
		m, err := s.messages.Message(context.Background(), team, id)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, key, m.Key)
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b webhook.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

func requireRecord(t *testing.T, want, got orders.Record) {
	t.Helper()
	require.Equal(t, asJSON(t, want), asJSON(t, got))
}

// RunStore runs the contract tests of [orders.Store]. newStore returns a new, empty store for each case and registers
// its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for _, group := range []struct {
		name  string
		cases map[string]func(*testing.T, *ordersT)
	}{
		{"Insert", orderInsertCases}, {"Get", orderGetCases}, {"Update", orderUpdateCases},
		{"Transaction", orderTransactionCases}, {"FindSample", orderSampleCases},
		{"Claim", orderClaimCases}, {"Feed", orderFeedCases}, {"List", orderListCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for name, run := range group.cases {
				t.Run(name, func(t *testing.T) { run(t, newOrdersT(newStore(t))) })
			}
		})
	}
}

var orderInsertCases = map[string]func(*testing.T, *ordersT){
	"FirstRevision": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		require.EqualValues(t, 1, r.Revision)
		require.Equal(t, orders.Ordered, r.LowLevel())
		require.Positive(t, r.LastEvent.ID)
	},
	"Duplicate": func(t *testing.T, s *ordersT) {
		s.place(t, newRecord("a", "1"))
		_, err := s.Insert(t.Context(), newRecord("b", "1"), begin)
		require.ErrorIs(t, err, healthlab.Conflict)
	},
	"SampleIDTaken": func(t *testing.T, s *ordersT) {
		one, two := newRecord("a", "1"), newRecord("b", "2")
		one.SampleID, two.SampleID = new("A1"), new("A1")
		s.place(t, one)
		_, err := s.Insert(t.Context(), two, begin)
		require.ErrorIs(t, err, healthlab.Conflict)
		two.SampleID = new("a1")
		s.place(t, two) // differs in case, so it is another one
	},
	"NoTeamOrID": func(t *testing.T, s *ordersT) {
		for _, r := range []orders.Record{{}, {Order: orders.Order{ID: orderID("1")}}, {Order: orders.Order{TeamID: conformance.Team("a")}}} {
			_, err := s.Insert(t.Context(), r, begin)
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	},
	"NULRefused": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.Notes = new("a\x00b")
		_, err := s.Insert(t.Context(), r, begin)
		require.ErrorIs(t, err, healthlab.Invalid)
		_, err = s.Get(t.Context(), r.TeamID, r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		r.Notes = new("a\xffb")
		_, err = s.Insert(t.Context(), r, begin)
		require.ErrorIs(t, err, healthlab.Invalid, "not UTF-8")
		r.Notes = new(`a\u0000b\ufffd` + "\ufffd") // valid text that looks like an escaped NUL
		require.Equal(t, r.Notes, s.place(t, r).Notes)
	},
	"MarkersCanBeOrdered": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.LabTest.Markers = []catalogue.Marker{{ID: 1, IsOrderable: new(false)}, {ID: 2}}
		s.place(t, r)
		got, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		require.Equal(t, []catalogue.Marker{{ID: 1, IsOrderable: new(false)}, {ID: 2, IsOrderable: new(true)}}, got.LabTest.Markers)
		page, err := s.List(t.Context(), orders.Query{Team: r.TeamID})
		require.NoError(t, err)
		require.Equal(t, got.LabTest.Markers, page.Orders[0].LabTest.Markers)
		again, err := s.Update(t.Context(), r.TeamID, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			require.Equal(t, got.LabTest.Markers, r.LabTest.Markers)
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, got.LabTest.Markers, again.LabTest.Markers)
	},
	"ErrorWritesNothing": func(t *testing.T, s *ordersT) {
		own := errors.New("own")
		r := newRecord("a", "1")
		_, err := s.Insert(t.Context(), r, func(r *orders.Record) ([]healthlab.Event, error) {
			events, _ := begin(r)
			return events, own
		})
		require.ErrorIs(t, err, own)
		_, err = s.Get(t.Context(), r.TeamID, r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Empty(t, s.Events(t, r.TeamID, r.ID.String()))
	},
	"ContextEnded": func(t *testing.T, s *ordersT) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := newRecord("a", "1")
		_, err := s.Insert(ctx, r, begin)
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Get(t.Context(), r.TeamID, r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"EventsAreWritten": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		_, err := s.Update(t.Context(), r.TeamID, r.ID, applies(orders.LabAccepted, orders.PartialResult))
		require.NoError(t, err)
		events := s.Events(t, r.TeamID, r.ID.String())
		require.Len(t, events, 3)
		require.Equal(t, orders.EventOrderCreated, events[0].Type)
		require.Equal(t, orders.EventOrderUpdated, events[2].Type)
		for i := 1; i < len(events); i++ {
			require.Greater(t, events[i].Seq, events[i-1].Seq)
		}
		require.Contains(t, string(events[2].Body), `"sample_with_lab.walk_in_test.partial_results"`)
		require.NotContains(t, string(events[1].Body), `partial_results`, "as it was then")
	},
	"EventIDsAreUniqueInTheTeam": func(t *testing.T, s *ordersT) {
		seen := map[int64]bool{}
		for i := range 5 {
			r := s.place(t, newRecord("a", fmt.Sprint(i)))
			for _, on := range []orders.Trigger{orders.LabAccepted, orders.PartialResult, orders.PartialResult} {
				var err error
				r, err = s.Update(t.Context(), r.TeamID, r.ID, applies(on))
				require.NoError(t, err)
			}
			for j, e := range r.Events {
				require.False(t, seen[e.ID])
				seen[e.ID] = true
				require.True(t, j == 0 || e.ID > r.Events[j-1].ID)
			}
		}
	},
}

var orderGetCases = map[string]func(*testing.T, *ordersT){
	"RoundTrip": func(t *testing.T, s *ordersT) {
		for _, r := range []orders.Record{fullRecord("a", "1"), newRecord("a", "2")} {
			stored := s.place(t, r)
			got, err := s.Get(t.Context(), r.TeamID, r.ID)
			require.NoError(t, err)
			requireRecord(t, stored, got)
			_, err = begin(&r)
			require.NoError(t, err)
			r.Revision = 1
			// Only the event ids that the store assigns may differ.
			r.NextEventID, got.NextEventID, got.CriticalHistory = 0, 0, nil
			r.Events[0].ID, r.LastEvent.ID = got.LastEvent.ID, got.LastEvent.ID
			requireRecord(t, r, got)
		}
	},
	"NotFound": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		_, err := s.Get(t.Context(), r.TeamID, orderID("2"))
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"OtherTeam": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		_, err := s.Get(t.Context(), conformance.Team("b"), r.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"NobodyElsesCopy": func(t *testing.T, s *ordersT) {
		r := fullRecord("a", "1")
		stored := s.place(t, r)
		want := asJSON(t, stored)
		for _, mine := range []orders.Record{r, stored} {
			*mine.SampleID, mine.ICDCodes[0], mine.Messages[0] = "changed", "changed", "changed"
			*mine.PatientDetails.FirstName = "changed"
			mine.LabTest.Markers[0].Name = "changed"
			mine.Results.Results[0].Result = "changed"
			mine.Results.SampleInformation["more"] = labresult.SampleData{}
			*mine.Details.Testkit.Shipment.Notes = "changed"
		}
		got, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		require.Equal(t, want, asJSON(t, got))
	},
}

var orderUpdateCases = map[string]func(*testing.T, *ordersT){
	"StoreTime": func(t *testing.T, s *ordersT) {
		var seen [4]time.Time
		sees := func(i int) orders.Change { return edits(func(r *orders.Record) { seen[i] = r.StoreTime }) }
		r, err := s.Insert(t.Context(), newRecord("a", "1"), sees(0))
		require.NoError(t, err)
		s.setClock(noon.Add(time.Hour))
		kept, err := s.Update(t.Context(), r.TeamID, r.ID, sees(1))
		require.NoError(t, err)
		s.setClock(noon.Add(2 * time.Hour))
		_, _, err = s.InsertAfter(t.Context(), r.ID, newRecord("a", "2"), func(parent, child *orders.Record) ([]healthlab.Event, error) {
			seen[2], seen[3] = parent.StoreTime, child.StoreTime
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, [4]time.Time{noon, noon.Add(time.Hour), noon.Add(2 * time.Hour), noon.Add(2 * time.Hour)}, seen)
		require.Zero(t, r.StoreTime)
		require.Zero(t, kept.StoreTime)
	},
	"WritesAndCounts": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		for i := range 3 {
			got, err := s.Update(t.Context(), r.TeamID, r.ID, edits(func(r *orders.Record) { r.Notes = new(fmt.Sprint(i)) }))
			require.NoError(t, err)
			require.EqualValues(t, i+2, got.Revision)
			again, err := s.Get(t.Context(), r.TeamID, r.ID)
			require.NoError(t, err)
			requireRecord(t, got, again)
			require.Equal(t, fmt.Sprint(i), *again.Notes)
		}
	},
	"ErrorWritesNothing": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		own := errors.New("own")
		_, err := s.Update(t.Context(), r.TeamID, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			events, err := applies(orders.LabAccepted)(r)
			require.NoError(t, err)
			return events, own
		})
		require.ErrorIs(t, err, own)
		got, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		requireRecord(t, r, got)
		require.Len(t, s.Events(t, r.TeamID, r.ID.String()), 1)
	},
	"OtherTeam": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		_, err := s.Update(t.Context(), conformance.Team("b"), r.ID, applies(orders.LabAccepted))
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.Update(t.Context(), r.TeamID, orderID("2"), applies(orders.LabAccepted))
		require.ErrorIs(t, err, healthlab.NotFound)
		got, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		requireRecord(t, r, got)
	},
	"KeepsItsIdentity": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		for _, edit := range []func(*orders.Record){
			func(r *orders.Record) { r.ID = orderID("2") },
			func(r *orders.Record) { r.TeamID = conformance.Team("b") },
			func(r *orders.Record) { r.OrderTransaction.ID = journey("2") },
		} {
			_, err := s.Update(t.Context(), r.TeamID, r.ID, edits(edit))
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	},
	"SampleIDTaken": func(t *testing.T, s *ordersT) {
		one := newRecord("a", "1")
		one.SampleID = new("A1")
		s.place(t, one)
		two := s.place(t, newRecord("a", "2"))
		take := edits(func(r *orders.Record) { r.SampleID = new("A1") })
		_, err := s.Update(t.Context(), two.TeamID, two.ID, take)
		require.ErrorIs(t, err, healthlab.Conflict)
		_, err = s.Update(t.Context(), one.TeamID, one.ID, edits(func(r *orders.Record) { r.SampleID = new("A2") }))
		require.NoError(t, err)
		_, err = s.Update(t.Context(), two.TeamID, two.ID, take)
		require.NoError(t, err, "nobody has it any more")
	},
	"NoLostUpdates": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		_, err := s.Update(t.Context(), r.TeamID, r.ID, applies(orders.LabAccepted))
		require.NoError(t, err)
		const writers = 16
		var wg sync.WaitGroup
		faults := make([]error, writers)
		for i := range writers {
			wg.Go(func() {
				_, faults[i] = s.Update(t.Context(), r.TeamID, r.ID, applies(orders.PartialResult))
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(faults...))
		got, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		require.Len(t, got.Events, writers+2)
		require.EqualValues(t, writers+2, got.Revision)
		events := s.Events(t, r.TeamID, r.ID.String())
		require.Len(t, events, writers+2)
		for i, e := range events {
			require.Equal(t, i+1, strings.Count(string(e.Body), `"status_detail"`)-1, "events in the order of the changes")
		}
	},
	"ContextEnded": func(t *testing.T, s *ordersT) {
		r := s.place(t, newRecord("a", "1"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Update(ctx, r.TeamID, r.ID, applies(orders.LabAccepted))
		require.ErrorIs(t, err, context.Canceled)
		got, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		requireRecord(t, r, got)
	},
	"HandsOutItsOwnCopy": func(t *testing.T, s *ordersT) {
		r := s.place(t, fullRecord("a", "1"))
		var leaked *orders.Record
		got, err := s.Update(t.Context(), r.TeamID, r.ID, edits(func(r *orders.Record) { leaked = r }))
		require.NoError(t, err)
		want := asJSON(t, got)
		*leaked.Notes, leaked.ICDCodes[0] = "changed", "changed"
		again, err := s.Get(t.Context(), r.TeamID, r.ID)
		require.NoError(t, err)
		require.Equal(t, want, asJSON(t, again))
	},
}

var orderTransactionCases = map[string]func(*testing.T, *ordersT){
	"ShowsAllMembersAsTheyAre": func(t *testing.T, s *ordersT) {
		one := s.place(t, newRecord("a", "1"))
		two := newRecord("a", "2")
		two.Origin, two.CreatedAt = orders.OriginRedraw, healthlab.At(noon.Add(time.Hour))
		two.OrderTransaction = orders.OrderTransaction{ID: journey("1"),
			Orders: []orders.TransactionMember{{ID: two.ID, ParentID: &one.ID}}}
		placed := s.place(t, two)
		require.Equal(t, []orders.OrderID{one.ID, two.ID}, memberIDs(placed.OrderTransaction))
		_, err := s.Update(t.Context(), one.TeamID, one.ID, applies(orders.CancelRequested))
		require.NoError(t, err)
		got, err := s.Get(t.Context(), two.TeamID, two.ID)
		require.NoError(t, err)
		require.Equal(t, orders.TransactionActive, got.OrderTransaction.Status)
		require.Equal(t, orders.Cancelled, *got.OrderTransaction.Orders[0].LowLevelStatus)
		require.Nil(t, got.OrderTransaction.Orders[0].ParentID)
		require.Equal(t, one.ID, *got.OrderTransaction.Orders[1].ParentID)
		_, err = s.Update(t.Context(), two.TeamID, two.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			require.Equal(t, orders.Cancelled, *r.OrderTransaction.Orders[0].LowLevelStatus, "seen by the change, too")
			return applies(orders.CancelRequested)(r)
		})
		require.NoError(t, err)
		first, err := s.Get(t.Context(), one.TeamID, one.ID)
		require.NoError(t, err)
		require.Equal(t, orders.TransactionCancelled, first.OrderTransaction.Status)
	},
	"InsertAfter": func(t *testing.T, s *ordersT) {
		one := s.place(t, newRecord("a", "1"))
		two := newRecord("a", "2")
		two.Origin, two.CreatedAt = orders.OriginRecreation, healthlab.At(noon.Add(time.Hour))
		pair := func(parent, child *orders.Record) ([]healthlab.Event, error) {
			require.Equal(t, one.OrderTransaction.ID, child.OrderTransaction.ID)
			require.Equal(t, one.ID, *child.Parent())
			events, err := applies(orders.CancelRequested)(parent)
			require.NoError(t, err)
			more, err := begin(child)
			return append(events, more...), err
		}
		parent, child, err := s.InsertAfter(t.Context(), one.ID, two, pair)
		require.NoError(t, err)
		require.EqualValues(t, 2, parent.Revision)
		require.EqualValues(t, 1, child.Revision)
		require.NotEqual(t, parent.LastEvent.ID, child.LastEvent.ID)
		require.Equal(t, []orders.OrderID{one.ID, two.ID}, memberIDs(parent.OrderTransaction))
		require.Equal(t, parent.OrderTransaction, child.OrderTransaction)
		for _, want := range []orders.Record{parent, child} {
			got, err := s.Get(t.Context(), want.TeamID, want.ID)
			require.NoError(t, err)
			requireRecord(t, want, got)
		}
		next := s.place(t, newRecord("a", "3"))
		require.NotContains(t, []int64{parent.LastEvent.ID, child.LastEvent.ID}, next.LastEvent.ID)
		_, _, err = s.InsertAfter(t.Context(), one.ID, two, pair)
		require.ErrorIs(t, err, healthlab.Conflict)
	},
	"InsertAfterInItsOwnTransaction": func(t *testing.T, s *ordersT) {
		one := s.place(t, newRecord("a", "1"))
		two := newRecord("a", "2")
		two.Origin = orders.OriginRecreation
		own := journey("own")
		parent, child, err := s.InsertAfter(t.Context(), one.ID, two, func(parent, child *orders.Record) ([]healthlab.Event, error) {
			events, err := begin(child)
			child.OrderTransaction = orders.NewTransaction(own, []orders.TransactionMember{child.Member()})
			parent.ReplacedBy = child.ID
			return events, err
		})
		require.NoError(t, err)
		require.Equal(t, own, child.OrderTransaction.ID)
		require.Equal(t, []orders.OrderID{two.ID}, memberIDs(child.OrderTransaction))
		require.Equal(t, one.ID, *child.Parent())
		require.Equal(t, two.ID, parent.ReplacedBy)
		require.Equal(t, []orders.OrderID{one.ID}, memberIDs(parent.OrderTransaction))
		for _, want := range []orders.Record{parent, child} {
			got, err := s.Get(t.Context(), want.TeamID, want.ID)
			require.NoError(t, err)
			requireRecord(t, want, got)
		}
		page, err := s.List(t.Context(), orders.Query{Team: one.TeamID, Transaction: own, Page: 1, Size: 10, Sort: orders.SortCreatedAt, Direction: catalogue.Ascending})
		require.NoError(t, err)
		require.Len(t, page.Orders, 1)
	},
	"InsertAfterAllOrNothing": func(t *testing.T, s *ordersT) {
		one := s.place(t, newRecord("a", "1"))
		two := newRecord("a", "2")
		own := errors.New("own")
		_, _, err := s.InsertAfter(t.Context(), one.ID, two, func(parent, child *orders.Record) ([]healthlab.Event, error) {
			events, _ := applies(orders.CancelRequested)(parent)
			more, _ := begin(child)
			return append(events, more...), own
		})
		require.ErrorIs(t, err, own)
		taken := newRecord("b", "3")
		taken.SampleID = new("A1")
		s.place(t, taken)
		two.SampleID = new("A1")
		_, _, err = s.InsertAfter(t.Context(), one.ID, two, func(parent, child *orders.Record) ([]healthlab.Event, error) {
			events, _ := applies(orders.CancelRequested)(parent)
			more, _ := begin(child)
			return append(events, more...), nil
		})
		require.ErrorIs(t, err, healthlab.Conflict)
		got, err := s.Get(t.Context(), one.TeamID, one.ID)
		require.NoError(t, err)
		requireRecord(t, one, got)
		_, err = s.Get(t.Context(), two.TeamID, two.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Len(t, s.Events(t, one.TeamID, one.ID.String()), 1)
	},
	"InsertAfterOfAnotherTeam": func(t *testing.T, s *ordersT) {
		one := s.place(t, newRecord("a", "1"))
		_, _, err := s.InsertAfter(t.Context(), one.ID, newRecord("b", "2"), func(_, child *orders.Record) ([]healthlab.Event, error) {
			return begin(child)
		})
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"OneAfterAnother": func(t *testing.T, s *ordersT) {
		for round := range 8 {
			ids := []string{fmt.Sprint(round, "a"), fmt.Sprint(round, "b")}
			for _, id := range ids {
				r := newRecord("a", id)
				r.OrderTransaction.ID = journey(fmt.Sprint(round))
				s.place(t, r)
			}
			// Each change cancels its order unless the other order is cancelled.
			var wg sync.WaitGroup
			faults := make([]error, len(ids))
			for i, id := range ids {
				wg.Go(func() {
					_, faults[i] = s.Update(t.Context(), conformance.Team("a"), orderID(id), func(r *orders.Record) ([]healthlab.Event, error) {
						for _, m := range r.OrderTransaction.Orders {
							if *m.LowLevelStatus == orders.Cancelled {
								return nil, nil
							}
						}
						return applies(orders.CancelRequested)(r)
					})
				})
			}
			wg.Wait()
			require.NoError(t, errors.Join(faults...))
			r, err := s.Get(t.Context(), conformance.Team("a"), orderID(ids[0]))
			require.NoError(t, err)
			cancelled := 0
			for _, m := range r.OrderTransaction.Orders {
				if *m.LowLevelStatus == orders.Cancelled {
					cancelled++
				}
			}
			require.Equal(t, 1, cancelled)
		}
	},
	"TeamOnly": func(t *testing.T, s *ordersT) {
		one, two := newRecord("a", "1"), newRecord("b", "2")
		two.OrderTransaction.ID = one.OrderTransaction.ID
		s.place(t, one)
		require.Equal(t, []orders.OrderID{two.ID}, memberIDs(s.place(t, two).OrderTransaction))
	},
}

func memberIDs(t orders.OrderTransaction) []orders.OrderID {
	out := make([]orders.OrderID, 0, len(t.Orders))
	for _, m := range t.Orders {
		out = append(out, m.ID)
	}
	return out
}

var orderSampleCases = map[string]func(*testing.T, *ordersT){
	"Found": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.SampleID = new("A1")
		stored := s.place(t, r)
		s.place(t, newRecord("a", "2"))
		got, err := s.FindSample(t.Context(), r.TeamID, "A1")
		require.NoError(t, err)
		requireRecord(t, stored, got)
	},
	"ByteForByteAndTeamOnly": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.SampleID = new("A1")
		s.place(t, r)
		for _, other := range []string{"a1", "A1 ", "0A1", "", "Á1"} {
			_, err := s.FindSample(t.Context(), r.TeamID, other)
			require.ErrorIs(t, err, healthlab.NotFound)
		}
		_, err := s.FindSample(t.Context(), conformance.Team("b"), "A1")
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"NULRefused": func(t *testing.T, s *ordersT) {
		for _, no := range []string{"A\x001", "A\xff1"} {
			_, err := s.FindSample(t.Context(), conformance.Team("a"), no)
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	},
}

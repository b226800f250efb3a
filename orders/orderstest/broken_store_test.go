package orderstest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

// brokenStores are stores that break one promise each.
var brokenStores = []conformance.Broken{
	{Name: "claims later work without a lease", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claimNotifications = func(ctx context.Context, n int, now time.Time, _ time.Duration) ([]orders.Record, error) {
			return b.Store.ClaimNotifications(ctx, n, now, 0)
		}
	}), Subtest: "Claim/Notifications"},
	{Name: "tells the lab of later work", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claimNotifications = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			due, _ := b.Store.Claim(ctx, n, now, lease)
			more, err := b.Store.ClaimNotifications(ctx, n, now, lease)
			return append(due, more...), err
		}
	}), Subtest: "Claim/Notifications"},
	{Name: "sees other teams' orders", Suite: spoiltOrders(func(b *brokenOrders) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			return b.Store.Get(ctx, b.owner(id, team), id)
		}
	}), Subtest: "Get/OtherTeam"},
	{Name: "says nothing of what can be ordered", Suite: spoiltOrders(func(b *brokenOrders) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			r, err := b.Store.Get(ctx, team, id)
			for i := range r.LabTest.Markers {
				if *r.LabTest.Markers[i].IsOrderable {
					r.LabTest.Markers[i].IsOrderable = nil
				}
			}
			return r, err
		}
	}), Subtest: "Insert/MarkersCanBeOrdered"},
	{Name: "edits other teams' orders", Suite: spoiltOrders(func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			return b.Store.Update(ctx, b.owner(id, team), id, c)
		}
	}), Subtest: "Update/OtherTeam"},
	{Name: "finds other teams' samples", Suite: spoiltOrders(func(b *brokenOrders) {
		b.findSample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			for _, other := range b.owners {
				if r, err := b.Store.FindSample(ctx, other, sample); err == nil {
					return r, nil
				}
			}
			return b.Store.FindSample(ctx, team, sample)
		}
	}), Subtest: "FindSample/ByteForByteAndTeamOnly"},
	{Name: "folds the case of sample ids", Suite: spoiltOrders(func(b *brokenOrders) {
		b.findSample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			return b.Store.FindSample(ctx, team, strings.ToUpper(sample))
		}
	}), Subtest: "FindSample/ByteForByteAndTeamOnly"},
	{Name: "cuts blanks off sample ids", Suite: spoiltOrders(func(b *brokenOrders) {
		b.findSample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			return b.Store.FindSample(ctx, team, strings.TrimSpace(sample))
		}
	}), Subtest: "FindSample/ByteForByteAndTeamOnly"},
	{Name: "looks for sample ids that nothing has", Suite: spoiltOrders(func(b *brokenOrders) {
		b.findSample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			return b.Store.FindSample(ctx, team, strings.ReplaceAll(strings.ToValidUTF8(sample, ""), "\x00", ""))
		}
	}), Subtest: "FindSample/NULRefused"},
	{Name: "lists other teams' orders", Suite: spoiltOrders(func(b *brokenOrders) {
		b.list = func(ctx context.Context, q orders.Query) (orders.Page, error) {
			page, err := b.Store.List(ctx, q)
			for _, other := range b.owners {
				if other != q.Team {
					q.Team = other
					more, _ := b.Store.List(ctx, q)
					page.Total += more.Total
				}
			}
			return page, err
		}
	}), Subtest: "List/Filters"},
	{Name: "counts other teams' orders", Suite: spoiltOrders(func(b *brokenOrders) {
		b.counts = func(ctx context.Context, team healthlab.TeamID, counts map[orders.LowLevel]int) {
			for _, other := range b.owners {
				if other != team {
					more, _ := b.Store.CountByStatus(ctx, other)
					for status, n := range more {
						counts[status] += n
					}
				}
			}
		}
	}), Subtest: "List/CountByStatus"},
	{Name: "looks for names as they were at first", Suite: spoiltOrders(func(b *brokenOrders) {
		b.list = func(ctx context.Context, q orders.Query) (orders.Page, error) {
			page, err := b.Store.List(ctx, q)
			if q.PatientName+q.Search != "" {
				page.Orders = slices.DeleteFunc(page.Orders, func(o orders.Order) bool {
					r, _ := b.Store.Get(ctx, o.TeamID, o.ID)
					return r.Revision > 1
				})
				page.Total = len(page.Orders)
			}
			return page, err
		}
	}), Subtest: "List/Renamed"},
	{Name: "forgets events", Suite: spoiltOrders(func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				_, err := c(r)
				return nil, err
			}
		}
	}), Subtest: "Insert/EventsAreWritten"},
	{Name: "writes what change refused", Suite: spoiltOrders(func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			var own error
			r, err := b.Store.Update(ctx, team, id, func(r *orders.Record) (events []healthlab.Event, err error) {
				events, own = c(r)
				return events, nil
			})
			if own != nil {
				return orders.Record{}, own
			}
			return r, err
		}
	}), Subtest: "Update/ErrorWritesNothing"},
	{Name: "hides the error of change", Suite: spoiltOrders(func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Update(ctx, team, id, c)
			if err != nil {
				return r, healthlab.Unavailable
			}
			return r, nil
		}
	}), Subtest: "Update/ErrorWritesNothing"},
	{Name: "loses updates", Suite: spoiltOrders(func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			old, err := b.Store.Get(ctx, team, id)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			return b.Store.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
				revision, next := r.Revision, r.NextEventID
				*r = old
				r.Revision, r.NextEventID = revision, next
				return c(r)
			})
		}
	}), Subtest: "Update/NoLostUpdates"},
	{Name: "never counts revisions", Suite: spoiltOrders(func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Update(ctx, team, id, c)
			r.Revision = min(r.Revision, 1)
			return r, err
		}
	}), Subtest: "Update/WritesAndCounts"},
	{Name: "draws no ids of events", Suite: spoiltOrders(func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				r.NextEventID = 0
				return c(r)
			}
		}
	}), Subtest: "Insert/EventIDsAreUniqueInTheTeam"},
	{Name: "goes on without its caller", Suite: spoiltOrders(func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			return b.Store.Update(context.WithoutCancel(ctx), team, id, c)
		}
	}), Subtest: "Update/ContextEnded"},
	{Name: "drops the results", Suite: spoiltOrders(func(b *brokenOrders) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			r, err := b.Store.Get(ctx, team, id)
			r.Results = nil
			return r, err
		}
	}), Subtest: "Get/RoundTrip"},
	{Name: "cuts NUL out", Suite: spoiltOrders(func(b *brokenOrders) {
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			if r.Notes != nil {
				clean := strings.ReplaceAll(*r.Notes, "\x00", "")
				r.Notes = &clean
			}
			return b.Store.Insert(ctx, r, c)
		}
	}), Subtest: "Insert/NULRefused"},
	{Name: "hands out its own pointers", Suite: spoiltOrders(func(b *brokenOrders) {
		kept := map[orders.OrderID]orders.Record{}
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Insert(ctx, r, c)
			kept[r.ID] = r
			return r, err
		}
		b.get = func(_ context.Context, _ healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			return kept[id], nil
		}
	}), Subtest: "Get/NobodyElsesCopy"},
	{Name: "shows a transaction as it was", Suite: spoiltOrders(func(b *brokenOrders) {
		kept := map[orders.OrderID]orders.OrderTransaction{}
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Insert(ctx, r, c)
			kept[r.ID] = r.OrderTransaction
			return r, err
		}
		b.get = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			r, err := b.Store.Get(ctx, team, id)
			r.OrderTransaction = kept[id]
			return r, err
		}
	}), Subtest: "Transaction/ShowsAllMembersAsTheyAre"},
	{Name: "writes the parent and forgets the child", Suite: spoiltOrders(func(b *brokenOrders) {
		b.insertAfter = func(ctx context.Context, parent orders.OrderID, child orders.Record, c orders.PairChange) (orders.Record, orders.Record, error) {
			stored := child
			p, err := b.Store.Update(ctx, child.TeamID, parent, func(r *orders.Record) ([]healthlab.Event, error) {
				stored = child
				stored.OrderTransaction = r.OrderTransaction
				return c(r, &stored)
			})
			if err != nil {
				return p, stored, err
			}
			stored, err = b.Store.Insert(ctx, stored, func(*orders.Record) ([]healthlab.Event, error) { return nil, nil })
			return p, stored, err
		}
	}), Subtest: "Transaction/InsertAfterAllOrNothing"},
	{Name: "keeps all orders that follow in one transaction", Suite: spoiltOrders(func(b *brokenOrders) {
		b.insertAfter = func(ctx context.Context, parent orders.OrderID, child orders.Record, c orders.PairChange) (orders.Record, orders.Record, error) {
			return b.Store.InsertAfter(ctx, parent, child, func(p, ch *orders.Record) ([]healthlab.Event, error) {
				joined := ch.OrderTransaction
				events, err := c(p, ch)
				ch.OrderTransaction = joined
				return events, err
			})
		}
	}), Subtest: "Transaction/InsertAfterInItsOwnTransaction"},
	{Name: "follows orders of other teams", Suite: spoiltOrders(func(b *brokenOrders) {
		b.insertAfter = func(ctx context.Context, parent orders.OrderID, child orders.Record, c orders.PairChange) (orders.Record, orders.Record, error) {
			child.TeamID = b.owner(parent, child.TeamID)
			return b.Store.InsertAfter(ctx, parent, child, c)
		}
	}), Subtest: "Transaction/InsertAfterOfAnotherTeam"},
	{Name: "claims what is not due", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now.Add(time.Microsecond), lease)
		}
	}), Subtest: "Claim/LongestDueFirst"},
	{Name: "claims a moment late", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now, lease+time.Microsecond)
		}
	}), Subtest: "Claim/LeaseEnds"},
	{Name: "claims without a lease", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now time.Time, _ time.Duration) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now, 0)
		}
	}), Subtest: "Claim/LeaseEnds"},
	{Name: "counts leases from the caller's clock", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now, lease+now.Sub(b.clock.Now()))
		}
	}), Subtest: "Claim/CallersClocks"},
	{Name: "counts leases of later work from the caller's clock", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claimNotifications = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return b.Store.ClaimNotifications(ctx, n, now, lease+now.Sub(b.clock.Now()))
		}
	}), Subtest: "Claim/CallersClocksOfNotifications"},
	{Name: "ends a lease when an order is changed", Suite: spoiltOrders(func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				r.Lab.Lease = time.Time{}
				return c(r)
			}
		}
	}), Subtest: "Claim/EarlierWhileLeased"},
	{Name: "ends a lease of later work when an order is changed", Suite: spoiltOrders(func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				r.Notifications.Lease = time.Time{}
				return c(r)
			}
		}
	}), Subtest: "Claim/NotificationsEarlierWhileLeased"},
	{Name: "shows changes another clock", Suite: spoiltOrders(func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				r.StoreTime = r.StoreTime.Add(time.Hour)
				return c(r)
			}
		}
	}), Subtest: "Update/StoreTime"},
	{Name: "claims the newest first", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			list, err := b.Store.Claim(ctx, n, now, lease)
			slices.Reverse(list)
			return list, err
		}
	}), Subtest: "Claim/LongestDueFirst"},
	{Name: "claims all there is", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claim = func(ctx context.Context, _ int, now time.Time, lease time.Duration) ([]orders.Record, error) {
			return b.Store.Claim(ctx, 1000, now, lease)
		}
	}), Subtest: "Claim/AtMostN"},
	{Name: "gives a feed to everybody", Suite: spoiltOrders(func(b *brokenOrders) {
		b.claimFeed = func(ctx context.Context, lab string, lease time.Duration) (string, time.Time, error) {
			cursor, _, err := b.Store.ClaimFeed(ctx, lab, lease)
			return cursor, b.clock.Now().Add(lease), err
		}
	}), Subtest: "Feed/OneReader"},
	{Name: "takes a cursor from anybody", Suite: spoiltOrders(func(b *brokenOrders) {
		latest := map[string]time.Time{}
		b.claimFeed = func(ctx context.Context, lab string, lease time.Duration) (string, time.Time, error) {
			cursor, until, err := b.Store.ClaimFeed(ctx, lab, lease)
			latest[lab] = until
			return cursor, until, err
		}
		b.moveFeed = func(ctx context.Context, lab string, _ time.Time, cursor string) error {
			return b.Store.MoveFeed(ctx, lab, latest[lab], cursor)
		}
	}), Subtest: "Feed/LeaseEnds"},
	{Name: "counts the page", Suite: spoiltOrders(func(b *brokenOrders) {
		b.list = func(ctx context.Context, q orders.Query) (orders.Page, error) {
			page, err := b.Store.List(ctx, q)
			page.Total = len(page.Orders)
			return page, err
		}
	}), Subtest: "List/Pages"},
	{Name: "breaks ties the other way", Suite: spoiltOrders(func(b *brokenOrders) {
		b.list = func(ctx context.Context, q orders.Query) (orders.Page, error) {
			page, err := b.Store.List(ctx, q)
			slices.Reverse(page.Orders)
			return page, err
		}
	}), Subtest: "List/Pages"},
	{Name: "takes two orders with one sample id", Suite: spoiltOrders(func(b *brokenOrders) {
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			stored, err := b.Store.Insert(ctx, r, c)
			if err != nil && r.SampleID != nil {
				other := *r.SampleID + "'"
				r.SampleID = &other
				return b.Store.Insert(ctx, r, c)
			}
			return stored, err
		}
	}), Subtest: "Insert/SampleIDTaken"},
	{Name: "lets an order change its team", Suite: spoiltOrders(func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				id, team, transaction := r.ID, r.TeamID, r.OrderTransaction.ID
				events, err := c(r)
				r.ID, r.TeamID, r.OrderTransaction.ID = id, team, transaction
				return events, err
			}
		}
	}), Subtest: "Update/KeepsItsIdentity"},
}

func clockedStore() (*memory.Store, *conformance.Clock) {
	clock := conformance.NewClock(time.Unix(0, 0))
	return memory.New(&memory.Options{Now: clock.Now, UsersElsewhere: true}), clock
}

// spoiltOrders returns the suite over stores that were broken in one way.
func spoiltOrders(how func(*brokenOrders)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunStore(t, func(testing.TB) orderstest.StoreHarness {
			store, clock := clockedStore()
			b := &brokenOrders{clock: clock, overriddenOrders: overriddenOrders{Store: store.Orders()}}
			how(b)
			return orderstest.StoreHarness{Orders: b, Messages: store.WebhookLog(), SetClock: clock.Set}
		})
	}
}

// brokenOrders is a store with some of its methods replaced.
type brokenOrders struct {
	overriddenOrders
	clock  *conformance.Clock
	mu     sync.Mutex
	owners map[orders.OrderID]healthlab.TeamID
	wrap   func(orders.Change) orders.Change
	counts func(context.Context, healthlab.TeamID, map[orders.LowLevel]int)
}

// owner returns the team of an order, or otherwise if no team has it.
func (b *brokenOrders) owner(id orders.OrderID, otherwise healthlab.TeamID) healthlab.TeamID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if team, ok := b.owners[id]; ok {
		return team
	}
	return otherwise
}

func (b *brokenOrders) Insert(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
	b.mu.Lock()
	if b.owners == nil {
		b.owners = map[orders.OrderID]healthlab.TeamID{}
	}
	if _, ok := b.owners[r.ID]; !ok && r.ID.UUID != uuid.Nil {
		b.owners[r.ID] = r.TeamID
	}
	b.mu.Unlock()
	if b.wrap != nil {
		c = b.wrap(c)
	}
	if b.insert != nil {
		return b.insert(ctx, r, c)
	}
	return b.Store.Insert(ctx, r, c)
}

func (b *brokenOrders) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
	if b.wrap != nil {
		c = b.wrap(c)
	}
	if b.update != nil {
		return b.update(ctx, team, id, c)
	}
	return b.Store.Update(ctx, team, id, c)
}

func (b *brokenOrders) CountByStatus(ctx context.Context, team healthlab.TeamID) (map[orders.LowLevel]int, error) {
	counts, err := b.Store.CountByStatus(ctx, team)
	if b.counts != nil {
		b.counts(ctx, team, counts)
	}
	return counts, err
}

package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/orders"
)

// ordersMutants are stores that break one promise each, and the subtest that must die.
var ordersMutants = map[string]struct {
	dies  string
	spoil func(*brokenOrders)
}{
	"sees other teams' orders": {"Get/OtherTeam", func(b *brokenOrders) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			return b.Store.Get(ctx, b.owner(id, team), id)
		}
	}},
	"edits other teams' orders": {"Update/OtherTeam", func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			return b.Store.Update(ctx, b.owner(id, team), id, c)
		}
	}},
	"finds other teams' samples": {"FindSample/ByteForByteAndTeamOnly", func(b *brokenOrders) {
		b.sample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			for _, other := range b.owners {
				if r, err := b.Store.FindSample(ctx, other, sample); err == nil {
					return r, nil
				}
			}
			return b.Store.FindSample(ctx, team, sample)
		}
	}},
	"folds the case of sample ids": {"FindSample/ByteForByteAndTeamOnly", func(b *brokenOrders) {
		b.sample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			return b.Store.FindSample(ctx, team, strings.ToUpper(sample))
		}
	}},
	"cuts blanks off sample ids": {"FindSample/ByteForByteAndTeamOnly", func(b *brokenOrders) {
		b.sample = func(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
			return b.Store.FindSample(ctx, team, strings.TrimSpace(sample))
		}
	}},
	"lists other teams' orders": {"List/Filters", func(b *brokenOrders) {
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
	}},
	"forgets events": {"Insert/EventsAreWritten", func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				_, err := c(r)
				return nil, err
			}
		}
	}},
	"writes what change refused": {"Update/ErrorWritesNothing", func(b *brokenOrders) {
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
	}},
	"hides the error of change": {"Update/ErrorWritesNothing", func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Update(ctx, team, id, c)
			if err != nil {
				return r, healthlab.Unavailable
			}
			return r, nil
		}
	}},
	"loses updates": {"Update/NoLostUpdates", func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			old, err := b.Store.Get(ctx, team, id)
			if err != nil {
				return old, err
			}
			for range 1000 {
				runtime.Gosched() // so that another one comes in between
			}
			return b.Store.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
				revision, next := r.Revision, r.NextEventID
				*r = old
				r.Revision, r.NextEventID = revision, next
				return c(r)
			})
		}
	}},
	"never counts revisions": {"Update/WritesAndCounts", func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Update(ctx, team, id, c)
			r.Revision = min(r.Revision, 1)
			return r, err
		}
	}},
	"draws no ids of events": {"Insert/EventIDsAreUniqueInTheTeam", func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				r.NextEventID = 0
				return c(r)
			}
		}
	}},
	"goes on without its caller": {"Update/ContextEnded", func(b *brokenOrders) {
		b.update = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID, c orders.Change) (orders.Record, error) {
			return b.Store.Update(context.WithoutCancel(ctx), team, id, c)
		}
	}},
	"drops the results": {"Get/RoundTrip", func(b *brokenOrders) {
		b.get = func(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			r, err := b.Store.Get(ctx, team, id)
			r.Results = nil
			return r, err
		}
	}},
	"cuts NUL out": {"Insert/NULRefused", func(b *brokenOrders) {
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			if r.Notes != nil {
				clean := strings.ReplaceAll(*r.Notes, "\x00", "")
				r.Notes = &clean
			}
			return b.Store.Insert(ctx, r, c)
		}
	}},
	"hands out its own pointers": {"Get/NobodyElsesCopy", func(b *brokenOrders) {
		kept := map[orders.OrderID]orders.Record{}
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			r, err := b.Store.Insert(ctx, r, c)
			kept[r.ID] = r
			return r, err
		}
		b.get = func(_ context.Context, _ healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
			return kept[id], nil
		}
	}},
	"shows a transaction as it was": {"Transaction/ShowsAllMembersAsTheyAre", func(b *brokenOrders) {
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
	}},
	"writes the parent and forgets the child": {"Transaction/InsertAfterAllOrNothing", func(b *brokenOrders) {
		b.after = func(ctx context.Context, parent orders.OrderID, child orders.Record, c orders.PairChange) (orders.Record, orders.Record, error) {
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
	}},
	"follows orders of other teams": {"Transaction/InsertAfterOfAnotherTeam", func(b *brokenOrders) {
		b.after = func(ctx context.Context, parent orders.OrderID, child orders.Record, c orders.PairChange) (orders.Record, orders.Record, error) {
			child.TeamID = b.owner(parent, child.TeamID)
			return b.Store.InsertAfter(ctx, parent, child, c)
		}
	}},
	"claims what is not due": {"Claim/LongestDueFirst", func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now.Add(time.Microsecond), until)
		}
	}},
	"claims a moment late": {"Claim/LeaseEnds", func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now.Add(-time.Microsecond), until)
		}
	}},
	"claims without a lease": {"Claim/LeaseEnds", func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now, _ time.Time) ([]orders.Record, error) {
			return b.Store.Claim(ctx, n, now, now)
		}
	}},
	"claims the newest first": {"Claim/LongestDueFirst", func(b *brokenOrders) {
		b.claim = func(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
			list, err := b.Store.Claim(ctx, n, now, until)
			slices.Reverse(list)
			return list, err
		}
	}},
	"claims all there is": {"Claim/AtMostN", func(b *brokenOrders) {
		b.claim = func(ctx context.Context, _ int, now, until time.Time) ([]orders.Record, error) {
			return b.Store.Claim(ctx, 1000, now, until)
		}
	}},
	"gives a feed to everybody": {"Feed/OneReader", func(b *brokenOrders) {
		b.feed = func(ctx context.Context, lab string, now, until time.Time) (string, bool, error) {
			cursor, _, err := b.Store.ClaimFeed(ctx, lab, now, until)
			return cursor, true, err
		}
	}},
	"takes a cursor from anybody": {"Feed/LeaseEnds", func(b *brokenOrders) {
		latest := map[string]time.Time{}
		b.feed = func(ctx context.Context, lab string, now, until time.Time) (string, bool, error) {
			latest[lab] = until
			return b.Store.ClaimFeed(ctx, lab, now, until)
		}
		b.move = func(ctx context.Context, lab string, _ time.Time, cursor string) error {
			return b.Store.MoveFeed(ctx, lab, latest[lab], cursor)
		}
	}},
	"counts the page": {"List/Pages", func(b *brokenOrders) {
		b.list = func(ctx context.Context, q orders.Query) (orders.Page, error) {
			page, err := b.Store.List(ctx, q)
			page.Total = len(page.Orders)
			return page, err
		}
	}},
	"breaks ties the other way": {"List/Pages", func(b *brokenOrders) {
		b.list = func(ctx context.Context, q orders.Query) (orders.Page, error) {
			page, err := b.Store.List(ctx, q)
			slices.Reverse(page.Orders)
			return page, err
		}
	}},
	"takes two orders with one sample id": {"Insert/SampleIDTaken", func(b *brokenOrders) {
		b.insert = func(ctx context.Context, r orders.Record, c orders.Change) (orders.Record, error) {
			stored, err := b.Store.Insert(ctx, r, c)
			if err != nil && r.SampleID != nil {
				other := *r.SampleID + "'"
				r.SampleID = &other
				return b.Store.Insert(ctx, r, c)
			}
			return stored, err
		}
	}},
	"lets an order change its team": {"Update/KeepsItsIdentity", func(b *brokenOrders) {
		b.wrap = func(c orders.Change) orders.Change {
			return func(r *orders.Record) ([]healthlab.Event, error) {
				id, team, transaction := r.ID, r.TeamID, r.OrderTransaction.ID
				events, err := c(r)
				r.ID, r.TeamID, r.OrderTransaction.ID = id, team, transaction
				return events, err
			}
		}
	}},
}

// ordersMutant names the broken store of a process.
const ordersMutant = "HEALTHLAB_ORDERS_MUTANT"

// TestOrdersMutants runs the suite on each broken store, in a process of its own, and
// requires it to die where the promise is tested.
func TestOrdersMutants(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, m := range ordersMutants {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", "^TestOrdersMutant$/^"+strings.ReplaceAll(m.dies, "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), ordersMutant+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the mutant lives:\n%s", out)
			require.Contains(t, string(out), "--- FAIL: TestOrdersMutant/"+m.dies, "it died elsewhere:\n%s", out)
		})
	}
}

// TestOrdersMutant is the process of one mutant.
func TestOrdersMutant(t *testing.T) {
	m, ok := ordersMutants[os.Getenv(ordersMutant)]
	if !ok {
		t.Skip("runs in the processes that TestOrdersMutants starts")
	}
	storetest.RunOrders(t, func(testing.TB) storetest.OrdersHarness {
		store := memory.New(nil)
		b := &brokenOrders{Store: store.Orders()}
		m.spoil(b)
		return storetest.OrdersHarness{Orders: b, Messages: store.WebhookLog()}
	})
}

// brokenOrders is a store with some of its methods replaced.
type brokenOrders struct {
	orders.Store
	mu     sync.Mutex
	owners map[orders.OrderID]healthlab.TeamID
	wrap   func(orders.Change) orders.Change
	insert func(context.Context, orders.Record, orders.Change) (orders.Record, error)
	after  func(context.Context, orders.OrderID, orders.Record, orders.PairChange) (orders.Record, orders.Record, error)
	get    func(context.Context, healthlab.TeamID, orders.OrderID) (orders.Record, error)
	update func(context.Context, healthlab.TeamID, orders.OrderID, orders.Change) (orders.Record, error)
	list   func(context.Context, orders.Query) (orders.Page, error)
	sample func(context.Context, healthlab.TeamID, string) (orders.Record, error)
	claim  func(context.Context, int, time.Time, time.Time) ([]orders.Record, error)
	feed   func(context.Context, string, time.Time, time.Time) (string, bool, error)
	move   func(context.Context, string, time.Time, string) error
}

// owner returns the team of an order; otherwise if nobody has it.
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

func (b *brokenOrders) InsertAfter(ctx context.Context, parent orders.OrderID, child orders.Record, c orders.PairChange) (orders.Record, orders.Record, error) {
	if b.after != nil {
		return b.after(ctx, parent, child, c)
	}
	return b.Store.InsertAfter(ctx, parent, child, c)
}

func (b *brokenOrders) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	if b.get != nil {
		return b.get(ctx, team, id)
	}
	return b.Store.Get(ctx, team, id)
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

func (b *brokenOrders) List(ctx context.Context, q orders.Query) (orders.Page, error) {
	if b.list != nil {
		return b.list(ctx, q)
	}
	return b.Store.List(ctx, q)
}

func (b *brokenOrders) FindSample(ctx context.Context, team healthlab.TeamID, sample string) (orders.Record, error) {
	if b.sample != nil {
		return b.sample(ctx, team, sample)
	}
	return b.Store.FindSample(ctx, team, sample)
}

func (b *brokenOrders) Claim(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
	if b.claim != nil {
		return b.claim(ctx, n, now, until)
	}
	return b.Store.Claim(ctx, n, now, until)
}

func (b *brokenOrders) ClaimFeed(ctx context.Context, lab string, now, until time.Time) (string, bool, error) {
	if b.feed != nil {
		return b.feed(ctx, lab, now, until)
	}
	return b.Store.ClaimFeed(ctx, lab, now, until)
}

func (b *brokenOrders) MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error {
	if b.move != nil {
		return b.move(ctx, lab, until, cursor)
	}
	return b.Store.MoveFeed(ctx, lab, until, cursor)
}

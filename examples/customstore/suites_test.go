package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/examples/customstore/boltstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
	"github.com/healthlab-dev/healthlab/personexport"
	"github.com/healthlab-dev/healthlab/personexport/personexporttest"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/personkey/personkeytest"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// tables are those of all packages, in one file.
func tables() []store.Definition {
	return slices.Concat(
		accesslog.Tables(), aggregate.Tables(), continuous.Tables(), healthdata.UserTables(), healthdata.DataTables(true), organisation.Tables(),
		teamsettings.Tables(), labreport.Tables(), linking.Tables(), bulk.Tables(), orders.Tables(), appointment.Tables(), catalogue.Tables(),
		idempotency.Tables(), labjournal.Tables(), matchtest.Tables(), people.Tables(), personexport.Tables(), webhook.Tables(), receiver.Tables(),
	)
}

// clock is the time of day, moved forward as far as advance says. Once it is set, it stands still.
type clock struct {
	at    atomic.Pointer[time.Time] // where it stands; nil while it goes
	ahead atomic.Int64
}

func (c *clock) now() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Now().Add(time.Duration(c.ahead.Load()))
}

func (c *clock) set(at time.Time) { c.at.Store(&at) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// file is a store of all packages in a file of bbolt, encrypted, with its events.
type file struct {
	store.Store
	clock
	path   string
	keys   *personkey.Keys
	outbox store.Events
	hooks  *webhook.Store
}

func newFile(t testing.TB) *file {
	t.Helper()
	dir := t.TempDir()
	f := &file{path: filepath.Join(dir, "rows.db")}
	open := func(path string, tables []store.Definition) *boltstore.Store {
		s, err := boltstore.Open(path, tables, &boltstore.Options{Now: f.now})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	f.keys = personkey.New(personkey.NewStore(open(filepath.Join(dir, "keys.db"), personkey.Tables())), sealer, nil)
	f.Store = personkey.Encrypt(open(f.path, tables()), f.keys, tables())
	f.outbox, f.hooks = webhook.NewOutbox(nil), webhook.NewStore(f.Store, nil)
	return f
}

func (f *file) users() healthdata.Users {
	return healthdata.NewUsers(f, &healthdata.UserOptions{
		Events: f.outbox, OnErase: []healthdata.UserHook{personexport.EraseJobs, labreport.EraseJobs, bulk.EraseItems},
	})
}

func (f *file) continuous() *continuous.RowStore {
	return continuous.NewStore(f, &continuous.StoreOptions{Events: f.outbox})
}

func (f *file) data() healthdata.Data {
	return healthdata.NewData(f, &healthdata.DataOptions{Events: f.outbox, Changes: f.continuous()})
}

// suites are the suites of the packages, by their names.
var suites = map[string]func(t *testing.T){
	"accesslog": func(t *testing.T) { accesslogtest.RunStore(t, accesslog.NewStore(newFile(t))) },
	"aggregate": func(t *testing.T) {
		f := newFile(t)
		priorities := aggregate.NewPriorityStore(f, &aggregate.PriorityStoreOptions{Changed: f.continuous().Restart})
		aggregatetest.RunPriorityStore(t, priorities, continuousOf(f))
	},
	"aggregate/continuous": func(t *testing.T) {
		aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness { return continuousOf(newFile(t)) })
	},
	"healthdata/users":       func(t *testing.T) { healthdatatest.RunUsers(t, usersHarness) },
	"healthdata/users model": func(t *testing.T) { healthdatatest.RunUsersModel(t, usersHarness) },
	"healthdata/users alone": func(t *testing.T) {
		healthdatatest.RunUsersAlone(t, func(t testing.TB) healthdatatest.UsersAloneHarness {
			f := newFile(t)
			return healthdatatest.UsersAloneHarness{Users: f.users(), Messages: f.hooks}
		})
	},
	"healthdata/data":       func(t *testing.T) { healthdatatest.RunData(t, dataHarness) },
	"healthdata/data model": func(t *testing.T) { healthdatatest.RunDataModel(t, dataHarness) },
	"healthdata/organisation": func(t *testing.T) {
		f := newFile(t)
		organisationtest.RunStore(t, organisationtest.StoreHarness{
			Organisations: organisation.NewStore(f, &organisation.StoreOptions{OnDelete: []func(context.Context, store.Tx, healthlab.TeamID) error{
				teamsettings.DeleteTeam, linking.DeleteTeam,
			}}),
			Users: f.users(), Choices: teamsettings.NewStore(f), Clients: linking.NewTeamClients(f),
		})
	},
	"healthdata/teamsettings": func(t *testing.T) { teamsettingstest.RunStore(t, teamsettings.NewStore(newFile(t))) },
	"labreport": func(t *testing.T) {
		labreporttest.RunStore(t, func(t testing.TB) labreporttest.StoreHarness {
			f := newFile(t)
			return labreporttest.StoreHarness{Jobs: f.jobs(), Messages: f.hooks, SetClock: f.set}
		})
	},
	"labreport/erasure": func(t *testing.T) {
		labreporttest.RunErasure(t, func(t testing.TB) labreporttest.ErasureHarness {
			f := newFile(t)
			return labreporttest.ErasureHarness{Users: f.users(), Jobs: f.jobs(), SetClock: f.set}
		})
	},
	"labreport/erased keys": func(t *testing.T) {
		labreporttest.RunErasedKeys(t, func(t testing.TB) labreporttest.ErasedKeysHarness {
			f := newFile(t)
			return labreporttest.ErasedKeysHarness{Jobs: f.jobs(), Keys: f.keys, SetClock: f.set}
		})
	},
	"linking":             func(t *testing.T) { linkingtest.RunStore(t, newLinks) },
	"linking/credentials": func(t *testing.T) { linkingtest.RunCredentialStore(t, newLinks) },
	"linking/refresh":     func(t *testing.T) { linkingtest.RunCredentialRefresh(t, newLinks) },
	"linking/flows":       func(t *testing.T) { linkingtest.RunFlows(t, newLinks) },
	"linking/apps": func(t *testing.T) {
		f := newFile(t)
		linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: linking.NewAppSessions(f), Users: f.users()})
	},
	"linking/clients": func(t *testing.T) {
		f := newFile(t)
		linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: linking.NewTeamClients(f), Linking: linksOf(f)})
	},
	"linking/bulk": func(t *testing.T) {
		f := newFile(t)
		bulktest.RunStore(t, bulktest.StoreHarness{Bulk: bulk.NewStore(f, f.links()), SetClock: f.set, Linking: linksOf(f)})
	},
	"orders":       func(t *testing.T) { orderstest.RunStore(t, ordersHarness) },
	"orders/model": func(t *testing.T) { orderstest.RunStoreModel(t, ordersHarness) },
	"orders/reviews": func(t *testing.T) {
		orderstest.RunReviews(t, func(t testing.TB) orderstest.ReviewsHarness {
			f := newFile(t)
			opts := &orders.StoreOptions{Events: f.outbox}
			return orderstest.ReviewsHarness{
				Reviews: orders.NewReviewStore(f, opts), MatchTestRuns: matchtest.NewStore(f), Orders: orders.NewStore(f, opts),
				Users: f.users(), Messages: f.hooks, SetClock: f.set,
			}
		})
	},
	"orders/erasure": func(t *testing.T) {
		orderstest.RunErasure(t, func(t testing.TB) orderstest.ErasureHarness {
			f := newFile(t)
			return orderstest.ErasureHarness{
				Users: f.users(), Orders: orders.NewStore(f, &orders.StoreOptions{Events: f.outbox}), Keys: idempotency.NewStore(f, nil), SetClock: f.set,
			}
		})
	},
	"orders/erased keys": func(t *testing.T) {
		orderstest.RunErasedKeys(t, func(t testing.TB) orderstest.ErasedKeysHarness {
			f := newFile(t)
			return orderstest.ErasedKeysHarness{
				Orders: orders.NewStore(f, f.elsewhere()), Reviews: orders.NewReviewStore(f, f.elsewhere()), Keys: f.keys,
			}
		})
	},
	"orders/visits": func(t *testing.T) {
		orderstest.RunVisits(t, func(t testing.TB) orderstest.VisitsHarness {
			f := newFile(t)
			both := orders.NewStore(f, f.elsewhere())
			return orderstest.VisitsHarness{Orders: both, Visits: both, SetClock: f.set}
		})
	},
	"orders/two processes":      func(t *testing.T) { orderstest.RunTwoProcesses(t, twoProcesses) },
	"orders/concurrent creates": func(t *testing.T) { orderstest.RunConcurrentCreates(t, twoProcesses) },
	"orders/appointment": func(t *testing.T) {
		appointmenttest.RunSlotCache(t, func(t testing.TB) appointment.SlotCache { return appointment.NewSlotCache(newFile(t)) })
	},
	"orders/catalogue": func(t *testing.T) {
		cataloguetest.RunLabTestStore(t, func(t testing.TB) catalogue.LabTestStore { return catalogue.NewLabTestStore(newFile(t)) })
	},
	"orders/idempotency": func(t *testing.T) {
		orderstest.RunKeys(t, func(t testing.TB) orderstest.KeysHarness {
			f := newFile(t)
			return orderstest.KeysHarness{Keys: idempotency.NewStore(f, nil), SetClock: f.set}
		})
	},
	"orders/labjournal": func(t *testing.T) {
		labjournaltest.RunStore(t, func(t testing.TB) labjournaltest.Harness {
			f := newFile(t)
			return labjournaltest.Harness{Journal: labjournal.NewStore(f, &labjournal.StoreOptions{UsersElsewhere: true}), Users: f.users()}
		})
	},
	"orders/people": func(t *testing.T) {
		peopletest.RunStore(t, func(t testing.TB) peopletest.StoreHarness {
			f := newFile(t)
			return peopletest.StoreHarness{Persons: people.NewStore(f, &people.StoreOptions{UsersElsewhere: true}), Users: f.users()}
		})
	},
	"personexport": func(t *testing.T) {
		personexporttest.RunStore(t, func(t testing.TB) personexporttest.StoreHarness {
			f := newFile(t)
			return personexporttest.StoreHarness{Exports: personexport.NewStore(f), Users: f.users(), SetClock: f.set}
		})
	},
	"personkey": func(t *testing.T) {
		personkeytest.RunStore(t, func(t testing.TB) personkey.Store {
			s, err := boltstore.Open(filepath.Join(t.TempDir(), "keys.db"), personkey.Tables(), nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return personkey.NewStore(s)
		})
	},
	"webhook/outbox": func(t *testing.T) {
		webhooktest.RunOutbox(t, func(t *testing.T) webhooktest.OutboxHarness {
			f := newFile(t)
			return webhooktest.OutboxHarness{Outbox: f.hooks, Message: f.hooks.Message}
		})
	},
	"webhook/deliveries":           func(t *testing.T) { webhooktest.RunDeliveries(t, newHooks) },
	"webhook/deliveries model":     func(t *testing.T) { webhooktest.RunDeliveriesModel(t, newHooks) },
	"webhook/endpoints":            func(t *testing.T) { webhooktest.RunEndpoints(t, newHooks) },
	"webhook/bodies":               func(t *testing.T) { webhooktest.RunBodies(t, newHooks) },
	"webhook/order under failures": func(t *testing.T) { webhooktest.RunOrderUnderFailures(t, newHooks) },
	"webhook/dispatcher":           func(t *testing.T) { webhooktest.RunDispatcher(t, newHooks) },
	"webhook/receiver":             func(t *testing.T) { receivertest.RunSeen(t, seenHarness) },
	"webhook/receiver model":       func(t *testing.T) { receivertest.RunSeenModel(t, seenHarness) },
}

// TestSuites runs the suite of every domain package that keeps something over one file of bbolt.
func TestSuites(t *testing.T) {
	for name, run := range suites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

func usersHarness(t testing.TB) healthdatatest.UsersHarness {
	f := newFile(t)
	return healthdatatest.UsersHarness{Users: f.users(), Messages: f.hooks, Data: f.data()}
}

func dataHarness(t testing.TB) healthdatatest.DataHarness {
	f := newFile(t)
	return healthdatatest.DataHarness{Data: f.data(), Users: f.users(), Messages: f.hooks}
}

func continuousOf(f *file) aggregatetest.ContinuousHarness {
	c := f.continuous()
	return aggregatetest.ContinuousHarness{Store: c, Work: c, Data: f.data(), Users: f.users(), Messages: f.hooks}
}

// jobs are those of users whom the suite does not add.
func (f *file) jobs() labreport.Store {
	return labreport.NewStore(f, &labreport.StoreOptions{Events: f.outbox, UsersElsewhere: true})
}

// elsewhere are the options for orders of users whom the suite does not add.
func (f *file) elsewhere() *orders.StoreOptions {
	return &orders.StoreOptions{Events: f.outbox, UsersElsewhere: true}
}

func (f *file) links() *linking.Rows {
	return linking.NewStore(f, &linking.StoreOptions{Events: f.outbox})
}

func linksOf(f *file) linkingtest.StoreHarness {
	return linkingtest.StoreHarness{
		Linking: f.links(), Credentials: f.links(), Second: f.links(), Users: f.users(), Data: f.data(), Messages: f.hooks, SetClock: f.set,
	}
}

func newLinks(t testing.TB) linkingtest.StoreHarness { return linksOf(newFile(t)) }

func ordersHarness(t testing.TB) orderstest.StoreHarness {
	f := newFile(t)
	return orderstest.StoreHarness{Orders: orders.NewStore(f, f.elsewhere()), Messages: f.hooks, SetClock: f.set}
}

// twoProcesses is one store as two goroutines of a process see it: bbolt has one process.
func twoProcesses(t testing.TB) []orderstest.Process {
	f := newFile(t)
	p := orderstest.Process{
		Orders: orders.NewStore(f, f.elsewhere()), Reviews: orders.NewReviewStore(f, f.elsewhere()),
		Keys: idempotency.NewStore(f, &idempotency.StoreOptions{UsersElsewhere: true}), Messages: f.hooks,
	}
	return []orderstest.Process{p, p}
}

func newHooks(t *testing.T) webhooktest.Harness {
	f := newFile(t)
	return webhooktest.Harness{Outbox: f.hooks, Deliveries: f.hooks, Endpoints: f.hooks, Log: f.hooks, Bodies: f.hooks, Advance: f.advance}
}

func seenHarness(t *testing.T) receivertest.SeenHarness {
	f := newFile(t)
	return receivertest.SeenHarness{Seen: receiver.NewSeen(f), Advance: f.advance}
}

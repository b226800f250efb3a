package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/examples/customstore/boltstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
	"github.com/healthlab-dev/healthlab/linking/pull/pulltest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
	"github.com/healthlab-dev/healthlab/privacy/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/privacy/personexport/personexporttest"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/privacy/personkey/personkeytest"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

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

// file has the stores of all packages in a file of bbolt, encrypted, samples too.
type file struct {
	*stores.Stores
	clock
	path string
}

func newFile(t testing.TB) *file { return openFile(t, false) }

func hostFile(t testing.TB) *file { return openFile(t, true) }

func openFile(t testing.TB, usersElsewhere bool) *file {
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
	f.Stores = stores.New(open(f.path, stores.Tables()), &stores.Options{
		Keys:           personkey.New(personkey.NewStore(open(filepath.Join(dir, "keys.db"), personkey.Tables())), sealer, nil),
		EncryptSamples: true, UsersElsewhere: usersElsewhere, Events: stores.Outbox,
	})
	return f
}

// suites are the suites of the packages, by their names.
var suites = map[string]func(t *testing.T){
	"accesslog": func(t *testing.T) { accesslogtest.RunStore(t, newFile(t).AccessLog()) },
	"aggregate": func(t *testing.T) {
		f := newFile(t)
		aggregatetest.RunPriorityStore(t, f.Priorities(), continuousOf(f))
	},
	"aggregate/continuous": func(t *testing.T) {
		aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness { return continuousOf(newFile(t)) })
	},
	"healthdata/users":       func(t *testing.T) { healthdatatest.RunUsers(t, usersHarness) },
	"healthdata/users model": func(t *testing.T) { healthdatatest.RunUsersModel(t, usersHarness) },
	"healthdata/users alone": func(t *testing.T) {
		healthdatatest.RunUsersAlone(t, func(t testing.TB) healthdatatest.UsersAloneHarness {
			f := newFile(t)
			return healthdatatest.UsersAloneHarness{Users: f.Users(), Messages: f.WebhookLog()}
		})
	},
	"healthdata/data alone": func(t *testing.T) { healthdatatest.RunDataAlone(t, dataAloneHarness) },
	"healthdata/data":       func(t *testing.T) { healthdatatest.RunData(t, dataHarness) },
	"healthdata/data model": func(t *testing.T) { healthdatatest.RunDataModel(t, dataHarness) },
	"healthdata/organisation": func(t *testing.T) {
		f := newFile(t)
		organisationtest.RunStore(t, organisationtest.StoreHarness{
			Organisations: f.Organisations(), Users: f.Users(), Choices: f.Teams(), Clients: f.TeamClients(),
		})
	},
	"healthdata/teamsettings": func(t *testing.T) { teamsettingstest.RunStore(t, newFile(t).Teams()) },
	"labreport": func(t *testing.T) {
		labreporttest.RunStore(t, func(t testing.TB) labreporttest.StoreHarness {
			f := hostFile(t)
			return labreporttest.StoreHarness{Jobs: f.ParsingJobs(), Messages: f.WebhookLog(), SetClock: f.set}
		})
	},
	"labreport/erasure": func(t *testing.T) {
		labreporttest.RunErasure(t, func(t testing.TB) labreporttest.ErasureHarness {
			f := hostFile(t)
			return labreporttest.ErasureHarness{Users: f.Users(), Jobs: f.ParsingJobs(), SetClock: f.set}
		})
	},
	"labreport/erased keys": func(t *testing.T) {
		labreporttest.RunErasedKeys(t, func(t testing.TB) labreporttest.ErasedKeysHarness {
			f := hostFile(t)
			return labreporttest.ErasedKeysHarness{Jobs: f.ParsingJobs(), Keys: f.PersonKeys(), SetClock: f.set}
		})
	},
	"linking":             func(t *testing.T) { linkingtest.RunStore(t, newLinks) },
	"linking/credentials": func(t *testing.T) { linkingtest.RunCredentialStore(t, newLinks) },
	"linking/refresh":     func(t *testing.T) { linkingtest.RunCredentialRefresh(t, newLinks) },
	"linking/flows":       func(t *testing.T) { linkingtest.RunFlows(t, newLinks) },
	"linking/apps": func(t *testing.T) {
		f := newFile(t)
		linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: f.Apps(), Users: f.Users()})
	},
	"linking/clients": func(t *testing.T) {
		f := newFile(t)
		linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: f.TeamClients(), Linking: linksOf(f)})
	},
	"linking/bulk": func(t *testing.T) {
		f := newFile(t)
		bulktest.RunStore(t, bulktest.StoreHarness{Bulk: f.Bulk(), SetClock: f.set, Linking: linksOf(f)})
	},
	"linking/pull":         func(t *testing.T) { pulltest.RunStore(t, pullsHarness) },
	"linking/pull model":   func(t *testing.T) { pulltest.RunStoreModel(t, pullsHarness) },
	"linking/pull crashes": func(t *testing.T) { pulltest.RunCrashes(t, pullsHarness) },
	"orders":               func(t *testing.T) { orderstest.RunStore(t, ordersHarness) },
	"orders/model":         func(t *testing.T) { orderstest.RunStoreModel(t, ordersHarness) },
	"orders/reviews": func(t *testing.T) {
		orderstest.RunReviews(t, func(t testing.TB) orderstest.ReviewsHarness {
			f := newFile(t)
			return orderstest.ReviewsHarness{
				Reviews: f.Reviews(), MatchTestRuns: f.MatchTestRuns(), Orders: f.Orders(), Users: f.Users(), Messages: f.WebhookLog(), SetClock: f.set,
			}
		})
	},
	"orders/erasure": func(t *testing.T) {
		orderstest.RunErasure(t, func(t testing.TB) orderstest.ErasureHarness {
			f := newFile(t)
			return orderstest.ErasureHarness{Users: f.Users(), Orders: f.Orders(), Keys: f.OrderKeys(), SetClock: f.set}
		})
	},
	"orders/erased keys": func(t *testing.T) {
		orderstest.RunErasedKeys(t, func(t testing.TB) orderstest.ErasedKeysHarness {
			f := hostFile(t)
			return orderstest.ErasedKeysHarness{Orders: f.Orders(), Reviews: f.Reviews(), Keys: f.PersonKeys()}
		})
	},
	"orders/visits": func(t *testing.T) {
		orderstest.RunVisits(t, func(t testing.TB) orderstest.VisitsHarness {
			f := hostFile(t)
			visits, ok := f.Orders().(orders.VisitStore)
			require.True(t, ok)
			return orderstest.VisitsHarness{Orders: f.Orders(), Visits: visits, SetClock: f.set}
		})
	},
	"orders/two processes":      func(t *testing.T) { orderstest.RunTwoProcesses(t, twoProcesses) },
	"orders/concurrent creates": func(t *testing.T) { orderstest.RunConcurrentCreates(t, twoProcesses) },
	"orders/appointment": func(t *testing.T) {
		appointmenttest.RunSlotCache(t, func(t testing.TB) appointment.SlotCache { return newFile(t).SlotCache() })
	},
	"orders/catalogue": func(t *testing.T) {
		cataloguetest.RunLabTestStore(t, func(t testing.TB) catalogue.LabTestStore { return newFile(t).LabTests() })
	},
	"orders/idempotency": func(t *testing.T) {
		orderstest.RunKeys(t, func(t testing.TB) orderstest.KeysHarness {
			f := newFile(t)
			return orderstest.KeysHarness{Keys: f.OrderKeys(), SetClock: f.set}
		})
	},
	"orders/labjournal": func(t *testing.T) {
		labjournaltest.RunStore(t, func(t testing.TB) labjournaltest.Harness {
			f := hostFile(t)
			return labjournaltest.Harness{Journal: f.LabJournal(), Users: f.Users()}
		})
	},
	"orders/people": func(t *testing.T) {
		peopletest.RunStore(t, func(t testing.TB) peopletest.StoreHarness {
			f := hostFile(t)
			return peopletest.StoreHarness{Persons: f.Persons(), Users: f.Users()}
		})
	},
	"personexport": func(t *testing.T) {
		personexporttest.RunStore(t, func(t testing.TB) personexporttest.StoreHarness {
			f := newFile(t)
			return personexporttest.StoreHarness{Exports: f.PersonExports(), Users: f.Users(), SetClock: f.set}
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
	"personkey/at rest": func(t *testing.T) {
		personkeytest.RunAtRest(t, func(t testing.TB) personkeytest.AtRestHarness {
			f := newFile(t)
			return personkeytest.AtRestHarness{Store: f, Keys: f.PersonKeys(), Kept: func(t testing.TB) []byte {
				kept, err := os.ReadFile(f.path)
				require.NoError(t, err)
				return kept
			}}
		})
	},
	"webhook/outbox": func(t *testing.T) {
		webhooktest.RunOutbox(t, func(t *testing.T) webhooktest.OutboxHarness {
			f := newFile(t)
			return webhooktest.OutboxHarness{Outbox: f.Outbox(), Message: f.WebhookLog().Message}
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

// TestStore_passesTheSuiteOfEveryDomainPackage runs the suite of every domain package that keeps something over one file of bbolt.
func TestStore_passesTheSuiteOfEveryDomainPackage(t *testing.T) {
	for name, run := range suites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

func usersHarness(t testing.TB) healthdatatest.UsersHarness {
	f := newFile(t)
	return healthdatatest.UsersHarness{Users: f.Users(), Messages: f.WebhookLog(), Data: f.Data()}
}

func dataHarness(t testing.TB) healthdatatest.DataHarness {
	f := newFile(t)
	return healthdatatest.DataHarness{Data: f.Data(), Users: f.Users(), Messages: f.WebhookLog()}
}

func dataAloneHarness(t testing.TB) healthdatatest.DataAloneHarness {
	f := newFile(t)
	return healthdatatest.DataAloneHarness{
		Data: f.Data(), Messages: f.WebhookLog(),
		Add: func(ctx context.Context, u healthdata.User) error { return f.Users().Insert(ctx, u, 0) },
		Delete: func(ctx context.Context, u healthdata.User) error {
			_, err := f.Users().Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.DeletedAt = u.CreatedOn.Time
				return nil, nil
			})
			return err
		},
	}
}

func continuousOf(f *file) aggregatetest.ContinuousHarness {
	return aggregatetest.ContinuousHarness{
		Store: f.Continuous(), Work: f.ContinuousWork(), Data: f.Data(), Users: f.Users(), Messages: f.WebhookLog(),
	}
}

func linksOf(f *file) linkingtest.StoreHarness {
	return linkingtest.StoreHarness{
		Linking: f.Linking(), Credentials: f.Credentials(), Second: f.Credentials(), Users: f.Users(), Data: f.Data(),
		Messages: f.WebhookLog(), SetClock: f.set,
	}
}

func newLinks(t testing.TB) linkingtest.StoreHarness { return linksOf(newFile(t)) }

func pullsHarness(t testing.TB) pulltest.StoreHarness {
	f := newFile(t)
	return pulltest.StoreHarness{
		Pulls: f.Pulls(), Users: f.Users(), Messages: f.WebhookLog(), Data: f.Data(), Credentials: f.Credentials(), SetClock: f.set,
	}
}

func ordersHarness(t testing.TB) orderstest.StoreHarness {
	f := hostFile(t)
	return orderstest.StoreHarness{Orders: f.Orders(), Messages: f.WebhookLog(), SetClock: f.set}
}

func twoProcesses(t testing.TB) []orderstest.Process {
	f := hostFile(t)
	p := orderstest.Process{Orders: f.Orders(), Reviews: f.Reviews(), Keys: f.OrderKeys(), Messages: f.WebhookLog()}
	return []orderstest.Process{p, p}
}

func newHooks(t *testing.T) webhooktest.Harness {
	f := newFile(t)
	return webhooktest.Harness{
		Outbox: f.Outbox(), Deliveries: f.Deliveries(), Endpoints: f.Endpoints(), Log: f.WebhookLog(), Bodies: f.EventBodies(), Advance: f.advance,
	}
}

func seenHarness(t *testing.T) receivertest.SeenHarness {
	f := newFile(t)
	return receivertest.SeenHarness{Seen: f.Seen(), Advance: f.advance}
}

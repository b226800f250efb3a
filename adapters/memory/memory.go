// Package memory keeps everything in memory: the stores of all domain packages behind
// one value, [Store].
//
// It keeps every promise of the interfaces but one: when the process ends, so does what
// it kept. Use it in tests, in demonstrations, and as the model of what another
// adapter should do; the same conformance suites run on all of them.
//
//	store := memory.New(nil)
//	dispatcher, err := webhook.NewDispatcher(types, store.Deliveries(), store.Endpoints(), …)
package memory

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personexport"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Now is the store's clock: it decides what is due and when a lease ends.
	// Default time.Now.
	Now func() time.Time
	// Envelope says how bodies of messages are made.
	Envelope webhook.Envelope
	// Retention is how long messages and attempts are kept. Default 30 days.
	Retention time.Duration
	// Keys encrypts what is kept about persons, but for samples. Nil keeps it in clear.
	Keys *personkey.Keys
	// EncryptSamples encrypts samples with Keys too. Default: samples are kept in clear. It has no
	// effect without Keys.
	EncryptSamples bool
}

// Store keeps everything in memory. Each interface is behind a method of its name. Safe
// for concurrent use: one lock guards all of it, and a method that runs a closure
// holds that lock, so the closure must not call the store.
type Store struct {
	*database
	tables
}

// New returns an empty store.
func New(opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	db := &database{now: opts.Now, keys: opts.Keys}
	if db.now == nil {
		db.now = time.Now
	}
	return &Store{db, newTables(db, opts)}
}

// PersonKeys returns what the store encrypts with; nil if it keeps everything in clear.
func (s *Store) PersonKeys() *personkey.Keys { return s.keys }

// OnWritten has written called with each write of events, so that a webhook.Dispatcher can
// be woken. It is called from many goroutines, and must neither block nor call the store.
// OnWritten itself is called once, before the Store is used.
func (s *Store) OnWritten(written func()) { s.outbox.written = written }

// Backlog counts what the store still has to deliver. A program that stops says so, because
// with the process it is gone.
func (s *Store) Backlog(ctx context.Context) (webhook.Backlog, error) {
	if err := s.lock(ctx); err != nil {
		return webhook.Backlog{}, err
	}
	defer s.mu.Unlock()
	b := webhook.Backlog{Unrouted: len(s.outbox.pending), Unfinished: len(s.queue.rows)}
	now := s.now()
	older := func(at time.Time) { b.Oldest = max(b.Oldest, now.Sub(at)) }
	if b.Unrouted > 0 {
		older(s.outbox.pending[0].at)
	}
	for _, r := range s.queue.rows {
		older(r.queued)
	}
	return b, nil
}

// AccessLog returns the chains of accesses as an [accesslog.Store].
func (s *Store) AccessLog() accesslog.Store { return accessLog{s.database, s.access} }

// Bulk returns the connections and their credentials as a [bulk.Store].
func (s *Store) Bulk() bulk.Store {
	return bulkStore{s.database, s.users, s.linking, s.bulk, s.userStore()}
}

// Continuous returns the store as a [continuous.Store].
func (s *Store) Continuous() continuous.Store { return s.continuousStore() }

// ContinuousWork returns the store as a [continuous.Work].
func (s *Store) ContinuousWork() continuous.Work { return s.continuousStore() }

// Data returns the store as a [healthdata.Data].
func (s *Store) Data() healthdata.Data {
	return dataStore{s.database, s.users, s.outbox, s.continuous, s.data}
}

// LabJournal returns the store as a [labjournal.Store].
func (s *Store) LabJournal() labjournal.Store { return labJournals{s.database, s.labs} }

// ParsingJobs returns the store as a [labreport.Store].
func (s *Store) ParsingJobs() labreport.Store {
	return jobStore{s.database, s.users, s.outbox, s.reports}
}

// Blobs returns the store as a [labreport.BlobStore]. Each file is encrypted with the key of
// its user, as [Options].Keys says.
func (s *Store) Blobs() labreport.BlobStore { return blobStore{s.database, s.reports} }

// Linking returns the store as a [linking.Store]. It shares its users with
// [Store.Users].
func (s *Store) Linking() linking.Store { return s.linkStore() }

// Credentials returns the same credentials as a [linking.CredentialStore].
func (s *Store) Credentials() linking.CredentialStore { return s.linkStore() }

// Apps returns the apps that are signed in as a [linking.AppSessions].
func (s *Store) Apps() linking.AppSessions { return s.linkStore() }

// TeamClients returns the clients of teams as a [linking.TeamClients].
func (s *Store) TeamClients() linking.TeamClients { return s.linkStore() }

// Orders returns the store as an [orders.Store].
func (s *Store) Orders() orders.Store { return ordersStore{s.database, s.outbox, s.orders} }

// OrderKeys returns the store as an [idempotency.Keys].
func (s *Store) OrderKeys() idempotency.Keys { return orderKeys{s.database, s.orders} }

// LabTests returns the store as a [catalogue.LabTestStore].
func (s *Store) LabTests() catalogue.LabTestStore { return labTests{s.database, s.orders} }

// SlotCache returns the store as an [appointment.SlotCache].
func (s *Store) SlotCache() appointment.SlotCache { return slotCache{s.database, s.orders} }

// Organisations returns teams and their keys as an [organisation.Store].
func (s *Store) Organisations() organisation.Store {
	return orgStore{s.database, s.users, s.linking, s.teams, s.orgs}
}

// Outbox returns the store as a [webhook.Outbox].
func (s *Store) Outbox() webhook.Outbox { return outboxStore{s.outbox} }

// PersonExports returns the store as a [personexport.Store].
func (s *Store) PersonExports() personexport.Store {
	return exportStore{s.database, s.users, s.exports}
}

// Persons returns the store as a [people.Store].
func (s *Store) Persons() people.Store { return persons{s.database, s.users, s.persons} }

// Priorities returns the store as an [aggregate.PriorityStore].
func (s *Store) Priorities() aggregate.PriorityStore { return s.continuousStore() }

// Pulls returns the store as a [pull.Store]. It shares its users with [Store.Users].
func (s *Store) Pulls() pull.Store { return pullStore{s.database, s.users, s.outbox, s.pulls} }

// Reviews returns the store as an [orders.ReviewStore].
func (s *Store) Reviews() orders.ReviewStore {
	return reviews{s.database, s.users, s.outbox, s.orders, s.reviews}
}

// MatchTestRuns returns the store as a [matchtest.Store].
func (s *Store) MatchTestRuns() matchtest.Store { return matchTestRuns{s.database, s.testRuns} }

// Teams returns the store as a [teamsettings.Store].
func (s *Store) Teams() teamsettings.Store { return teamStore{s.database, s.teams} }

// Users returns the store as a [healthdata.Users].
func (s *Store) Users() healthdata.Users { return users{s.userStore(), &s.tables} }

// EventBodies returns the store as a [webhook.Bodies].
func (s *Store) EventBodies() webhook.Bodies { return eventBodies{s.outbox} }

// Deliveries returns the store as a [webhook.Deliveries].
func (s *Store) Deliveries() webhook.Deliveries { return deliveries{s.outbox} }

// Endpoints returns the store as a [webhook.Endpoints].
func (s *Store) Endpoints() webhook.Endpoints { return endpoints{s.outbox} }

// WebhookLog returns the store as a [webhook.Log].
func (s *Store) WebhookLog() webhook.Log { return webhookLog{s.outbox} }

func (s *Store) userStore() userStore { return userStore{s.database, s.users, s.outbox, s.orders} }

func (s *Store) linkStore() linkStore {
	return linkStore{s.database, s.users, s.linking, s.userStore()}
}

func (s *Store) continuousStore() continuousStore {
	return continuousStore{s.database, s.users, s.outbox, s.continuous}
}

package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/linkstore"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/orderstore"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/userstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// PersonKeys returns what the store encrypts with; nil if it keeps everything in clear.
func (s *Store) PersonKeys() *personkey.Keys { return s.db.Keys }

// OnWritten has written called after each commit that wrote events, so that a
// webhook.Dispatcher of the same process can be woken. It is called from many goroutines,
// and must not block. In a host's transaction it is not called, for only the host knows of
// its commit. OnWritten itself is called once, before the Store is used.
func (s *Store) OnWritten(written func()) { s.db.Written = written }

// Run does the background work until ctx ends: [Store.RunFolding] and [Store.RunRetention].
// Any number of processes may run it on one database.
func (s *Store) Run(ctx context.Context) error {
	return work.Together(ctx, []work.Part{{Name: "folding", Run: s.RunFolding}, {Name: "retention", Run: s.RunRetention}})
}

// New returns a Store. The schema must be there; see [Migrate].
func New(database DB, opts *Options) *Store {
	s := &Store{folds: foldSignal{wake: make(chan struct{}, 1)}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Writers <= 0 {
		s.opts.Writers = 2
	}
	if s.opts.FoldAfter <= 0 {
		s.opts.FoldAfter = 10 * time.Minute
	}
	if s.opts.Retention <= 0 {
		s.opts.Retention = 30 * 24 * time.Hour
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.Default()
	}
	s.samples = seriesbox.Cipher{Keys: s.opts.Keys, Encrypt: s.opts.EncryptSamples}
	s.db = db.New(database, db.Options{Keys: s.opts.Keys, RowSecurity: s.opts.RowSecurity})
	s.messages = outbox.New(s.db, s.opts.Envelope, s.opts.Retention, s.opts.Log)
	s.users = userstore.New(s.db, s.messages, followUser, eraseUser)
	s.links = linkstore.New(s.db, s.users)
	s.orders = orderstore.New(s.db, s.messages)
	return s
}

// Users returns the store as a [healthdata.Users].
func (s *Store) Users() healthdata.Users { return s.users.Users() }

// Linking returns the store as a [linking.Store]. It shares its users with
// [Store.Users].
func (s *Store) Linking() linking.Store { return s.links }

// Credentials returns the credentials of connections as a [linking.CredentialStore].
func (s *Store) Credentials() linking.CredentialStore { return s.links }

// TeamClients returns the clients of teams as a [linking.TeamClients].
func (s *Store) TeamClients() linking.TeamClients { return s.links }

// Apps returns the apps that are signed in as a [linking.AppSessions].
func (s *Store) Apps() linking.AppSessions { return s.links }

// Bulk returns the connections and their credentials as a [bulk.Store].
func (s *Store) Bulk() bulk.Store { return linkstore.Bulk(s.links) }

// Orders returns the store as an [orders.Store].
func (s *Store) Orders() orders.Store { return s.orders.Orders() }

// OrderKeys returns the store as an [idempotency.Keys].
func (s *Store) OrderKeys() idempotency.Keys { return s.orders.OrderKeys() }

// Reviews returns the store as an [orders.ReviewStore].
func (s *Store) Reviews() orders.ReviewStore { return s.orders.Reviews() }

// MatchTestRuns returns the store as a [matchtest.Store].
func (s *Store) MatchTestRuns() matchtest.Store { return s.orders.MatchTestRuns() }

// LabTests returns the store as a [catalogue.LabTestStore].
func (s *Store) LabTests() catalogue.LabTestStore { return s.orders.LabTests() }

// SlotCache returns the store as an [appointment.SlotCache].
func (s *Store) SlotCache() appointment.SlotCache { return s.orders.SlotCache() }

// Persons returns the store as a [people.Store].
func (s *Store) Persons() people.Store { return s.orders.Persons() }

// LabJournal returns the store as a [labjournal.Store].
func (s *Store) LabJournal() labjournal.Store { return s.orders.LabJournal() }

// Outbox returns the store as a [webhook.Outbox].
func (s *Store) Outbox() webhook.Outbox { return s.messages.Outbox() }

// Deliveries returns the store as a [webhook.Deliveries]. On a pool its transactions do
// not wait for the disk where nothing is lost by that: a claim or an outcome that a
// server forgets when it crashes is a delivery that is made twice.
func (s *Store) Deliveries() webhook.Deliveries { return s.messages.Deliveries() }

// Endpoints returns the store as a [webhook.Endpoints].
func (s *Store) Endpoints() webhook.Endpoints { return s.messages.Endpoints() }

// EventBodies returns the store as a [webhook.Bodies].
func (s *Store) EventBodies() webhook.Bodies { return s.messages.EventBodies() }

// WebhookLog returns the store as a [webhook.Log].
func (s *Store) WebhookLog() webhook.Log { return s.messages.WebhookLog() }

// Backlog counts what the store still has to deliver, over all teams.
func (s *Store) Backlog(ctx context.Context) (webhook.Backlog, error) { return s.messages.Backlog(ctx) }

// Signal returns a [webhook.Signal] for one dispatcher, by LISTEN and NOTIFY. Listening
// takes a connection beyond those of the pool. What the dispatcher sends itself it does
// not hear. It is nil unless the Store is on a pool.
//
// Behind a pooler in transaction mode nothing is heard: leave it out there, or let it be;
// messages then wait for the next poll.
func (s *Store) Signal() webhook.Signal { return s.messages.Signal() }

// RunRetention deletes messages that are older than Options.Retention, with their deliveries
// and attempts, until ctx ends. An unfinished delivery of such a message is cancelled, and the
// next one of its lane moves up; their number is written to Options.Log, by team. Any number of
// processes may run it on one database.
func (s *Store) RunRetention(ctx context.Context) error { return s.messages.RunRetention(ctx) }

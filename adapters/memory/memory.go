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
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
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
	now       func() time.Time
	envelope  webhook.Envelope
	retention time.Duration
	keys      *personkey.Keys
	samples   seriesbox.Cipher
	written   func()

	mu sync.Mutex // guards everything below

	// clientUserID returns the customer's reference to a user, nil if there is none.
	// It is called with the lock held.
	clientUserID func(healthlab.TeamID, healthlab.UserID) *string

	trace   string // of the context with which the lock was taken
	outbox  outbox
	queue   queue
	users   userTable
	data    data
	orders  orderTable
	persons personTable
	reviews reviewTable
	linking linkTable
	orgs    orgTable
	pulls   pullTable
	bulk    bulkTable
	reports reportTable
	labs    map[string]*labJournal
	exports exportTable

	continuous continuousTable
	teams      map[healthlab.TeamID][]byte // JSON of their choices
	access     map[healthlab.TeamID]*accessChain
}

// PersonKeys returns what the store encrypts with; nil if it keeps everything in clear.
func (s *Store) PersonKeys() *personkey.Keys { return s.keys }

// OnWritten has written called with each write of events, so that a webhook.Dispatcher can
// be woken. It is called from many goroutines, and must neither block nor call the store.
// OnWritten itself is called once, before the Store is used.
func (s *Store) OnWritten(written func()) { s.written = written }

// New returns an empty store.
func New(opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	s := &Store{
		now:       opts.Now,
		envelope:  opts.Envelope,
		retention: opts.Retention,
		keys:      opts.Keys,
		samples:   seriesbox.Cipher{Keys: opts.Keys, Encrypt: opts.EncryptSamples},
		outbox:    newOutbox(),
		queue:     newQueue(),
		users:     newUserTable(),
		data:      newData(),
		orders:    newOrderTable(),
		persons:   newPersonTable(),
		reviews:   newReviewTable(),
		linking:   newLinkTable(),
		orgs:      newOrgTable(),
		pulls:     newPullTable(),
		bulk:      newBulkTable(),
		reports:   newReportTable(),
		labs:      map[string]*labJournal{},
		exports:   exportTable{},

		continuous: newContinuousTable(),
		teams:      map[healthlab.TeamID][]byte{},
		access:     map[healthlab.TeamID]*accessChain{},
	}
	s.clientUserID = s.users.clientUserID
	s.orders.deleted = s.users.isDeleted
	s.orders.sealed, s.reviews.sealed, s.reports.sealed = s.keys, s.keys, s.keys
	if s.now == nil {
		s.now = time.Now
	}
	if s.retention <= 0 {
		s.retention = 30 * 24 * time.Hour
	}
	return s
}

// clock returns the store's time as it is kept: in UTC, to the microsecond.
func (s *Store) clock() time.Time { return instant(s.now()) }

// instant returns t as it is kept: in UTC, to the microsecond.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// lock takes the store's lock, unless ctx has ended: then nothing is locked, and the
// error is the context's.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	s.trace = healthlab.TraceOf(ctx)
	return nil
}

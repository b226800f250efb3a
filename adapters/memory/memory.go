// Package memory keeps everything in memory: [Store] has the stores of all domain packages over an engine of package
// memstore.
//
// It keeps every promise of the interfaces except durability: the data is lost when the process ends. Use it in
// tests and demonstrations, and as the reference for other engines: the same test suites run on all of them.
//
//	store := memory.New(nil)
//	dispatcher, err := webhook.NewDispatcher(types, store.Webhooks(), …)
package memory

import (
	"time"

	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Now is the clock of the store, for due times and leases. Default time.Now.
	Now func() time.Time
	// Events receives the events of changes: see stores.Options. Default: stores.Outbox, whose events stay until a
	// webhook.Dispatcher sends them. A program without a dispatcher should set stores.NoEvents.
	Events store.Events
	// Pipelines marks changed users' data for pushing to the team's FHIR servers: see stores.Options.
	Pipelines bool
	// Envelope builds the bodies of webhook messages.
	Envelope webhook.Envelope
	// Retention is how long webhook messages and attempts are kept, delivered or not. It should be longer than the
	// longest downtime of a receiver plus the largest error of the clock Now. Default 30 days.
	Retention time.Duration
	// Keys encrypts data about persons, except samples. Nil: nothing is encrypted.
	Keys *personkey.Keys
	// EncryptSamples also encrypts samples with Keys. Default: samples are not encrypted. It has no effect without
	// Keys.
	EncryptSamples bool
	// UsersElsewhere accepts data about users that have no row in this store, because the host keeps users elsewhere.
	// Default false: data about an unknown user is refused with healthlab.NotFound.
	UsersElsewhere bool
}

// Store provides the stores of all domain packages as methods, over one engine. Safe for concurrent use. A function
// that runs inside an Update must pass the context that it receives to all writes: a write with another context waits,
// until that context ends, for the lock that the Update holds.
type Store struct {
	*stores.Stores
	engine *memstore.Engine
	blobs  *blobs
}

// New returns an empty store.
func New(opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	engine, events := engineOf(stores.Tables(), opts), opts.Events
	if events == nil {
		events = stores.Outbox
	}
	return &Store{
		stores.New(engine, &stores.Options{
			Keys: opts.Keys, EncryptSamples: opts.EncryptSamples, Events: events, Envelope: opts.Envelope, Retention: opts.Retention,
			UsersElsewhere: opts.UsersElsewhere, Pipelines: opts.Pipelines,
		}),
		engine, newBlobs(opts.Keys),
	}
}

// Kept returns all rows as they are stored: encrypted, if [Options].Keys is set. See memstore.Engine.
func (s *Store) Kept() []store.Row { return s.engine.Kept() }

// Blobs returns the store of files. Each file is encrypted with the key of its user if [Options].Keys is set.
func (s *Store) Blobs() labreport.BlobStore { return s.blobs }

// NewPersonKeys returns an empty store of the encryption keys of persons. It shares no rows with any [Store].
func NewPersonKeys() personkey.Store {
	return personkey.NewStore(engineOf(personkey.Tables(), &Options{}))
}

// NewSeen returns an empty store of the message ids that a receiver has seen. It ignores all options except Now.
func NewSeen(opts *Options) receiver.Seen {
	if opts == nil {
		opts = &Options{}
	}
	return receiver.NewSeen(engineOf(receiver.Tables(), opts))
}

// engineOf returns an engine for tables that this module declares. It panics if a declaration is invalid.
func engineOf(tables []store.Definition, opts *Options) *memstore.Engine {
	e, err := memstore.New(tables, &memstore.Options{Now: opts.Now})
	if err != nil {
		panic(err)
	}
	return e
}

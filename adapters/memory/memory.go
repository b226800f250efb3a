// Package memory keeps everything in memory: [Store] has the stores of all domain packages over an engine
// of package memstore, below this one.
//
// It keeps every promise of the interfaces but one: when the process ends, so does what it kept. Use
// it in tests, in demonstrations, and as the model of what another engine does; the same suites run
// on all of them.
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
	// Now is the store's clock: it decides what is due and when a lease ends.
	// Default time.Now.
	Now func() time.Time
	// Events takes the events of changes: see stores.Options. Default: stores.Outbox, whose events stay until
	// a webhook.Dispatcher sends them. A program that runs none says stores.NoEvents.
	Events store.Events
	// Pipelines says that changes mark persons for the FHIR servers of their team: see stores.Options.
	Pipelines bool
	// Envelope says how bodies of messages are made.
	Envelope webhook.Envelope
	// Retention is how long webhook messages and attempts are kept, delivered or not, by the store's clock. Choose it
	// longer than the longest time that a receiver may be down and the greatest error of that clock added up. Default 30 days.
	Retention time.Duration
	// Keys encrypts what is kept about persons, but for samples. Nil keeps it in clear.
	Keys *personkey.Keys
	// EncryptSamples encrypts samples with Keys too. Default: samples are kept in clear. It has no
	// effect without Keys.
	EncryptSamples bool
	// UsersElsewhere says that the host keeps its users outside of the store. Default false: what is
	// about a user whom the store does not have is refused with healthlab.NotFound.
	UsersElsewhere bool
}

// Store has the stores of all domain packages, each behind a method of its name, over one engine.
// It is safe for concurrent use. A method that runs a closure holds the engine's turn, so the closure
// must not write to the store but with the context that it got.
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

// Kept returns all rows as they are kept, encrypted with [Options].Keys; see memstore.Engine.
func (s *Store) Kept() []store.Row { return s.engine.Kept() }

// Blobs returns a place for files. Each is encrypted with the key of its user, as [Options].Keys says.
func (s *Store) Blobs() labreport.BlobStore { return s.blobs }

// NewPersonKeys returns an empty store of the keys of persons, apart from any [Store].
func NewPersonKeys() personkey.Store {
	return personkey.NewStore(engineOf(personkey.Tables(), &Options{}))
}

// NewSeen returns an empty memory of what a receiver saw. Of the options only Now counts.
func NewSeen(opts *Options) receiver.Seen {
	if opts == nil {
		opts = &Options{}
	}
	return receiver.NewSeen(engineOf(receiver.Tables(), opts))
}

// engineOf returns an engine for tables of this module, whose names differ.
func engineOf(tables []store.Definition, opts *Options) *memstore.Engine {
	e, err := memstore.New(tables, &memstore.Options{Now: opts.Now})
	if err != nil {
		panic(err)
	}
	return e
}

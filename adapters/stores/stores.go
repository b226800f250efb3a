// Package stores has the stores of all domain packages over one store.Store: what keeps their rows
// encrypted, their events in one outbox, and their erasures complete.
//
//	engine, err := sqlite.Open(ctx, "healthlab.db", stores.Tables(), nil)
//	all := stores.New(engine, &stores.Options{Keys: keys, Events: stores.Outbox})
//	health, err := healthdata.New(all.Users(), all.Data(), providers, nil)
//
// A host that needs one package takes that package's own constructor (healthdata.NewUsers,
// orders.NewStore, …) and links no other.
package stores

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
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
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// Options adjusts Stores. The zero value, and nil, mean the defaults.
type Options struct {
	// Keys encrypts data about persons. Nil: nothing is encrypted.
	Keys *personkey.Keys
	// EncryptSamples also encrypts samples with Keys. Default: samples are not encrypted. It has no effect without
	// Keys.
	EncryptSamples bool
	// Events receives the events of changes, in the transaction of the change: [Outbox] for a program with
	// a webhook.Dispatcher, or a store.Events of the host. Default: no event is kept. Without [Outbox] the
	// methods for deliveries, endpoints and messages return nil, and webhook.NewDispatcher,
	// webhook.NewService and service.New refuse these stores.
	Events store.Events
	// Pipelines marks each changed user for the FHIR servers of the user's team (package ehr), in the
	// transaction of the change. Changes of orders are marked only if Events is [Outbox]. All programs
	// that write to one store must use the same value. Default false: [Stores.Pipelines] returns nil.
	Pipelines bool
	// Envelope builds the bodies of webhook messages. Messages get a sequence number if Envelope.Sequence
	// is true.
	Envelope webhook.Envelope
	// Retention is how long webhook messages and attempts are kept, delivered or not. It should be longer than the
	// longest downtime of a receiver plus the largest error of the engine's clock. Default 30 days.
	Retention time.Duration
	// Erasing is called repeatedly with the number of deleted rows while a user with many rows is erased;
	// see healthdata.UserOptions. Default: none.
	Erasing func(team healthlab.TeamID, user healthlab.UserID, rows int)
	// UsersElsewhere accepts data about users that have no row in this store, because the host keeps users
	// elsewhere. Default false: data about an unknown user is refused with healthlab.NotFound.
	UsersElsewhere bool
}

// Outbox is a value of [Options].Events that keeps events in the store until a webhook.Dispatcher has sent
// them, and sent ones until [Options].Retention has passed. Without a running dispatcher, events stay
// forever. Every program that writes to one store must use the same value of Events.
//
// Continuous queries and pulls notice changes with or without Outbox. Continuous queries also write their
// own events to it.
var Outbox store.Events = outbox{}

type outbox struct{ noEvents } // a marker: New uses a webhook.Store instead

// NoEvents is a value of [Options].Events that drops all events. It is the default.
var NoEvents store.Events = noEvents{}

type noEvents struct{}

// Append does nothing.
func (noEvents) Append(context.Context, store.Tx, []healthlab.Event) error { return nil }

// Forget does nothing.
func (noEvents) Forget(context.Context, store.Tx, healthlab.TeamID, healthlab.UserID) error {
	return nil
}

// Tables declares all tables that [New] expects of its engine.
func Tables() []store.Definition { return tables(false) }

func tables(encryptSamples bool) []store.Definition {
	var all []store.Definition
	for _, of := range [][]store.Definition{
		healthdata.UserTables(), healthdata.DataTables(encryptSamples), organisation.Tables(), teamsettings.Tables(),
		linking.Tables(), bulk.Tables(), pull.Tables(),
		orders.Tables(), exchange.Tables(), idempotency.Tables(), catalogue.Tables(), appointment.Tables(), people.Tables(),
		labjournal.Tables(), simulation.Tables(),
		aggregate.Tables(), continuous.Tables(), ehr.Tables(), labreport.Tables(), personexport.Tables(),
		webhook.Tables(), receiver.Tables(), accesslog.Tables(),
	} {
		all = append(all, of...)
	}
	return all
}

// Stores provides the store of every package as a method, over one store.Store. Safe for concurrent use.
type Stores struct {
	engine  store.Store
	s       store.Store // engine, with documents encrypted
	opts    Options
	links   *linking.Rows
	users   healthdata.Users
	data    healthdata.Data
	queries *continuous.RowStore
	ehr     *ehr.Rows      // nil unless Options.Pipelines is true
	events  *webhook.Store // nil unless Options.Events is Outbox
	outbox  store.Events
	written atomic.Pointer[func()]
}

// New returns the stores over an engine that has the tables of [Tables].
func New(engine store.Store, opts *Options) *Stores {
	v := &Stores{engine: engine}
	if opts != nil {
		v.opts = *opts
	}
	all := tables(v.opts.EncryptSamples)
	v.s = store.ReadAhead(personkey.Encrypt(engine, v.opts.Keys, all), all)
	messages := &webhook.StoreOptions{Envelope: v.opts.Envelope, Retention: v.opts.Retention, OnWritten: func() {
		if written := v.written.Load(); written != nil {
			(*written)()
		}
	}}
	queries := &continuous.StoreOptions{}
	if v.opts.Pipelines {
		v.ehr = ehr.NewRows(v.s)
		queries.Pushed = v.ehr.QueryChanged
		messages.Readers = []webhook.Reader{v.ehr.Read}
	}
	switch v.opts.Events.(type) {
	case nil:
		v.outbox = NoEvents
	case outbox:
		v.events, v.outbox = webhook.NewStore(v.s, messages), webhook.NewOutbox(messages)
	default:
		v.outbox = v.opts.Events
	}
	users := &healthdata.UserOptions{
		Events: v.outbox, OnErase: []healthdata.UserHook{labreport.EraseJobs, personexport.EraseJobs, bulk.EraseItems},
		UsersElsewhere: v.opts.UsersElsewhere, Erasing: v.opts.Erasing,
	}
	v.users = healthdata.NewUsers(v.s, users)
	v.links = linking.NewStore(v.s, &linking.StoreOptions{UserRows: healthdata.NewUserRows(users)})
	queries.Events = v.outbox
	v.queries = continuous.NewStore(v.s, queries)
	v.data = healthdata.NewData(v.s, &healthdata.DataOptions{
		Events: v.outbox, Changes: v.changes(), UsersElsewhere: v.opts.UsersElsewhere,
	})
	return v
}

func (v *Stores) changes() healthdata.Changes {
	if v.ehr == nil {
		return v.queries
	}
	return several{v.queries, v.ehr}
}

// several is a list of [healthdata.Changes] that acts as one.
type several []healthdata.Changes

// Queries returns the queries of all elements.
func (s several) Queries(team healthlab.TeamID) (out []store.Query) {
	for _, c := range s {
		out = append(out, c.Queries(team)...)
	}
	return out
}

// Changed calls all elements until one fails.
func (s several) Changed(ctx context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID, spans map[string]healthdata.Span) error {
	for _, c := range s {
		if err := c.Changed(ctx, tx, team, user, spans); err != nil {
			return err
		}
	}
	return nil
}

// Engine returns the engine passed to New. Documents read from it are still encrypted.
func (v *Stores) Engine() store.Store { return v.engine }

// Rows returns the engine with documents decrypted on read and encrypted on write. Stores that are called
// with the context of its Update write in that transaction.
func (v *Stores) Rows() store.Store { return v.s }

// PersonKeys returns Options.Keys; nil if nothing is encrypted.
func (v *Stores) PersonKeys() *personkey.Keys { return v.opts.Keys }

// OnWritten sets a function that is called after each commit that wrote events, to wake a webhook.Dispatcher. It must
// be safe for concurrent use and must not block.
func (v *Stores) OnWritten(written func()) { v.written.Store(&written) }

// HasOutbox reports whether events are kept for delivery: whether [Options].Events is [Outbox].
func (v *Stores) HasOutbox() bool { return v.events != nil }

// Backlog counts the undelivered messages; zero without the outbox.
func (v *Stores) Backlog(ctx context.Context) (webhook.Backlog, error) {
	if v.events == nil {
		return webhook.Backlog{}, nil
	}
	return v.events.Backlog(ctx)
}

// AccessLog returns the store of the access log: one chain of signed entries for each team.
func (v *Stores) AccessLog() accesslog.Store { return accesslog.NewStore(v.s, nil) }

// Bulk returns the store of bulk operations.
func (v *Stores) Bulk() bulk.Store { return bulk.NewStore(v.s, v.links) }

// ChangeQueries returns the queries, besides those for health data itself, that a transaction that changes health data
// of a team runs. A transaction that reads all its rows in one call includes them.
func (v *Stores) ChangeQueries(team healthlab.TeamID) []store.Query { return v.changes().Queries(team) }

// Continuous returns the store of continuous queries.
func (v *Stores) Continuous() continuous.Store { return v.queries }

// ContinuousWork returns the store of the due tasks that evaluate continuous queries.
func (v *Stores) ContinuousWork() continuous.Work { return v.queries }

// Pipelines returns the store of the FHIR servers of teams; nil unless [Options].Pipelines is true.
func (v *Stores) Pipelines() *ehr.Rows { return v.ehr }

// Priorities returns the store of the order in which teams prefer providers.
func (v *Stores) Priorities() aggregate.PriorityStore {
	return aggregate.NewPriorityStore(v.s, &aggregate.PriorityStoreOptions{Changed: v.restart})
}

func (v *Stores) restart(ctx context.Context, tx store.Tx, team healthlab.TeamID) error {
	if err := v.queries.Restart(ctx, tx, team); err != nil || v.ehr == nil {
		return err
	}
	return v.ehr.Restart(ctx, tx, team)
}

// Users returns the store of users.
func (v *Stores) Users() healthdata.Users { return v.users }

// Data returns the store of samples and other health records.
func (v *Stores) Data() healthdata.Data { return v.data }

// Organisations returns the store of teams and their API keys.
func (v *Stores) Organisations() organisation.Store {
	return organisation.NewStore(v.s, &organisation.StoreOptions{OnDelete: []func(context.Context, store.Tx, healthlab.TeamID) error{
		teamsettings.DeleteTeam, linking.DeleteTeam, bulk.DeleteTeam, pull.DeleteTeam, ehr.DeleteTeam,
	}})
}

// Teams returns the store of the settings of teams.
func (v *Stores) Teams() teamsettings.Store { return teamsettings.NewStore(v.s) }

// Linking returns the store of link codes and link sessions.
func (v *Stores) Linking() linking.Store { return v.links }

// Credentials returns the store of the credentials of connections.
func (v *Stores) Credentials() linking.CredentialStore { return v.links }

// Apps returns the store of companion app sessions.
func (v *Stores) Apps() linking.AppSessions { return linking.NewAppSessions(v.s) }

// TeamClients returns the store of the OAuth clients that teams have registered with providers.
func (v *Stores) TeamClients() linking.TeamClients { return linking.NewTeamClients(v.s) }

// Pulls returns the store of pull tasks, request budgets and quarantined items.
func (v *Stores) Pulls() pull.Store {
	return pull.NewStore(v.s, &pull.StoreOptions{Events: v.outbox})
}

// Orders returns the store of lab orders.
func (v *Stores) Orders() orders.Store {
	return orders.NewStore(v.s, v.orderOptions())
}

// Reviews returns the store of results that wait until a person assigns them to an order.
func (v *Stores) Reviews() exchange.ReviewStore {
	return exchange.NewReviewStore(v.s, v.orderOptions())
}

func (v *Stores) orderOptions() *orders.StoreOptions {
	return &orders.StoreOptions{Events: v.outbox, UsersElsewhere: v.opts.UsersElsewhere}
}

// CriticalResults returns the store of critical results: who was notified of each, and who has acknowledged it.
func (v *Stores) CriticalResults() critical.Store {
	return critical.NewStore(v.s, &critical.StoreOptions{Events: v.outbox})
}

// OrderKeys returns the store of the idempotency keys of orders.
func (v *Stores) OrderKeys() idempotency.Keys {
	return idempotency.NewStore(v.s, &idempotency.StoreOptions{UsersElsewhere: v.opts.UsersElsewhere})
}

// MatchTestRuns returns the store of test runs of the matching of results to orders.
func (v *Stores) MatchTestRuns() simulation.MatchTestStore { return simulation.NewMatchTestStore(v.s) }

// LabTests returns the store of the lab tests that teams define.
func (v *Stores) LabTests() catalogue.LabTestStore { return catalogue.NewLabTestStore(v.s) }

// SlotCache returns the cache of free appointment slots of laboratories.
func (v *Stores) SlotCache() appointment.SlotCache { return appointment.NewSlotCache(v.s) }

// Persons returns the store of demographics, consents and insurance.
func (v *Stores) Persons() people.Store {
	return people.NewStore(v.s, &people.StoreOptions{UsersElsewhere: v.opts.UsersElsewhere})
}

// LabJournal returns the store of the journals of package labjournal.
func (v *Stores) LabJournal() labjournal.Store {
	return labjournal.NewStore(v.s, &labjournal.StoreOptions{UsersElsewhere: v.opts.UsersElsewhere})
}

// ParsingJobs returns the store of the parsing jobs of package labreport.
func (v *Stores) ParsingJobs() labreport.Store {
	return labreport.NewStore(v.s, &labreport.StoreOptions{Events: v.outbox, UsersElsewhere: v.opts.UsersElsewhere})
}

// PersonExports returns the store of exports of persons.
func (v *Stores) PersonExports() personexport.Store { return personexport.NewStore(v.s) }

// Outbox returns the outbox of events; nil unless [Options].Events is the variable [Outbox].
func (v *Stores) Outbox() webhook.Outbox {
	if v.events == nil {
		return nil
	}
	return v.events
}

// Webhooks returns the store of webhook.Service and webhook.Dispatcher; nil unless [Options].Events is
// [Outbox].
func (v *Stores) Webhooks() webhook.ServiceStore {
	if v.events == nil {
		return nil
	}
	return v.events
}

// Deliveries returns the store of webhook deliveries; nil unless [Options].Events is [Outbox].
func (v *Stores) Deliveries() webhook.Deliveries {
	if v.events == nil {
		return nil
	}
	return v.events
}

// Endpoints returns the store of the webhook endpoints of teams; nil if the stores were made without an outbox.
func (v *Stores) Endpoints() webhook.Endpoints {
	if v.events == nil {
		return nil
	}
	return v.events
}

// EventBodies returns the store of the bodies of webhook messages; nil unless [Options].Events is
// [Outbox].
func (v *Stores) EventBodies() webhook.Bodies {
	if v.events == nil {
		return nil
	}
	return v.events
}

// WebhookLog returns the store of webhook messages and attempts to send them; nil unless [Options].Events
// is [Outbox].
func (v *Stores) WebhookLog() webhook.Log {
	if v.events == nil {
		return nil
	}
	return v.events
}

// Seen returns the store of message ids that a receiver has seen.
func (v *Stores) Seen() receiver.Seen { return receiver.NewSeen(v.s) }

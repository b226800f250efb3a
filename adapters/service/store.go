package service

import (
	"context"

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
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personexport"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Store has the store of every package behind a method of its name. The stores of
// adapters/memory and adapters/postgres have all of them.
//
// A Store may have further methods, which the assembly uses if they are there:
//
//	Run(ctx context.Context) error      // background work, which Service.Run does too
//	Ping(ctx context.Context) error     // nil if the store can be used, for Service.Ready
//	OnWritten(func())                   // called after each write of events
//	Signal() webhook.Signal             // messages between processes on one store
//	PersonKeys() *personkey.Keys        // what it encrypts with; compared with Config.Keys
type Store interface {
	Users() healthdata.Users
	Teams() teamsettings.Store
	Organisations() organisation.Store
	Data() healthdata.Data
	Orders() orders.Store
	OrderKeys() idempotency.Keys
	LabTests() catalogue.LabTestStore
	Persons() people.Store
	Continuous() continuous.Store
	ContinuousWork() continuous.Work
	Priorities() aggregate.PriorityStore
	SlotCache() appointment.SlotCache
	Reviews() orders.ReviewStore
	MatchTestRuns() matchtest.Store
	Linking() linking.Store
	TeamClients() linking.TeamClients
	Credentials() linking.CredentialStore
	Pulls() pull.Store
	Bulk() bulk.Store
	Apps() linking.AppSessions
	ParsingJobs() labreport.Store
	PersonExports() personexport.Store
	Deliveries() webhook.Deliveries
	Endpoints() webhook.Endpoints
	WebhookLog() webhook.Log
	EventBodies() webhook.Bodies
	AccessLog() accesslog.Store
}

type (
	runner interface {
		Run(ctx context.Context) error
	}
	pinger interface {
		Ping(ctx context.Context) error
	}
	notifier interface{ OnWritten(written func()) }
	signaler interface{ Signal() webhook.Signal }
)

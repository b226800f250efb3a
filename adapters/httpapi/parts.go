package httpapi

import (
	"context"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/compat"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/laborders"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/orders/visits"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Part is a group of operations, with the service behind them.
type Part struct {
	// domain is the folder of its service, whose types of errors its answers have.
	domain string
	// mount puts the service where handlers find it, and what it does for other parts.
	mount func(*api)
	// prepare runs after every part is mounted; nil for most.
	prepare    func(*api)
	operations func(api) []server.Operation
	// events are those that its service sends; nil for none.
	events func() []healthlab.EventType
	// managed parts need Config.AuthenticateManagement and Config.Environment.
	managed bool
}

// across is what one part does for another. A nil function: that part is not mounted.
type across struct {
	// disconnect and endConsent tell the provider, too. By Linking.
	disconnect, endConsent func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error
	// tokenUser says of whom a link token is; false for a token that is not ours. By Linking.
	tokenUser func(token string) (healthlab.TeamID, healthlab.UserID, bool)
	// linkOrigins are the origins whose pages a team lets call the link API. By TeamSettings.
	linkOrigins func(context.Context, healthlab.TeamID) ([]string, error)
	// appCaller says for whom an app calls; false for a token that is no app's. By CompanionApps.
	appCaller func(ctx context.Context, token string) (Caller, bool, error)
	// orgOf is the organisation of a team. By Organisations.
	orgOf func(context.Context, healthlab.TeamID) (uuid.UUID, error)
	// orderUser is whose an order is, and countOrders is how many a team has. By LabOrders.
	orderUser   func(context.Context, healthlab.TeamID, uuid.UUID) (healthlab.UserID, error)
	countOrders func(context.Context, healthlab.TeamID) (int, error)
}

// HealthData mounts users, sources, consents and health data.
func HealthData(s *healthdata.Service) Part {
	return Part{
		domain: "healthdata",
		mount:  func(a *api) { a.Health = s },
		operations: tables(api.userOperations, api.healthOperations, api.ingestOperations, api.connectionOperations,
			api.consentOperations),
		events: healthdata.EventTypes,
	}
}

// Queries mounts questions over health data.
func Queries(s *aggregate.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Aggregate = s }, operations: api.aggregateOperations}
}

// Priorities mounts teams' preferences between providers.
func Priorities(s *aggregate.Preferences) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Priorities = s }, operations: api.priorityOperations}
}

// ContinuousQueries mounts queries that are kept up to date. They need Config.AuthenticateManagement
// and Config.Environment.
func ContinuousQueries(s *continuous.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Continuous = s }, operations: api.continuousOperations, events: continuous.EventTypes, managed: true}
}

// EHRPipelines mounts FHIR servers to which teams push. They need Config.AuthenticateManagement and
// Config.Environment, and a program that runs a push.Pusher of adapters/fhir.
func EHRPipelines(s *ehr.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Pipelines = s }, operations: api.pipelineOperations, managed: true}
}

// TeamSettings mounts what teams have chosen. It needs Config.AuthenticateManagement and
// Config.Environment. identity says who a team is, for teams that ask about themselves, and must be safe
// for concurrent use. Nil: as Organisations says; without those, they cannot.
func TeamSettings(s *teamsettings.Service, identity func(context.Context, healthlab.TeamID) (TeamIdentity, error)) Part {
	return Part{
		domain: "healthdata",
		mount: func(a *api) {
			a.Teams, a.TeamIdentity = s, identity
			a.linkOrigins = func(ctx context.Context, team healthlab.TeamID) ([]string, error) {
				c, err := s.Of(ctx, team)
				return c.LinkOrigins, err
			}
		},
		operations: tables(api.settingsOperations, api.pullPreferenceOperations, api.scopeOperations), managed: true,
	}
}

// Organisations mounts the teams of organisations and their API keys; a path of the management then
// opens only teams of its organisation. It needs Config.AuthenticateManagement and Config.Environment.
// [KeysOf] lets the keys open the rest.
func Organisations(s *organisation.Service) Part {
	return Part{
		domain: "healthdata",
		mount: func(a *api) {
			a.Organisations = s
			a.orgOf = func(ctx context.Context, team healthlab.TeamID) (uuid.UUID, error) {
				of, err := s.Find(ctx, team)
				return of.Org, err
			}
		},
		operations: api.organisationOperations, managed: true,
	}
}

// Linking mounts link codes, link tokens and what people connect with them. It needs [HealthData]. The
// management of teams' own clients at providers is there if it takes them (linking.Options.Clients) and
// Config.AuthenticateManagement and Config.Environment are set.
func Linking(s *linking.Service) Part {
	return Part{
		domain: "linking",
		mount: func(a *api) {
			a.Linking = s
			a.disconnect, a.endConsent, a.tokenUser = s.Disconnect, s.WithdrawConsent, s.TokenUser
		},
		operations: tables(api.linkOperations, api.credentialOperations),
	}
}

// LinkingPages mounts the pages on which people link, where link_web_url leads. They need [Linking].
func LinkingPages(p *LinkPages) Part {
	return Part{domain: "linking", mount: func(a *api) { a.LinkPages = p }, prepare: (*api).makePages, operations: api.linkPageOperations}
}

// Pulls mounts refreshes, a look at what was fetched, and what providers send by themselves. It needs
// [HealthData].
func Pulls(s *pull.Service) Part {
	return Part{domain: "linking", mount: func(a *api) { a.Pulls = s }, operations: api.pullOperations}
}

// BulkOperations mounts operations on many connections at once. They need [HealthData].
func BulkOperations(s *bulk.Service) Part {
	return Part{domain: "linking", mount: func(a *api) { a.Bulk = s }, operations: api.bulkOperations}
}

// CompanionApps mounts the sign-in of apps, which act for one user with tokens of their own.
func CompanionApps(s *linking.Apps) Part {
	return Part{
		domain: "linking",
		mount: func(a *api) {
			a.Apps = s
			a.appCaller = func(ctx context.Context, token string) (Caller, bool, error) {
				if !linking.IsUserToken(token) {
					return Caller{}, false, nil
				}
				team, user, err := s.Authenticate(ctx, token)
				return Caller{Team: team, User: user}, true, err
			}
		},
		operations: api.appOperations,
	}
}

// Laboratory has the services behind lab orders.
type Laboratory struct {
	// Orders places and keeps them. Required.
	Orders *orders.Service
	// Exchange takes in what laboratories report of Orders. Nil: there are no operations of results in review
	// and of simulations.
	Exchange *exchange.Service
	// Visits books appointments for Orders. Nil: there are no operations of appointments and of the
	// places where samples are taken.
	Visits *visits.Service
	// Critical has the critical results of Orders. Nil: there are no operations of them.
	Critical *critical.Service
	// MatchTests are test runs of how results are matched, in a sandbox. Nil: there are none.
	MatchTests *simulation.MatchTests
	// Documents prints the documents of Orders. Nil: every document is not found.
	Documents *documents.Service
}

// LabOrders mounts lab orders, their results and the catalogue.
func LabOrders(s Laboratory) Part {
	return Part{
		domain: "orders",
		mount: func(a *api) {
			a.Laboratory = s
			a.orderUser = func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (healthlab.UserID, error) {
				o, err := s.Orders.Get(ctx, team, orders.OrderID{UUID: id})
				return o.UserID, err
			}
			a.countOrders = func(ctx context.Context, team healthlab.TeamID) (int, error) {
				page, err := s.Orders.List(ctx, orders.Query{Team: team, Size: 1})
				return page.Total, err
			}
		},
		operations: func(a api) []server.Operation {
			lab := laborders.API{
				Orders: s.Orders, Exchange: s.Exchange, Visits: s.Visits, Critical: s.Critical, MatchTests: s.MatchTests, Documents: s.Documents,
				Idempotency: a.Idempotency, Transact: a.Transact,
			}
			if a.Compat != nil {
				lab.CapabilityName = compat.Shapes(*a.Compat).Name
			}
			return lab.Operations()
		},
		events: func() []healthlab.EventType { return append(orders.EventTypes(), exchange.EventTypes()...) },
	}
}

// LabReports mounts the parsing of lab reports.
func LabReports(s *labreport.Service) Part {
	return Part{domain: "labreport", mount: func(a *api) { a.Reports = s }, operations: api.reportOperations, events: labreport.EventTypes}
}

// LabHistory mounts the laboratory results of orders and reports as one history a person.
func LabHistory(s *labhistory.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.LabHistory = s }, operations: api.labResultOperations}
}

// Webhooks mounts the management of webhook endpoints. It needs Config.AuthenticateManagement and
// Config.Environment.
func Webhooks(s *webhook.Service) Part {
	return Part{domain: "webhook", mount: func(a *api) { a.Webhooks = s }, operations: api.webhookOperations, events: webhook.EventTypes, managed: true}
}

// PersonExports mounts exports of everything that is kept about a user.
func PersonExports(s *personexport.Service) Part {
	return Part{domain: "privacy", mount: func(a *api) { a.Exports = s }, operations: api.exportOperations}
}

// tables joins tables of operations.
func tables(of ...func(api) []server.Operation) func(api) []server.Operation {
	return func(a api) (out []server.Operation) {
		for _, t := range of {
			out = append(out, t(a)...)
		}
		return out
	}
}

// Services are the services of a whole system. A nil one is not mounted. A program that has a Services
// links them all; see [Part].
type Services struct {
	Health        *healthdata.Service
	Aggregate     *aggregate.Service
	Priorities    *aggregate.Preferences
	Continuous    *continuous.Service
	Pipelines     *ehr.Service
	Teams         *teamsettings.Service
	Organisations *organisation.Service
	// TeamIdentity is that of [TeamSettings].
	TeamIdentity func(context.Context, healthlab.TeamID) (TeamIdentity, error)
	Linking      *linking.Service
	LinkPages    *LinkPages
	Pulls        *pull.Service
	Bulk         *bulk.Service
	Apps         *linking.Apps
	Laboratory
	Reports    *labreport.Service
	LabHistory *labhistory.Service
	Webhooks   *webhook.Service
	Exports    *personexport.Service
}

// Parts returns the parts of the services that are there.
func (s *Services) Parts() (out []Part) {
	add := func(there bool, p Part) {
		if there {
			out = append(out, p)
		}
	}
	add(s.Health != nil, HealthData(s.Health))
	add(s.Linking != nil, Linking(s.Linking))
	add(s.LinkPages != nil, LinkingPages(s.LinkPages))
	add(s.Pulls != nil, Pulls(s.Pulls))
	add(s.Bulk != nil, BulkOperations(s.Bulk))
	add(s.Apps != nil, CompanionApps(s.Apps))
	add(s.Aggregate != nil, Queries(s.Aggregate))
	add(s.Priorities != nil, Priorities(s.Priorities))
	add(s.Continuous != nil, ContinuousQueries(s.Continuous))
	add(s.Pipelines != nil, EHRPipelines(s.Pipelines))
	add(s.Teams != nil, TeamSettings(s.Teams, s.TeamIdentity))
	add(s.Organisations != nil, Organisations(s.Organisations))
	add(s.Orders != nil, LabOrders(s.Laboratory))
	add(s.Reports != nil, LabReports(s.Reports))
	add(s.LabHistory != nil, LabHistory(s.LabHistory))
	add(s.Webhooks != nil, Webhooks(s.Webhooks))
	add(s.Exports != nil, PersonExports(s.Exports))
	return out
}

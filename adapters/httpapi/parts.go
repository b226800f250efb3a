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

// Part is a group of operations with their service. Functions such as [HealthData] return one.
type Part struct {
	// domain is the top-level directory of the service's package, such as orders. It selects the error types in the
	// contract.
	domain string
	// mount stores the service in the api, with the functions that it provides for other parts.
	mount func(*api)
	// prepare runs after every part is mounted. It may be nil.
	prepare    func(*api)
	operations func(api) []server.Operation
	// events returns the events that the service sends. It may be nil.
	events func() []healthlab.EventType
	// managed requires Config.AuthenticateManagement and Config.Environment.
	managed bool
}

// across holds the functions that one part provides for other parts. A nil function means that the part is not mounted.
type across struct {
	// disconnect ends a connection and endConsent a consent, and both revoke the grant at the provider. Set by
	// Linking.
	disconnect, endConsent func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error
	// tokenUser returns the team and the user of a link token, and false for a token that this service did not sign.
	// Set by Linking.
	tokenUser func(token string) (healthlab.TeamID, healthlab.UserID, bool)
	// linkOrigins returns the origins whose pages may call the link API for a team. Set by TeamSettings.
	linkOrigins func(context.Context, healthlab.TeamID) ([]string, error)
	// appCaller returns the caller of an app token, and false for any other token. Set by CompanionApps.
	appCaller func(ctx context.Context, token string) (Caller, bool, error)
	// orgOf returns the organisation that a team belongs to. Set by Organisations.
	orgOf func(context.Context, healthlab.TeamID) (uuid.UUID, error)
	// orderUser returns the user of an order, and countOrders the number of orders of a team. Set by LabOrders.
	orderUser   func(context.Context, healthlab.TeamID, uuid.UUID) (healthlab.UserID, error)
	countOrders func(context.Context, healthlab.TeamID) (int, error)
}

// HealthData mounts users, sources, consents and health data.
func HealthData(s *healthdata.Service) Part {
	return Part{
		domain: "healthdata",
		mount:  func(a *api) { a.Health = s },
		operations: joinOperations(api.userOperations, api.healthOperations, api.ingestOperations, api.connectionOperations,
			api.consentOperations),
		events: healthdata.EventTypes,
	}
}

// Queries mounts the operations that evaluate a query over health data, such as sums by day.
func Queries(s *aggregate.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Aggregate = s }, operations: api.aggregateOperations}
}

// Priorities mounts the operations on teams' preferences between providers.
func Priorities(s *aggregate.Preferences) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Priorities = s }, operations: api.priorityOperations}
}

// ContinuousQueries mounts the operations on stored queries whose results are kept up to date. They need
// Config.AuthenticateManagement and Config.Environment.
func ContinuousQueries(s *continuous.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Continuous = s }, operations: api.continuousOperations, events: continuous.EventTypes, managed: true}
}

// EHRPipelines mounts the operations on FHIR servers to which a team's data is pushed. They need
// Config.AuthenticateManagement and Config.Environment, and a program that runs a push.Pusher of adapters/fhir.
func EHRPipelines(s *ehr.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.Pipelines = s }, operations: api.pipelineOperations, managed: true}
}

// TeamSettings mounts the settings of teams. It needs Config.AuthenticateManagement and Config.Environment. identity
// returns the organisation and name of a team for the operation in which a team reads its own record; it must be safe
// for concurrent use. If it is nil, Organisations provides them; without that part the operation is not found.
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
		operations: joinOperations(api.settingsOperations, api.pullPreferenceOperations, api.scopeOperations), managed: true,
	}
}

// Organisations mounts the operations on the teams of organisations and their API keys. With this part, a management
// path accepts only teams of its organisation. It needs Config.AuthenticateManagement and Config.Environment.
// [KeysOf] makes [KeyAuth] accept these API keys.
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

// Linking mounts the operations on link codes, link tokens and the connections made with them. The part [HealthData]
// must be mounted too. The management of teams' own OAuth clients is mounted if linking.Options.Clients,
// Config.AuthenticateManagement and Config.Environment are set.
func Linking(s *linking.Service) Part {
	return Part{
		domain: "linking",
		mount: func(a *api) {
			a.Linking = s
			a.disconnect, a.endConsent, a.tokenUser = s.Disconnect, s.WithdrawConsent, s.TokenUser
		},
		operations: joinOperations(api.linkOperations, api.credentialOperations),
	}
}

// LinkingPages mounts the pages on which people link an account. The part [Linking] must be mounted too.
func LinkingPages(p *LinkPages) Part {
	return Part{domain: "linking", mount: func(a *api) { a.LinkPages = p }, prepare: (*api).makePages, operations: api.linkPageOperations}
}

// Pulls mounts the operations that refresh connections and show the state of pulls, and the paths to which providers
// push messages. The part [HealthData] must be mounted too.
func Pulls(s *pull.Service) Part {
	return Part{domain: "linking", mount: func(a *api) { a.Pulls = s }, operations: api.pullOperations}
}

// BulkOperations mounts operations on many connections. The part [HealthData] must be mounted too.
func BulkOperations(s *bulk.Service) Part {
	return Part{domain: "linking", mount: func(a *api) { a.Bulk = s }, operations: api.bulkOperations}
}

// CompanionApps mounts the sign-in of companion apps. An app acts for one user with its own tokens.
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

// Laboratory holds the services of lab orders.
type Laboratory struct {
	// Orders places and stores orders. Required.
	Orders *orders.Service
	// Exchange takes in the results that laboratories report for Orders. Nil: the operations of results in review and
	// of simulations are not mounted.
	Exchange *exchange.Service
	// Visits books appointments for Orders. Nil: the operations of appointments and of the places where samples are
	// taken are not mounted.
	Visits *visits.Service
	// Critical manages the critical results of Orders. Nil: their operations are not mounted.
	Critical *critical.Service
	// MatchTests runs tests of result matching in a sandbox. Nil: their operations are not mounted.
	MatchTests *simulation.MatchTests
	// Documents prints the documents of Orders. Nil: reading a document answers 404.
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

// LabHistory mounts the laboratory results of orders and reports as one history per person.
func LabHistory(s *labhistory.Service) Part {
	return Part{domain: "aggregate", mount: func(a *api) { a.LabHistory = s }, operations: api.labResultOperations}
}

// Webhooks mounts the management of webhook endpoints. It needs Config.AuthenticateManagement and
// Config.Environment.
func Webhooks(s *webhook.Service) Part {
	return Part{domain: "webhook", mount: func(a *api) { a.Webhooks = s }, operations: api.webhookOperations, events: webhook.EventTypes, managed: true}
}

// PersonExports mounts exports of all data that is stored about a user.
func PersonExports(s *personexport.Service) Part {
	return Part{domain: "privacy", mount: func(a *api) { a.Exports = s }, operations: api.exportOperations}
}

// joinOperations returns a function that joins the operations of several functions to one list.
func joinOperations(of ...func(api) []server.Operation) func(api) []server.Operation {
	return func(a api) (out []server.Operation) {
		for _, t := range of {
			out = append(out, t(a)...)
		}
		return out
	}
}

// Services holds the services of a whole system. A nil service is not mounted. A program that uses Services links
// the code of all these services; one that uses a [Part] links only its service.
type Services struct {
	Health        *healthdata.Service
	Aggregate     *aggregate.Service
	Priorities    *aggregate.Preferences
	Continuous    *continuous.Service
	Pipelines     *ehr.Service
	Teams         *teamsettings.Service
	Organisations *organisation.Service
	// TeamIdentity is the argument identity of [TeamSettings].
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

// Parts returns a Part for each service that is not nil.
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

package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/visits"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Config configures a [Service]. Environment, URL, Stores, Secret, Files and Providers are required.
//
// Fields of type Options hold the host's choices for one package. [New] overwrites the option fields that a comment
// says it sets.
type Config struct {
	// Environment is sandbox or production. It applies to all packages.
	Environment healthlab.Environment
	// Region is the region in which data is stored. Default [httpapi.US].
	Region httpapi.Region
	// URL is the address of [Service.Handler] for callers and browsers, without a trailing slash.
	URL string
	// Stores stores everything but files, and encrypts with its Keys. Two methods of its engine are optional:
	// Ping(context.Context) error, which [Service.Ready] calls, returns nil if the engine can be used. Signal()
	// webhook.Signal tells the dispatchers of other processes on the store about new events.
	Stores *stores.Stores
	// Files stores uploaded reports, generated documents and exports of persons, encrypted.
	Files labreport.BlobStore
	// Secret is at least 32 random bytes. Signing keys are derived from it, and the encryption key of stored secrets
	// unless Sealer is set. All processes on one store must use the same.
	Secret []byte
	// Sealer encrypts secrets in the store. Default: AES with a key derived from Secret. It is not used if Stores has
	// Keys; secrets are then encrypted by [personkey.Keys.Sealer].
	Sealer healthlab.Sealer
	// AllowPlaintext accepts Stores without Keys, which store personal data unencrypted. With Keys, erasing a user
	// deletes the user's key.
	AllowPlaintext bool
	// Log receives records that need attention. Default: slog.Default(). A logger in the options of a
	// package, except Access, replaces it for that package.
	Log *slog.Logger

	// Providers lists the sources of health data, and Connectors maps the slugs of connectable ones to their
	// connectors.
	Providers  *healthdata.Providers
	Connectors map[string]linking.ProviderConnector
	// Guard refuses private addresses for requests to addresses that teams choose, such as webhooks. Default: all
	// private addresses are refused.
	Guard *webhook.Guard
	// Lease is how long a process holds a delivery or pull before another process may claim it. A call to a provider
	// may last half of it. Default 1 min.
	Lease time.Duration

	// TeamDefaults holds the value of each setting that a team has not chosen itself.
	TeamDefaults teamsettings.Choices
	// Brand returns the branding of a team that has chosen none. Default: the team's name alone.
	Brand func(ctx context.Context, team healthlab.TeamID) (teamsettings.Brand, error)

	// Health holds options of package healthdata. [New] sets Environment, Settings, BeforeUpload, Preference and
	// Uploaded, and adds functions to BeforeDelete and Forget.
	Health healthdata.Options
	// Linking holds options of package linking. [New] sets Environment, SigningKeys, Region, BaseURL and Clients, and
	// Settings unless the host sets it.
	Linking linking.Options
	// Access holds options of the access log, which is always written. [New] sets Log. The key that signs the log is
	// derived from Secret.
	Access accesslog.Options
	// Pulls holds options of package linking/pull. [New] sets Accessed, Lease and Timeout, and Settings unless the host
	// sets it.
	Pulls pull.Options

	// Pipelines holds options of package ehr, which pushes data to the FHIR servers of teams. The service has pipelines
	// only if stores.Options.Pipelines is true, and they push only if Loops runs a push.Pusher of adapters/fhir.
	// Resources is required: fhir.Resources(). [New] sets CheckURL to that of Guard.
	Pipelines ehr.Options

	// Catalogue lists the orderable tests, and Laboratory executes orders. Without Laboratory there are no lab orders.
	// With Laboratory, Catalogue is required.
	Catalogue  catalogue.Source
	Laboratory exchange.LabBackend
	// Orders holds options of package orders. [New] sets Environment, LabTests, People, Files and BeforePlan, and
	// Settings unless the host sets it.
	Orders orders.Options
	// Exchange holds options of package exchange, which sends orders to the Laboratory and receives results. [New] sets
	// Accessed, RequisitionURL if there is a Printer, and Simulator unless the host sets it.
	Exchange exchange.Options
	// Visits holds options for the appointments of orders. [New] sets BookingKeys and SlotCache. If the Laboratory
	// offers appointments, [New] also sets Slots and Bookings to it, unless the host sets them.
	Visits visits.Options
	// Idempotency holds options for the idempotency keys of orders: leases, how long answers are stored, and ids.
	Idempotency idempotency.Options
	// Printer renders documents of orders as PDF. Default: no documents.
	Printer documents.Printer

	// Extractors read the text of report files, by media type. Without them no reports are parsed.
	Extractors labreport.Extractors
	// Reports holds options of package labreport. [New] sets Environment and Accessed.
	Reports labreport.Options

	// Exports holds options for exports of persons. [New] sets Accessed.
	Exports personexport.Options

	// Notifier sends events. Default: over HTTP, within Guard.
	Notifier webhook.Notifier
	// Webhooks holds options of the delivery of events. [New] sets Lease, Timeout, StartMargin, Bodies and Settings,
	// and Signal if the engine of Stores has a method Signal.
	Webhooks webhook.Options

	// Loops returns additional background work for Run, such as exports to a lake. New calls it once with the assembled
	// service. Default: none.
	Loops func(*Service) ([]Loop, error)

	// LinkPages are the pages on which people link their sources. Default: pages that also offer on-device
	// stores and manual sources, and demo data in a sandbox.
	LinkPages *httpapi.LinkPages

	// HTTP holds the configuration of the API. [New] sets Environment, Region, Access, Idempotency, Transact, Parquet
	// and SendsEvents. Unless the host sets them, [New] also sets Limits.Timeout, Ping if the engine of Stores has that
	// method, and Authenticate, which then checks the API keys of the teams of Service.Organisations. The operations of
	// HTTP.Parts are added after those of the service. The operations that manage teams are served only if
	// AuthenticateManagement is set.
	HTTP httpapi.Config
}

// Loop is background work. Run returns nil when ctx ends; an error ends the service's other work.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

// secretBytes is the least length of Config.Secret.
const secretBytes = 32

// check sets defaults, and returns one Invalid error that lists all missing and invalid fields.
func (c *Config) check() error {
	var wrong []string
	missing := func(is bool, what string) {
		if is {
			wrong = append(wrong, what)
		}
	}
	missing(c.Environment.Check() != nil, "Environment is sandbox or production")
	missing(!strings.HasPrefix(c.URL, "http://") && !strings.HasPrefix(c.URL, "https://"), "URL begins with http:// or https://")
	missing(strings.HasSuffix(c.URL, "/"), "URL has no slash at the end")
	missing(c.Stores == nil, "Stores is required")
	missing(c.Stores != nil && !c.Stores.HasOutbox(), "Stores has the outbox, which deliveries read: stores.Options.Events is stores.Outbox")
	missing(c.Files == nil, "Files is required")
	missing(len(c.Secret) < secretBytes, fmt.Sprintf("Secret has at least %d bytes", secretBytes))
	missing(c.Providers == nil, "Providers is required")
	missing(c.Stores != nil && c.Stores.PersonKeys() == nil && !c.AllowPlaintext, "Stores has Keys; without encryption, set AllowPlaintext")
	missing(c.Laboratory != nil && c.Catalogue == nil, "Laboratory needs Catalogue")
	if len(wrong) > 0 {
		return fmt.Errorf("%w: service: %s", healthlab.Invalid, strings.Join(wrong, "; "))
	}
	c.Region = cmp.Or(c.Region, httpapi.US)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Guard = cmp.Or(c.Guard, &webhook.Guard{})
	if c.Lease <= 0 {
		c.Lease = time.Minute
	}
	for _, log := range []**slog.Logger{&c.Health.Log, &c.Linking.Log, &c.Pulls.Log, &c.Orders.Log, &c.Idempotency.Log, &c.Reports.Log, &c.Exports.Log, &c.Webhooks.Log, &c.HTTP.Log} {
		if *log == nil {
			*log = c.Log
		}
	}
	return nil
}

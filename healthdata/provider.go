package healthdata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// Slugs of the on-device stores that the API names. [SlugManual] is the slug of a team's own data.
const (
	SlugAppleHealthKit = "apple_health_kit"
	SlugHealthConnect  = "health_connect"
	SlugSamsungHealth  = "samsung_health"
)

// Provider is a data source that people can connect: one record of the configured list. The library knows of a
// provider only what its record states.
type Provider struct {
	// Slug is the name of the provider in lower-case snake_case.
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description"`
	// Logo is a URL; null if the provider has none.
	Logo *string `json:"logo"`
	// Group names a set of providers. The library does not interpret it.
	Group string `json:"group,omitempty"`
	// AuthType says how a person signs in: oauth, team_oauth, sdk, password, email,
	// app, or empty.
	AuthType string `json:"auth_type"`
	// Category is app, ble, device, lab or provider.
	Category string `json:"source_type"`
	// Class says how data arrives: cloud, sdk_store, sdk_device or manual.
	Class string `json:"class"`
	// UpdateModel is push, poll, hybrid or sdk.
	UpdateModel string `json:"update_model,omitempty"`
	// OAuthVersion is 1 or 2 where AuthType is oauth.
	OAuthVersion int `json:"oauth_version,omitempty"`
	// Scopes lists the required and optional scopes by resource slug; empty for a provider without scopes.
	Scopes map[string]Scopes `json:"scopes,omitempty"`
	// Resources are the resources that the provider can deliver.
	Resources []ProviderResource `json:"resources"`
	// Backfill is how many days of history are fetched.
	Backfill Backfill `json:"backfill,omitzero"`
	// RelinkRerunsBackfill reports whether history is fetched again when a person links again.
	RelinkRerunsBackfill *bool `json:"relink_reruns_backfill,omitempty"`
	// Regions lists the values that the provider's region field accepts, by region of the service. The first value is
	// the default.
	Regions map[string][]string `json:"regions,omitempty"`
	// MFA reports whether a sign-in with a password may require a code.
	MFA bool `json:"mfa,omitempty"`
	// PasswordRotation reports whether the provider may require a new password.
	PasswordRotation bool `json:"password_rotation,omitempty"`
	// AllScopesRequired reports whether the provider does not state the granted scopes, so that all are
	// required.
	AllScopesRequired bool `json:"all_scopes_required,omitempty"`
	// MultiApp reports whether many apps write to the provider, so that records of different apps are stored
	// separately.
	MultiApp bool `json:"multi_app,omitempty"`
	// OwnSite reports whether people run the provider's server themselves. If AuthType is password, the user
	// name is then the address of their site, and the password is a token of that site.
	OwnSite bool `json:"own_site,omitempty"`
	// Demo reports whether demo connections with generated data are allowed.
	Demo bool `json:"demo,omitempty"`
	// Throttle is the limit on bulk backfills from the provider: on how many start in a period, such as 8_per_minute,
	// or on how many run at a time, such as 250_at_a_time. Package bulk lists the limits. Empty means 8_per_minute.
	Throttle string `json:"throttle,omitempty"`
	// RateLimits are the provider's limits on requests.
	RateLimits RateLimits `json:"rate_limits,omitzero"`
}

// RateLimits are the limits that a provider sets on requests.
type RateLimits struct {
	// App limits the requests for all users together, User the requests for each user.
	App  []RateLimit `json:"app,omitempty"`
	User []RateLimit `json:"user,omitempty"`
}

// RateLimit allows Requests requests in any period of Seconds seconds.
type RateLimit struct {
	Requests int `json:"requests"`
	Seconds  int `json:"seconds"`
	// Burst is how many of the requests may be sent at once; the others are spread over the period. 0 means 1.
	Burst int `json:"burst,omitempty"`
}

// Scopes are the required and optional grants of a resource, by the provider's names.
type Scopes struct {
	Required []string `json:"required"`
	Optional []string `json:"optional"`
}

// ProviderResource is a resource that a provider delivers.
type ProviderResource struct {
	// Resource is the slug of the resource.
	Resource string `json:"resource"`
	// RefreshPath is the name of the resource in the HTTP response to a refresh; derived from the slug if it is empty.
	RefreshPath string `json:"refresh_path,omitempty"`
	// Affinity is what the provider states about time zones. Empty means Native.
	Affinity Affinity `json:"affinity,omitempty"`
}

// Backfill is how many days of history are fetched when a source is connected. A cloud provider with neither
// DefaultDays nor Days, and with the mode pull, gets [DefaultHistoryDays], at most MaxDays. A provider without
// history has the mode none.
type Backfill struct {
	DefaultDays  int  `json:"default_days,omitempty"`
	MaxDays      int  `json:"max_days,omitempty"`
	Configurable bool `json:"configurable,omitempty"`
	// Days is the number of days by resource, for resources with another number than DefaultDays.
	Days map[string]int `json:"days,omitempty"`
	// Mode is pull, push_incremental or none. Empty means pull.
	Mode string `json:"mode,omitempty"`
}

// DefaultHistoryDays is how many days of history are fetched from a provider whose record states no number.
const DefaultHistoryDays = 30

// modePull is the mode of a provider whose history is fetched.
const modePull = "pull"

func (b *Backfill) setDefault() {
	if (b.Mode == "" || b.Mode == modePull) && b.DefaultDays == 0 && len(b.Days) == 0 {
		b.DefaultDays = min(DefaultHistoryDays, b.Limit())
	}
}

// HistoryChoice is how many days of a provider's history a team wants.
type HistoryChoice struct {
	Default   int            `json:"default"`
	Resources map[string]int `json:"resources,omitempty"`
}

// mostHistory is the greatest number of days of history that is fetched, for any provider.
const mostHistory = 365

// Limit returns the greatest number of days of history that a team can choose.
func (b *Backfill) Limit() int {
	if b.MaxDays > 0 {
		return min(b.MaxDays, mostHistory)
	}
	return mostHistory
}

// Range returns how many days of a resource's history are fetched for a team's choice, and how many the team
// could choose at most. A choice of zero fetches none, and a choice above the limit is cut to it.
func (b *Backfill) Range(resource string, want HistoryChoice) (days, limit int) {
	if fixed, ok := b.Days[resource]; ok {
		fixed = min(fixed, mostHistory)
		return fixed, fixed
	}
	limit = b.Limit()
	days = min(b.DefaultDays, limit)
	if !b.Configurable {
		return days, days
	}
	if want.Default > 0 {
		days = want.Default
	}
	if n := want.Resources[resource]; n > 0 {
		days = n
	}
	return min(days, limit), limit
}

// Affinity is what a provider states about the time zone of one resource's data.
type Affinity string

const (
	// AffinityNative: times are UTC, and data has its offset.
	AffinityNative Affinity = "native"
	// AffinityFallback: times are UTC without an offset. The user's fallback zone gives the offset.
	AffinityFallback Affinity = "fallback_or_utc"
	// AffinityFallbackOrAbsent is treated as AffinityFallback, because every user has a
	// fallback zone.
	AffinityFallbackOrAbsent Affinity = "fallback_or_absent"
	// AffinityInferred is treated as AffinityFallback, unless the offset follows from the
	// data itself, such as from coordinates.
	AffinityInferred Affinity = "inferred_or_absent"
	// AffinityAbsent: times are UTC, and the provider knows no offset. It is treated as AffinityFallback.
	AffinityAbsent Affinity = "absent"
	// AffinityFloating: times are clock digits without a zone. They are read in the user's fallback zone.
	AffinityFloating Affinity = "floating"
)

// Affinity returns what the provider states about the time zone of a resource's data.
func (p *Provider) Affinity(resource string) Affinity {
	for _, r := range p.Resources {
		if r.Resource == resource && r.Affinity != "" {
			return r.Affinity
		}
	}
	return AffinityNative
}

// Supports reports whether the provider delivers a resource.
func (p *Provider) Supports(resource string) bool {
	return slices.ContainsFunc(p.Resources, func(r ProviderResource) bool { return r.Resource == resource })
}

func (p *Provider) display() ProviderName {
	n := ProviderName{Name: p.Name, Slug: p.Slug}
	if p.Logo != nil {
		n.Logo = *p.Logo
	}
	return n
}

// Providers is the configured list of data sources. Immutable, and safe for
// concurrent use.
type Providers struct {
	list []Provider // sorted by name, then slug
	slug map[string]*Provider
}

var slugForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// reservedSlugs cannot be slugs of providers, because URL paths use these words.
var reservedSlugs = []string{"info", "insurance", "device", "sign_in_token", "create_portal_url", SlugDefault}

// classCloud is the class of providers whose API the service calls, or which send data to the service.
const classCloud = "cloud"

// classStore is the class of on-device health data stores, which send data through the mobile SDK.
const classStore = "sdk_store"

// classManual is the class of a team's own data.
const classManual = "manual"

func (p *Provider) collectsDevices() bool {
	// A cloud merges the data of its devices itself; a store and the team's own program pass it on.
	return p != nil && (p.Class == classStore || p.Class == classManual)
}

// The allowed values of fields of a provider's record.
var (
	authTypes          = []string{"oauth", "team_oauth", "sdk", "password", "email", "app", ""}
	providerCategories = []string{"app", "ble", "device", "lab", "provider"}
	providerClass      = []string{classCloud, classStore, "sdk_device", classManual}
	providerUpdate     = []string{"push", "poll", "hybrid", "sdk", ""}
	backfillModes      = []string{modePull, "push_incremental", "none", ""}
	affinities         = []Affinity{
		"", AffinityNative, AffinityFallback, AffinityFallbackOrAbsent, AffinityInferred, AffinityAbsent, AffinityFloating,
	}
)

// ProviderCategories returns the allowed values of Provider.Category.
func ProviderCategories() []string { return slices.Clone(providerCategories) }

// NewProviders checks a list of providers and returns it. A [healthlab.Invalid] error names each problem by
// position and field.
func NewProviders(list []Provider) (*Providers, error) {
	var p healthlab.Problems
	out := &Providers{list: slices.Clone(list), slug: make(map[string]*Provider, len(list))}
	for i := range list {
		var q healthlab.Problems
		checkProvider(&q, &list[i])
		if out.slug[list[i].Slug] != nil {
			q.Add("duplicate", "must not come twice", "slug")
		}
		out.slug[list[i].Slug] = &list[i]
		p.Under(q, i)
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	slices.SortFunc(out.list, func(a, b Provider) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slug, b.Slug))
	})
	for i := range out.list {
		if out.list[i].Class == classCloud {
			out.list[i].Backfill.setDefault()
		}
		out.slug[out.list[i].Slug] = &out.list[i]
	}
	return out, nil
}

// WithLogos returns the same providers, and sets url(slug) as the logo of each provider without one.
func (p *Providers) WithLogos(url func(slug string) string) *Providers {
	out := &Providers{list: slices.Clone(p.list), slug: make(map[string]*Provider, len(p.list))}
	for i := range out.list {
		one := &out.list[i]
		if one.Logo == nil {
			logo := url(one.Slug)
			one.Logo = &logo
		}
		out.slug[one.Slug] = one
	}
	return out
}

// ReadProviders reads a JSON array of providers. A key that is not in the record is an error. The errors are
// those of [NewProviders].
func ReadProviders(r io.Reader) (*Providers, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var list []Provider
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("read providers: %w: %w", healthlab.Invalid, err)
	}
	return NewProviders(list)
}

func checkProvider(p *healthlab.Problems, v *Provider) {
	if !slugForm.MatchString(v.Slug) {
		p.Add("pattern", "must be lower-case snake_case", "slug")
	}
	if slices.Contains(reservedSlugs, v.Slug) {
		p.Add("reserved", "must not be one of the reserved slugs "+strings.Join(reservedSlugs, ", "), "slug")
	}
	if v.Name == "" {
		p.Add("missing", "must be set", "name")
	}
	oneOf(p, v.AuthType, authTypes, "auth_type")
	oneOf(p, v.Category, providerCategories, "source_type")
	oneOf(p, v.Class, providerClass, "class")
	oneOf(p, v.UpdateModel, providerUpdate, "update_model")
	oneOf(p, v.Backfill.Mode, backfillModes, "backfill", "mode")
	if v.Backfill.DefaultDays < 0 || v.Backfill.MaxDays < 0 {
		p.Add("range", "must have default_days and max_days of 0 or more", "backfill")
	}
	for r, days := range v.Backfill.Days {
		if days < 0 || !v.Supports(r) {
			p.Add("range", "must name only resources of the provider, each with 0 or more days; "+r+" is wrong", "backfill", "days")
		}
	}
	for name, list := range map[string][]RateLimit{"app": v.RateLimits.App, "user": v.RateLimits.User} {
		for i, l := range list {
			if l.Requests <= 0 || l.Seconds <= 0 || l.Burst < 0 || l.Burst > l.Requests {
				p.Add("range", "must have at least one request, at least one second, and a burst that is not above the requests", "rate_limits", name, i)
			}
		}
	}
	for i, r := range v.Resources {
		if ResourceBySlug(r.Resource) == nil {
			p.Add("unknown_resource", unknownResource(r.Resource, Resources()), "resources", i, "resource")
		}
		oneOf(p, r.Affinity, affinities, "resources", i, "affinity")
	}
	for r := range v.Scopes {
		if !v.Supports(r) {
			p.Add("unknown_resource", "must name only resources of the provider; "+r+" is not one", "scopes")
		}
	}
}

// Expected returns the error text for an unknown slug: the nearest known slugs.
func (p *Providers) Expected(slug string) string {
	slugs := make([]string, len(p.list))
	for i := range p.list {
		slugs[i] = p.list[i].Slug
	}
	return nearest.Allowed(slug, slugs, "GET /v2/providers")
}

func oneOf[T ~string](p *healthlab.Problems, v T, allowed []T, path ...any) {
	if !slices.Contains(allowed, v) {
		words := make([]string, len(allowed))
		for i, a := range allowed {
			words[i] = string(a)
		}
		p.AddEnum(words, path...)
	}
}

// List returns the providers of a category by name, or all if category is empty. The slice belongs to the
// caller.
func (p *Providers) List(category string) []Provider {
	return slices.DeleteFunc(slices.Clone(p.list), func(v Provider) bool {
		return category != "" && v.Category != category
	})
}

// Get returns the provider of a slug, or nil. The provider is shared: do not change it.
func (p *Providers) Get(slug string) *Provider { return p.slug[slug] }

func (p *Providers) name(slug string) ProviderName {
	if v := p.Get(slug); v != nil {
		return v.display()
	}
	return ProviderName{Name: slug, Slug: slug}
}

// Values of Availability.Status. The list is open.
const (
	Available   = "available"
	Unavailable = "unavailable"
)

// Availability says whether data of one resource will arrive through a connection.
type Availability struct {
	// Status is [Available] or [Unavailable]. Later versions may add values.
	Status string `json:"status"`
	// ScopeRequirements is null for a provider without scopes.
	ScopeRequirements *ScopeRequirements `json:"scope_requirements"`
}

// ScopeRequirements lists the granted and the denied scopes of a resource.
type ScopeRequirements struct {
	UserGranted Scopes `json:"user_granted"`
	UserDenied  Scopes `json:"user_denied"`
}

// Availability returns by resource whether data will arrive for a person who granted these scopes. A resource is
// available if none of its required scopes was denied; without an optional scope some fields may be missing. All
// resources of a provider without scopes are available. The map is the caller's and never nil.
func (p *Provider) Availability(granted []string) map[string]Availability {
	out := make(map[string]Availability, len(p.Resources))
	for _, r := range p.Resources {
		a := Availability{Status: Available}
		if len(p.Scopes) > 0 {
			need := p.Scopes[r.Resource]
			var req ScopeRequirements
			req.UserGranted.Required, req.UserDenied.Required = split(need.Required, granted)
			req.UserGranted.Optional, req.UserDenied.Optional = split(need.Optional, granted)
			if len(req.UserDenied.Required) > 0 {
				a.Status = Unavailable
			}
			a.ScopeRequirements = &req
		}
		out[r.Resource] = a
	}
	return out
}

// split returns the scopes that are in granted (in), and the others (out). Neither is nil.
func split(scopes, granted []string) (in, out []string) {
	in, out = []string{}, []string{}
	for _, s := range scopes {
		if slices.Contains(granted, s) {
			in = append(in, s)
		} else {
			out = append(out, s)
		}
	}
	return in, out
}

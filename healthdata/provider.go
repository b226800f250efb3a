package healthdata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// The on-device stores whose slugs are part of the interface, beside manual.
const (
	SlugAppleHealthKit = "apple_health_kit"
	SlugHealthConnect  = "health_connect"
	SlugSamsungHealth  = "samsung_health"
)

// Provider is a data source that people can connect: one record of the configured
// list. A provider is opaque to this library: what it can do is what its record says.
type Provider struct {
	// Slug names it: lower-case snake_case.
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	Description string `json:"description"`
	// Logo is a URL; null if it has none.
	Logo *string `json:"logo"`
	// Group is a name for sets of providers, free of meaning here.
	Group string `json:"group,omitempty"`
	// AuthType says how a person signs in: oauth, team_oauth, sdk, password, email,
	// app, or empty.
	AuthType string `json:"auth_type"`
	// Category is app, ble, device, lab or provider.
	Category string `json:"source_type"`
	// Class says how data comes: cloud, sdk_store, sdk_device or manual.
	Class string `json:"class"`
	// UpdateModel is push, poll, hybrid or sdk.
	UpdateModel string `json:"update_model,omitempty"`
	// OAuthVersion is 1 or 2 where AuthType is oauth.
	OAuthVersion int `json:"oauth_version,omitempty"`
	// Scopes says by resource slug which scopes are needed; empty when the provider
	// has no such thing.
	Scopes map[string]Scopes `json:"scopes,omitempty"`
	// Resources are what it can deliver.
	Resources []ProviderResource `json:"resources"`
	// Backfill says how far back history is fetched.
	Backfill Backfill `json:"backfill,omitzero"`
	// RelinkRerunsBackfill says whether linking again fetches history again.
	RelinkRerunsBackfill *bool `json:"relink_reruns_backfill,omitempty"`
	// Regions are the values that its region field accepts, the default first, by
	// region of the service.
	Regions map[string][]string `json:"regions,omitempty"`
	// MFA says that signing in with a password may ask for a code.
	MFA bool `json:"mfa,omitempty"`
	// PasswordRotation says that it may force a new password.
	PasswordRotation bool `json:"password_rotation,omitempty"`
	// AllScopesRequired says that it cannot tell which scopes were granted.
	AllScopesRequired bool `json:"all_scopes_required,omitempty"`
	// MultiApp says that many apps write to it, so that records of different apps
	// must be told apart.
	MultiApp bool `json:"multi_app,omitempty"`
	// OwnSite says that people run the provider themselves: where AuthType is password, the
	// name is the address of their site, and the password a token of it.
	OwnSite bool `json:"own_site,omitempty"`
	// Demo says that synthetic connections are allowed.
	Demo bool `json:"demo,omitempty"`
	// Throttle is its class in bulk backfills.
	Throttle string `json:"throttle,omitempty"`
	// RateLimits are how many requests it takes.
	RateLimits RateLimits `json:"rate_limits,omitzero"`
}

// RateLimits are the limits that a provider sets on requests.
type RateLimits struct {
	// App holds for all users together, User for each one.
	App  []RateLimit `json:"app,omitempty"`
	User []RateLimit `json:"user,omitempty"`
}

// RateLimit is how many requests there may be in any stretch of time of some seconds.
type RateLimit struct {
	Requests int `json:"requests"`
	Seconds  int `json:"seconds"`
	// Burst is how many of them may come at once; the others are spread. 0 means 1.
	Burst int `json:"burst,omitempty"`
}

// Scopes are the grants that a resource needs, in the provider's own words.
type Scopes struct {
	Required []string `json:"required"`
	Optional []string `json:"optional"`
}

// ProviderResource is a resource that a provider delivers.
type ProviderResource struct {
	// Resource is the slug.
	Resource string `json:"resource"`
	// RefreshPath is its name in the answer of a refresh; derived when empty.
	RefreshPath string `json:"refresh_path,omitempty"`
	// Affinity says what the provider knows of time zones. Empty is Native.
	Affinity Affinity `json:"affinity,omitempty"`
}

// Backfill says how far back history is fetched when a source is connected. [NewProviders] gives a
// provider of class cloud with neither DefaultDays nor Days, and whose mode is pull,
// [DefaultHistoryDays], at most MaxDays; mode none is how a provider has no history.
type Backfill struct {
	DefaultDays  int  `json:"default_days,omitempty"`
	MaxDays      int  `json:"max_days,omitempty"`
	Configurable bool `json:"configurable,omitempty"`
	// Days fixes the days of single resources.
	Days map[string]int `json:"days,omitempty"`
	// Mode is pull, push_incremental or none. Empty is pull.
	Mode string `json:"mode,omitempty"`
}

// DefaultHistoryDays is how many days of history are fetched from a provider whose record does not
// say.
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

// mostHistory is how many days of history are fetched at most, of any provider.
const mostHistory = 365

// Limit returns how many days of history a team can want at most.
func (b *Backfill) Limit() int {
	if b.MaxDays > 0 {
		return min(b.MaxDays, mostHistory)
	}
	return mostHistory
}

// Range returns how many days of a resource's history are fetched for a team that wants so
// many, and how many it could want at most: a choice of zero is none, and what the provider
// does not do is cut off.
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

// Affinity is what a provider knows of the time zone of one kind of its data.
type Affinity string

const (
	// AffinityNative: UTC, and the offset comes with the data.
	AffinityNative Affinity = "native"
	// AffinityFallback: UTC without offset; the user's fallback zone supplies it.
	AffinityFallback Affinity = "fallback_or_utc"
	// AffinityFallbackOrAbsent is treated as AffinityFallback, because every user has a
	// fallback zone.
	AffinityFallbackOrAbsent Affinity = "fallback_or_absent"
	// AffinityInferred is treated as AffinityFallback, unless the offset follows from the
	// data itself, such as from coordinates.
	AffinityInferred Affinity = "inferred_or_absent"
	// AffinityAbsent: UTC, and the provider knows no offset. It is treated as AffinityFallback.
	AffinityAbsent Affinity = "absent"
	// AffinityFloating: clock digits without any zone. They are read in the user's
	// fallback zone.
	AffinityFloating Affinity = "floating"
)

// Affinity returns what the provider knows of the zone of a resource's data.
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
	list []Provider // by name, then slug
	slug map[string]*Provider
}

var slugForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// reservedSlugs are words that paths give another meaning.
var reservedSlugs = []string{"info", "insurance", "device", "sign_in_token", "create_portal_url", SlugDefault}

// classCloud is the class of providers that we fetch from, or that call us.
const classCloud = "cloud"

// classStore is the class of the stores on people's phones.
const classStore = "sdk_store"

// classManual is the class of what a team sends of its own.
const classManual = "manual"

// Closed lists of a provider's record.
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

// ProviderCategories returns what a Provider.Category may be.
func ProviderCategories() []string { return slices.Clone(providerCategories) }

// NewProviders checks a list and returns it. [healthlab.Invalid] names every problem
// by position and field.
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

// WithLogos returns the same providers; one without a logo has that which url returns for its
// slug.
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

// ReadProviders reads a JSON array of providers, strictly: a key that no record has is
// a mistake. Errors as of [NewProviders].
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
		p.Add("reserved", "this slug is reserved", "slug")
	}
	if v.Name == "" {
		p.Add("missing", "a provider needs a name", "name")
	}
	oneOf(p, v.AuthType, authTypes, "auth_type")
	oneOf(p, v.Category, providerCategories, "source_type")
	oneOf(p, v.Class, providerClass, "class")
	oneOf(p, v.UpdateModel, providerUpdate, "update_model")
	oneOf(p, v.Backfill.Mode, backfillModes, "backfill", "mode")
	if v.Backfill.DefaultDays < 0 || v.Backfill.MaxDays < 0 {
		p.Add("range", "days of history are 0 or more", "backfill")
	}
	for r, days := range v.Backfill.Days {
		if days < 0 || !v.Supports(r) {
			p.Add("range", "days of history are 0 or more, of a resource that it delivers", "backfill", "days")
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
			p.Add("unknown_resource", "scopes of a resource that it does not deliver", "scopes")
		}
	}
}

// Expected says what must be in place of a slug that no provider has.
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

// List returns the providers by name. A category other than the empty string keeps
// those of that category. The slice is the caller's.
func (p *Providers) List(category string) []Provider {
	return slices.DeleteFunc(slices.Clone(p.list), func(v Provider) bool {
		return category != "" && v.Category != category
	})
}

// Get returns a provider by its slug, or nil. It is shared: do not change it.
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

// Availability says whether data of one resource will come through a connection.
type Availability struct {
	// Status is [Available] or [Unavailable] (open).
	Status string `json:"status"`
	// ScopeRequirements is null for a provider without scopes.
	ScopeRequirements *ScopeRequirements `json:"scope_requirements"`
}

// ScopeRequirements says which of the grants that a resource needs the person gave.
type ScopeRequirements struct {
	UserGranted Scopes `json:"user_granted"`
	UserDenied  Scopes `json:"user_denied"`
}

// Availability returns, by resource, whether data will come from this provider for a
// person who granted these scopes. A resource is available if no scope that it requires
// was denied; a denied optional scope may cost it some fields. Everything that a
// provider without scopes supports is available. The map is the caller's and never nil.
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

// split divides scopes into those that were granted and the others. Neither is nil.
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

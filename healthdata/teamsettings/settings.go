package teamsettings

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/internal/nearest"
)

// Choices is what a team has chosen. Nil leaves a choice to the deployment.
type Choices struct {
	// VerbMode, PushHistoricalData and ProviderRawData are as of [healthdata.TeamSettings].
	VerbMode           *healthdata.VerbMode `json:"verb_mode,omitempty"`
	PushHistoricalData *bool                `json:"push_historical_data,omitempty"`
	ProviderRawData    *bool                `json:"provider_raw_data,omitempty"`
	DevicesApart       *bool                `json:"sdk_per_device_activity_timeseries,omitempty"`
	ExplicitConnect    *bool                `json:"explicit_connect,omitempty"`
	// LinkOrigins are the origins of web pages that may call the link API: scheme, host and
	// port, as browsers write them in the header Origin. Nil means none.
	LinkOrigins []string `json:"link_allowed_origins,omitempty"`
	// RejectDuplicates refuses an account that another user of the team has connected.
	RejectDuplicates *bool `json:"reject_duplicate_connection,omitempty"`
	// PartialWebhooks sends an event for every partial result of a lab.
	PartialWebhooks *bool `json:"partial_webhooks_enabled,omitempty"`
	// Minors lets patients under 18 be ordered for.
	Minors *bool `json:"minor_ordering_enabled,omitempty"`
	// PatientSMS and PatientEmail enable messages to patients about their lab tests.
	PatientSMS   *bool `json:"lab_tests_patient_sms_communication_enabled,omitempty"`
	PatientEmail *bool `json:"lab_tests_patient_email_communication_enabled,omitempty"`
	// Texts lets patients be reminded of what they have to do for a lab test.
	Texts *bool `json:"texts_enabled,omitempty"`
	// CriticalEmail is the address for messages about critical results of lab tests.
	CriticalEmail *string `json:"critical_result_notification_email,omitempty"`
	// CriticalLadder says when the team is told of a critical result that no person acknowledges: 1 to
	// [MaxLadder] steps, each later than the one before. Nil means the default: after 15, 30 and 60 minutes.
	CriticalLadder []LadderStep `json:"critical_result_escalation,omitempty"`
	// Practice is the one practice whose patients can connect a provider by an address.
	Practice *string `json:"practice_binding,omitempty"`
	// EventPrefixes lets only those events be sent whose type begins with one of them. None
	// lets all be sent.
	EventPrefixes []string `json:"event_type_prefixes,omitempty"`
	// EventBodyDays is for how many days the body of an event is kept after the last attempt to
	// deliver it: 1 to 30.
	EventBodyDays *int `json:"event_body_retention_days,omitempty"`
	// Destinations says where events are sent; nil lets them go to all kinds.
	Destinations *Destinations `json:"event_destination_preferences,omitempty"`
	// Brand is what people see of the team.
	Brand *Brand `json:"brand_information,omitempty"`
	// History says by provider how far back history is fetched. Each provider is a choice
	// of its own.
	History map[string]healthdata.HistoryChoice `json:"data_pull_preferences,omitempty"`
	// Consent is the text that people agree to when they connect a source.
	Consent *healthdata.ConsentText `json:"consent,omitempty"`
	// Scopes says by OAuth provider what people are asked to grant. Each provider is a
	// choice of its own; one without is asked for all of its scopes.
	Scopes map[string]ScopeChoice `json:"scope_requirements,omitempty"`
}

// LadderStep is a step of the ladder of critical results.
type LadderStep struct {
	// AfterMinutes counts from the storing of the result: 1 to 10,080 (a week).
	AfterMinutes int `json:"after_minutes"`
	// To is the role or the recipient, in the team's words.
	To string `json:"to"`
}

// MaxLadder is the greatest number of steps of a ladder.
const MaxLadder = 10

// DefaultLadder returns the ladder of a team that has chosen none, in a deployment that has none either.
func DefaultLadder() []LadderStep {
	return []LadderStep{{15, "ordering_clinician"}, {30, "clinician_on_call"}, {60, "medical_director"}}
}

// Brand is what people see of a team.
type Brand struct {
	CompanyName string `json:"company_name"`
	// LogoURL is an address of https, or an image itself as a data URL of at most 64 KiB.
	LogoURL string `json:"logo_url"`
	// Color is three or six hex digits, with or without a hash; empty is the default.
	Color string `json:"brand_color,omitempty"`
	// Website is an address of http or https; empty is none, here and below.
	Website string `json:"company_website,omitempty"`
	// SupportEmail and SupportContact, which is a phone number or a sentence, are for people
	// who need help. Address is where the company is.
	SupportEmail   string `json:"support_email,omitempty"`
	SupportContact string `json:"support_contact,omitempty"`
	Address        string `json:"company_address,omitempty"`
}

// Destinations are the kinds of endpoints that events are sent to: webhook is one that
// is called over HTTP, the others are named after the scheme of their address, as nats.
type Destinations struct {
	// Preferred is the one that counts, and Enabled are all of them.
	Preferred string   `json:"preferred"`
	Enabled   []string `json:"enabled"`
}

// ScopeChoice is what a team asks people to grant at a provider, in the provider's words.
// The scopes without which nothing works are asked for besides.
type ScopeChoice struct {
	// Must are those without which there is no connection; May can be refused.
	Must []string `json:"must"`
	May  []string `json:"may"`
}

// Store keeps what teams have chosen. Methods are safe for concurrent use and atomic,
// and a context that has ended before a call writes nothing and is the error. What they
// take and return is a copy.
type Store interface {
	// Choices returns what a team has chosen; the zero value if it never chose.
	Choices(ctx context.Context, team healthlab.TeamID) (Choices, error)

	// UpdateChoices lets change make new choices of the old ones, and returns them as they
	// are kept. An error of change is returned unchanged, and nothing is written. change
	// may run more than once, so it is pure. Concurrent updates behave as if they ran one
	// after another. An empty History or Scopes comes back nil.
	UpdateChoices(ctx context.Context, team healthlab.TeamID, change func(Choices) (Choices, error)) (Choices, error)
}

// Service reads and changes what teams have chosen. Safe for concurrent use.
type Service struct {
	store     Store
	providers *healthdata.Providers
	defaults  Choices
}

// New returns a Service on a store. defaults are the deployment's, which hold where a team
// has chosen nothing; what they leave out, too, is: upsert; patients are told by SMS and
// e-mail; all events are sent, and their bodies kept for 7 days; everything else is off. Invalid without a store or providers.
func New(store Store, providers *healthdata.Providers, defaults Choices) (*Service, error) {
	if store == nil || providers == nil {
		return nil, fmt.Errorf("%w: team settings need a store and providers", healthlab.Invalid)
	}
	on, off, mode, week := true, false, healthdata.VerbUpsert, 7
	return &Service{store, providers, defaults.over(Choices{
		VerbMode: &mode, PushHistoricalData: &off, ProviderRawData: &off, RejectDuplicates: &off,
		PartialWebhooks: &off, Minors: &off, PatientSMS: &on, PatientEmail: &on, DevicesApart: &off, Texts: &off,
		ExplicitConnect: &off, EventBodyDays: &week, CriticalLadder: DefaultLadder(),
	})}, nil
}

// over returns the choices, and where there is none what is below.
func (c Choices) over(below Choices) Choices {
	history := maps.Clone(below.History)
	if history == nil {
		history = map[string]healthdata.HistoryChoice{}
	}
	maps.Copy(history, c.History)
	prefixes := c.EventPrefixes
	if len(prefixes) == 0 {
		prefixes = below.EventPrefixes
	}
	origins := c.LinkOrigins
	if len(origins) == 0 {
		origins = below.LinkOrigins
	}
	ladder := c.CriticalLadder
	if len(ladder) == 0 {
		ladder = below.CriticalLadder
	}
	scopes := maps.Clone(below.Scopes)
	if scopes == nil {
		scopes = map[string]ScopeChoice{}
	}
	maps.Copy(scopes, c.Scopes)
	return Choices{
		VerbMode:           cmp.Or(c.VerbMode, below.VerbMode),
		PushHistoricalData: cmp.Or(c.PushHistoricalData, below.PushHistoricalData),
		ProviderRawData:    cmp.Or(c.ProviderRawData, below.ProviderRawData),
		RejectDuplicates:   cmp.Or(c.RejectDuplicates, below.RejectDuplicates),
		PartialWebhooks:    cmp.Or(c.PartialWebhooks, below.PartialWebhooks),
		Minors:             cmp.Or(c.Minors, below.Minors),
		PatientSMS:         cmp.Or(c.PatientSMS, below.PatientSMS),
		PatientEmail:       cmp.Or(c.PatientEmail, below.PatientEmail),
		DevicesApart:       cmp.Or(c.DevicesApart, below.DevicesApart),
		ExplicitConnect:    cmp.Or(c.ExplicitConnect, below.ExplicitConnect),
		LinkOrigins:        origins,
		Texts:              cmp.Or(c.Texts, below.Texts),
		CriticalEmail:      cmp.Or(c.CriticalEmail, below.CriticalEmail),
		CriticalLadder:     ladder,
		Practice:           cmp.Or(c.Practice, below.Practice),
		EventPrefixes:      prefixes,
		EventBodyDays:      cmp.Or(c.EventBodyDays, below.EventBodyDays),
		Destinations:       cmp.Or(c.Destinations, below.Destinations),
		Brand:              cmp.Or(c.Brand, below.Brand),
		Consent:            cmp.Or(c.Consent, below.Consent),
		History:            history,
		Scopes:             scopes,
	}
}

// Of returns what holds for a team: its choices, and the defaults where it has none. No
// field is nil but LinkOrigins, CriticalEmail, Practice, EventPrefixes, Destinations, Brand and Consent.
// Do not change what the fields point to.
func (s *Service) Of(ctx context.Context, team healthlab.TeamID) (Choices, error) {
	c, err := s.store.Choices(ctx, team)
	if err != nil {
		return Choices{}, fmt.Errorf("team settings: %w", err)
	}
	return c.over(s.defaults), nil
}

// Settings returns what health data asks about a team. It is made for [healthdata.Options].
func (s *Service) Settings(ctx context.Context, team healthlab.TeamID) (healthdata.TeamSettings, error) {
	c, err := s.Of(ctx, team)
	if err != nil {
		return healthdata.TeamSettings{}, err
	}
	return healthdata.TeamSettings{
		VerbMode: *c.VerbMode, PushHistoricalData: *c.PushHistoricalData, ProviderRawData: *c.ProviderRawData, DevicesApart: *c.DevicesApart,
		ExplicitConnect: *c.ExplicitConnect,
	}, nil
}

// Change lets edit change a team's own choices, and returns what holds for the team
// afterwards. edit may run more than once, and is pure. What is new holds for what begins
// later: an order, a session or a history that is under way may go on by what it began
// with. Invalid with every problem, by the names in JSON; then nothing is changed.
func (s *Service) Change(ctx context.Context, team healthlab.TeamID, edit func(*Choices)) (Choices, error) {
	c, err := s.store.UpdateChoices(ctx, team, func(old Choices) (Choices, error) {
		before := Choices{History: maps.Clone(old.History), Scopes: maps.Clone(old.Scopes)}
		edit(&old)
		return old, s.check(&old, &before)
	})
	if err != nil {
		return Choices{}, fmt.Errorf("change team settings: %w", err)
	}
	return c.over(s.defaults), nil
}

// check lists what is wrong with choices. A history or scopes that were there before stay,
// though their provider is gone from the configuration since.
func (s *Service) check(c, before *Choices) error {
	var p healthlab.Problems
	if m := c.VerbMode; m != nil && *m != healthdata.VerbUpsert && *m != healthdata.VerbSplit {
		p.AddEnum([]string{string(healthdata.VerbUpsert), string(healthdata.VerbSplit)}, "verb_mode")
	}
	if c.Brand != nil {
		p.Under(c.Brand.problems(), "brand_information")
	}
	if c.CriticalEmail != nil && !check.Address(*c.CriticalEmail) {
		p.Add("email", "an e-mail address of at most 254 bytes", "critical_result_notification_email")
	}
	if c.Practice != nil && !check.Line(*c.Practice, mostPractice) {
		p.Add("practice", "1 to 200 characters, and not only space or control characters", "practice_binding")
	}
	if c.Consent != nil {
		p.Under(c.Consent.Problems(), "consent")
	}
	c.checkLadder(&p)
	c.checkOrigins(&p)
	c.checkEvents(&p)
	for _, slug := range slices.Sorted(maps.Keys(c.History)) {
		h := c.History[slug]
		if old, ok := before.History[slug]; ok && old.Default == h.Default && maps.Equal(old.Resources, h.Resources) {
			continue
		}
		p.Under(historyProblems(h, s.providers.Get(slug)), "data_pull_preferences", shortKey(slug))
	}
	for _, slug := range slices.Sorted(maps.Keys(c.Scopes)) {
		x := c.Scopes[slug]
		if old, ok := before.Scopes[slug]; ok && slices.Equal(old.Must, x.Must) && slices.Equal(old.May, x.May) {
			continue
		}
		p.Under(x.problems(slug, s.providers), "scope_requirements", shortKey(slug))
	}
	return p.Err()
}

func (x ScopeChoice) problems(slug string, providers *healthdata.Providers) healthlab.Problems {
	var p healthlab.Problems
	of := providers.Get(slug)
	switch {
	case of == nil:
		p.Add("unknown_provider", providers.Expected(slug))
		return p
	case of.AuthType != "oauth" && of.AuthType != "team_oauth", len(of.Scopes) == 0:
		p.Add("no_scopes", "people grant no scopes at this provider")
		return p
	}
	known := map[string]bool{}
	for _, s := range of.Scopes {
		for _, name := range slices.Concat(s.Required, s.Optional) {
			known[name] = true
		}
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		name   string
		scopes []string
	}{{"user_must_grant", x.Must}, {"user_may_grant", x.May}} {
		for i, name := range list.scopes {
			switch {
			case !known[name]:
				p.Add("unknown_scope", nearest.Allowed(name, slices.Sorted(maps.Keys(known)), "GET /v2/providers"), list.name, i)
			case seen[name]:
				p.Add("duplicate", "must not come twice, in one list or in both", list.name, i)
			}
			seen[name] = true
		}
	}
	return p
}

var (
	brandColor = regexp.MustCompile(`^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)
	brandImage = regexp.MustCompile(`^data:image/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+=*$`)
)

// mostPractice is the longest name of a practice, in characters.
const mostPractice = 200

var (
	eventPrefix     = regexp.MustCompile(`^[a-z0-9_]+(?:\.[a-z0-9_]+)*\.?$`)
	destinationKind = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// checkLadder lists what is wrong with the ladder of critical results.
func (c *Choices) checkLadder(p *healthlab.Problems) {
	const week, mostTo, field = 7 * 24 * 60, 100, "critical_result_escalation"
	if c.CriticalLadder != nil && len(c.CriticalLadder) == 0 || len(c.CriticalLadder) > MaxLadder {
		p.Add("length", "must have 1 to 10 steps; null is the default", field)
	}
	before := 0
	for i, step := range c.CriticalLadder {
		switch {
		case step.AfterMinutes < 1 || step.AfterMinutes > week:
			p.Add("range", "must be from 1 to 10080", field, i, "after_minutes")
		case step.AfterMinutes <= before:
			p.Add("order", "must be later than the step before", field, i, "after_minutes")
		}
		before = step.AfterMinutes
		if !check.Line(step.To, mostTo) {
			p.Add("to", "1 to 100 characters, and not only space or control characters", field, i, "to")
		}
	}
}

// mostOrigins is how many origins a team may name.
const mostOrigins = 50

// checkOrigins lists what is wrong with the origins of web pages.
func (c *Choices) checkOrigins(p *healthlab.Problems) {
	if len(c.LinkOrigins) > mostOrigins {
		p.Add("too_long", "at most 50 origins", "link_allowed_origins")
	}
	for i, origin := range c.LinkOrigins {
		u, err := url.Parse(origin)
		local := err == nil && (u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1")
		if err != nil || u.Scheme+"://"+u.Host != origin || u.Host == "" || u.Host != strings.ToLower(u.Host) ||
			u.Scheme != "https" && (u.Scheme != "http" || !local) {
			p.Add("origin", "must be https://host or https://host:port in lower case, without a path; http is for localhost", "link_allowed_origins", i)
		}
	}
}

// checkEvents lists what is wrong with choices about events.
func (c *Choices) checkEvents(p *healthlab.Problems) {
	const most, mostBytes = 50, 128
	if len(c.EventPrefixes) > most {
		p.Add("too_long", "at most 50", "event_type_prefixes")
	}
	for i, prefix := range c.EventPrefixes {
		if len(prefix) > mostBytes || !eventPrefix.MatchString(prefix) {
			p.Add("prefix", "the beginning of a type of event", "event_type_prefixes", i)
		}
	}
	if days := c.EventBodyDays; days != nil && (*days < 1 || *days > 30) {
		p.Add("range", "from 1 to 30", "event_body_retention_days")
	}
	d := c.Destinations
	if d == nil {
		return
	}
	if !slices.Contains(d.Enabled, d.Preferred) {
		p.Add("not_enabled", "must be one of those that are enabled", "event_destination_preferences", "preferred")
	}
	if len(d.Enabled) > most {
		p.Add("too_long", "at most 50", "event_destination_preferences", "enabled")
	}
	for i, kind := range d.Enabled {
		if len(kind) > mostBytes || !destinationKind.MatchString(kind) {
			p.Add("kind", "a word of lower-case letters, digits and underscores", "event_destination_preferences", "enabled", i)
		}
	}
}

func (b *Brand) problems() healthlab.Problems {
	const mostName, mostText, mostURL, mostImage = 80, 300, 2048, 64 << 10
	var p healthlab.Problems
	if !check.Line(b.CompanyName, mostName) {
		p.Add("company_name", "1 to 80 characters, and not only space or control characters", "company_name")
	}
	if w, err := url.Parse(b.Website); b.Website != "" &&
		(err != nil || w.Scheme != "https" && w.Scheme != "http" || w.Host == "" || w.User != nil || len(b.Website) > mostURL) {
		p.Add("company_website", "an https or http address of at most 2,048 bytes", "company_website")
	}
	if b.SupportEmail != "" && !check.Address(b.SupportEmail) {
		p.Add("email", "an e-mail address of at most 254 bytes", "support_email")
	}
	const line = "at most 300 characters, and not only space or control characters"
	if b.SupportContact != "" && !check.Line(b.SupportContact, mostText) {
		p.Add("support_contact", line, "support_contact")
	}
	if b.Address != "" && !check.Line(b.Address, mostText) {
		p.Add("company_address", line, "company_address")
	}
	u, err := url.Parse(b.LogoURL)
	web := err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && len(b.LogoURL) <= mostURL
	if !web && (len(b.LogoURL) > mostImage || !brandImage.MatchString(b.LogoURL)) {
		p.Add("logo_url", "an https address of at most 2,048 bytes, or an image as a data URL of at most 64 KiB", "logo_url")
	}
	if b.Color != "" && !brandColor.MatchString(b.Color) {
		p.Add("brand_color", "three or six hex digits", "brand_color")
	}
	return p
}

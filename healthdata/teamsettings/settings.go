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

// Choices are the settings that a team has chosen. A nil field uses the deployment's default.
type Choices struct {
	// VerbMode, PushHistoricalData, ProviderRawData, DevicesApart and ExplicitConnect are the same as in
	// [healthdata.TeamSettings].
	VerbMode           *healthdata.VerbMode `json:"verb_mode,omitempty"`
	PushHistoricalData *bool                `json:"push_historical_data,omitempty"`
	ProviderRawData    *bool                `json:"provider_raw_data,omitempty"`
	DevicesApart       *bool                `json:"sdk_per_device_activity_timeseries,omitempty"`
	ExplicitConnect    *bool                `json:"explicit_connect,omitempty"`
	// LinkOrigins are the origins of web pages that may call the link API: scheme, host and port, as browsers write
	// them in the header Origin. Empty means the deployment's default; without one, no page may call the API.
	LinkOrigins []string `json:"link_allowed_origins,omitempty"`
	// RejectDuplicates refuses to connect an account at a provider that another user of the team has connected.
	RejectDuplicates *bool `json:"reject_duplicate_connection,omitempty"`
	// PartialWebhooks sends an event for every partial result of a lab.
	PartialWebhooks *bool `json:"partial_webhooks_enabled,omitempty"`
	// Minors allows orders for patients under 18.
	Minors *bool `json:"minor_ordering_enabled,omitempty"`
	// PatientSMS and PatientEmail enable messages to patients about their lab tests.
	PatientSMS   *bool `json:"lab_tests_patient_sms_communication_enabled,omitempty"`
	PatientEmail *bool `json:"lab_tests_patient_email_communication_enabled,omitempty"`
	// Texts allows reminders to patients about the steps of a lab test.
	Texts *bool `json:"texts_enabled,omitempty"`
	// CriticalEmail is the address for messages about critical results of lab tests.
	CriticalEmail *string `json:"critical_result_notification_email,omitempty"`
	// CriticalLadder is when the team is notified of a critical result that is not acknowledged: 1 to [MaxLadder]
	// steps, each later than the one before. Empty means the deployment's default; without one, 15, 30 and 60 minutes.
	CriticalLadder []LadderStep `json:"critical_result_escalation,omitempty"`
	// Practice is the only medical practice whose patients can connect a provider that asks them for an e-mail address.
	Practice *string `json:"practice_binding,omitempty"`
	// EventPrefixes limits events to types that begin with one of them. Empty means the deployment's default; without
	// one, all events are sent.
	EventPrefixes []string `json:"event_type_prefixes,omitempty"`
	// EventBodyDays is the number of days for which the body of an event is kept after the last delivery
	// attempt: 1 to 30.
	EventBodyDays *int `json:"event_body_retention_days,omitempty"`
	// Destinations are the kinds of endpoints to which events are sent. Nil means the deployment's default; without
	// one, all kinds.
	Destinations *Destinations `json:"event_destination_preferences,omitempty"`
	// Brand is the name and look of the team on pages for people.
	Brand *Brand `json:"brand_information,omitempty"`
	// History is by provider how many days of history are fetched. Each provider can be chosen separately.
	History map[string]healthdata.HistoryChoice `json:"data_pull_preferences,omitempty"`
	// Consent is the text that people agree to when they connect a source.
	Consent *healthdata.ConsentText `json:"consent,omitempty"`
	// Scopes lists by OAuth provider the scopes that people are asked to grant. Each provider can be chosen
	// separately. A provider that is not listed asks for all of its scopes.
	Scopes map[string]ScopeChoice `json:"scope_requirements,omitempty"`
}

// LadderStep is one notification about a critical result that is not acknowledged.
type LadderStep struct {
	// AfterMinutes is the time after the result was stored: 1 to 10,080 (a week).
	AfterMinutes int `json:"after_minutes"`
	// To is the role or the recipient, by the team's own name.
	To string `json:"to"`
}

// MaxLadder is the greatest number of steps of CriticalLadder.
const MaxLadder = 10

// DefaultLadder returns the steps for critical results if neither the team nor the deployment has chosen any.
func DefaultLadder() []LadderStep {
	return []LadderStep{{15, "ordering_clinician"}, {30, "clinician_on_call"}, {60, "medical_director"}}
}

// Brand is the name and look of a team on pages for people.
type Brand struct {
	CompanyName string `json:"company_name"`
	// LogoURL is an https address, or an image as a data URL of at most 64 KiB.
	LogoURL string `json:"logo_url"`
	// Color is three or six hex digits, with or without a hash; empty means the default.
	Color string `json:"brand_color,omitempty"`
	// Website is an http or https address; empty means none, as in the other fields.
	Website string `json:"company_website,omitempty"`
	// SupportEmail and SupportContact (a phone number or a sentence) are for people who need help. Address is
	// that of the company.
	SupportEmail   string `json:"support_email,omitempty"`
	SupportContact string `json:"support_contact,omitempty"`
	Address        string `json:"company_address,omitempty"`
}

// Destinations are the kinds of endpoints to which events are sent: webhook for HTTP, otherwise the URL scheme,
// such as nats.
type Destinations struct {
	// Preferred is the kind that is used. Enabled are all enabled kinds.
	Preferred string   `json:"preferred"`
	Enabled   []string `json:"enabled"`
}

// ScopeChoice lists the scopes that a team asks people to grant at a provider, by the provider's names. The
// scopes that the provider always requires are added.
type ScopeChoice struct {
	// Must are the scopes without which no connection is made. May are the scopes that the person can refuse.
	Must []string `json:"must"`
	May  []string `json:"may"`
}

// Store stores the choices of teams. Methods are safe for concurrent use and atomic: a call writes everything or
// nothing. If the context has ended before a call, the call writes nothing and returns the error of the context.
// Arguments and results are copies.
type Store interface {
	// Choices returns the choices of a team; the zero value if it has made none.
	Choices(ctx context.Context, team healthlab.TeamID) (Choices, error)

	// UpdateChoices replaces the choices of a team by the result of change, and returns the stored choices. An
	// error of change is returned unchanged, and nothing is written. change may run more than once, so it must
	// be pure. Concurrent updates behave as if they ran one after another. An empty History or Scopes is
	// returned as nil.
	UpdateChoices(ctx context.Context, team healthlab.TeamID, change func(Choices) (Choices, error)) (Choices, error)
}

// Service reads and changes the choices of teams. It is safe for concurrent use.
type Service struct {
	store     Store
	providers *healthdata.Providers
	defaults  Choices
}

// New returns a Service on a store. defaults apply if a team has chosen nothing. If they are empty too, VerbMode (the
// verbs of events) is upsert, patients get SMS and e-mail, all events are sent, their bodies are kept for 7 days, and
// everything else is off. It returns Invalid without a store or providers.
func New(store Store, providers *healthdata.Providers, defaults Choices) (*Service, error) {
	if store == nil || providers == nil {
		return nil, fmt.Errorf("%w: team settings need a store and providers", healthlab.Invalid)
	}
	on, off, mode, week := true, false, healthdata.VerbUpsert, 7
	return &Service{store, providers, defaults.withDefaults(Choices{
		VerbMode: &mode, PushHistoricalData: &off, ProviderRawData: &off, RejectDuplicates: &off,
		PartialWebhooks: &off, Minors: &off, PatientSMS: &on, PatientEmail: &on, DevicesApart: &off, Texts: &off,
		ExplicitConnect: &off, EventBodyDays: &week, CriticalLadder: DefaultLadder(),
	})}, nil
}

// withDefaults returns the choices c, with empty fields taken from below. In History and Scopes, it takes the providers
// that c does not have from below.
func (c Choices) withDefaults(below Choices) Choices {
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

// Of returns the settings of a team: its choices, completed from the defaults. No field is nil except
// LinkOrigins, CriticalEmail, Practice, EventPrefixes, Destinations, Brand and Consent. Do not change the values
// that fields point to.
func (s *Service) Of(ctx context.Context, team healthlab.TeamID) (Choices, error) {
	c, err := s.store.Choices(ctx, team)
	if err != nil {
		return Choices{}, fmt.Errorf("team settings: %w", err)
	}
	return c.withDefaults(s.defaults), nil
}

// Settings returns a team's settings for health data. Use it as Settings of [healthdata.Options].
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

// Change lets edit change a team's own choices, and returns the team's settings afterwards. edit may run more
// than once, so it must be pure. Changes apply to later work: a running order, session or backfill may continue
// with the old settings. It returns Invalid with every invalid field by its JSON name, and then nothing is
// changed.
func (s *Service) Change(ctx context.Context, team healthlab.TeamID, edit func(*Choices)) (Choices, error) {
	c, err := s.store.UpdateChoices(ctx, team, func(old Choices) (Choices, error) {
		before := Choices{History: maps.Clone(old.History), Scopes: maps.Clone(old.Scopes)}
		edit(&old)
		return old, s.check(&old, &before)
	})
	if err != nil {
		return Choices{}, fmt.Errorf("change team settings: %w", err)
	}
	return c.withDefaults(s.defaults), nil
}

// check returns the invalid fields of choices. Earlier choices about a provider that is no longer configured are
// accepted.
func (s *Service) check(c, before *Choices) error {
	var p healthlab.Problems
	if m := c.VerbMode; m != nil && *m != healthdata.VerbUpsert && *m != healthdata.VerbSplit {
		p.AddEnum([]string{string(healthdata.VerbUpsert), string(healthdata.VerbSplit)}, "verb_mode")
	}
	if c.Brand != nil {
		p.Under(c.Brand.problems(), "brand_information")
	}
	if c.CriticalEmail != nil && !check.Address(*c.CriticalEmail) {
		p.Add("email", "must be an e-mail address of at most 254 bytes", "critical_result_notification_email")
	}
	if c.Practice != nil && !check.Line(*c.Practice, mostPractice) {
		p.Add("practice", check.LineText(mostPractice), "practice_binding")
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
		p.Under(historyProblems(h, slug, s.providers), "data_pull_preferences", truncateKey(slug))
	}
	for _, slug := range slices.Sorted(maps.Keys(c.Scopes)) {
		x := c.Scopes[slug]
		if old, ok := before.Scopes[slug]; ok && slices.Equal(old.Must, x.Must) && slices.Equal(old.May, x.May) {
			continue
		}
		p.Under(x.problems(slug, s.providers), "scope_requirements", truncateKey(slug))
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
		p.Add("no_scopes", "must be left out: "+of.Slug+" has no OAuth scopes to choose")
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

// checkLadder reports invalid steps of CriticalLadder.
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
			p.Add("to", check.LineText(mostTo), field, i, "to")
		}
	}
}

// mostOrigins is the greatest number of origins of a team.
const mostOrigins = 50

// checkOrigins reports invalid origins of web pages.
func (c *Choices) checkOrigins(p *healthlab.Problems) {
	if len(c.LinkOrigins) > mostOrigins {
		p.Add("too_long", "must have at most 50 origins", "link_allowed_origins")
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

// checkEvents reports invalid choices about events.
func (c *Choices) checkEvents(p *healthlab.Problems) {
	const most, mostBytes = 50, 128
	if len(c.EventPrefixes) > most {
		p.Add("too_long", "must have at most 50 entries", "event_type_prefixes")
	}
	for i, prefix := range c.EventPrefixes {
		if len(prefix) > mostBytes || !eventPrefix.MatchString(prefix) {
			p.Add("prefix", "must be the beginning of an event type, such as daily.data., of at most 128 bytes", "event_type_prefixes", i)
		}
	}
	if days := c.EventBodyDays; days != nil && (*days < 1 || *days > 30) {
		p.Add("range", "must be from 1 to 30", "event_body_retention_days")
	}
	d := c.Destinations
	if d == nil {
		return
	}
	if !slices.Contains(d.Enabled, d.Preferred) {
		p.Add("not_enabled", "must be one of the values in enabled", "event_destination_preferences", "preferred")
	}
	if len(d.Enabled) > most {
		p.Add("too_long", "must have at most 50 entries", "event_destination_preferences", "enabled")
	}
	for i, kind := range d.Enabled {
		if len(kind) > mostBytes || !destinationKind.MatchString(kind) {
			p.Add("kind", "must begin with a lower-case letter, and have only lower-case letters, digits and underscores, such as webhook; at most 128 bytes", "event_destination_preferences", "enabled", i)
		}
	}
}

func (b *Brand) problems() healthlab.Problems {
	const mostName, mostText, mostURL, mostImage = 80, 300, 2048, 64 << 10
	var p healthlab.Problems
	if !check.Line(b.CompanyName, mostName) {
		p.Add("company_name", check.LineText(mostName), "company_name")
	}
	if w, err := url.Parse(b.Website); b.Website != "" &&
		(err != nil || w.Scheme != "https" && w.Scheme != "http" || w.Host == "" || w.User != nil || len(b.Website) > mostURL) {
		p.Add("company_website", "must be an https or http address without a user, of at most 2,048 bytes", "company_website")
	}
	if b.SupportEmail != "" && !check.Address(b.SupportEmail) {
		p.Add("email", "must be an e-mail address of at most 254 bytes", "support_email")
	}
	line := check.LineText(mostText)
	if b.SupportContact != "" && !check.Line(b.SupportContact, mostText) {
		p.Add("support_contact", line, "support_contact")
	}
	if b.Address != "" && !check.Line(b.Address, mostText) {
		p.Add("company_address", line, "company_address")
	}
	u, err := url.Parse(b.LogoURL)
	web := err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && len(b.LogoURL) <= mostURL
	if !web && (len(b.LogoURL) > mostImage || !brandImage.MatchString(b.LogoURL)) {
		p.Add("logo_url", "must be an https address without a user, of at most 2,048 bytes, or a PNG, JPEG, WebP or SVG image as a base64 data URL of at most 64 KiB", "logo_url")
	}
	if b.Color != "" && !brandColor.MatchString(b.Color) {
		p.Add("brand_color", "must be three or six hex digits, with or without #, such as 1a2b3c", "brand_color")
	}
	return p
}

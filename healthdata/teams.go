package healthdata

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// TeamChoices is what a team has chosen. Nil leaves a choice to the deployment. Some of
// them are for health data, some for linking, pulls and orders: those packages ask their
// hosts for settings, and a host may take them from here.
type TeamChoices struct {
	// VerbMode, PushHistoricalData and ProviderRawData are as of [TeamSettings].
	VerbMode           *VerbMode `json:"verb_mode,omitempty"`
	PushHistoricalData *bool     `json:"push_historical_data,omitempty"`
	ProviderRawData    *bool     `json:"provider_raw_data,omitempty"`
	// RejectDuplicates refuses an account that another user of the team has connected.
	RejectDuplicates *bool `json:"reject_duplicate_connection,omitempty"`
	// PartialWebhooks sends an event for every partial result of a lab.
	PartialWebhooks *bool `json:"partial_webhooks_enabled,omitempty"`
	// Minors lets patients under 18 be ordered for.
	Minors *bool `json:"minor_ordering_enabled,omitempty"`
	// PatientSMS and PatientEmail let patients be told of their lab tests that way.
	PatientSMS   *bool `json:"lab_tests_patient_sms_communication_enabled,omitempty"`
	PatientEmail *bool `json:"lab_tests_patient_email_communication_enabled,omitempty"`
	// Brand is what people see of the team.
	Brand *TeamBrand `json:"brand_information,omitempty"`
	// History says by provider how far back history is fetched. Each provider is a choice
	// of its own.
	History map[string]HistoryChoice `json:"data_pull_preferences,omitempty"`
}

// TeamBrand is what people see of a team.
type TeamBrand struct {
	CompanyName string `json:"company_name"`
	// LogoURL is an address of https, or an image itself as a data URL of at most 64 KiB.
	LogoURL string `json:"logo_url"`
	// Color is three or six hex digits, with or without a hash; empty is the default.
	Color string `json:"brand_color,omitempty"`
}

// HistoryChoice is how many days of a provider's history a team wants.
type HistoryChoice struct {
	Default   int            `json:"default"`
	Resources map[string]int `json:"resources,omitempty"`
}

// TeamStore keeps what teams have chosen. Methods are safe for concurrent use and atomic,
// and a context that has ended before a call writes nothing and is the error. What they
// take and return is a copy.
type TeamStore interface {
	// Choices returns what a team has chosen; the zero value if it never chose.
	Choices(ctx context.Context, team healthlab.TeamID) (TeamChoices, error)

	// UpdateChoices lets change make new choices of the old ones, and returns them as they
	// are kept. An error of change is returned unchanged, and nothing is written. change
	// may run more than once, so it is pure. Concurrent updates behave as if they ran one
	// after another. An empty History comes back nil.
	UpdateChoices(ctx context.Context, team healthlab.TeamID, change func(TeamChoices) (TeamChoices, error)) (TeamChoices, error)
}

// Teams reads and changes what teams have chosen. Safe for concurrent use.
type Teams struct {
	store     TeamStore
	providers *Providers
	defaults  TeamChoices
}

// NewTeams returns Teams on a store. defaults are the deployment's, which hold where a team
// has chosen nothing; what they leave out, too, is: VerbUpsert; patients are told by SMS and
// e-mail; everything else is off. Invalid without a store or providers.
func NewTeams(store TeamStore, providers *Providers, defaults TeamChoices) (*Teams, error) {
	if store == nil || providers == nil {
		return nil, fmt.Errorf("%w: teams need a store and providers", healthlab.Invalid)
	}
	on, off, mode := true, false, VerbUpsert
	return &Teams{store, providers, defaults.over(TeamChoices{
		VerbMode: &mode, PushHistoricalData: &off, ProviderRawData: &off, RejectDuplicates: &off,
		PartialWebhooks: &off, Minors: &off, PatientSMS: &on, PatientEmail: &on,
	})}, nil
}

// over returns the choices, and where there is none what is below.
func (c TeamChoices) over(below TeamChoices) TeamChoices {
	history := maps.Clone(below.History)
	if history == nil {
		history = map[string]HistoryChoice{}
	}
	maps.Copy(history, c.History)
	return TeamChoices{
		VerbMode:           cmp.Or(c.VerbMode, below.VerbMode),
		PushHistoricalData: cmp.Or(c.PushHistoricalData, below.PushHistoricalData),
		ProviderRawData:    cmp.Or(c.ProviderRawData, below.ProviderRawData),
		RejectDuplicates:   cmp.Or(c.RejectDuplicates, below.RejectDuplicates),
		PartialWebhooks:    cmp.Or(c.PartialWebhooks, below.PartialWebhooks),
		Minors:             cmp.Or(c.Minors, below.Minors),
		PatientSMS:         cmp.Or(c.PatientSMS, below.PatientSMS),
		PatientEmail:       cmp.Or(c.PatientEmail, below.PatientEmail),
		Brand:              cmp.Or(c.Brand, below.Brand),
		History:            history,
	}
}

// Of returns what holds for a team: its choices, and the defaults where it has none. No
// field is nil but Brand. Do not change what the fields point to.
func (s *Teams) Of(ctx context.Context, team healthlab.TeamID) (TeamChoices, error) {
	c, err := s.store.Choices(ctx, team)
	if err != nil {
		return TeamChoices{}, fmt.Errorf("team settings: %w", err)
	}
	return c.over(s.defaults), nil
}

// Settings returns what health data asks about a team. It is made for [Options].
func (s *Teams) Settings(ctx context.Context, team healthlab.TeamID) (TeamSettings, error) {
	c, err := s.Of(ctx, team)
	if err != nil {
		return TeamSettings{}, err
	}
	return TeamSettings{VerbMode: *c.VerbMode, PushHistoricalData: *c.PushHistoricalData, ProviderRawData: *c.ProviderRawData}, nil
}

// Change lets edit change a team's own choices, and returns what holds for the team
// afterwards. edit may run more than once, and is pure. What is new holds for what begins
// later: an order, a session or a history that is under way may go on by what it began
// with. Invalid with every problem, by the names in JSON; then nothing is changed.
func (s *Teams) Change(ctx context.Context, team healthlab.TeamID, edit func(*TeamChoices)) (TeamChoices, error) {
	c, err := s.store.UpdateChoices(ctx, team, func(old TeamChoices) (TeamChoices, error) {
		before := maps.Clone(old.History)
		edit(&old)
		return old, s.check(&old, before)
	})
	if err != nil {
		return TeamChoices{}, fmt.Errorf("change team settings: %w", err)
	}
	return c.over(s.defaults), nil
}

// check lists what is wrong with choices. A history that was there before stays, though
// its provider is gone from the configuration since.
func (s *Teams) check(c *TeamChoices, before map[string]HistoryChoice) error {
	var p healthlab.Problems
	if m := c.VerbMode; m != nil && *m != VerbUpsert && *m != VerbSplit {
		p.Add("enum", "not one of the allowed values", "verb_mode")
	}
	if c.Brand != nil {
		p.Under(c.Brand.problems(), "brand_information")
	}
	for _, slug := range slices.Sorted(maps.Keys(c.History)) {
		h := c.History[slug]
		if old, ok := before[slug]; ok && old.Default == h.Default && maps.Equal(old.Resources, h.Resources) {
			continue
		}
		p.Under(h.problems(s.providers.Get(slug)), "data_pull_preferences", shortKey(slug))
	}
	return p.Err()
}

var (
	brandColor = regexp.MustCompile(`^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)
	brandImage = regexp.MustCompile(`^data:image/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+=*$`)
)

func (b *TeamBrand) problems() healthlab.Problems {
	const mostName, mostURL, mostImage = 80, 2048, 64 << 10
	var p healthlab.Problems
	if n := utf8.RuneCountInString(b.CompanyName); strings.TrimSpace(b.CompanyName) == "" || n > mostName ||
		!utf8.ValidString(b.CompanyName) || strings.ContainsFunc(b.CompanyName, unicode.IsControl) {
		p.Add("company_name", "1 to 80 characters, and not only space or control characters", "company_name")
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

func (h HistoryChoice) problems(of *Provider) healthlab.Problems {
	const most, field = 365, "historical_days_to_pull"
	var p healthlab.Problems
	if of == nil {
		p.Add("unknown_provider", "is not the slug of a provider")
		return p
	}
	if !of.Backfill.Configurable {
		p.Add("not_configurable", "the provider decides how far back its history is fetched")
	}
	limit := of.Backfill.MaxDays
	if limit <= 0 || limit > most {
		limit = most
	}
	days := func(n int, path ...any) {
		if n < 1 || n > limit {
			p = append(p, healthlab.Problem{
				Path: append(path, field), Code: "range", Msg: "from 1 to what the provider allows", Context: map[string]any{"ge": 1, "le": limit},
			})
		}
	}
	days(h.Default, "default")
	for _, resource := range slices.Sorted(maps.Keys(h.Resources)) {
		key := shortKey(resource)
		if _, fixed := of.Backfill.Days[resource]; fixed || !of.Supports(resource) {
			p.Add("unknown_resource", "is not a resource of the provider whose history can be chosen", "resource_overrides", key)
		}
		days(h.Resources[resource], "resource_overrides", key)
	}
	return p
}

// shortKey is a key as problems name it.
func shortKey(s string) string {
	const most = 64
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

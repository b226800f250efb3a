package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

// settingsOperations lists the operations on the settings of a team.
func (a api) settingsOperations() []server.Operation {
	if a.Teams == nil {
		return nil
	}
	const path, limit = managementPath + "/settings", 256 << 10 // the settings may contain a logo
	ops := []server.Operation{
		{ID: "read_team_settings", Pattern: "GET " + path, Handle: a.managing(asJSON(a.readSettings))},
		{ID: "patch_team_settings", Pattern: "PATCH " + path, Handle: a.managing(asJSON(a.patchSettings)), MaxBody: limit},
	}
	if a.TeamIdentity != nil || a.Organisations != nil {
		ops = append(ops, server.Operation{ID: "read_team", Pattern: "GET /v2/team/{team_id}", Bound: server.TeamOnly, Team: a.readTeam})
	}
	return ops
}

// TeamIdentity is the organisation and the name of a team.
type TeamIdentity struct {
	// Org is the organisation that the team belongs to.
	Org  uuid.UUID
	Name string
}

// teamOut is a team's own record, without keys.
type teamOut struct {
	ID            healthlab.TeamID `json:"id"`
	Org           uuid.UUID        `json:"org_id"`
	Name          string           `json:"name"`
	LogoURL       *string          `json:"logo_url"`
	Configuration settingsOut      `json:"configuration"`
}

func (a api) readTeam(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	asked := healthlab.TeamID{UUID: in.PathUUID("team_id")}
	if err := in.Err(); err != nil {
		return err
	}
	if asked != team {
		return fmt.Errorf("%w: team", healthlab.NotFound)
	}
	who, err := a.identity(r.Context(), team)
	if err != nil {
		return err
	}
	c, err := a.Teams.Of(r.Context(), team)
	if err != nil {
		return err
	}
	out := teamOut{ID: team, Org: who.Org, Name: who.Name, Configuration: settingsFrom(&c)}
	if c.Brand != nil {
		out.LogoURL = orNull(c.Brand.LogoURL)
	}
	return wire.JSON(w, http.StatusOK, out)
}

// settingsOut holds the effective settings of a team.
type settingsOut struct {
	VerbMode           healthdata.VerbMode    `json:"verb_mode"`
	PushHistoricalData bool                   `json:"push_historical_data"`
	ProviderRawData    bool                   `json:"provider_raw_data"`
	DevicesApart       bool                   `json:"sdk_per_device_activity_timeseries"`
	ExplicitConnect    bool                   `json:"explicit_connect"`
	LinkOrigins        *[]string              `json:"link_allowed_origins"`
	RejectDuplicates   bool                   `json:"reject_duplicate_connection"`
	PartialWebhooks    bool                   `json:"partial_webhooks_enabled"`
	Minors             bool                   `json:"minor_ordering_enabled"`
	PatientSMS         bool                   `json:"lab_tests_patient_sms_communication_enabled"`
	PatientEmail       bool                   `json:"lab_tests_patient_email_communication_enabled"`
	Texts              bool                   `json:"texts_enabled"`
	CriticalEmail      *string                `json:"critical_result_notification_email"`
	CriticalLadder     []ladderStep           `json:"critical_result_escalation"`
	Practice           *string                `json:"practice_binding"`
	EventPrefixes      *[]string              `json:"event_type_prefixes"`
	EventBodyDays      int                    `json:"event_body_retention_days"`
	Destinations       *destinationsWire      `json:"event_destination_preferences"`
	Brand              *brandOut              `json:"brand_information"`
	Consent            *consentText           `json:"consent"`
	History            map[string]historyWire `json:"data_pull_preferences"`
}

// consentText names the version and address of the text that people agree to when they connect a source.
type consentText struct {
	Version string  `json:"version"`
	URL     *string `json:"url,omitempty"`
}

// ladderStep is one step of the escalation of a critical result.
type ladderStep struct {
	AfterMinutes int    `json:"after_minutes"`
	To           string `json:"to"`
}

// brandOut is the branding that people see on pages and messages of a team.
type brandOut struct {
	CompanyName string  `json:"company_name"`
	LogoURL     *string `json:"logo_url"`
	Color       *string `json:"brand_color"`
	Website     *string `json:"company_website"`
	Email       *string `json:"support_email"`
	Contact     *string `json:"support_contact"`
	Address     *string `json:"company_address"`
}

// destinationsWire lists the kinds of webhook endpoints, such as HTTP, that receive a team's events.
type destinationsWire struct {
	Preferred string   `json:"preferred"`
	Enabled   []string `json:"enabled"`
}

// historyWire selects how much of a provider's history is pulled.
type historyWire struct {
	Default   daysWire            `json:"default"`
	Resources map[string]daysWire `json:"resource_overrides,omitempty"`
}

type daysWire struct {
	Days int `json:"historical_days_to_pull"`
}

func settingsFrom(c *teamsettings.Choices) settingsOut {
	out := settingsOut{
		VerbMode: *c.VerbMode, PushHistoricalData: *c.PushHistoricalData, ProviderRawData: *c.ProviderRawData,
		RejectDuplicates: *c.RejectDuplicates, PartialWebhooks: *c.PartialWebhooks, Minors: *c.Minors,
		PatientSMS: *c.PatientSMS, PatientEmail: *c.PatientEmail, History: make(map[string]historyWire, len(c.History)),
		DevicesApart: *c.DevicesApart, ExplicitConnect: *c.ExplicitConnect, Texts: *c.Texts, CriticalEmail: c.CriticalEmail, Practice: c.Practice,
		Destinations: (*destinationsWire)(c.Destinations), EventBodyDays: *c.EventBodyDays,
	}
	for _, step := range c.CriticalLadder {
		out.CriticalLadder = append(out.CriticalLadder, ladderStep(step))
	}
	if len(c.LinkOrigins) > 0 {
		out.LinkOrigins = &c.LinkOrigins
	}
	if len(c.EventPrefixes) > 0 {
		out.EventPrefixes = &c.EventPrefixes
	}
	if b := c.Brand; b != nil {
		out.Brand = &brandOut{
			CompanyName: b.CompanyName, LogoURL: orNull(b.LogoURL), Color: orNull(b.Color), Website: orNull(b.Website),
			Email: orNull(b.SupportEmail), Contact: orNull(b.SupportContact), Address: orNull(b.Address),
		}
	}
	if t := c.Consent; t != nil {
		out.Consent = &consentText{Version: t.Version, URL: orNull(t.URL)}
	}
	for slug, h := range c.History {
		one := historyWire{Default: daysWire{h.Default}, Resources: make(map[string]daysWire, len(h.Resources))}
		for resource, n := range h.Resources {
			one.Resources[resource] = daysWire{n}
		}
		out.History[slug] = one
	}
	return out
}

// settingsIn is the body that changes the settings of a team. Null resets a setting to its default.
type settingsIn struct {
	VerbMode           wire.Opt[healthdata.VerbMode]     `json:"verb_mode"`
	PushHistoricalData wire.Opt[bool]                    `json:"push_historical_data"`
	ProviderRawData    wire.Opt[bool]                    `json:"provider_raw_data"`
	DevicesApart       wire.Opt[bool]                    `json:"sdk_per_device_activity_timeseries"`
	ExplicitConnect    wire.Opt[bool]                    `json:"explicit_connect"`
	LinkOrigins        wire.Opt[[]string]                `json:"link_allowed_origins"`
	RejectDuplicates   wire.Opt[bool]                    `json:"reject_duplicate_connection"`
	PartialWebhooks    wire.Opt[bool]                    `json:"partial_webhooks_enabled"`
	Minors             wire.Opt[bool]                    `json:"minor_ordering_enabled"`
	PatientSMS         wire.Opt[bool]                    `json:"lab_tests_patient_sms_communication_enabled"`
	PatientEmail       wire.Opt[bool]                    `json:"lab_tests_patient_email_communication_enabled"`
	Texts              wire.Opt[bool]                    `json:"texts_enabled"`
	CriticalEmail      wire.Opt[string]                  `json:"critical_result_notification_email"`
	CriticalLadder     wire.Opt[[]ladderStep]            `json:"critical_result_escalation"`
	Practice           wire.Opt[string]                  `json:"practice_binding"`
	EventPrefixes      wire.Opt[[]string]                `json:"event_type_prefixes"`
	EventBodyDays      wire.Opt[int]                     `json:"event_body_retention_days"`
	Destinations       wire.Opt[destinationsWire]        `json:"event_destination_preferences"`
	Brand              wire.Opt[brandIn]                 `json:"brand_information"`
	Consent            wire.Opt[consentText]             `json:"consent"`
	History            wire.Opt[map[string]*historyWire] `json:"data_pull_preferences"`
}

// brandIn is the body that replaces the branding of a team.
type brandIn struct {
	CompanyName string  `json:"company_name"`
	LogoURL     string  `json:"logo_url"`
	Color       *string `json:"brand_color"`
	Website     *string `json:"company_website"`
	Email       *string `json:"support_email"`
	Contact     *string `json:"support_contact"`
	Address     *string `json:"company_address"`
}

func choose[T any](to **T, sent wire.Opt[T]) {
	if sent.Set {
		*to = sent.Ptr()
	}
}

// edit applies the body to the settings of a team. It may run more than once.
func (in *settingsIn) edit(c *teamsettings.Choices) {
	choose(&c.VerbMode, in.VerbMode)
	choose(&c.PushHistoricalData, in.PushHistoricalData)
	choose(&c.ProviderRawData, in.ProviderRawData)
	choose(&c.RejectDuplicates, in.RejectDuplicates)
	choose(&c.PartialWebhooks, in.PartialWebhooks)
	choose(&c.Minors, in.Minors)
	choose(&c.PatientSMS, in.PatientSMS)
	choose(&c.PatientEmail, in.PatientEmail)
	choose(&c.DevicesApart, in.DevicesApart)
	choose(&c.ExplicitConnect, in.ExplicitConnect)
	if in.LinkOrigins.Set {
		c.LinkOrigins = in.LinkOrigins.Value
	}
	choose(&c.Texts, in.Texts)
	choose(&c.CriticalEmail, in.CriticalEmail)
	if in.CriticalLadder.Set {
		c.CriticalLadder = nil
		if !in.CriticalLadder.Null {
			c.CriticalLadder = make([]teamsettings.LadderStep, 0, len(in.CriticalLadder.Value))
		}
		for _, step := range in.CriticalLadder.Value {
			c.CriticalLadder = append(c.CriticalLadder, teamsettings.LadderStep(step))
		}
	}
	choose(&c.Practice, in.Practice)
	if in.EventPrefixes.Set {
		c.EventPrefixes = in.EventPrefixes.Value
	}
	choose(&c.EventBodyDays, in.EventBodyDays)
	if in.Destinations.Set {
		c.Destinations = (*teamsettings.Destinations)(in.Destinations.Ptr())
	}
	if in.Consent.Set {
		c.Consent = nil
		if t := in.Consent.Ptr(); t != nil {
			c.Consent = &healthdata.ConsentText{Version: t.Version}
			if t.URL != nil {
				c.Consent.URL = *t.URL
			}
		}
	}
	if in.Brand.Set {
		c.Brand = nil
		if b := in.Brand.Ptr(); b != nil {
			c.Brand = &teamsettings.Brand{
				CompanyName: b.CompanyName, LogoURL: b.LogoURL, Color: value(b.Color), Website: value(b.Website),
				SupportEmail: value(b.Email), SupportContact: value(b.Contact), Address: value(b.Address),
			}
		}
	}
	if in.History.Null {
		c.History = nil
	}
	for slug, h := range in.History.Value {
		if h == nil {
			delete(c.History, slug)
			continue
		}
		if c.History == nil {
			c.History = map[string]healthdata.HistoryChoice{}
		}
		c.History[slug] = h.choice()
	}
}

// choice converts the history setting of a body.
func (h historyWire) choice() healthdata.HistoryChoice {
	out := healthdata.HistoryChoice{Default: h.Default.Days, Resources: make(map[string]int, len(h.Resources))}
	for resource, n := range h.Resources {
		out.Resources[resource] = n.Days
	}
	return out
}

func (a api) readSettings(ctx context.Context, m *managed) (any, error) {
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	c, err := a.Teams.Of(ctx, team)
	if err != nil {
		return nil, err
	}
	return settingsFrom(&c), nil
}

func (a api) patchSettings(ctx context.Context, m *managed) (any, error) {
	var body settingsIn
	m.Body(&body)
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	c, err := a.Teams.Change(ctx, team, body.edit)
	if err != nil {
		return nil, err
	}
	return settingsFrom(&c), nil
}

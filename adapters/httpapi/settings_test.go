package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

func newTeams(t *testing.T, store *memory.Store, health *healthdata.Service, defaults teamsettings.Choices) *teamsettings.Service {
	t.Helper()
	s, err := teamsettings.New(store.Teams(), health.Providers(), defaults)
	require.NoError(t, err)
	return s
}

// headOffice manages the settings of two teams over HTTP.
type headOffice struct {
	*contract.Client
	t       *testing.T
	service *teamsettings.Service
}

func newHeadOffice(t *testing.T) *headOffice {
	t.Helper()
	backfill := healthdata.Backfill{DefaultDays: 90, MaxDays: 180, Configurable: true, Days: map[string]int{"sleep": 10}}
	resources := []healthdata.ProviderResource{{Resource: "steps"}, {Resource: "sleep"}, {Resource: "heartrate"}}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_band", Name: "Acme Band", AuthType: "oauth", Category: "provider", Class: "cloud", Resources: resources, Backfill: backfill,
			Scopes: map[string]healthdata.Scopes{"steps": {Required: []string{"move"}, Optional: []string{"place"}}, "sleep": {Required: []string{"sleep"}}}},
		{Slug: "cedar_sleep", Name: "Cedar Sleep", AuthType: "password", Category: "provider", Class: "cloud", Resources: resources, Backfill: healthdata.Backfill{Mode: "none"}},
		{Slug: "acme_ring", Name: "Acme Ring", AuthType: "oauth", Category: "provider", Class: "cloud", Resources: resources, Backfill: healthdata.Backfill{Mode: "none"}},
	})
	require.NoError(t, err)
	service, err := teamsettings.New(memory.New(nil).Teams(), providers, teamsettings.Choices{Minors: ptr(true)})
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Environment:  healthlab.Sandbox,
		Region:       httpapi.US,
		TeamsOf: func(_ context.Context, of uuid.UUID) ([]healthlab.TeamID, error) {
			return []healthlab.TeamID{otherTeam, team, {UUID: uuid.New()}}, nil // the last one is not in the key's mandate
		},
		AuthenticateManagement: httpapi.ManagementAuth([]httpapi.ManagementKey{{
			Sum: httpapi.SumKey(managementKey),
			Mandate: func(which uuid.UUID, tm healthlab.TeamID) bool {
				return which == org && (tm == team || tm == otherTeam)
			},
		}}, nil),
		Parts: (&httpapi.Services{Teams: service, TeamIdentity: func(_ context.Context, of healthlab.TeamID) (httpapi.TeamIdentity, error) {
			return httpapi.TeamIdentity{Org: org, Name: map[healthlab.TeamID]string{team: "Riverside"}[of]}, nil
		}}).Parts(),
	})
	return &headOffice{contract.NewClient(t, h, httpapi.OpenAPI()).With("x-management-key", managementKey), t, service}
}

func settingsPath(team healthlab.TeamID) string {
	return "/v1/org/" + org.String() + "/team/" + team.String() + "/sandbox/settings"
}

func (o *headOffice) read(team healthlab.TeamID) string {
	o.t.Helper()
	return string(o.Send(o.t, "GET", settingsPath(team), nil).Want(o.t, 200).Body)
}

func (o *headOffice) patch(body string) *contract.Reply {
	o.t.Helper()
	return o.Send(o.t, "PATCH", settingsPath(team), body)
}

const defaultSettings = `{"verb_mode":"upsert","push_historical_data":false,"provider_raw_data":false,"reject_duplicate_connection":false,
	"partial_webhooks_enabled":false,"minor_ordering_enabled":true,"lab_tests_patient_sms_communication_enabled":true,
	"lab_tests_patient_email_communication_enabled":true,"brand_information":null,"consent":null,"data_pull_preferences":{},
	"sdk_per_device_activity_timeseries":false,"explicit_connect":false,"link_allowed_origins":null,"texts_enabled":false,"critical_result_notification_email":null,"practice_binding":null,
	"critical_result_escalation":[{"after_minutes":15,"to":"ordering_clinician"},{"after_minutes":30,"to":"clinician_on_call"},{"after_minutes":60,"to":"medical_director"}],
	"event_type_prefixes":null,"event_body_retention_days":7,"event_destination_preferences":null}`

func TestTeamSettings_arePatchedReadAndReset(t *testing.T) {
	o := newHeadOffice(t)
	require.JSONEq(t, defaultSettings, o.read(team))
	const logo = "data:image/png;base64,iVBORw0KGgo="
	want := `{"verb_mode":"split","consent":{"version":"2026-11","url":"https://app.example/consent"},"push_historical_data":true,"provider_raw_data":true,"reject_duplicate_connection":true,
		"partial_webhooks_enabled":true,"minor_ordering_enabled":false,"lab_tests_patient_sms_communication_enabled":false,
		"lab_tests_patient_email_communication_enabled":false,"sdk_per_device_activity_timeseries":true,"explicit_connect":true,
		"link_allowed_origins":["https://app.example","http://localhost:5173"],"texts_enabled":true,
		"critical_result_notification_email":"on-call@riverside.example","critical_result_escalation":[{"after_minutes":5,"to":"Front desk"},{"after_minutes":10080,"to":"head_of_team"}],"practice_binding":"Riverside",
		"event_type_prefixes":["labtest.","daily.data.sleep"],"event_body_retention_days":1,"event_destination_preferences":{"preferred":"nats","enabled":["webhook","nats"]},
		"brand_information":{"company_name":"Riverside Practice","logo_url":"` + logo + `","brand_color":"#8a2be2",
			"company_website":"https://riverside.example","support_email":"help@riverside.example","support_contact":"+1 217 555 0100",
			"company_address":"1 Example Street, Springfield"},
		"data_pull_preferences":{"acme_band":{"default":{"historical_days_to_pull":180},"resource_overrides":{"steps":{"historical_days_to_pull":1}}}}}`
	require.JSONEq(t, want, string(o.patch(want).Want(t, 200).Body))
	require.JSONEq(t, want, o.read(team))
	require.JSONEq(t, defaultSettings, o.read(otherTeam), "another team's")
	require.JSONEq(t, want, string(o.patch(`{}`).Want(t, 200).Body), "what is not named stays")
	health, err := o.service.Settings(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, healthdata.TeamSettings{VerbMode: healthdata.VerbSplit, PushHistoricalData: true, ProviderRawData: true, DevicesApart: true, ExplicitConnect: true}, health)

	require.JSONEq(t, strings.Replace(want, `"minor_ordering_enabled":false`, `"minor_ordering_enabled":true`, 1),
		string(o.patch(`{"minor_ordering_enabled":null}`).Want(t, 200).Body), "null is the default")
	o.patch(`{"brand_information":{"company_name":"Riverside","logo_url":"https://cdn.example/logo.png"}}`).Want(t, 200)
	require.Contains(t, o.read(team), `"logo_url":"https://cdn.example/logo.png","brand_color":null,"company_website":null`, "a brand is replaced whole")
	require.Contains(t, string(o.patch(`{"data_pull_preferences":{"acme_band":null,"acme_ring":null}}`).Want(t, 200).Body), `"data_pull_preferences":{}`)
	o.patch(`{"data_pull_preferences":{"acme_band":{"default":{"historical_days_to_pull":2}}}}`).Want(t, 200)
	require.JSONEq(t, defaultSettings, string(o.patch(`{"verb_mode":null,"push_historical_data":null,"provider_raw_data":null,
		"reject_duplicate_connection":null,"partial_webhooks_enabled":null,"minor_ordering_enabled":null,
		"lab_tests_patient_sms_communication_enabled":null,"lab_tests_patient_email_communication_enabled":null,
		"sdk_per_device_activity_timeseries":null,"explicit_connect":null,"link_allowed_origins":null,"texts_enabled":null,"critical_result_notification_email":null,"critical_result_escalation":null,"practice_binding":null,
		"event_type_prefixes":[],"event_body_retention_days":null,"event_destination_preferences":null,
		"brand_information":null,"consent":null,"data_pull_preferences":null}`).Want(t, 200).Body))
}

// A team reads its own record, and no other team's.
func TestReadTeam_returnsOnlyTheCallersTeam(t *testing.T) {
	o := newHeadOffice(t)
	want := func(logo string) string {
		return `{"id":"` + team.String() + `","org_id":"` + org.String() + `","name":"Riverside","logo_url":` + logo + `,"configuration":` + o.read(team) + `}`
	}
	path := "/v2/team/" + team.String()
	require.JSONEq(t, want("null"), string(o.Send(t, "GET", path, nil).Want(t, 200).Body))
	o.patch(`{"brand_information":{"company_name":"A","logo_url":"https://cdn.example/logo.png"}}`).Want(t, 200)
	require.JSONEq(t, want(`"https://cdn.example/logo.png"`), string(o.Send(t, "GET", path, nil).Want(t, 200).Body))
	require.Equal(t, "NOT_FOUND", o.Send(t, "GET", "/v2/team/"+otherTeam.String(), nil).Want(t, 404).ErrorType(t))
	require.Equal(t, []string{"path.team_id"}, o.Send(t, "GET", "/v2/team/mine", nil).Want(t, 422).Locs(t))
}

func TestTeamSettings_invalidInputIsRefusedByField(t *testing.T) {
	o := newHeadOffice(t)
	const days = "historical_days_to_pull"
	for _, c := range []struct {
		body string
		locs []string
	}{
		{`{"verb_mode":"never","minor_ordering_enabled":false,"brand_information":{"company_name":" ","logo_url":"http://cdn.example/a.png","brand_color":"red"},
			"data_pull_preferences":{"moon":{"default":{"historical_days_to_pull":1}},"acme_ring":{"default":{"historical_days_to_pull":1}},
			"acme_band":{"default":{"historical_days_to_pull":0},"resource_overrides":{"sleep":{"historical_days_to_pull":5},"water":{"historical_days_to_pull":5},"steps":{"historical_days_to_pull":181}}}}}`,
			[]string{
				"body.verb_mode", "body.brand_information.company_name", "body.brand_information.logo_url", "body.brand_information.brand_color",
				"body.data_pull_preferences.acme_band.default." + days, "body.data_pull_preferences.acme_band.resource_overrides.sleep",
				"body.data_pull_preferences.acme_band.resource_overrides.steps." + days, "body.data_pull_preferences.acme_band.resource_overrides.water",
				"body.data_pull_preferences.acme_ring", "body.data_pull_preferences.moon",
			}},
		{`{"minor_ordering_enabled":"no","colour":1,"brand_information":{"company_name":"A"},"data_pull_preferences":{"acme_band":{"default":{}}}}`,
			[]string{"body.minor_ordering_enabled", "body.colour", "body.brand_information.logo_url", "body.data_pull_preferences.acme_band.default." + days}},
		{`{"brand_information":{"company_name":"A","logo_url":"data:image/png;base64,` + strings.Repeat("A", 64<<10) + `"}}`, []string{"body.brand_information.logo_url"}},
		{`{"brand_information":{"company_name":"` + strings.Repeat("é", 81) + `","logo_url":"https://user:secret@cdn.example/"}}`,
			[]string{"body.brand_information.company_name", "body.brand_information.logo_url"}},
		{`{"critical_result_notification_email":"Ann <ann@riverside.example>","practice_binding":"  ","event_type_prefixes":["labtest.","","Labtest","a..b"],"event_body_retention_days":31,
			"event_destination_preferences":{"preferred":"nats","enabled":["webhook","no no"]},
			"brand_information":{"company_name":"A","logo_url":"https://cdn.example/a.png","company_website":"javascript:alert(1)","support_email":"@",
			"support_contact":"` + strings.Repeat("1", 301) + `","company_address":"a\u0007"}}`,
			[]string{
				"body.critical_result_notification_email", "body.practice_binding", "body.event_type_prefixes.1", "body.event_type_prefixes.2",
				"body.event_type_prefixes.3", "body.event_body_retention_days", "body.event_destination_preferences.preferred", "body.event_destination_preferences.enabled.1",
				"body.brand_information.company_website", "body.brand_information.support_email", "body.brand_information.support_contact",
				"body.brand_information.company_address",
			}},
		{`{"critical_result_escalation":[]}`, []string{"body.critical_result_escalation"}},
		{`{"critical_result_escalation":[{"after_minutes":0,"to":"a"},{"after_minutes":5,"to":" "},{"after_minutes":5,"to":"b"},{"after_minutes":10081,"to":"c"}]}`, []string{
			"body.critical_result_escalation.0.after_minutes", "body.critical_result_escalation.1.to", "body.critical_result_escalation.2.after_minutes", "body.critical_result_escalation.3.after_minutes",
		}},
		{`{"critical_result_escalation":[{"after_minutes":1}]}`, []string{"body.critical_result_escalation.0.to"}},
		{`{"consent":{"version":" ","url":"http://app.example/consent"}}`, []string{"body.consent.version", "body.consent.url"}},
	} {
		require.ElementsMatch(t, c.locs, o.patch(c.body).Want(t, 422).Locs(t))
		require.JSONEq(t, defaultSettings, o.read(team), "nothing of it was kept")
	}
	for _, method := range []string{"GET", "PATCH"} {
		var body any
		if method == "PATCH" {
			body = `{"minor_ordering_enabled":false}`
		}
		path := settingsPath(team)
		require.Equal(t, "UNAUTHORIZED", o.With("x-management-key", "mk_wrong").Send(t, method, path, body).Want(t, 401).ErrorType(t))
		require.Equal(t, "NOT_FOUND", o.Send(t, method, strings.Replace(path, "sandbox", "production", 1), body).Want(t, 404).ErrorType(t))
		require.Equal(t, "NOT_FOUND", o.Send(t, method, settingsPath(healthlab.TeamID{UUID: uuid.New()}), body).Want(t, 404).ErrorType(t))
		require.Equal(t, "NOT_FOUND", o.Send(t, method, strings.Replace(path, org.String(), uuid.NewString(), 1), body).Want(t, 404).ErrorType(t))
	}
	require.JSONEq(t, defaultSettings, o.read(team))
}

// A team can change its settings although they name a provider that is no longer configured.
func TestTeamSettings_mayNameAProviderThatIsNoLongerConfigured(t *testing.T) {
	store := memory.New(nil)
	with, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_band", Name: "Acme Band", AuthType: "oauth", Category: "provider", Class: "cloud", Backfill: healthdata.Backfill{Configurable: true}},
	})
	require.NoError(t, err)
	without, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	set := func(providers *healthdata.Providers, edit func(*teamsettings.Choices)) teamsettings.Choices {
		s, err := teamsettings.New(store.Teams(), providers, teamsettings.Choices{})
		require.NoError(t, err)
		c, err := s.Change(t.Context(), team, edit)
		require.NoError(t, err)
		return c
	}
	set(with, func(c *teamsettings.Choices) {
		c.History = map[string]healthdata.HistoryChoice{"acme_band": {Default: 3}}
	})
	c := set(without, func(c *teamsettings.Choices) { c.Minors = ptr(true) })
	require.True(t, *c.Minors)
	require.Equal(t, 3, c.History["acme_band"].Default)
}

// What a team asks people to grant, by provider.
func TestScopeRequirements_areSetPerProviderAndReset(t *testing.T) {
	o := newHeadOffice(t)
	path := func(team healthlab.TeamID) string {
		return "/v1/org/" + org.String() + "/team/" + team.String() + "/scope_requirements"
	}
	get := func(path string) string { return string(o.Send(t, "GET", path, nil).Want(t, 200).Body) }
	post := func(body string) *contract.Reply { return o.Send(t, "POST", path(team), body) }
	none := `{"requirements":[]}`
	require.JSONEq(t, none, get(path(team)))
	want := `{"requirements":[{"team_id":"` + team.String() + `","provider":"acme_band","user_must_grant":["sleep"],"user_may_grant":["move"]}]}`
	require.JSONEq(t, want, string(post(`{"acme_band":{"user_must_grant":["sleep"],"user_may_grant":["move"]}}`).Want(t, 200).Body))
	require.JSONEq(t, want, get(path(team)))
	require.JSONEq(t, want, get(path(team)+"?provider=acme_band"))
	require.JSONEq(t, none, get(path(team)+"?provider=acme_ring"))
	require.JSONEq(t, none, get(path(otherTeam)), "another team's")
	require.JSONEq(t, want, string(post(`{}`).Want(t, 200).Body), "what is not named stays")
	c, err := o.service.Of(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, map[string]teamsettings.ScopeChoice{"acme_band": {Must: []string{"sleep"}, May: []string{"move"}}}, c.Scopes)

	for body, locs := range map[string][]string{
		`{"acme_band":{"user_must_grant":["sleep","MARK","sleep"],"user_may_grant":["place","sleep"]},"moon":{"user_must_grant":[],"user_may_grant":[]},
			"cedar_sleep":{"user_must_grant":[],"user_may_grant":[]},"acme_ring":{"user_must_grant":[],"user_may_grant":[]}}`: {
			"body.acme_band.user_must_grant.1", "body.acme_band.user_must_grant.2", "body.acme_band.user_may_grant.1", "body.acme_ring", "body.cedar_sleep", "body.moon",
		},
		`{"acme_band":{"user_must_grant":["sleep"]}}`:                                {"body.acme_band.user_may_grant"},
		`{"acme_band":{"user_must_grant":null,"user_may_grant":[7],"x":1}}`:          {"body.acme_band.user_must_grant", "body.acme_band.user_may_grant.0", "body.acme_band.x"},
		`{"acme_band":null,"acme_ring":{"user_must_grant":"x","user_may_grant":[]}}`: {"body.acme_ring.user_must_grant"},
	} {
		r := post(body).Want(t, 422)
		require.ElementsMatch(t, locs, r.Locs(t))
		require.NotContains(t, string(r.Body), "MARK")
		require.JSONEq(t, want, get(path(team)), "nothing of it was kept")
	}
	for _, method := range []string{"GET", "POST"} {
		var body any
		if method == "POST" {
			body = `{"acme_band":null}`
		}
		require.Equal(t, "UNAUTHORIZED", o.With("x-management-key", "mk_wrong").Send(t, method, path(team), body).Want(t, 401).ErrorType(t))
		require.Equal(t, "NOT_FOUND", o.Send(t, method, path(healthlab.TeamID{UUID: uuid.New()}), body).Want(t, 404).ErrorType(t))
		require.Equal(t, "NOT_FOUND", o.Send(t, method, strings.Replace(path(team), org.String(), uuid.NewString(), 1), body).Want(t, 404).ErrorType(t))
	}
	require.JSONEq(t, none, string(post(`{"acme_band":null,"moon":null}`).Want(t, 200).Body))
	require.JSONEq(t, none, get(path(team)))
}

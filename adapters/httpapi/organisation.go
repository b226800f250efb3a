package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// organisationOperations lists the operations on the teams of an organisation.
func (a api) organisationOperations() []server.Operation {
	if a.Organisations == nil {
		return nil
	}
	const all, one = "/v1/org/{org_id}/team", "/v1/org/{org_id}/team/{team_id}"
	const keys = " /v1/org/{org_id}/team_api_keys/{environment}/{region}"
	return []server.Operation{
		{ID: "list_teams", Pattern: "GET " + all, Handle: a.managingOrg(asJSON(a.listTeams))},
		{ID: "create_team", Pattern: "POST " + all, Handle: a.managingOrg(asJSON(a.createTeam))},
		{ID: "read_org_team", Pattern: "GET " + one, Handle: a.managingHere(asJSON(a.readOrgTeam))},
		{ID: "patch_team", Pattern: "PATCH " + one, Handle: a.managingHere(asJSON(a.patchTeam))},
		{ID: "read_management_key", Pattern: "GET " + one + "/management_key", Handle: a.managingHere(asJSON(readManagementKey))},
		{ID: "delete_team", Pattern: "DELETE " + one, Handle: a.managingHere(asJSON(a.deleteTeam))},
		{ID: "list_api_keys", Pattern: "GET" + keys, Handle: a.managingTeams(asJSON(a.listAPIKeys))},
		{ID: "create_api_key", Pattern: "POST" + keys, Handle: a.managingTeams(a.createAPIKey)},
		{ID: "rotate_api_key", Pattern: "POST" + keys + "/{key_id}/rotate", Handle: a.managingTeams(a.rotateAPIKey)},
		{ID: "delete_api_keys", Pattern: "DELETE" + keys, Handle: a.managingTeams(asJSON(a.deleteAPIKeys))},
	}
}

// KeyMaker returns a function for organisation.Options that makes API keys from random. Use crypto/rand.Reader; tests
// may use another reader.
func KeyMaker(random io.Reader, env healthlab.Environment, region Region) func() (key, hint string, err error) {
	return func() (string, string, error) {
		key, _, err := NewKey(random, env, region)
		return key, KeyHint(key), err
	}
}

// KeysOf returns a KeyFinder for the API keys that teams have created through an organisation.Service.
func KeysOf(s *organisation.Service) KeyFinder { return orgKeys{s} }

type orgKeys struct{ *organisation.Service }

// FindKey returns the key with a sum.
func (k orgKeys) FindKey(ctx context.Context, sum KeySum) (APIKey, error) {
	found, err := k.Service.FindKey(ctx, sum)
	return APIKey{ID: found.ID, Team: found.Team, Sum: found.Sum, Scopes: found.Scopes}, err
}

// OrganisationMandate is the mandate of a key that may manage an organisation with all its teams.
func OrganisationMandate(of uuid.UUID) Mandate {
	return func(org uuid.UUID, _ healthlab.TeamID) bool { return org == of }
}

// TeamsMandate is the mandate of a key that may manage only the given teams of an organisation.
func TeamsMandate(of uuid.UUID, teams ...healthlab.TeamID) Mandate {
	teams = slices.DeleteFunc(slices.Clone(teams), healthlab.TeamID.IsZero)
	return func(org uuid.UUID, team healthlab.TeamID) bool { return org == of && slices.Contains(teams, team) }
}

// belongs returns a function that fails if a team does not belong to an organisation. The function accepts every team
// if the part Organisations is not mounted.
func (a api) belongs(ctx context.Context) func(uuid.UUID, healthlab.TeamID) error {
	if a.Organisations == nil {
		return func(uuid.UUID, healthlab.TeamID) error { return nil }
	}
	return func(org uuid.UUID, team healthlab.TeamID) error {
		_, err := a.Organisations.Team(ctx, org, team)
		return err
	}
}

// teamsOf returns the ids of all teams of an organisation.
func (a api) teamsOf(ctx context.Context, org uuid.UUID) (out []healthlab.TeamID, err error) {
	if a.TeamsOf != nil {
		return a.TeamsOf(ctx, org)
	}
	const page = 500
	for q := (organisation.Query{Org: org, N: page}); ; {
		list, err := a.Organisations.Teams(ctx, q)
		for i := range list {
			out = append(out, list[i].ID)
			q.After = list[i].ID
		}
		if err != nil || len(list) < page {
			return out, err
		}
	}
}

// identity returns the organisation and the name of a team.
func (a api) identity(ctx context.Context, team healthlab.TeamID) (TeamIdentity, error) {
	if a.TeamIdentity != nil {
		return a.TeamIdentity(ctx, team)
	}
	t, err := a.Organisations.Find(ctx, team)
	return TeamIdentity{Org: t.Org, Name: t.Name}, err
}

// managedOrg is a management request about an organisation.
type managedOrg struct {
	*wire.In
	mandate Mandate

	org uuid.UUID
}

// managingOrg returns a handler that authenticates the caller and calls do with it.
func (a api) managingOrg(do func(http.ResponseWriter, *http.Request, *managedOrg) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, err := a.manager(r)
		if err != nil {
			return err
		}
		in := wire.From(r)
		return do(w, r, &managedOrg{In: in, mandate: by.Mandate, org: in.PathUUID("org_id")})
	}
}

func (m Mandate) requireOrganisation(org uuid.UUID) error {
	if org == uuid.Nil || !m(org, healthlab.TeamID{}) {
		return fmt.Errorf("%w: the management key may not manage this organisation", healthlab.Forbidden)
	}
	return nil
}

// orgTeamOut is a team in answers to the holder of a key of its organisation.
type orgTeamOut struct {
	ID            healthlab.TeamID      `json:"id"`
	Org           uuid.UUID             `json:"org_id"`
	Name          string                `json:"name"`
	IntegrationID *string               `json:"integration_team_id"`
	Environment   healthlab.Environment `json:"environment"`
	Region        Region                `json:"region"`
	CreatedAt     healthlab.Time        `json:"created_at"`
	UpdatedAt     healthlab.Time        `json:"updated_at"`
}

func (a api) orgTeam(t *organisation.Team) orgTeamOut {
	return orgTeamOut{
		ID: t.ID, Org: t.Org, Name: t.Name, IntegrationID: orNull(t.IntegrationID), Environment: a.Environment, Region: a.Region,
		CreatedAt: healthlab.At(t.CreatedAt), UpdatedAt: healthlab.At(t.UpdatedAt),
	}
}

// managementKeyOut is the role that the calling management key has for a team.
type managementKeyOut struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
}

func readManagementKey(_ context.Context, m *managed) (any, error) {
	if _, err := m.authorizedTeam(); err != nil {
		return nil, err
	}
	return managementKeyOut{m.by.Name, cmp.Or(m.by.Role, RoleAdmin)}, nil
}

// teamsOut is a page of teams.
type teamsOut struct {
	Teams      []orgTeamOut `json:"teams"`
	NextCursor *string      `json:"next_cursor"`
}

func (a api) listTeams(ctx context.Context, m *managedOrg) (any, error) {
	limit, after := m.Int("limit", 50, 1, mostTeams), m.OptUUID("next_cursor")
	q := organisation.Query{Org: m.org, IntegrationID: orEmpty(m.OptText("integration_team_id", 1024)), N: mostTeams}
	if err := m.Err(); err != nil {
		return nil, err
	}
	if after != nil {
		q.After = healthlab.TeamID{UUID: *after}
	}
	out := teamsOut{Teams: []orgTeamOut{}}
	for { // skip the teams that the key may not manage
		list, err := a.Organisations.Teams(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range list {
			q.After = list[i].ID
			if !m.mandate(m.org, list[i].ID) {
				continue
			}
			if len(out.Teams) == limit {
				out.NextCursor = orNull(out.Teams[limit-1].ID.String())
				return out, nil
			}
			out.Teams = append(out.Teams, a.orgTeam(&list[i]))
		}
		if len(list) < q.N {
			return out, nil
		}
	}
}

// newTeamIn is the body that creates a team.
type newTeamIn struct {
	ID            *uuid.UUID `json:"id"`
	Name          string     `json:"name"`
	IntegrationID *string    `json:"integration_team_id"`
}

func (a api) createTeam(ctx context.Context, m *managedOrg) (any, error) {
	if m.Err() == nil { // check the right to create before the body, so that others get no problems of the body
		if err := m.mandate.requireOrganisation(m.org); err != nil {
			return nil, err
		}
	}
	var body newTeamIn
	m.Body(&body)
	m.NotEmpty("integration_team_id", body.IntegrationID)
	if body.ID != nil && *body.ID == uuid.Nil && m.Err() == nil {
		m.Problem("uuid", "must not be the nil UUID", "body", "id")
	}
	if err := m.Err(); err != nil {
		return nil, err
	}
	t, err := a.Organisations.CreateTeam(ctx, m.org, organisation.NewTeam{
		ID: healthlab.TeamID{UUID: value(body.ID)}, Name: body.Name, IntegrationID: value(body.IntegrationID),
	})
	if err != nil {
		return nil, integrationTaken(err, m.org, m.mandate)
	}
	return a.orgTeam(&t), nil
}

// integrationTaken adds the team that already uses an integration id to an error, if the caller may manage that team.
func integrationTaken(err error, org uuid.UUID, mandate Mandate) error {
	var taken *organisation.IntegrationTakenError
	if !errors.As(err, &taken) {
		return err
	}
	out := &wire.Fault{Status: http.StatusConflict, Type: "INTEGRATION_TEAM_ID_TAKEN", Msg: "another team of the organisation already has this integration_team_id"}
	if mandate(org, taken.Team) {
		out.Extra = map[string]any{"team_id": taken.Team}
	}
	return out
}

func (a api) readOrgTeam(ctx context.Context, m *managed) (any, error) {
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	t, err := a.Organisations.Team(ctx, m.org, team)
	if err != nil {
		return nil, err
	}
	return a.orgTeam(&t), nil
}

// teamPatchIn is the body that changes a team. A null integration id deletes the id.
type teamPatchIn struct {
	Name          *string          `json:"name"`
	IntegrationID wire.Opt[string] `json:"integration_team_id"`
}

func (a api) patchTeam(ctx context.Context, m *managed) (any, error) {
	var body teamPatchIn
	m.Body(&body)
	m.NotEmpty("integration_team_id", body.IntegrationID.Ptr())
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	change := organisation.TeamChange{Name: body.Name}
	if body.IntegrationID.Set {
		change.IntegrationID = new(value(body.IntegrationID.Ptr()))
	}
	t, err := a.Organisations.ChangeTeam(ctx, m.org, team, change)
	if err != nil {
		return nil, integrationTaken(err, m.org, m.by.Mandate)
	}
	return a.orgTeam(&t), nil
}

func (a api) deleteTeam(ctx context.Context, m *managed) (any, error) {
	team, err := m.authorizedTeam()
	if err == nil {
		err = m.by.Mandate.requireOrganisation(m.org)
	}
	if err == nil {
		err = a.Organisations.DeleteTeam(ctx, m.org, team)
	}
	if err != nil {
		return nil, err
	}
	return success{true}, nil
}

// apiKeyOut is an API key. Only the answer that creates a key contains the whole key.
type apiKeyOut struct {
	ID    uuid.UUID        `json:"id"`
	Label string           `json:"label"`
	Value string           `json:"value"`
	Team  healthlab.TeamID `json:"team_id"`
	// Scopes is null for a key with all scopes.
	Scopes     *organisation.Scopes `json:"scopes"`
	CreatedAt  healthlab.Time       `json:"created_at"`
	ExpiresAt  *healthlab.Time      `json:"expires_at"`
	LastUsedAt *healthlab.Time      `json:"last_used_at"`
}

func apiKeyFrom(k *organisation.Key, shown string) apiKeyOut {
	var scopes *organisation.Scopes
	if len(k.Scopes) > 0 {
		scopes = &k.Scopes
	}
	return apiKeyOut{
		ID: k.ID, Label: k.Label, Value: shown, Team: k.Team, Scopes: scopes,
		CreatedAt: healthlab.At(k.CreatedAt), ExpiresAt: timeOrNull(k.ExpiresAt), LastUsedAt: timeOrNull(k.LastUsedAt),
	}
}

func timeOrNull(t time.Time) *healthlab.Time {
	if t.IsZero() {
		return nil
	}
	return new(healthlab.At(t))
}

// apiKeysOut is a page of keys.
type apiKeysOut struct {
	Keys       []apiKeyOut `json:"api_keys"`
	NextCursor *string     `json:"next_cursor"`
}

func (a api) listAPIKeys(ctx context.Context, m *managedTeams) (any, error) {
	teams, next, err := a.teamsPage(ctx, m, m.queryTeamIDs(), 20)
	if err != nil {
		return nil, err
	}
	out := apiKeysOut{Keys: []apiKeyOut{}, NextCursor: orNull(next)}
	for _, team := range teams {
		list, err := a.Organisations.Keys(ctx, team)
		if err != nil {
			return nil, err
		}
		for i := range list {
			out.Keys = append(out.Keys, apiKeyFrom(&list[i], list[i].Hint))
		}
	}
	return out, nil
}

// newAPIKeyIn is the body that creates an API key.
type newAPIKeyIn struct {
	Team      uuid.UUID            `json:"team_id"`
	Label     string               `json:"label"`
	Scopes    *organisation.Scopes `json:"scopes"`
	ExpiresAt *healthlab.Time      `json:"expires_at"`
}

func (a api) createAPIKey(w http.ResponseWriter, r *http.Request, m *managedTeams) error {
	var body newAPIKeyIn
	m.Body(&body)
	if body.Scopes != nil && len(*body.Scopes) == 0 {
		m.Problem("empty", "must list at least one scope, or be null for all scopes", "body", "scopes")
	}
	team, err := m.team(body.Team)
	if err != nil {
		return err
	}
	n := organisation.NewKey{Label: body.Label, Scopes: value(body.Scopes), ExpiresAt: value(body.ExpiresAt).Time}
	k, key, err := a.Organisations.CreateKey(r.Context(), m.org, team, n)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, apiKeyFrom(&k, key))
}

// rotateAPIKeyIn is the body that replaces an API key.
type rotateAPIKeyIn struct {
	OverlapHours *int `json:"overlap_hours"`
}

// defaultOverlap is how many hours a rotated key stays valid if the request names no overlap.
const defaultOverlap = 24

func (a api) rotateAPIKey(w http.ResponseWriter, r *http.Request, m *managedTeams) error {
	id := m.PathUUID("key_id")
	var body rotateAPIKeyIn
	m.Body(&body)
	hours := defaultOverlap
	if body.OverlapHours != nil {
		hours = *body.OverlapHours
	}
	if most := int(organisation.MaxOverlap / time.Hour); hours < 0 || hours > most {
		m.Problem("range", "must be between 0 and 720", "body", "overlap_hours")
	}
	if _, err := m.authorizedTeams(nil); err != nil {
		return err
	}
	if err := a.manages(r.Context(), m, id); err != nil {
		return err
	}
	k, key, err := a.Organisations.RotateKey(r.Context(), m.org, id, time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, apiKeyFrom(&k, key))
}

// manages returns NotFound unless the caller may manage the team of the API key with an id.
func (a api) manages(ctx context.Context, m *managedTeams, id uuid.UUID) error {
	k, err := a.Organisations.Key(ctx, m.org, id)
	if err == nil && !m.mandate(m.org, k.Team) {
		err = fmt.Errorf("%w: API key", healthlab.NotFound)
	}
	return err
}

// apiKeysGoneOut lists the outcome of deleting each key.
type apiKeysGoneOut struct {
	Success  []uuid.UUID `json:"success"`
	Failure  []uuid.UUID `json:"failure"`
	NotFound []uuid.UUID `json:"not_found"`
}

func (a api) deleteAPIKeys(ctx context.Context, m *managedTeams) (any, error) {
	ids := m.UUIDs("key_id")
	if len(ids) == 0 && m.Err() == nil {
		m.Problem("missing", "must list at least one key id", "query", "key_id")
	} else if len(ids) > mostTeams {
		m.Problem("too_long", fmt.Sprintf("must list at most %d key ids", mostTeams), "query", "key_id")
	}
	if _, err := m.authorizedTeams(nil); err != nil {
		return nil, err
	}
	out := apiKeysGoneOut{Success: []uuid.UUID{}, Failure: []uuid.UUID{}, NotFound: []uuid.UUID{}}
	seen := map[uuid.UUID]bool{}
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		switch err := a.deleteAPIKey(ctx, m, id); {
		case err == nil:
			out.Success = append(out.Success, id)
		case errors.Is(err, healthlab.NotFound):
			out.NotFound = append(out.NotFound, id)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			out.Failure = append(out.Failure, id)
			a.Log.ErrorContext(ctx, "API key not deleted", "key", id, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
		}
	}
	return out, nil
}

// deleteAPIKey deletes a key of a team that the caller may manage.
func (a api) deleteAPIKey(ctx context.Context, m *managedTeams, id uuid.UUID) error {
	k, err := a.Organisations.Key(ctx, m.org, id)
	if err == nil && !m.mandate(m.org, k.Team) {
		err = healthlab.NotFound
	}
	if err != nil {
		return err
	}
	return a.Organisations.DeleteKey(ctx, k.Team, id)
}

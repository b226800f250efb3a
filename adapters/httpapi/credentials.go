package httpapi

import (
	"context"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/linking"
)

// credentialOperations lists the operations on OAuth clients that teams have registered at providers.
func (a api) credentialOperations() []server.Operation {
	if a.Linking == nil || !a.Linking.ClientRegistry().Enabled() || a.AuthenticateManagement == nil || a.Environment == "" {
		return nil
	}
	const path = " /v1/org/{org_id}/team_custom_credentials/{environment}/{region}"
	return []server.Operation{
		{ID: "list_custom_credentials", Pattern: "GET" + path, Handle: a.managingTeams(asJSON(a.listCredentials))},
		{ID: "set_custom_credentials", Pattern: "POST" + path, Handle: a.managingTeams(asJSON(a.setCredentials))},
		{ID: "delete_custom_credentials", Pattern: "DELETE" + path, Handle: a.managingTeams(asJSON(a.deleteCredentials))},
		{ID: "prepare_custom_credentials", Pattern: "POST" + path + "/prepare", Handle: a.managingTeams(asJSON(a.prepareCredentials))},
	}
}

// credentialOut is a team's client, without its secrets.
type credentialOut struct {
	Team     healthlab.TeamID `json:"team_id"`
	Provider string           `json:"provider"`
	ClientID string           `json:"client_id"`
	// Secret and the values of Details show only their last characters.
	Secret      string            `json:"client_secret"`
	RedirectURL *string           `json:"redirect_url_override"`
	Details     map[string]string `json:"details"`
	Status      string            `json:"status"`
	Connections int               `json:"connections"`
	ProvenAt    *healthlab.Time   `json:"proven_at"`
	CreatedAt   healthlab.Time    `json:"created_at"`
	UpdatedAt   healthlab.Time    `json:"updated_at"`
	RetiredAt   *healthlab.Time   `json:"retired_at"`
}

func credentialFrom(c *linking.TeamClient) credentialOut {
	out := credentialOut{
		Team: c.Team, Provider: c.Provider, ClientID: c.ClientID, Secret: c.Tail, RedirectURL: orNull(c.RedirectURL), Details: c.Details,
		Status: "active", Connections: c.Connections, CreatedAt: healthlab.At(c.CreatedAt), UpdatedAt: healthlab.At(c.UpdatedAt),
	}
	if out.Details == nil {
		out.Details = map[string]string{}
	}
	if !c.ProvenAt.IsZero() {
		at := healthlab.At(c.ProvenAt)
		out.ProvenAt = &at
	}
	if !c.RetiredAt.IsZero() {
		at := healthlab.At(c.RetiredAt)
		out.Status, out.RetiredAt = "retired", &at
	}
	return out
}

// credentialsOut is a page of OAuth clients of teams.
type credentialsOut struct {
	Credentials []credentialOut `json:"custom_credentials"`
	NextCursor  *string         `json:"next_cursor"`
}

func (a api) listCredentials(ctx context.Context, m *managedTeams) (any, error) {
	provider := orEmpty(m.OptText("provider", wire.MaxPathText))
	teams, next, err := a.teamsPage(ctx, m, m.queryTeamIDs(), 20)
	if err != nil {
		return nil, err
	}
	out := credentialsOut{Credentials: []credentialOut{}, NextCursor: orNull(next)}
	for _, team := range teams {
		list, err := a.Linking.ClientRegistry().List(ctx, team, provider)
		if err != nil {
			return nil, err
		}
		for i := range list {
			out.Credentials = append(out.Credentials, credentialFrom(&list[i]))
		}
	}
	return out, nil
}

// credentialIn is the body that stores a team's OAuth client.
type credentialIn struct {
	Team        uuid.UUID         `json:"team_id"`
	Provider    string            `json:"provider"`
	ClientID    string            `json:"client_id"`
	Secret      *string           `json:"client_secret"`
	RedirectURL *string           `json:"redirect_url_override"`
	Details     map[string]string `json:"details" wire:"opt"`
}

// team returns a team that the caller may manage, or the problems of the request. All parameters must have been
// read.
func (m *managedTeams) team(id uuid.UUID) (healthlab.TeamID, error) {
	teams, err := m.authorizedTeams([]uuid.UUID{id})
	if err != nil {
		return healthlab.TeamID{}, err
	}
	return teams[0], nil
}

func (a api) setCredentials(ctx context.Context, m *managedTeams) (any, error) {
	var body credentialIn
	m.Body(&body)
	m.NotEmpty("client_secret", body.Secret)
	m.NotEmpty("redirect_url_override", body.RedirectURL)
	team, err := m.team(body.Team)
	if err != nil {
		return nil, err
	}
	c, err := a.Linking.ClientRegistry().Set(ctx, team, linking.NewTeamClient{
		Provider: body.Provider, ClientID: body.ClientID, Secret: value(body.Secret), RedirectURL: value(body.RedirectURL), Details: body.Details,
	})
	if err != nil {
		return nil, err
	}
	return credentialFrom(&c), nil
}

// credentialGoneOut is the number of connections that still use a deleted OAuth client.
type credentialGoneOut struct {
	Success     bool `json:"success"`
	Connections int  `json:"connections"`
}

func (a api) deleteCredentials(ctx context.Context, m *managedTeams) (any, error) {
	id, provider, erase := m.UUID("team_id"), m.Text("provider", wire.MaxPathText), m.Bool("erase", false)
	team, err := m.team(id)
	if err != nil {
		return nil, err
	}
	bound, err := a.Linking.ClientRegistry().Delete(ctx, team, provider, erase)
	if err != nil {
		return nil, err
	}
	return credentialGoneOut{true, bound}, nil
}

// prepareIn is the body that asks which URLs to register at a provider.
type prepareIn struct {
	Team        uuid.UUID        `json:"team_id"`
	Provider    string           `json:"provider"`
	RedirectURL wire.Opt[string] `json:"redirect_url_override"`
}

// prepareOut lists the URLs to register at a provider.
type prepareOut struct {
	Status string           `json:"status"`
	Steps  []prepareStepOut `json:"steps"`
}

type prepareStepOut struct {
	Type        string `json:"type"`
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

func (a api) prepareCredentials(ctx context.Context, m *managedTeams) (any, error) {
	var body prepareIn
	m.Body(&body)
	m.NotEmpty("redirect_url_override", body.RedirectURL.Ptr())
	team, err := m.team(body.Team)
	if err != nil {
		return nil, err
	}
	var back *string
	if body.RedirectURL.Set { // null: no redirect URL
		back = new(value(body.RedirectURL.Ptr()))
	}
	p, err := a.Linking.ClientRegistry().Prepare(ctx, team, body.Provider, back)
	if err != nil {
		return nil, err
	}
	out := prepareOut{Status: p.Status, Steps: make([]prepareStepOut, len(p.Steps))}
	for i, s := range p.Steps {
		out.Steps[i] = prepareStepOut(s)
	}
	return out, nil
}

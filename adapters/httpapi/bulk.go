package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// bulkOperations lists the operations that handle many connections in one request.
func (a api) bulkOperations() []server.Operation {
	if a.Bulk == nil {
		return nil
	}
	return []server.Operation{
		{ID: "bulk_import", Pattern: "POST /v2/link/bulk_import", Bound: server.TeamOnly, Team: a.bulkImport, MaxBody: a.MaxIngestBody},
		{ID: "bulk_pause", Pattern: "POST /v2/link/bulk_pause", Bound: server.TeamOnly, Team: server.AsJSON(a.bulkPause), MaxBody: a.MaxIngestBody},
		{ID: "bulk_trigger_historical_pull", Pattern: "POST /v2/link/bulk_trigger_historical_pull", Bound: server.TeamOnly, Team: a.bulkTrigger, MaxBody: a.MaxIngestBody},
		{ID: "list_bulk_operations", Pattern: "GET /v2/link/bulk_op", Bound: server.TeamOnly, Team: server.AsJSON(a.listBulkOps)},
		{ID: "bulk_export", Pattern: "POST /v2/link/bulk_export", Bound: server.TeamOnly, Team: a.bulkExport, MaxBody: a.MaxIngestBody},
	}
}

// checkTeamID reads the query parameter team_id. If it is present, it must be the caller's team or infer_from_context.
func checkTeamID(in *wire.In, team healthlab.TeamID) error {
	text := in.OptText("team_id", 36)
	if text == nil || *text == "infer_from_context" {
		return nil
	}
	switch id, err := uuid.Parse(*text); {
	case err != nil || len(*text) != 36:
		in.Problem("uuid_parsing", "must be a UUID or infer_from_context", "query", "team_id")
	case id != team.UUID:
		return healthlab.NotFound
	}
	return nil
}

// bulkUsersIn is a body that names a provider and users who have connected it.
type bulkUsersIn struct {
	Users    []healthlab.UserID `json:"user_ids"`
	Provider string             `json:"provider"`
}

func (a api) bulkPause(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	foreign := checkTeamID(in, team)
	var body bulkUsersIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if foreign != nil {
		return nil, foreign
	}
	return a.Bulk.Pause(ctx, team, body.Provider, body.Users)
}

// bulkExportIn is the body of an export of connections.
type bulkExportIn struct {
	Provider  string                       `json:"provider"`
	Users     wire.Opt[[]healthlab.UserID] `json:"user_ids,omitzero"`
	NextToken wire.Opt[string]             `json:"next_token,omitzero"`
}

func (a api) bulkExport(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	foreign := checkTeamID(in, team)
	var body bulkExportIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if foreign != nil {
		return foreign
	}
	q := bulk.ExportQuery{Team: team, Provider: body.Provider}
	if users := body.Users.Ptr(); users != nil {
		q.Users = *users
	}
	if token := body.NextToken.Ptr(); token != nil {
		q.Token = *token
	}
	out, err := a.Bulk.Export(r.Context(), q)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, out)
}

// recipeIn is one connection of an import: the user and the user's tokens at the provider.
type recipeIn struct {
	User         healthlab.UserID   `json:"user_id"`
	AccessToken  string             `json:"access_token"`
	RefreshToken string             `json:"refresh_token"`
	ProviderID   string             `json:"provider_id"`
	ExpiresAt    int64              `json:"expires_at"`
	Scopes       wire.Opt[[]string] `json:"oauth_scopes,omitzero"`
}

// bulkImportIn is the body of an import of connections.
type bulkImportIn struct {
	Provider    string     `json:"provider"`
	Connections []recipeIn `json:"connections"`
	Wait        bool       `json:"wait_for_completion,omitempty"`
}

// bulkImportedOut lists the users whose connections were imported.
type bulkImportedOut struct {
	Users  []healthlab.UserID `json:"user_ids_imported"`
	Failed []healthlab.UserID `json:"user_ids_failed"`
}

func (a api) bulkImport(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	foreign := checkTeamID(in, team)
	var body bulkImportIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if foreign != nil {
		return foreign
	}
	tokens := make([]bulk.ConnectionTokens, len(body.Connections))
	for i := range body.Connections {
		c := &body.Connections[i]
		tokens[i] = bulk.ConnectionTokens{
			UserID: c.User, AccessToken: c.AccessToken, RefreshToken: c.RefreshToken, ProviderID: c.ProviderID, ExpiresAt: c.ExpiresAt, Scopes: c.Scopes.Ptr(),
		}
	}
	got, err := a.Bulk.Import(r.Context(), team, body.Provider, tokens, body.Wait)
	if err != nil {
		return err
	}
	if got.Op.Status == bulk.InProgress || !body.Wait {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	out := bulkImportedOut{Users: []healthlab.UserID{}, Failed: []healthlab.UserID{}}
	out.Users = append(out.Users, got.Users...)
	for _, f := range got.Failed {
		out.Failed = append(out.Failed, f.User)
	}
	return wire.JSON(w, http.StatusOK, out)
}

// bulkTriggerIn names the users whose historical data is pulled again.
type bulkTriggerIn struct {
	bulkUsersIn
	Wait bool `json:"wait_for_completion,omitempty"`
}

func (a api) bulkTrigger(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	foreign := checkTeamID(in, team)
	var body bulkTriggerIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if foreign != nil {
		return foreign
	}
	op, err := a.Bulk.Trigger(r.Context(), team, body.Provider, body.Users, body.Wait)
	if err != nil {
		return err
	}
	if op.Status == bulk.InProgress || !body.Wait {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// bulkOpOut is the state of a bulk operation.
type bulkOpOut struct {
	Type      bulk.Type       `json:"type"`
	Status    bulk.Status     `json:"status"`
	Provider  string          `json:"provider"`
	Pending   int             `json:"pending"`
	Processed int             `json:"processed"`
	StartedAt healthlab.Time  `json:"started_at"`
	EndedAt   *healthlab.Time `json:"ended_at"`
}

// bulkOpsOut is a page of bulk operations.
type bulkOpsOut struct {
	Data []bulkOpOut `json:"data"`
	Next *string     `json:"next_cursor"`
}

func (a api) listBulkOps(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	foreign := checkTeamID(in, team)
	q := bulk.OpsQuery{Team: team, Cursor: orEmpty(in.OptText("next_cursor", 100)), Size: in.Int("page_size", 10, 0, bulk.MaxOps)}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if foreign != nil {
		return nil, foreign
	}
	list, next, err := a.Bulk.Ops(ctx, q)
	if err != nil {
		return nil, err
	}
	out := bulkOpsOut{Data: []bulkOpOut{}, Next: orNull(next)}
	for i := range list {
		op := &list[i]
		one := bulkOpOut{
			Type: op.Type, Status: op.Status, Provider: op.Provider, Pending: op.Pending(), Processed: op.Processed(), StartedAt: healthlab.At(op.StartedAt),
		}
		if !op.EndedAt.IsZero() {
			one.EndedAt = new(healthlab.At(op.EndedAt))
		}
		out.Data = append(out.Data, one)
	}
	return out, nil
}

package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func (a api) consentOperations() []server.Operation {
	if a.Health == nil {
		return nil
	}
	return []server.Operation{
		{ID: "list_consents", Pattern: "GET /v2/user/{user_id}/consent", Bound: server.UserInPath, Team: server.AsJSON(a.listConsents)},
		{ID: "record_consent", Pattern: "POST /v2/user/{user_id}/consent", Bound: server.UserInPath, Change: a.recordConsent},
		{ID: "withdraw_consent", Pattern: "DELETE /v2/user/{user_id}/consent/{provider}", Bound: server.UserInPath, Team: server.AsJSON(a.withdrawConsent)},
	}
}

// consentsOut are the consents of a user.
type consentsOut struct {
	Consents []healthdata.Consent `json:"consents"`
}

// consentIn is a consent that a team records for a user.
type consentIn struct {
	Provider string                  `json:"provider"`
	Version  *string                 `json:"version"`
	Means    healthdata.ConsentMeans `json:"means"`
}

func (a api) listConsents(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user := userID(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	list, err := a.Health.Connections().Consents(ctx, team, user)
	if err != nil {
		return nil, err
	}
	return consentsOut{Consents: append([]healthdata.Consent{}, list...)}, nil
}

func (a api) recordConsent(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	user := userID(in)
	var body consentIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return &server.Change{Status: http.StatusCreated, Do: func(ctx context.Context) (any, error) {
		return a.consentRecorded(ctx, team, user, &body)
	}}, nil
}

func (a api) consentRecorded(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, body *consentIn) (any, error) {
	means := []string{string(healthdata.ConsentByApp), string(healthdata.ConsentInWriting), string(healthdata.ConsentSpoken)}
	if _, app := ctx.Value(ownKey{}).(healthlab.UserID); app {
		means = means[:1]
	}
	if !slices.Contains(means, string(body.Means)) {
		var p healthlab.Problems
		p.AddEnum(means, "means")
		return nil, p.Err()
	}
	n := healthdata.NewConsent{Provider: body.Provider, Means: body.Means}
	if body.Version != nil {
		n.Version = *body.Version
	}
	return a.Health.Connections().RecordConsent(ctx, team, user, n)
}

// withdrawConsent withdraws a consent. If the part Linking is mounted, it also revokes the grant at the provider.
func (a api) withdrawConsent(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user, provider := userID(in), in.PathText("provider", 256)
	if err := in.Err(); err != nil {
		return nil, err
	}
	withdraw := a.Health.Connections().WithdrawConsent
	if a.endConsent != nil {
		withdraw = a.endConsent
	}
	if err := withdraw(ctx, team, user, provider); err != nil {
		return nil, err
	}
	return success{true}, nil
}

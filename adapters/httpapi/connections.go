package httpapi

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func (a api) connectionOperations() []server.Operation {
	if a.Health == nil {
		return nil
	}
	return []server.Operation{
		{ID: "connect_manual_provider", Pattern: "POST /v2/link/provider/manual/{provider}", Bound: server.UserInBody, Team: a.connectManual},
		{ID: "list_user_providers", Pattern: "GET /v2/user/providers/{user_id}", Bound: server.UserInPath, Team: server.AsJSON(a.listUserProviders)},
		{ID: "list_devices", Pattern: "GET /v2/user/{user_id}/device", Bound: server.UserInPath, Team: server.ReadOne(userID, a.Health.Devices)},
		{ID: "read_device", Pattern: "GET /v2/user/{user_id}/device/{device_id}", Bound: server.UserInPath, Team: server.AsJSON(a.readDevice)},
	}
}

// connectIn is the body that connects a user to a source.
type connectIn struct {
	UserID healthlab.UserID `json:"user_id"`
	// ProviderID is the person's id at the provider.
	ProviderID *string `json:"provider_id"`
}

// connectManual connects a user to a source whose data is uploaded. An existing connection is not changed.
func (a api) connectManual(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	provider := in.PathText("provider", 64)
	var body connectIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	concerns(r.Context(), body.UserID)
	_, err := a.Health.Connections().Connect(r.Context(), team, body.UserID, healthdata.NewConnection{
		Provider: provider, ExternalUserID: body.ProviderID,
	})
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, success{true})
}

func (a api) readDevice(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user, id := userID(in), in.PathUUID("device_id")
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Health.Device(ctx, team, user, id)
}

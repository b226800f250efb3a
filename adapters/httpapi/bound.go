package httpapi

import (
	"context"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/labreport"
)

func (a api) ofClientUser() server.Bound {
	return server.Owned("client_user_id", func(ctx context.Context, team healthlab.TeamID, value string) (healthlab.UserID, error) {
		u, err := a.Health.ResolveUser(ctx, team, value)
		return u.ID, err
	})
}

func (a api) ofReport() server.Bound {
	return server.OwnedID("job_id", func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (healthlab.UserID, error) {
		j, err := a.Reports.JobReview(ctx, team, labreport.JobID{UUID: id})
		return j.UserID, err
	})
}

package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pullOperations fetch data of connections.
func (a api) pullOperations() []operation {
	if a.Pulls == nil {
		return nil
	}
	return []operation{
		{id: "refresh_user", pattern: "POST /v2/user/refresh/{user_id}", team: a.refreshUser},
	}
}

// nothingToRefresh answers a refresh of a user without a source. It is the one body of a
// fault that is not wrapped in detail.
type nothingToRefresh struct {
	Success bool             `json:"success"`
	UserID  healthlab.UserID `json:"user_id"`
	Error   string           `json:"error"`
	Failed  []string         `json:"failed_sources"`
}

// refreshUser looks for news, and says what has come, what failed and what goes on.
func (a api) refreshUser(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := healthlab.UserID{UUID: in.PathUUID("user_id")}
	wait := in.Float("timeout", 10, pull.MinRefresh.Seconds(), pull.MaxRefresh.Seconds())
	if err := in.Err(); err != nil {
		return err
	}
	out, err := a.Pulls.Refresh(r.Context(), team, user, time.Duration(wait*float64(time.Second)))
	var rule *healthlab.RuleError
	if errors.As(err, &rule) && rule.Type == pull.RuleNoSources {
		return wire.JSON(w, http.StatusBadRequest, nothingToRefresh{UserID: user, Error: rule.Msg, Failed: []string{}})
	}
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(out.InProgress) > 0 {
		status = http.StatusAccepted
	}
	return wire.JSON(w, status, out)
}

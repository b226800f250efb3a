package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

// exportOperations lists the operations that export all data that is stored about a user.
func (a api) exportOperations() []server.Operation {
	if a.Exports == nil {
		return nil
	}
	return []server.Operation{
		{ID: "start_user_export", Pattern: "POST /v2/user/{user_id}/export", Bound: server.UserInPath, Team: a.startExport},
		{ID: "list_user_exports", Pattern: "GET /v2/user/{user_id}/export", Bound: server.UserInPath, Team: server.ReadOne(userID, a.exports)},
		{ID: "read_user_export", Pattern: "GET /v2/user/{user_id}/export/{export_id}", Bound: server.UserInPath, Team: server.AsJSON(a.readExport)},
		{ID: "download_user_export", Pattern: "GET /v2/user/{user_id}/export/{export_id}/zip", Bound: server.UserInPath, Team: a.downloadExport, Timeout: downloadTimeout},
	}
}

// downloadTimeout is the longest that the download of an export may take.
const downloadTimeout = time.Hour

// exportsOut are the exports of a user.
type exportsOut struct {
	Exports []personexport.PublishedJob `json:"exports"`
}

func (a api) startExport(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	if err := in.Err(); err != nil {
		return err
	}
	j, err := a.Exports.Start(r.Context(), team, user)
	if err != nil {
		return err
	}
	return wire.JSON(w, http.StatusAccepted, j)
}

func (a api) exports(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (exportsOut, error) {
	list, err := a.Exports.List(ctx, team, user)
	return exportsOut{list}, err
}

func (a api) readExport(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user, id := userID(in), personexport.JobID{UUID: in.PathUUID("export_id")}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return a.Exports.Get(ctx, team, user, id)
}

func (a api) downloadExport(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user, id := userID(in), personexport.JobID{UUID: in.PathUUID("export_id")}
	if err := in.Err(); err != nil {
		return err
	}
	archive, err := a.Exports.Open(r.Context(), team, user, id)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "export-"+id.String()+".zip"))
	w.WriteHeader(http.StatusOK)
	return archive.Write(r.Context(), w)
}

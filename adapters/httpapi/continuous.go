package httpapi

import (
	"context"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
)

func (a api) continuousOperations() []server.Operation {
	if a.Continuous == nil {
		return nil
	}
	const all, one = managementPath + "/continuous_query", managementPath + "/continuous_query/{query_id}"
	const table = "/aggregate/v1/user/{user_id}/continuous_query/{query_id_or_slug}"
	const query = "QUERY_NOT_FOUND"
	limit := min(maxQueryBody, a.MaxBody)
	ops := []server.Operation{
		{ID: "list_continuous_queries", Pattern: "GET " + all, Handle: a.managing(asJSON(a.listContinuous))},
		{ID: "create_continuous_query", Pattern: "POST " + all, Handle: a.managing(asJSON(a.createContinuous)), MaxBody: limit,
			Replies: []server.Reply{{Rule: continuous.SlugTaken, Status: http.StatusBadRequest}}},
		{ID: "validate_continuous_query", Pattern: "POST " + managementPath + "/validate_continuous_query",
			Handle: a.managing(asJSON(a.validateContinuous)), MaxBody: limit},
		{ID: "patch_continuous_query", Pattern: "PATCH " + one, Handle: a.managing(asJSON(a.patchContinuous))},
		{ID: "archive_continuous_query", Pattern: "DELETE " + one, Handle: a.managing(asJSON(a.archiveContinuous))},
		{ID: "read_continuous_result", Pattern: "GET " + table + "/result_table", Bound: server.UserInPath, Team: a.readContinuousResult},
		{ID: "list_continuous_tasks", Pattern: "GET " + table + "/task_history", Bound: server.UserInPath, Team: server.AsJSON(a.listContinuousTasks)},
	}
	for i := range ops {
		if ops[i].Team != nil {
			ops[i].Replies = []server.Reply{
				{Rule: continuous.UserNotFound},
				{On: healthlab.NotFound, ErrorType: query, Msg: "continuous query not found"},
			}
		}
	}
	return ops
}

// continuousPageOut is one page of continuous queries.
type continuousPageOut struct {
	Data       []continuous.Query `json:"data"`
	NextCursor *string            `json:"next_cursor"`
}

// taskHistoryOut is one page of the finished evaluations of a continuous query.
type taskHistoryOut struct {
	Data       []continuous.HistoryEntry `json:"data"`
	NextCursor *string                   `json:"next_cursor"`
}

func (m *managed) queryID() continuous.QueryID {
	return continuous.QueryID{UUID: m.PathUUID("query_id")}
}

func (a api) listContinuous(ctx context.Context, m *managed) (any, error) {
	size, cursor := m.page()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	page, err := a.Continuous.List(ctx, continuous.ListQuery{Team: team, Cursor: cursor, Size: size})
	if err != nil {
		return nil, cursorProblem(err)
	}
	return continuousPageOut{Data: page.Queries, NextCursor: next(page.Next)}, nil
}

func (a api) newContinuous(m *managed) (healthlab.TeamID, *continuous.Definition, error) {
	n, bad := a.Continuous.DecodeDefinition(m.Raw(), a.IgnoreUnknown)
	team, err := m.authorizedTeam()
	return team, &n, joinProblems(err, bad)
}

func (a api) createContinuous(ctx context.Context, m *managed) (any, error) {
	team, n, err := a.newContinuous(m)
	if err != nil {
		return nil, err
	}
	return a.Continuous.Create(ctx, team, n)
}

func (a api) validateContinuous(ctx context.Context, m *managed) (any, error) {
	team, n, err := a.newContinuous(m)
	if err != nil {
		return nil, err
	}
	return a.Continuous.Preview(ctx, team, n)
}

func (a api) patchContinuous(ctx context.Context, m *managed) (any, error) {
	id := m.queryID()
	patch, bad := a.Continuous.DecodePatch(m.Raw(), a.IgnoreUnknown)
	team, err := m.authorizedTeam()
	if err := joinProblems(err, bad); err != nil {
		return nil, err
	}
	return a.Continuous.Update(ctx, team, id, patch)
}

func (a api) archiveContinuous(ctx context.Context, m *managed) (any, error) {
	id := m.queryID()
	team, err := m.authorizedTeam()
	if err != nil {
		return nil, err
	}
	return a.Continuous.Archive(ctx, team, id)
}

// parquetType is the media type of one Parquet file.
const parquetType = "application/vnd.apache.parquet"

func (a api) readContinuousResult(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user, name := userID(in), in.PathText("query_id_or_slug", wire.MaxPathText)
	archive := mediaType(a.ServiceName)
	kinds := a.tableTypes(parquetType, archive)
	kind, ok := accepted(r.Header.Values("Accept"), kinds...)
	if !ok {
		return notAcceptable(kinds)
	}
	if err := in.Err(); err != nil {
		return err
	}
	frame, err := a.Continuous.Result(r.Context(), team, user, name)
	if err != nil {
		return err
	}
	switch kind {
	case parquetType:
		w.Header().Set("Content-Type", parquetType)
		return a.Parquet.WriteFrame(w, &frame)
	case archive:
		w.Header().Set("Content-Type", archive)
		return a.Parquet.WriteArchive(w, &aggregate.Result{Frames: []aggregate.Frame{frame}})
	}
	return wire.Stream(w, http.StatusOK, func(p *wire.Pieces) error { return frame.WriteJSON(pieceWriter{p}) })
}

func (a api) listContinuousTasks(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user, name := userID(in), in.PathText("query_id_or_slug", wire.MaxPathText)
	size, cursor := in.Int("limit", 50, 1, 250), in.ShortText("next_cursor")
	if err := in.Err(); err != nil {
		return nil, err
	}
	page, err := a.Continuous.History(ctx, name, continuous.HistoryQuery{Team: team, User: user, Cursor: cursor, Size: size})
	if err != nil {
		return nil, cursorProblem(err)
	}
	return taskHistoryOut{Data: page.Entries, NextCursor: next(page.Next)}, nil
}

package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pullOperations lists the operations that pull data of connections.
func (a api) pullOperations() []server.Operation {
	if a.Pulls == nil {
		return nil
	}
	ops := []server.Operation{
		{ID: "refresh_user", Pattern: "POST /v2/user/refresh/{user_id}", Bound: server.UserInPath, Team: a.refreshUser},
		{ID: "introspect_resources", Pattern: "GET /v2/introspect/resources", Bound: server.UserInQuery, Team: answerStatuses(a.Pulls.Resources)},
		{ID: "introspect_historical_pull", Pattern: "GET /v2/introspect/historical_pull", Bound: server.UserInQuery, Team: answerStatuses(a.Pulls.Histories)},
		{ID: "push_from_provider", Pattern: "POST /v2/link/push/{provider}", Handle: a.listen, IgnoreUnknown: true},
		{ID: "verify_push_from_provider", Pattern: "GET /v2/link/push/{provider}", Handle: a.listen, IgnoreUnknown: true},
		{ID: "finish_history", Pattern: "POST /v2/user/{user_id}/history", Bound: server.UserInPath, Team: server.AsJSON(a.finishHistory)},
	}
	if a.Linking != nil && a.Linking.ClientRegistry().Enabled() {
		const path = " /v2/link/push/{provider}/{team_id}"
		ops = append(ops,
			server.Operation{ID: "push_to_team_client", Pattern: "POST" + path, Handle: a.listenForTeam, IgnoreUnknown: true},
			server.Operation{ID: "verify_push_to_team_client", Pattern: "GET" + path, Handle: a.listenForTeam, IgnoreUnknown: true},
		)
	}
	return ops
}

// nothingToRefresh is the answer to the refresh of a user who has connected no source. It is the only error body
// without the key detail.
type nothingToRefresh struct {
	Success bool             `json:"success"`
	UserID  healthlab.UserID `json:"user_id"`
	Error   string           `json:"error"`
	Failed  []string         `json:"failed_sources"`
}

// refreshUser pulls new data of a user. It answers with the sources that succeeded, failed or are still in progress.
func (a api) refreshUser(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := healthlab.UserID{UUID: in.PathUUID("user_id")}
	wait := in.Float("timeout", 10, pull.MinRefreshWait.Seconds(), pull.MaxRefreshWait.Seconds())
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
	return wire.JSON(w, http.StatusOK, out)
}

// statusPage is a page of the pull status of users.
type statusPage[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
	Next       *string `json:"next"`
}

// statusQuery reads the filters of the pull status.
func statusQuery(in *wire.In, team healthlab.TeamID) pull.StatusQuery {
	q := pull.StatusQuery{Team: team, Provider: orEmpty(in.OptText("provider", 64)), Limit: in.Int("user_limit", 50, 1, pull.MaxStatusUsers)}
	if id := in.OptUUID("user_id"); id != nil {
		q.User.UUID = *id
	}
	cursor, old := in.OptText("next_cursor", 100), in.OptText("cursor", 100)
	if cursor == nil {
		cursor = old
	}
	q.Cursor = orEmpty(cursor)
	return q
}

// answerStatuses answers with one page of the statuses that read returns.
func answerStatuses[T any](read func(context.Context, pull.StatusQuery) ([]T, string, error)) func(http.ResponseWriter, *http.Request, healthlab.TeamID) error {
	return server.AsJSON(func(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
		q := statusQuery(in, team)
		if err := in.Err(); err != nil {
			return nil, err
		}
		list, next, err := read(ctx, q)
		return statusPage[T]{Data: list, NextCursor: orNull(next), Next: orNull(next)}, err
	})
}

// listen answers a webhook message of a provider, which is authenticated by the provider's signature.
func (a api) listen(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	provider := in.PathText("provider", 64)
	body := in.Whole()
	if err := in.Err(); err != nil {
		return err
	}
	result, err := a.Pulls.Listen(r.Context(), provider, linking.Message{
		Method: r.Method, Header: r.Header, Query: r.URL.Query(), Body: body,
	})
	return listenReply(w, result, err)
}

// listenForTeam answers a webhook message that a provider sends for the OAuth client of a team.
func (a api) listenForTeam(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	provider, team := in.PathText("provider", 64), healthlab.TeamID{UUID: in.PathUUID("team_id")}
	body := in.Whole()
	if err := in.Err(); err != nil {
		return err
	}
	of, err := a.Linking.ClientRegistry().Listeners(r.Context(), team, provider)
	if err != nil {
		return err
	}
	result, err := a.Pulls.ListenForTeam(r.Context(), team, provider, of, linking.Message{
		Method: r.Method, Header: r.Header, Query: r.URL.Query(), Body: body,
	})
	return listenReply(w, result, err)
}

func listenReply(w http.ResponseWriter, result linking.ListenResult, err error) error {
	if err != nil {
		return err
	}
	status, mediaType := result.Status, result.ReplyType
	switch {
	case result.Reply == nil && status == 0:
		return wire.NoContent(w)
	case status == 0:
		status = http.StatusOK
	}
	if result.Reply == nil {
		w.WriteHeader(status)
		return nil
	}
	if mediaType == "" {
		mediaType = "text/plain; charset=utf-8"
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return wire.Bytes(w, status, mediaType, result.Reply)
}

// historyIn is the body with which an app reports that it has uploaded all history of a resource. The two dates bound
// the time that the app searched.
type historyIn struct {
	Provider  string         `json:"provider"`
	Resource  string         `json:"resource"`
	StartDate healthlab.Time `json:"start_date"`
	EndDate   healthlab.Time `json:"end_date"`
}

func (a api) finishHistory(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user := userID(in)
	var body historyIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if err := a.Pulls.FinishHistory(ctx, team, user, pull.FinishedHistory{
		Provider: body.Provider, Resource: body.Resource, From: body.StartDate.Time, To: body.EndDate.Time,
	}); err != nil {
		return nil, err
	}
	return success{true}, nil
}

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// appOperations lists the operations that sign a user's companion app in and out.
func (a api) appOperations() []server.Operation {
	if a.Apps == nil {
		return nil
	}
	ops := []server.Operation{
		{ID: "create_sign_in_token", Pattern: "POST /v2/user/{user_id}/sign_in_token", Bound: server.UserInPath, Team: a.createSignInToken},
		{ID: "sign_out_user", Pattern: "POST /v2/user/{user_id}/sign_out", Bound: server.UserInPath, Team: server.AsJSON(a.signOutUser)},
		{ID: "sign_in_app", Pattern: "POST /v2/app/sign_in", Handle: a.signInApp},
		{ID: "refresh_app", Pattern: "POST /v2/app/refresh", Handle: a.refreshApp},
		{ID: "sign_out_app", Pattern: "POST /v2/app/sign_out", Handle: a.signOutApp},
	}
	if a.Linking != nil {
		ops = append(ops, server.Operation{ID: "exchange_link_code", Pattern: "POST /v2/link/code/exchange", Handle: a.exchangeLinkCode})
	}
	return ops
}

// linkCodeIn is the body that exchanges a link code.
type linkCodeIn struct {
	Code string `json:"code"`
}

// exchangeLinkCode answers with the user to whom a link code belongs, and with a sign-in token for the companion app.
func (a api) exchangeLinkCode(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	var body linkCodeIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	team, user, err := a.Linking.Exchange(r.Context(), a.ClientAddress(r), body.Code)
	if err != nil {
		return err
	}
	issued, err := a.Apps.Invite(r.Context(), team, user)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, issued)
}

func (a api) createSignInToken(w http.ResponseWriter, r *http.Request, team healthlab.TeamID) error {
	in := wire.From(r)
	user := userID(in)
	if err := in.Err(); err != nil {
		return err
	}
	issued, err := a.Apps.Invite(r.Context(), team, user)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, issued)
}

func (a api) signOutUser(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	user := userID(in)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if _, err := a.Apps.SignOutUser(ctx, team, user); err != nil {
		return nil, err
	}
	return success{true}, nil
}

// signInIn is the body that exchanges a sign-in token.
type signInIn struct {
	Token string `json:"sign_in_token"`
}

func (a api) signInApp(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	var body signInIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	tokens, err := a.Apps.SignIn(r.Context(), body.Token)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, tokens)
}

// refreshIn is the body with a refresh token.
type refreshIn struct {
	Token string `json:"refresh_token"`
}

func (a api) refreshApp(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	var body refreshIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	tokens, err := a.Apps.Refresh(r.Context(), body.Token)
	if err != nil {
		return err
	}
	secretReply(w)
	return wire.JSON(w, http.StatusOK, tokens)
}

func (a api) signOutApp(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	var body refreshIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return err
	}
	if err := a.Apps.SignOut(r.Context(), body.Token); err != nil {
		return err
	}
	return wire.JSON(w, http.StatusOK, success{true})
}

// ownOperations lists the operations that a companion app may call for its own user, besides the reads and uploads of
// health data. All other callers need the API key of a team.
var ownOperations = []string{
	"read_user", "list_providers", "list_user_providers", "connect_manual_provider", "disconnect_provider", "finish_history", "list_devices", "read_device",
	"read_user_access_log", "list_consents", "record_consent", "withdraw_consent",
	"start_user_export", "list_user_exports", "read_user_export", "download_user_export",
}

func isOwn(op *server.Operation) bool {
	_, path, _ := strings.Cut(op.Pattern, " ")
	return strings.HasPrefix(path, "/v2/timeseries/{user_id}/") || strings.HasPrefix(path, "/v2/summary/") ||
		slices.Contains(ownOperations, op.ID)
}

// caller authenticates a request: by the API key of a team or, if the operation allows it, by the token of a companion
// app. If a request has both, the API key counts.
func (a api) caller(r *http.Request, c *call) (Caller, *http.Request, error) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	app, isApp, err := Caller{}, false, error(nil)
	if c.own && a.appCaller != nil && bearer && r.Header.Get(a.KeyHeader) == "" {
		app, isApp, err = a.appCaller(r.Context(), token)
	}
	if !isApp {
		by, err := a.Authenticate(r)
		if err == nil && by.Team.IsZero() {
			err = &wire.Fault{Status: http.StatusUnauthorized, Type: "UNAUTHORIZED", Msg: "the service has authenticated the caller without a team; its Config.Authenticate must set Caller.Team"}
			a.logFailure(r, c, "caller without a team refused", fmt.Errorf("%w: Config.Authenticate returned a Caller whose Team is zero", healthlab.Unauthenticated))
		}
		return by, r, err
	}
	if err != nil {
		return Caller{}, r, err
	}
	return app, r.WithContext(context.WithValue(r.Context(), ownKey{}, app.User)), nil
}

// ownKey is the context key under which a request carries the user of the calling app.
type ownKey struct{}

package httpapi

import (
	"context"
	"errors"
	"hash/fnv"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// userOperations lists the operations on users and on the sources that they can connect.
func (a api) userOperations() []server.Operation {
	if a.Health == nil {
		return nil
	}
	return []server.Operation{
		{ID: "create_user", Pattern: "POST /v2/user/", Bound: server.TeamOnly, Change: a.createUser},
		{ID: "list_users", Pattern: "GET /v2/user/", Bound: server.OwnList, Team: server.AsJSON(a.listUsers)},
		{ID: "read_team_metrics", Pattern: "GET /v2/user/metrics", Bound: server.TeamOnly, Team: server.AsJSON(a.readTeamMetrics)},
		{ID: "resolve_user", Pattern: "GET /v2/user/resolve/{client_user_id}", Bound: a.ofClientUser(), Team: server.ReadOne(clientUserID, a.Health.ResolveUser)},
		{ID: "undo_delete_user", Pattern: "POST /v2/user/undo_delete", Bound: server.TeamOnly, Change: a.undoDeleteUser},
		{ID: "read_user", Pattern: "GET /v2/user/{user_id}", Bound: server.UserInPath, Team: server.ReadOne(userID, a.Health.User)},
		{ID: "patch_user", Pattern: "PATCH /v2/user/{user_id}", Bound: server.UserInPath, Change: a.patchUser},
		{ID: "delete_user", Pattern: "DELETE /v2/user/{user_id}", Bound: server.UserInPath, Change: a.deleteUser},
		{ID: "disconnect_provider", Pattern: "DELETE /v2/user/{user_id}/{provider}", Bound: server.UserInPath, Team: server.AsJSON(a.disconnectProvider)},
		{ID: "search_users", Pattern: "GET /v2/team/users/search", Bound: server.TeamOnly, Team: server.ReadOne(userSearch, a.Health.SearchUsers)},
		{ID: "list_providers", Pattern: "GET /v2/providers", Bound: server.Public, Team: server.AsJSON(a.listProviders)},
		{ID: "read_provider_logo", Pattern: "GET /v2/providers/{provider}/logo.svg", Handle: a.readLogo},
	}
}

// success is the answer of operations without any other result.
type success struct {
	Success bool `json:"success"`
}

// newUserIn is the body that creates a user.
type newUserIn struct {
	ClientUserID      string          `json:"client_user_id"`
	FallbackTimeZone  *string         `json:"fallback_time_zone"`
	FallbackBirthDate *healthlab.Date `json:"fallback_birth_date"`
	IngestionStart    *healthlab.Date `json:"ingestion_start"`
	IngestionEnd      *healthlab.Date `json:"ingestion_end"`
}

// userPatchIn is the body that changes a user. Null clears a field, except client_user_id, which stays.
type userPatchIn struct {
	ClientUserID      *string                  `json:"client_user_id"`
	FallbackTimeZone  wire.Opt[string]         `json:"fallback_time_zone"`
	FallbackBirthDate wire.Opt[healthlab.Date] `json:"fallback_birth_date"`
	IngestionStart    wire.Opt[healthlab.Date] `json:"ingestion_start"`
	IngestionEnd      wire.Opt[healthlab.Date] `json:"ingestion_end"`
}

// editFrom converts a key of a patch body to an edit of the domain.
func editFrom[T any](o wire.Opt[T]) healthdata.Edit[T] {
	switch v := o.Ptr(); {
	case v != nil:
		return healthdata.SetTo(*v)
	case o.Null:
		return healthdata.Cleared[T]()
	default:
		return healthdata.Edit[T]{}
	}
}

// namingUser adds the id of the existing user to the error that a client_user_id is taken, so that the caller can use
// that user.
func namingUser(err error) error {
	var taken *healthdata.ClientUserIDError
	if !errors.As(err, &taken) {
		return err
	}
	return &wire.Fault{
		Status: http.StatusBadRequest, Type: healthdata.RuleInvalidRequest,
		Msg:   "a user with this client_user_id already exists",
		Extra: map[string]any{"user_id": taken.User, "created_on": taken.CreatedOn},
	}
}

func (a api) createUser(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	var body newUserIn
	in.Body(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	id := a.Health.NewUserID()
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		u, err := a.Health.CreateUserAs(ctx, team, id, healthdata.NewUser(body))
		return u, namingUser(err)
	}}, nil
}

// userPage is a page of users.
type userPage struct {
	Users  []healthdata.User `json:"users"`
	Total  int               `json:"total"`
	Offset int               `json:"offset"`
	Limit  int               `json:"limit"`
}

func (a api) listUsers(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	offset := in.Int("offset", 0, 0, math.MaxInt32)
	limit := in.Int("limit", 100, 1, 500)
	if err := in.Err(); err != nil {
		return nil, err
	}
	if !in.Own().IsZero() {
		u, err := a.Health.User(ctx, team, in.Own())
		if err != nil {
			return nil, err
		}
		list := []healthdata.User{u}
		return userPage{list[min(offset, 1):], 1, offset, limit}, nil
	}
	page, err := a.Health.Users(ctx, team, offset, limit)
	if err != nil {
		return nil, err
	}
	return userPage{page.Users, page.Total, offset, limit}, nil
}

func (a api) readTeamMetrics(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	if err := in.Err(); err != nil {
		return nil, err
	}
	m, err := a.Health.TeamMetrics(ctx, team)
	if err != nil {
		return nil, err
	}
	if a.countOrders != nil {
		m.OrderedTests, err = a.countOrders(ctx, team)
	}
	return m, err
}

func clientUserID(in *wire.In) string { return in.PathText("client_user_id", wire.MaxPathText) }

func (a api) patchUser(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	id := userID(in)
	var body userPatchIn
	in.OptBody(&body)
	if err := in.Err(); err != nil {
		return nil, err
	}
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		_, err := a.Health.PatchUser(ctx, team, id, healthdata.UserPatch{
			ClientUserID:      body.ClientUserID,
			FallbackTimeZone:  editFrom(body.FallbackTimeZone),
			FallbackBirthDate: editFrom(body.FallbackBirthDate),
			IngestionStart:    editFrom(body.IngestionStart),
			IngestionEnd:      editFrom(body.IngestionEnd),
		})
		return nil, namingUser(err)
	}}, nil
}

func (a api) deleteUser(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	id := userID(in)
	grace := in.OneOf("grace", "", "0")
	if err := in.Err(); err != nil {
		return nil, err
	}
	remove := a.Health.Deletions().Delete
	if grace == "0" {
		remove = a.Health.Deletions().Erase
	}
	return &server.Change{
		Do:      func(ctx context.Context) (any, error) { return success{true}, remove(ctx, team, id) },
		Outside: grace == "0", // erasing also deletes files and keys, which a transaction cannot roll back
	}, nil
}

// deletedUserIn is the body that names a deleted user, if the query does not.
type deletedUserIn struct {
	UserID       *uuid.UUID `json:"user_id"`
	ClientUserID *string    `json:"client_user_id"`
}

func (a api) undoDeleteUser(in *wire.In, team healthlab.TeamID) (*server.Change, error) {
	who := deletedUserIn{UserID: in.OptUUID("user_id"), ClientUserID: in.OptText("client_user_id", wire.MaxPathText)}
	if !in.Has("user_id") && !in.Has("client_user_id") {
		in.OptBody(&who)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	var deleted healthdata.DeletedUser
	if who.UserID != nil {
		deleted.User.UUID = *who.UserID
	}
	if who.ClientUserID != nil {
		deleted.ClientUserID = *who.ClientUserID
	}
	return &server.Change{Do: func(ctx context.Context) (any, error) {
		_, err := a.Health.Deletions().Undo(ctx, team, deleted)
		return success{true}, err
	}}, nil
}

func (a api) disconnectProvider(ctx context.Context, in *wire.In, team healthlab.TeamID) (any, error) {
	id, provider := userID(in), in.PathText("provider", 256)
	if err := in.Err(); err != nil {
		return nil, err
	}
	disconnect := a.Health.Connections().Disconnect
	if a.disconnect != nil {
		disconnect = a.disconnect
	}
	if err := disconnect(ctx, team, id, provider); err != nil {
		return nil, err
	}
	return success{true}, nil
}

func userSearch(in *wire.In) string { return in.Text("query_id", wire.MaxPathText) }

// providerOut is a provider in the list of providers that users can connect.
type providerOut struct {
	Name               string   `json:"name"`
	Slug               string   `json:"slug"`
	Description        string   `json:"description"`
	Logo               *string  `json:"logo"`
	AuthType           string   `json:"auth_type"`
	SupportedResources []string `json:"supported_resources"`
}

func (a api) listProviders(_ context.Context, in *wire.In, _ healthlab.TeamID) (any, error) {
	kind := in.OneOf("source_type", "", healthdata.ProviderCategories()...)
	demo := in.OptBool("demo")
	if err := in.Err(); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(a.Health.Providers().List(kind), func(p healthdata.Provider) bool {
		return demo != nil && p.Demo != *demo
	})
	out := make([]providerOut, len(list))
	for i, p := range list {
		out[i] = providerOut{
			Name: p.Name, Slug: p.Slug, Description: p.Description, Logo: p.Logo, AuthType: p.AuthType,
			SupportedResources: make([]string, len(p.Resources)),
		}
		for j, res := range p.Resources {
			out[i].SupportedResources[j] = res.Resource
		}
	}
	return out, nil
}

// LogoURL returns the address of the generated logo of a provider, for [healthdata.Providers.WithLogos]. base is the
// address of the API. The logo is a coloured tile with the initials of the provider, not its trade mark.
func LogoURL(base, slug string) string {
	return strings.TrimSuffix(base, "/") + "/v2/providers/" + slug + "/logo.svg"
}

// logoTile is an SVG of 64 by 64 units. Its hue is derived from the slug.
var logoTile = template.Must(template.New("logo").Parse(
	`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64" role="img" aria-label="{{.Name}}">` +
		`<rect width="64" height="64" rx="14" fill="hsl({{.Hue}} 45% 40%)"/>` +
		`<text x="32" y="41" font-family="system-ui, sans-serif" font-size="26" font-weight="600" text-anchor="middle" fill="#fff">{{.Letters}}</text></svg>`))

// readLogo answers with the generated logo of a provider. It requires no key, because pages embed the logo.
func (a api) readLogo(w http.ResponseWriter, r *http.Request) error {
	in := wire.From(r)
	slug := in.PathText("provider", 64)
	if err := in.Err(); err != nil {
		return err
	}
	p := a.Health.Providers().Get(slug)
	if p == nil {
		return healthlab.NotFound
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(slug))
	var svg strings.Builder
	if err := logoTile.Execute(&svg, map[string]any{"Name": p.Name, "Hue": h.Sum32() % 360, "Letters": initials(p.Name)}); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return wire.Bytes(w, http.StatusOK, "image/svg+xml", []byte(svg.String()))
}

// initials returns the first letters of the first two words of a name.
func initials(name string) string {
	var out strings.Builder
	for _, word := range strings.Fields(name) {
		if first, _ := utf8.DecodeRuneInString(word); unicode.IsLetter(first) || unicode.IsDigit(first) {
			out.WriteRune(unicode.ToUpper(first))
		}
		if utf8.RuneCountInString(out.String()) == 2 {
			break
		}
	}
	return out.String()
}

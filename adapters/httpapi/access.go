package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// Caller is the team that sends a request, with the permissions of its API key.
type Caller struct {
	// Team is required: a Caller without a team is refused with 401. If the part Organisations or TeamSettings is
	// mounted, the team must exist; organisation.Service.EnsureTeam creates it.
	Team healthlab.TeamID
	// User binds the caller to one user of the team; the zero id binds to none. Operations then see only that user:
	// other users and their data are answered as if they did not exist, in paths, queries, bodies, lists and counts.
	// Operations about the team as a whole, such as creating users or bulk jobs, are refused with 403. Catalogues can
	// be read. Requests with a management key or a link token have no Caller, so User does not bind them.
	User healthlab.UserID
	// Key is the id of the caller's API key; zero if the key has none.
	Key uuid.UUID
	// Scopes are the permissions of the key; empty means all.
	Scopes organisation.Scopes
}

// Role decides which operations the holder of a management key may call for its teams. The zero value is [RoleAdmin].
type Role string

// The roles of management keys.
const (
	// RoleAdmin may call every operation. Only RoleAdmin may manage API keys, teams and their OAuth clients at providers.
	RoleAdmin Role = "admin"
	// RoleDeveloper may do what RoleViewer may, read secrets of webhooks, and change webhooks,
	// settings and continuous queries.
	RoleDeveloper Role = "developer"
	// RoleViewer reads settings, but no secrets and no data of persons.
	RoleViewer Role = "viewer"
	// RoleReviewer works on lab reports in review.
	RoleReviewer Role = "reviewer"
	// RoleAuditor reads and exports the access log.
	RoleAuditor Role = "auditor"
)

// CheckRole returns Invalid unless r is empty or one of the Role constants.
func CheckRole(r Role) error {
	switch r {
	case "", RoleAdmin, RoleDeveloper, RoleViewer, RoleReviewer, RoleAuditor:
		return nil
	}
	return fmt.Errorf("%w: role: must be one of admin, developer, viewer, reviewer, auditor", healthlab.Invalid)
}

func (r Role) includes(needed Role) bool {
	return needed == "" || r == "" || r == RoleAdmin || r == needed || r == RoleDeveloper && needed == RoleViewer
}

// Manager is the holder of a management key.
type Manager struct {
	// Name names the key in the access log. It must not be a secret.
	Name string
	// Mandate decides which teams the key may manage. Nil means none.
	Mandate Mandate
	// Role decides which operations the key may call for these teams.
	Role Role
}

// requirement lists the scopes and roles that the contract requires for an operation. An empty field requires nothing.
type requirement struct {
	scheme string              // security scheme of the contract, such as TeamKey
	scopes organisation.Scopes // scopes that the API key must have, all of them
	role   Role
}

// requirements maps the id of an operation to its requirement in the contract.
var requirements = sync.OnceValue(func() map[string]requirement {
	var doc struct {
		Paths map[string]map[string]struct {
			ID       string                `json:"operationId"`
			Security []map[string][]string `json:"security"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(document(), &doc); err != nil {
		panic("httpapi: " + err.Error()) // the contract is part of the program, so this is a bug
	}
	out := map[string]requirement{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			var need requirement
			for _, scheme := range op.Security {
				for name := range scheme {
					if name != "UserToken" { // an app's token is allowed in addition to a key
						need.scheme = name
					}
				}
				for _, name := range scheme["TeamKey"] {
					need.scopes = append(need.scopes, organisation.Scope(name))
				}
				for _, name := range scheme["ManagementKey"] {
					need.role = Role(name)
				}
			}
			out[op.ID] = need
		}
	}
	return out
})

func (c *call) admit(by Caller) error { return admitScopes(by.Scopes, c.needs.scopes) }

// scopesKey is the context key under which a request carries the scopes of its API key.
type scopesKey struct{}

func withScopes(r *http.Request, scopes organisation.Scopes) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), scopesKey{}, scopes))
}

func admitTo(ctx context.Context, id string) error {
	scopes, _ := ctx.Value(scopesKey{}).(organisation.Scopes)
	return admitScopes(scopes, requirements()[id].scopes)
}

func admitScopes(has, needs organisation.Scopes) error {
	for _, scope := range needs {
		if !has.Has(scope) {
			return &wire.Fault{Status: http.StatusForbidden, Type: "SCOPE_MISSING", Msg: fmt.Sprintf("this API key lacks the scope %s; use a key that has it", scope)}
		}
	}
	return nil
}

// manager authenticates a management key and checks its role for the operation.
func (a api) manager(r *http.Request) (Manager, error) {
	m, err := a.AuthenticateManagement(r)
	if err == nil && m.Mandate == nil {
		err = fmt.Errorf("%w: management key", healthlab.Unauthenticated)
	}
	if err != nil {
		return Manager{}, err
	}
	if needed, _ := r.Context().Value(roleKey{}).(Role); !m.Role.includes(needed) {
		return Manager{}, &wire.Fault{Status: http.StatusForbidden, Type: "ROLE_MISSING", Msg: fmt.Sprintf("this management key has the role %s; the operation needs %s", m.Role, needed)}
	}
	return m, nil
}

// secondManager returns the name of the management key that a request carries besides the API key of a team; "" if
// there is none. The management key must have [RoleAdmin] for the team, because operations of a team reach data of
// persons.
func (a api) secondManager(r *http.Request, team healthlab.TeamID) (string, error) {
	if a.AuthenticateManagement == nil || a.orgOf == nil || r.Header.Get(a.ManagementKeyHeader) == "" {
		return "", nil
	}
	m, err := a.manager(withRole(r, RoleAdmin))
	if err != nil {
		return "", err
	}
	org, err := a.orgOf(r.Context(), team)
	if errors.Is(err, healthlab.NotFound) {
		return "", fmt.Errorf("%w: management key", healthlab.Unauthenticated)
	}
	if err != nil || !m.Mandate(org, team) {
		return "", errors.Join(fmt.Errorf("%w: management key", healthlab.Unauthenticated), err)
	}
	return m.Name, nil
}

// roleKey is the context key under which a request carries the role that its operation requires.
type roleKey struct{}

func withRole(r *http.Request, needed Role) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), roleKey{}, needed))
}

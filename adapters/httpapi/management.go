package httpapi

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Mandate reports whether the holder of a management key may manage a team of an organisation. With the zero TeamID
// it reports whether the holder may create and delete teams of the organisation. It is called once per request, must
// be safe for concurrent use and must not block: Config.AuthenticateManagement looks up beforehand what the Mandate
// needs.
type Mandate func(org uuid.UUID, team healthlab.TeamID) bool

// EveryTeam is the Mandate of a key that may manage every team of every organisation.
func EveryTeam(uuid.UUID, healthlab.TeamID) bool { return true }

// ManagementKey is a stored management key.
type ManagementKey struct {
	// Sum is the sum of the key; see [SumKey]. The key itself is random, of 32 bytes
	// or more.
	Sum KeySum
	// Mandate decides which teams the key may manage. Nil means none.
	Mandate Mandate
	// Role decides which operations the key may call for these teams. Default [RoleAdmin].
	Role Role
	// Name names the key in the access log. It must not be a secret. Default: the first bytes of Sum.
	Name string
}

// ManagementOptions adjusts [ManagementAuth]. The zero value, and nil, mean the
// defaults.
type ManagementOptions struct {
	// Header is the header with the key. Default x-management-key.
	Header string
}

// ManagementAuth returns a function for Config.AuthenticateManagement that accepts a fixed list of keys. The function
// reads only the header for management keys, so the API key of a team is never accepted. It returns Unauthenticated for
// all other keys.
func ManagementAuth(keys []ManagementKey, opts *ManagementOptions) func(*http.Request) (Manager, error) {
	header := defaultManagementKeyHeader
	if opts != nil && opts.Header != "" {
		header = opts.Header
	}
	return func(r *http.Request) (Manager, error) {
		var found Manager
		if sent := r.Header.Values(header); len(sent) == 1 && sent[0] != "" {
			sum := SumKey(sent[0])
			for i := range keys { // compare every key, so that the duration does not reveal which one matches
				if subtle.ConstantTimeCompare(keys[i].Sum[:], sum[:]) == 1 {
					found = Manager{Name: cmp.Or(keys[i].Name, hex.EncodeToString(sum[:4])), Mandate: keys[i].Mandate, Role: cmp.Or(keys[i].Role, RoleAdmin)}
				}
			}
		}
		if found.Mandate == nil {
			return Manager{}, fmt.Errorf("%w: header %s: must be a known management key", healthlab.Unauthenticated, header)
		}
		return found, nil
	}
}

// managed is a management request about one team.
type managed struct {
	*wire.In
	by      Manager
	env     healthlab.Environment // environment of this deployment
	belongs func(uuid.UUID, healthlab.TeamID) error

	org  uuid.UUID
	team uuid.UUID
	asks string // environment that the path names
	// access is the accessNote of the request; nil if accesses are not recorded.
	access *accessNote
}

func (a api) managing(do func(http.ResponseWriter, *http.Request, *managed) error) func(http.ResponseWriter, *http.Request) error {
	// do must call m.authorizedTeam, which checks the caller's mandate, before it reads or changes data of the team.
	return a.managingHere(func(w http.ResponseWriter, r *http.Request, m *managed) error {
		m.asks = m.PathText("environment", wire.MaxPathText)
		return do(w, r, m)
	})
}

// managingHere returns a handler that authenticates a management request and calls do. The path names no environment,
// so the request concerns the environment of this deployment.
func (a api) managingHere(do func(http.ResponseWriter, *http.Request, *managed) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		by, err := a.manager(r)
		if err != nil {
			return err
		}
		in := wire.From(r)
		note, _ := r.Context().Value(accessNoteKey{}).(*accessNote)
		if note != nil {
			note.actor = "management:" + by.Name
		}
		return do(w, r, &managed{
			In: in, access: note, by: by, env: a.Environment, belongs: a.belongs(r.Context()), org: in.PathUUID("org_id"), team: in.PathUUID("team_id"), asks: string(a.Environment),
		})
	}
}

// asJSON returns a handler that answers 200 with the value that answer returns, as JSON.
func asJSON[M any](answer func(context.Context, M) (any, error)) func(http.ResponseWriter, *http.Request, M) error {
	return func(w http.ResponseWriter, r *http.Request, m M) error {
		out, err := answer(r.Context(), m)
		if err != nil {
			return err
		}
		return wire.JSON(w, http.StatusOK, out)
	}
}

// authorizedTeam returns the team of the request, or the problems of the request. All parameters must have been read.
// It returns NotFound if the team is in another environment or outside of the caller's mandate.
func (m *managed) authorizedTeam() (healthlab.TeamID, error) {
	if err := m.Err(); err != nil {
		return healthlab.TeamID{}, err
	}
	team := healthlab.TeamID{UUID: m.team}
	if m.asks != string(m.env) || team.IsZero() || !m.by.Mandate(m.org, team) {
		return healthlab.TeamID{}, fmt.Errorf("%w: team", healthlab.NotFound)
	}
	if m.access != nil {
		m.access.team = team
	}
	return team, m.belongs(m.org, team)
}

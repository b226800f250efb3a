package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// Bound declares how an operation restricts a caller that may act for one user only. The zero value declares nothing.
type Bound struct {
	kind  boundKind
	param string
	owner Owner
}

type boundKind int

const (
	userInPath boundKind = iota + 1
	userInQuery
	requiredInQuery
	userInBody
	ownList
	owned
	teamOnly
	public
)

// Owner returns the user who owns the object whose path parameter is value.
type Owner func(ctx context.Context, team healthlab.TeamID, value string) (healthlab.UserID, error)

// The ways in which operations treat a caller that may act for one user only.
var (
	// UserInPath is for operations whose path contains user_id.
	UserInPath = Bound{kind: userInPath}
	// UserInQuery is for operations whose query may contain user_id. Without it they concern the caller's user.
	UserInQuery = Bound{kind: userInQuery}
	// RequiredInQuery is for operations whose query must contain user_id.
	RequiredInQuery = Bound{kind: requiredInQuery}
	// UserInBody is for operations whose JSON or form body may contain user_id. Without it they concern the caller's user.
	UserInBody = Bound{kind: userInBody}
	// OwnList is for operations that list or count and name no user. The handler restricts the result to the user of
	// [wire.In.Own].
	OwnList = Bound{kind: ownList}
	// TeamOnly is for operations about a whole team. A caller that may act for one user only is refused.
	TeamOnly = Bound{kind: teamOnly}
	// Public is for operations whose answer is the same for all users of a team, such as a catalogue.
	Public = Bound{kind: public}
)

// Owned returns the Bound of operations on an object that the path parameter param names. owner finds the user to
// whom the object belongs.
func Owned(param string, owner Owner) Bound { return Bound{kind: owned, param: param, owner: owner} }

// OwnedID is [Owned] for objects that are named by a UUID.
func OwnedID(param string, owner func(context.Context, healthlab.TeamID, uuid.UUID) (healthlab.UserID, error)) Bound {
	return Owned(param, func(ctx context.Context, team healthlab.TeamID, value string) (healthlab.UserID, error) {
		id, err := uuid.Parse(value)
		if err != nil {
			return healthlab.UserID{}, healthlab.NotFound
		}
		return owner(ctx, team, id)
	})
}

// Stated reports whether b is not the zero value.
func (b Bound) Stated() bool { return b.kind != 0 }

// String returns the name of the Bound, for tests and documentation.
func (b Bound) String() string {
	return [...]string{"not stated", "user in path", "user in query", "required in query", "user in body", "own list", "owned " + b.param, "team only", "public"}[b.kind]
}

// Confine restricts a request to user, the only user for whom its caller may act. It replaces the ids of other users,
// and of objects that belong to other users, by an id that does not exist, so that the answer is the same as for an
// unknown id. It refuses TeamOnly operations with 403. tried is the other user that the path or query names; zero for
// none.
func (b Bound) Confine(r *http.Request, settings *wire.Settings, team healthlab.TeamID, user healthlab.UserID) (confined *http.Request, tried healthlab.UserID, err error) {
	if b.kind == teamOnly {
		return nil, tried, &wire.Fault{Status: http.StatusForbidden, Type: "FORBIDDEN", Msg: "the caller is bound to one user; this operation is for callers of a whole team"}
	}
	settings.Own = user
	ctx := r.Context()
	r = r.Clone(ctx)
	if other := another(r.PathValue("user_id"), user); !other.IsZero() {
		tried = other
		r.SetPathValue("user_id", settings.Replace(other.String()))
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		query = url.Values{} // the handler reports the malformed query
		r.URL.RawQuery = "%"
	}
	named := false
	for i, value := range query["user_id"] {
		named = named || value != ""
		if other := another(value, user); !other.IsZero() {
			tried = other
			query["user_id"][i] = settings.Replace(other.String())
		}
	}
	switch {
	case err != nil:
	case b.kind == userInQuery && !named:
		query.Set("user_id", user.String())
		r.URL.RawQuery = query.Encode()
	case named:
		r.URL.RawQuery = query.Encode()
	}
	if b.kind != owned {
		return r, tried, nil
	}
	value := r.PathValue(b.param)
	switch of, err := b.owner(ctx, team, value); {
	case err == nil && of != user:
		r.SetPathValue(b.param, settings.Replace(value))
	case err != nil && !slices.Contains([]healthlab.ErrorKind{healthlab.NotFound, healthlab.Invalid}, healthlab.KindOf(err)):
		return nil, tried, err
	}
	return r, tried, nil
}

func another(text string, own healthlab.UserID) healthlab.UserID {
	if id, err := uuid.Parse(text); err == nil && id != own.UUID {
		return healthlab.UserID{UUID: id}
	}
	return healthlab.UserID{}
}

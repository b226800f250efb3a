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

// Bound is what an operation is for a caller that is bound to one user. The zero value is no
// statement.
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

// Owner returns the user of the thing that a parameter of a path names.
type Owner func(ctx context.Context, team healthlab.TeamID, value string) (healthlab.UserID, error)

// What operations are for a bound caller.
var (
	// UserInPath operations are about the user_id of their path.
	UserInPath = Bound{kind: userInPath}
	// UserInQuery operations are about the user_id of their query. Without one they are about the
	// user of the caller.
	UserInQuery = Bound{kind: userInQuery}
	// RequiredInQuery operations are about the user_id of their query, which is required.
	RequiredInQuery = Bound{kind: requiredInQuery}
	// UserInBody operations are about the user_id of their body, JSON or a form. If it is null, they
	// are about the user of the caller.
	UserInBody = Bound{kind: userInBody}
	// OwnList operations list or count, and name no user. Their handler asks [wire.In.Own] and answers
	// with the things of that user alone.
	OwnList = Bound{kind: ownList}
	// TeamOnly operations are about a team as a whole, and are refused.
	TeamOnly = Bound{kind: teamOnly}
	// Public operations read what is the same for all users of a team, such as a catalogue.
	Public = Bound{kind: public}
)

// Owned returns the Bound of operations on one thing, which a parameter of the path names.
func Owned(param string, owner Owner) Bound { return Bound{kind: owned, param: param, owner: owner} }

// OwnedID is [Owned] for things with a UUID.
func OwnedID(param string, owner func(context.Context, healthlab.TeamID, uuid.UUID) (healthlab.UserID, error)) Bound {
	return Owned(param, func(ctx context.Context, team healthlab.TeamID, value string) (healthlab.UserID, error) {
		id, err := uuid.Parse(value)
		if err != nil {
			return healthlab.UserID{}, healthlab.NotFound
		}
		return owner(ctx, team, id)
	})
}

// Stated reports whether the operation says what it is.
func (b Bound) Stated() bool { return b.kind != 0 }

// String names the statement.
func (b Bound) String() string {
	return [...]string{"not stated", "user in path", "user in query", "required in query", "user in body", "own list", "owned " + b.param, "team only", "public"}[b.kind]
}

// Confine returns the request of a caller that is bound to a user as that user may send it. An id
// of another user, or of a thing of another user, becomes an id that does not exist, so that the
// answer is the one to such an id. tried is another user whom the path or the query names.
// Operations of the team are refused.
func (b Bound) Confine(r *http.Request, settings *wire.Settings, team healthlab.TeamID, user healthlab.UserID) (confined *http.Request, tried healthlab.UserID, err error) {
	if b.kind == teamOnly {
		return nil, tried, &wire.Fault{Status: http.StatusForbidden, Type: "FORBIDDEN", Msg: "the caller is bound to one user; this operation is about the team as a whole"}
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
		query = url.Values{} // the reader refuses it
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

package linkstore

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/linking"
)

// sessionDoc is what a session has no columns for.
type sessionDoc struct {
	Options   linking.NewToken
	Provider  string
	Step      int
	Challenge linking.Challenge
	LastError linking.ErrorType
	Attempts  []linking.Attempt
}

func scanSession(row pgx.Row, team healthlab.TeamID, id linking.SessionID) (linking.Session, error) {
	x := linking.Session{ID: id, Team: team}
	var token, doc []byte
	var key *string
	if err := row.Scan(&x.User.UUID, &token, &x.CreatedAt, &x.ExpiresAt, &x.Revision, &x.State, &key, &x.Pending.Box, &doc); err != nil {
		return linking.Session{}, err
	}
	var d sessionDoc
	if err := json.Unmarshal(doc, &d); err != nil {
		return linking.Session{}, fmt.Errorf("decode link session: %w", err)
	}
	copy(x.Token[:], token)
	x.CreatedAt, x.ExpiresAt = x.CreatedAt.UTC(), x.ExpiresAt.UTC()
	if key != nil {
		x.Pending.KeyID = *key
	}
	x.Options, x.Provider, x.Step, x.Challenge, x.LastError, x.Attempts = d.Options, d.Provider, d.Step, d.Challenge, d.LastError, d.Attempts
	return x, nil
}

// rewriteSession puts back what a change must not touch, counts the write, and returns
// the session as it is kept with the arguments of updateSession.
func rewriteSession(old *linking.Session, next linking.Session) (linking.Session, []any, error) {
	next.ID, next.Team, next.User, next.Token = old.ID, old.Team, old.User, old.Token
	next.CreatedAt, next.ExpiresAt, next.Revision = old.CreatedAt, old.ExpiresAt, old.Revision+1
	next, row, err := keepSession(next)
	return next, append([]any{next.Team.UUID, next.ID.UUID}, row...), err
}

// keepSession returns a copy of a session in the form in which it is kept, and what is
// written of it at every change: revision, state, pending and document.
func keepSession(x linking.Session) (linking.Session, []any, error) {
	x = cloneSession(x)
	x.CreatedAt, x.ExpiresAt = db.Instant(x.CreatedAt), db.Instant(x.ExpiresAt)
	for i := range x.Attempts {
		x.Attempts[i].At = db.Instant(x.Attempts[i].At)
	}
	doc, err := json.Marshal(sessionDoc{x.Options, x.Provider, x.Step, x.Challenge, x.LastError, x.Attempts})
	if err != nil {
		return x, nil, fmt.Errorf("encode link session: %w", err)
	}
	if db.Spoilt(doc) {
		return x, nil, fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
	}
	var key *string
	if x.Pending.Box != nil {
		key = &x.Pending.KeyID
	} else {
		x.Pending.KeyID = ""
	}
	return x, []any{x.Revision, string(x.State), key, x.Pending.Box, doc}, healthlab.CheckText(string(x.State), x.Pending.KeyID)
}

func cloneSession(x linking.Session) linking.Session {
	x.Options.FilterOnProviders = slices.Clone(x.Options.FilterOnProviders)
	x.Pending.Box = slices.Clone(x.Pending.Box)
	x.Attempts = slices.Clone(x.Attempts)
	if len(x.Attempts) == 0 {
		x.Attempts = nil
	}
	return x
}

package linking

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// keptAfterExpiry is how long codes and sessions stay after their expiry at least.
const keptAfterExpiry = 24 * time.Hour

// pruneLimit is the highest number of expired rows that an insertion deletes.
const pruneLimit = 20

// keptCode is a stored code without its text, with the counts of wrong tries at its creation.
type keptCode struct {
	Digest                       [sha256.Size]byte
	Team                         healthlab.TeamID
	User                         healthlab.UserID
	CreatedAt, ExpiresAt, UsedAt time.Time
	WrongBefore, FirstBefore     int64
	OpenWrong, OpenFirst         int64
}

// codeTable has the codes of all teams by the SHA-256 of the text, so that no two codes have one text.
var codeTable = store.Table[keptCode]{Name: "link_code", Row: func(c *keptCode) store.Row {
	return store.Row{Key: store.Key{User: c.User, ID: string(c.Digest[:])}, Due: c.ExpiresAt.Add(keptAfterExpiry)}
}}

// codeClient has the number of wrong tries of a client in its window.
type codeClient struct {
	Team   healthlab.TeamID
	Client [32]byte
	Since  time.Time
	Wrong  int
}

var codeClientTable = store.Table[codeClient]{Name: "link_code_client", Clear: true, Row: func(c *codeClient) store.Row {
	return store.Row{Key: codeClientKey(c.Team, c.Client), Due: c.Since.Add(2 * GuessWindow)}
}}

func codeClientKey(team healthlab.TeamID, client [32]byte) store.Key {
	return store.Key{Team: team, ID: string(client[:])}
}

// codeCount has the number of wrong tries at a team's codes. First is the number of tries that were the first in their
// client's window. The row of the zero team counts tries of clients that name no team.
type codeCount struct {
	Team         healthlab.TeamID
	Wrong, First int64
}

var codeCountTable = store.Table[codeCount]{Name: "link_code_count", Clear: true, Row: func(c *codeCount) store.Row {
	return store.Row{Key: codeCountKey(c.Team)}
}}

func codeCountKey(team healthlab.TeamID) store.Key { return store.Key{Team: team, ID: "wrong"} }

var sessionTable = store.Table[Session]{Name: "link_session", Row: func(s *Session) store.Row {
	key := sessionKey(s.Team, s.ID)
	key.User = s.User
	return store.Row{Key: key, Due: s.ExpiresAt.Add(keptAfterExpiry)}
}}

func sessionKey(team healthlab.TeamID, id SessionID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// credentialTable has credentials without Client, which is a field of the connection. Index[0] is the provider.
var credentialTable = store.Table[Credential]{Name: "link_credential", Row: func(c *Credential) store.Row {
	return store.Row{
		Key:   credentialKey(c.Team, c.User, c.Provider),
		Index: [2]string{store.Text(c.Provider) + store.UUID(c.User.UUID)},
	}
}}

func credentialKey(team healthlab.TeamID, user healthlab.UserID, provider string) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID) + provider}
}

var appTable = store.Table[AppSession]{Name: "link_app", Row: func(a *AppSession) store.Row {
	r := store.Row{Key: appKey(a.Team, a.ID)}
	r.User = a.User
	if !a.ExpiresAt.IsZero() {
		r.Due = a.ExpiresAt.Add(keptAfterExpiry)
	}
	return r
}}

func appKey(team healthlab.TeamID, id uuid.UUID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id)}
}

// providerClients are all OAuth clients of a team at a provider, in one row, so that only one is current.
type providerClients struct {
	Team     healthlab.TeamID
	Provider string
	Clients  []TeamClient
}

var clientTable = store.Table[providerClients]{Name: "link_team_client", Row: func(c *providerClients) store.Row {
	return store.Row{Key: clientKey(c.Team, c.Provider)}
}}

func clientKey(team healthlab.TeamID, provider string) store.Key {
	return store.Key{Team: team, ID: store.Text(provider)}
}

// Tables declares the tables of [NewStore], [NewAppSessions] and [NewTeamClients]. A store also needs
// healthdata.UserTables.
func Tables() []store.Definition {
	return []store.Definition{
		codeTable.Definition(), codeClientTable.Definition(), codeCountTable.Definition(), sessionTable.Definition(),
		credentialTable.Definition(), appTable.Definition(), clientTable.Definition(),
	}
}

// StoreOptions configures [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Events appends the events of changes, if UserRows is nil. Default: no event is written.
	Events store.Events
	// UserRows changes users and writes the events. Default: healthdata.NewUserRows with Events.
	UserRows *healthdata.UserRows
}

// Rows stores codes, sessions and credentials in a store.Store. It is a [Store] and a [CredentialStore],
// immutable and safe for concurrent use.
type Rows struct {
	s     store.Store
	users *healthdata.UserRows
}

var (
	_ Store           = (*Rows)(nil)
	_ CredentialStore = (*Rows)(nil)
)

// NewStore returns a Store on a store whose tables include [Tables] and those of the users. Inserting a code or a
// session of an unknown user returns healthlab.NotFound.
func NewStore(s store.Store, opts *StoreOptions) *Rows {
	if opts == nil {
		opts = &StoreOptions{}
	}
	r := &Rows{s: s, users: opts.UserRows}
	if r.users == nil {
		r.users = healthdata.NewUserRows(&healthdata.UserOptions{Events: opts.Events})
	}
	return r
}

// prune deletes up to pruneLimit rows of a table that are due for deletion.
func prune(tx store.Tx, table string) error {
	got, err := tx.Read(store.Query{
		Key: store.Key{Table: table}, By: store.ByDue, Until: tx.Now(), Limit: pruneLimit, Lock: store.Skip, Bare: true,
	})
	if err != nil {
		return err
	}
	for _, r := range got[0] {
		tx.Delete(r.Key)
	}
	return nil
}

// DeleteTeam deletes rows of a team that belong to none of its users: its clients and the counts of wrong codes.
// Call it in the transaction that deletes the team.
func DeleteTeam(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	all := func(table string) store.Query {
		return store.Query{Key: store.Key{Table: table, Team: team}, By: store.ByID, Lock: store.Held, Bare: true}
	}
	got, err := tx.Read(all(clientTable.Name), all(codeClientTable.Name), all(codeCountTable.Name))
	if err != nil {
		return err
	}
	for _, rows := range got {
		for _, r := range rows {
			tx.Delete(r.Key)
		}
	}
	return nil
}

func instant(t time.Time) time.Time { return healthlab.At(t).Time }

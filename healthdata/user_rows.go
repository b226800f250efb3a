package healthdata

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// userDoc is the document of a user.
type userDoc struct {
	ID           healthlab.UserID
	Team         healthlab.TeamID
	ClientUserID string
	CreatedOn    healthlab.Time
	Zone         FallbackTimeZone
	Birth        *FallbackBirthDate `json:",omitempty"`
	Start, End   *healthlab.Date
	Connections  []Connection `json:",omitempty"`
	Consents     []Consent    `json:",omitempty"`
	DeletedAt    time.Time
	Revision     int64
}

var userTable = store.Table[User]{
	Name: store.UserTable, Unique: [2]bool{true}, Secret: [2]bool{true},
	Row: func(u *User) store.Row {
		return store.Row{
			Key:   store.UserKey(u.Team, u.ID),
			Index: store.UserIndex(u.ID, u.ClientUserID, u.CreatedOn.Time, u.DeletedAt),
		}
	},
	Encode: func(u *User) ([]byte, error) {
		return store.JSON(&userDoc{
			u.ID, u.Team, u.ClientUserID, u.CreatedOn, u.FallbackTimeZone, u.FallbackBirthDate, u.IngestionStart, u.IngestionEnd,
			u.Connections, u.Consents, u.DeletedAt, u.Revision,
		})
	},
	Decode: func(row store.Row, u *User) error {
		if len(row.Doc) == 0 {
			*u = remainder(row)
			return nil
		}
		var d userDoc
		err := json.Unmarshal(row.Doc, &d)
		*u = User{
			ID: d.ID, Team: d.Team, ClientUserID: d.ClientUserID, CreatedOn: d.CreatedOn, FallbackTimeZone: d.Zone, FallbackBirthDate: d.Birth,
			IngestionStart: d.Start, IngestionEnd: d.End, Connections: d.Connections, Consents: d.Consents, DeletedAt: d.DeletedAt, Revision: d.Revision,
		}
		return err
	},
}

// remainder returns what can be read of a user whose key was deleted: the id, the team and the state. It
// is there to be erased.
func remainder(row store.Row) User {
	u := User{ID: store.UserIDOf(row), Team: row.Team}
	at := store.UserInstant(row)
	if store.StateOf([]store.Row{row}).Live {
		u.CreatedOn = healthlab.At(at)
	} else {
		u.DeletedAt = at
	}
	return u
}

// teamOfUser keeps the ids of the users of all teams, so that no two users share one.
type teamOfUser struct {
	User healthlab.UserID
	Team healthlab.TeamID
}

var userIDTable = store.Table[teamOfUser]{Name: "user_id", Clear: true, Row: func(t *teamOfUser) store.Row {
	return store.Row{Key: store.Key{User: t.User, ID: store.UUID(t.User.UUID)}}
}}

// erasure is what is kept of the erasure of a deleted user. It can be read when the key of the person is
// deleted already, so that an erasure that was stopped goes on.
type erasure struct {
	Team      healthlab.TeamID
	User      healthlab.UserID
	DeletedAt time.Time
	// Leased is until when a caller of ClaimErasures has the user.
	Leased time.Time
}

var erasureTable = store.Table[erasure]{Name: "user_erasure", Clear: true, Row: func(e *erasure) store.Row {
	return store.Row{Key: erasureKey(e.Team, e.User), Due: e.DeletedAt}
}}

func erasureKey(team healthlab.TeamID, user healthlab.UserID) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID)}
}

// putErasure writes what changed of the erasure of a user.
func putErasure(tx store.Tx, was, now *User) error {
	if was.DeletedAt.Equal(now.DeletedAt) {
		return nil
	}
	e, err := erasureTable.Get(tx, erasureKey(now.Team, now.ID), store.Held)
	switch {
	case err != nil:
		return err
	case e == nil && now.Live():
		return nil
	case e == nil:
		return erasureTable.Insert(tx, &erasure{Team: now.Team, User: now.ID, DeletedAt: now.DeletedAt})
	case now.Live():
		erasureTable.Delete(tx, e)
		return nil
	}
	e.Value.DeletedAt = now.DeletedAt
	return erasureTable.Put(tx, e)
}

// ConnectionRow says when the service has to look at a connection of a live user.
type ConnectionRow struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	Due      time.Time
}

// ConnectionTable has a row for each connection of a live user that is due at some time. Its Due is
// that of the connection. The rows have no team, so that those due at one time are ordered by user
// and provider.
var ConnectionTable = store.Table[ConnectionRow]{Name: "connection", Clear: true, Row: func(c *ConnectionRow) store.Row {
	return store.Row{Key: store.Key{User: c.User, ID: store.UUID(c.User.UUID) + c.Provider}, Due: c.Due}
}}

// accountRow leads from an account at a provider to a user who has connected it. Account, by which it is
// found, is not in the document.
type accountRow struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	Account  accountDigest `json:"-"`
}

// accountDigest is the SHA-256 of a provider and the name of an account there.
type accountDigest [sha256.Size]byte

func digestAccount(provider, account string) accountDigest {
	return sha256.Sum256([]byte(store.Text(provider) + account))
}

var accountTable = store.Table[accountRow]{Name: "connection_account", Clear: true, Secret: [2]bool{true}, Row: func(a *accountRow) store.Row {
	return store.Row{Key: store.Key{User: a.User, ID: store.UUID(a.User.UUID) + a.Provider}, Index: [2]string{string(a.Account[:])}}
}}

// lockRow is held by writes that look for what no two rows may share: one of a team's live users, or
// one of the accounts whose digests begin with two bytes. So few bytes say nothing of an account, and a
// row names no user.
type lockRow struct {
	Team healthlab.TeamID
	ID   string
}

var lockTable = store.Table[lockRow]{Name: "user_lock", Clear: true, Row: func(l *lockRow) store.Row {
	return store.Row{Key: store.Key{Team: l.Team, ID: l.ID}}
}}

// holdLock holds a lock row, and makes it if there is none.
func holdLock(tx store.Tx, l lockRow) error {
	e, err := lockTable.Get(tx, lockTable.Row(&l).Key, store.Held)
	if err != nil || e != nil {
		return err
	}
	return lockTable.Insert(tx, &l) // of two at once, one finds it taken and runs again
}

func holdAccount(tx store.Tx, digest accountDigest) error {
	return holdLock(tx, lockRow{ID: fmt.Sprintf("account %x", digest[:2])})
}

// UserTables declares what [NewUsers] keeps.
func UserTables() []store.Definition {
	return []store.Definition{
		userTable.Definition(), userIDTable.Definition(), erasureTable.Definition(), ConnectionTable.Definition(), accountTable.Definition(),
		lockTable.Definition(),
	}
}

// UserHook is called in the transaction that deletes or erases a user.
type UserHook func(ctx context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID) error

// UserOptions adjusts what [NewUsers] and [NewUserRows] return. The zero value, and nil, mean the
// defaults.
type UserOptions struct {
	// Events takes the events of changes. Default: no event is written.
	Events store.Events
	// OnDelete is called after a live user became a deleted one: what packages keep for live users
	// alone goes. Default: none.
	OnDelete []UserHook
	// OnErase is called before the rows of a user are deleted. All rows whose Key.User is the user
	// go without it; a hook keeps what must outlive the user, such as the names of files to delete.
	// It reads no documents of the user, whose key may be gone. Default: none.
	OnErase []UserHook
	// Erasing is called while a user with many rows is erased, every [ErasingRows] rows, with the number of rows
	// that are deleted. It must be safe for concurrent use. Default: none.
	Erasing func(team healthlab.TeamID, user healthlab.UserID, rows int)
	// UsersElsewhere says that the store does not keep all users: the erasure of one that it does not
	// know deletes what is kept about the user. Default: such a user is healthlab.NotFound.
	UsersElsewhere bool
}

// UserRows reads and changes users inside of transactions, for packages that change users together
// with rows of their own. It is immutable and safe for concurrent use.
type UserRows struct{ opts UserOptions }

// NewUserRows returns the users of a store whose tables include [UserTables].
func NewUserRows(opts *UserOptions) *UserRows {
	if opts == nil {
		opts = &UserOptions{}
	}
	return &UserRows{*opts}
}

func noUser() error { return fmt.Errorf("%w: the team has no such user", healthlab.NotFound) }

// Get returns a user, live or deleted. NotFound if the team has none.
func (r *UserRows) Get(tx store.Tx, team healthlab.TeamID, id healthlab.UserID, lock store.Lock) (User, error) {
	e, _, err := lockedUser(tx, team, id, lock)
	if err != nil {
		return User{}, err
	}
	return e.Value, nil
}

// lockedUser returns a user, live or deleted. Opened is false for one whose key was deleted. NotFound if
// the team has none.
func lockedUser(tx store.Tx, team healthlab.TeamID, id healthlab.UserID, lock store.Lock) (e *store.Entry[User], opened bool, err error) {
	key := store.UserKey(team, id)
	if e, err = userTable.Get(tx, key, lock); err != nil || e != nil {
		return e, true, err
	}
	row, err := userTable.Bare(tx, key, lock)
	switch {
	case err != nil:
		return nil, false, err
	case row == nil:
		return nil, false, noUser()
	}
	return &store.Entry[User]{Value: remainder(*row), Revision: row.Revision}, false, nil
}

// Update changes a user as [Users].Update does, in a transaction.
func (r *UserRows) Update(ctx context.Context, tx store.Tx, team healthlab.TeamID, id healthlab.UserID,
	change func(*User) ([]healthlab.Event, error),
) (User, error) {
	e, opened, err := lockedUser(tx, team, id, store.Held)
	if err != nil {
		return User{}, err
	}
	was, edited := e.Value, e.Value.Clone()
	events, err := change(&edited)
	if err != nil {
		return User{}, err
	}
	next, err := edited.Normal()
	switch {
	case err != nil:
		return User{}, err
	case !opened && next.Live():
		return User{}, noUser() // without the key of the person there is nothing to write a live user with
	}
	next.ID, next.Team, next.CreatedOn, next.Revision = was.ID, was.Team, was.CreatedOn, was.Revision+1
	if err := claimClientUserID(tx, &next); err != nil {
		return User{}, err
	}
	// The user first, so that what follows sees the user as it is from now on.
	e.Value = next
	if err := putUser(tx, e, opened); err != nil {
		return User{}, err
	}
	if err := putErasure(tx, &was, &next); err != nil {
		return User{}, err
	}
	if err := putConnections(tx, &was, &next); err != nil {
		return User{}, err
	}
	if err := store.AppendEvents(ctx, r.opts.Events, tx, events); err != nil {
		return User{}, err
	}
	if was.Live() && !next.Live() {
		if err := r.deleted(ctx, tx, &next); err != nil {
			return User{}, err
		}
	}
	return next.Clone(), nil
}

// putUser writes a user back; of one whose key was deleted, what a row tells without its document.
func putUser(tx store.Tx, e *store.Entry[User], opened bool) error {
	if opened {
		return userTable.Put(tx, e)
	}
	row := userTable.Row(&e.Value)
	row.Table, row.Revision = userTable.Name, e.Revision
	tx.Put(row)
	e.Revision++
	return nil
}

// deleted removes what is not kept of a deleted user.
func (r *UserRows) deleted(ctx context.Context, tx store.Tx, u *User) error {
	if r.opts.Events != nil {
		if err := r.opts.Events.Forget(ctx, tx, u.Team, u.ID); err != nil {
			return err
		}
	}
	for _, hook := range r.opts.OnDelete {
		if err := hook(ctx, tx, u.Team, u.ID); err != nil {
			return err
		}
	}
	return nil
}

// claimClientUserID fails if another live user of the team has the client user id of a live user.
func claimClientUserID(tx store.Tx, u *User) error {
	if !u.Live() {
		return nil
	}
	got, err := tx.Read(store.Query{
		Key: store.Key{Table: store.UserTable, Team: u.Team}, By: store.ByFirst, Bare: true, Lock: store.Plain,
	}.Equal(u.ClientUserID))
	if err != nil {
		return err
	}
	for _, row := range got[0] {
		if other := store.UserIDOf(row); other != u.ID {
			return &ClientUserIDError{User: other, CreatedOn: healthlab.At(store.UserInstant(row))}
		}
	}
	return nil
}

// putConnections writes what changed of when connections are due, and of which accounts they have.
func putConnections(tx store.Tx, was, now *User) error {
	if err := putChanges(tx, &ConnectionTable, dueConnections(was), dueConnections(now)); err != nil {
		return err
	}
	before, after := accounts(was), accounts(now)
	for provider, a := range after {
		if before[provider].Account != a.Account {
			if err := holdAccount(tx, a.Account); err != nil {
				return err
			}
		}
	}
	return putChanges(tx, &accountTable, before, after)
}

// putChanges makes the rows of before those of after. Keys are slugs of providers.
func putChanges[T comparable](tx store.Tx, t *store.Table[T], before, after map[string]T) error {
	for id, v := range before {
		if next, kept := after[id]; kept && next == v {
			continue
		}
		e, err := t.Get(tx, t.Row(&v).Key, store.Held)
		if err != nil {
			return err
		}
		next, kept := after[id]
		switch {
		case e == nil:
			continue
		case !kept:
			t.Delete(tx, e)
			continue
		}
		e.Value = next
		if err := t.Put(tx, e); err != nil {
			return err
		}
	}
	for id, v := range after {
		if _, had := before[id]; !had {
			if err := t.Insert(tx, &v); err != nil {
				return err
			}
		}
	}
	return nil
}

func dueConnections(u *User) map[string]ConnectionRow {
	out := map[string]ConnectionRow{}
	for _, c := range u.Connections {
		if row := (ConnectionRow{u.Team, u.ID, c.Provider, c.Due}); u.Live() && !c.Due.IsZero() {
			out[c.Provider] = row
		}
	}
	return out
}

func accounts(u *User) map[string]accountRow {
	out := map[string]accountRow{}
	for _, c := range u.Connections {
		if c.ExternalUserID != nil && c.Status != Deregistered && u.Live() {
			out[c.Provider] = accountRow{u.Team, u.ID, c.Provider, digestAccount(c.Provider, *c.ExternalUserID)}
		}
	}
	return out
}

// WithAccount returns the live users of all teams who have a connection to an account at a provider
// that is not Deregistered, by id. Until the transaction ends, no other one connects the account.
func (r *UserRows) WithAccount(tx store.Tx, provider, account string) ([]UserRef, error) {
	id := digestAccount(provider, account)
	if err := holdAccount(tx, id); err != nil {
		return nil, err
	}
	return r.UsersOfAccount(tx, provider, account)
}

// UsersOfAccount is [UserRows.WithAccount] without a lock.
func (r *UserRows) UsersOfAccount(tx store.Tx, provider, account string) ([]UserRef, error) {
	id := digestAccount(provider, account)
	found, err := accountTable.Find(tx, store.Query{By: store.ByFirst, Lock: store.Plain}.Equal(string(id[:])))
	out := make([]UserRef, len(found))
	for i, e := range found {
		out[i] = UserRef{e.Value.Team, e.Value.User}
	}
	return out, err
}

// SetDue sets when the service has to look at a connection next. It is no new revision of the user.
// It does nothing if the user is deleted or has no such connection.
func (r *UserRows) SetDue(tx store.Tx, team healthlab.TeamID, id healthlab.UserID, provider string, due time.Time) error {
	e, err := userTable.Get(tx, store.UserKey(team, id), store.Held)
	if err != nil || e == nil || !e.Value.Live() {
		return err
	}
	was, next := e.Value, e.Value.Clone()
	c := next.Connection(provider)
	if c == nil || c.Due.Equal(healthlab.At(due).Time) {
		return nil
	}
	c.Due = healthlab.At(due).Time
	e.Value = next
	if err := userTable.Put(tx, e); err != nil {
		return err
	}
	return putConnections(tx, &was, &next)
}

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

// userDoc is the stored document of a user.
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
			*u = undecryptedUser(row)
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

// undecryptedUser returns the readable part of a user whose encryption key was deleted: the id, the team and the state.
// It is enough to erase the user.
func undecryptedUser(row store.Row) User {
	u := User{ID: store.UserIDOf(row), Team: row.Team}
	at := store.UserInstant(row)
	if store.StateOf([]store.Row{row}).Live {
		u.CreatedOn = healthlab.At(at)
	} else {
		u.DeletedAt = at
	}
	return u
}

// teamOfUser is a row with the id of a user as its key, so that no two users of any team have the same id.
type teamOfUser struct {
	User healthlab.UserID
	Team healthlab.TeamID
}

var userIDTable = store.Table[teamOfUser]{Name: "user_id", Clear: true, Row: func(t *teamOfUser) store.Row {
	return store.Row{Key: store.Key{User: t.User, ID: store.UUID(t.User.UUID)}}
}}

// erasure is the state of the erasure of a deleted user. It is not encrypted, because an interrupted erasure continues
// after the user's encryption key was deleted.
type erasure struct {
	Team      healthlab.TeamID
	User      healthlab.UserID
	DeletedAt time.Time
	// Leased is when the lease of a ClaimErasures caller ends.
	Leased time.Time
}

var erasureTable = store.Table[erasure]{Name: "user_erasure", Clear: true, Row: func(e *erasure) store.Row {
	return store.Row{Key: erasureKey(e.Team, e.User), Due: e.DeletedAt}
}}

func erasureKey(team healthlab.TeamID, user healthlab.UserID) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID)}
}

// putErasure inserts, changes or deletes the erasure row of a user if DeletedAt differs between was and now.
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

// ConnectionRow is a connection of a live user with the time at which the service must process it.
type ConnectionRow struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	Due      time.Time
}

// ConnectionTable has a row for each connection of a live user with a due time. The rows have no team, so that
// rows that are due at one time are sorted by user and provider.
var ConnectionTable = store.Table[ConnectionRow]{Name: "connection", Clear: true, Row: func(c *ConnectionRow) store.Row {
	return store.Row{Key: store.Key{User: c.User, ID: store.UUID(c.User.UUID) + c.Provider}, Due: c.Due}
}}

// accountRow links an account at a provider to a user who has connected it. The account is stored only as a digest, in
// the index of the row.
type accountRow struct {
	Team     healthlab.TeamID
	User     healthlab.UserID
	Provider string
	Account  accountDigest `json:"-"`
}

// accountDigest is the SHA-256 of a provider's slug and the id of an account at that provider.
type accountDigest [sha256.Size]byte

func digestAccount(provider, account string) accountDigest {
	return sha256.Sum256([]byte(store.Text(provider) + account))
}

var accountTable = store.Table[accountRow]{Name: "connection_account", Clear: true, Secret: [2]bool{true}, Row: func(a *accountRow) store.Row {
	return store.Row{Key: store.Key{User: a.User, ID: store.UUID(a.User.UUID) + a.Provider}, Index: [2]string{string(a.Account[:])}}
}}

// lockRow is locked by writes that check for duplicates: one row per team for client user ids, and one for all
// accounts whose digests begin with the same two bytes. Two bytes do not reveal an account, and a row contains
// no user.
type lockRow struct {
	Team healthlab.TeamID
	ID   string
}

var lockTable = store.Table[lockRow]{Name: "user_lock", Clear: true, Row: func(l *lockRow) store.Row {
	return store.Row{Key: store.Key{Team: l.Team, ID: l.ID}}
}}

// insertLocked locks a lock row, and inserts it if it does not exist.
func insertLocked(tx store.Tx, l lockRow) error {
	e, err := lockTable.Get(tx, lockTable.Row(&l).Key, store.Held)
	if err != nil || e != nil {
		return err
	}
	return lockTable.Insert(tx, &l) // if two insert at once, one fails and runs again
}

func lockAccount(tx store.Tx, digest accountDigest) error {
	return insertLocked(tx, lockRow{ID: fmt.Sprintf("account %x", digest[:2])})
}

// UserTables declares the tables of [NewUsers].
func UserTables() []store.Definition {
	return []store.Definition{
		userTable.Definition(), userIDTable.Definition(), erasureTable.Definition(), ConnectionTable.Definition(), accountTable.Definition(),
		lockTable.Definition(),
	}
}

// UserHook is called in the transaction that deletes or erases a user.
type UserHook func(ctx context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID) error

// UserOptions configures [NewUsers] and [NewUserRows]. The zero value, and nil, mean the defaults.
type UserOptions struct {
	// Events appends the events of changes. Default: no event is written.
	Events store.Events
	// OnDelete is called after a live user was deleted, to remove rows that other packages have only for live
	// users. Default: none.
	OnDelete []UserHook
	// OnErase is called before the rows of a user are deleted. All rows with the user as Key.User are deleted anyway; a
	// hook saves what must outlive the user, such as the names of files to delete. It must not read documents of the
	// user, because the user's encryption key may be deleted. Default: none.
	OnErase []UserHook
	// Erasing is called during the erasure of a user with many rows, after each [ErasingRows] rows, with the
	// number of deleted rows. It must be safe for concurrent use. Default: none.
	Erasing func(team healthlab.TeamID, user healthlab.UserID, rows int)
	// UsersElsewhere reports whether the store does not contain all users. The erasure of an unknown user then
	// deletes the rows about that user. Default: an unknown user is healthlab.NotFound.
	UsersElsewhere bool
}

// UserRows reads and changes users in transactions, for packages that change users together with their own rows.
// It is immutable and safe for concurrent use.
type UserRows struct{ opts UserOptions }

// NewUserRows returns UserRows for transactions of a store whose tables include [UserTables].
func NewUserRows(opts *UserOptions) *UserRows {
	if opts == nil {
		opts = &UserOptions{}
	}
	return &UserRows{*opts}
}

func noUser() error { return fmt.Errorf("%w: the team has no such user", healthlab.NotFound) }

// Get returns a user, live or deleted. It returns NotFound if the team has no such user.
func (r *UserRows) Get(tx store.Tx, team healthlab.TeamID, id healthlab.UserID, lock store.Lock) (User, error) {
	e, _, err := lockedUser(tx, team, id, lock)
	if err != nil {
		return User{}, err
	}
	return e.Value, nil
}

// lockedUser returns a user, live or deleted. opened is false if the user's encryption key was deleted. It returns
// NotFound if the team has no such user.
func lockedUser(tx store.Tx, team healthlab.TeamID, id healthlab.UserID, lock store.Lock) (e *store.Entry[User], opened bool, err error) {
	key := store.UserKey(team, id)
	got, err := tx.Read(userTable.One(key, lock))
	if err != nil {
		return nil, false, err
	}
	if rows := got[0]; len(rows) > 0 {
		e, err = userTable.DecodedOne(rows)
		return e, len(rows[0].Doc) > 0, err // putUser has dropped the document if the key was deleted
	}
	row, err := userTable.Bare(tx, key, lock)
	switch {
	case err != nil:
		return nil, false, err
	case row == nil:
		return nil, false, noUser()
	}
	return &store.Entry[User]{Value: undecryptedUser(*row), Revision: row.Revision}, false, nil
}

// Update changes a user in a transaction, as [Users].Update does.
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
		return User{}, noUser() // a user whose encryption key was deleted cannot become live
	}
	next.ID, next.Team, next.CreatedOn, next.Revision = was.ID, was.Team, was.CreatedOn, was.Revision+1
	if err := claimClientUserID(tx, &next); err != nil {
		return User{}, err
	}
	// Set the user first, so that the following steps see the new state.
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
		if err := r.runDeleteHooks(ctx, tx, &next); err != nil {
			return User{}, err
		}
	}
	return next.Clone(), nil
}

// putUser writes a user back. If the user's encryption key was deleted, it writes the row without a document.
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

// runDeleteHooks removes the events about a deleted user, and what the hooks of UserOptions.OnDelete remove.
func (r *UserRows) runDeleteHooks(ctx context.Context, tx store.Tx, u *User) error {
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

// claimClientUserID returns a [*ClientUserIDError] if another live user of the team has the client user id of u.
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

// putConnections writes the rows about due times and accounts of connections that differ between was and now.
func putConnections(tx store.Tx, was, now *User) error {
	if err := putChanges(tx, &ConnectionTable, dueConnections(was), dueConnections(now)); err != nil {
		return err
	}
	before, after := accounts(was), accounts(now)
	for provider, a := range after {
		if before[provider].Account != a.Account {
			if err := lockAccount(tx, a.Account); err != nil {
				return err
			}
		}
	}
	return putChanges(tx, &accountTable, before, after)
}

// putChanges replaces the rows of before by those of after. Keys are slugs of providers.
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

// WithAccount returns the live users of all teams with a connection to an account at a provider that is not
// Deregistered, by id. Until the transaction ends, no other user can connect the account.
func (r *UserRows) WithAccount(tx store.Tx, provider, account string) ([]UserRef, error) {
	id := digestAccount(provider, account)
	if err := lockAccount(tx, id); err != nil {
		return nil, err
	}
	return r.UsersOfAccount(tx, provider, account)
}

// UsersOfAccount is [UserRows.WithAccount] without the lock.
func (r *UserRows) UsersOfAccount(tx store.Tx, provider, account string) ([]UserRef, error) {
	id := digestAccount(provider, account)
	found, err := accountTable.Find(tx, store.Query{By: store.ByFirst, Lock: store.Plain}.Equal(string(id[:])))
	out := make([]UserRef, len(found))
	for i, e := range found {
		out[i] = UserRef{e.Value.Team, e.Value.User}
	}
	return out, err
}

// SetDue sets when the service next processes a connection. It does not change the Revision of the user. It does
// nothing if the user is deleted or has no such connection.
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

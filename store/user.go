package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// UserState is the state of a user, for packages that do not decode the user's row (table [UserTable]).
type UserState struct {
	// Known is false if the store has no such user: it was erased, or the host stores its users elsewhere.
	Known bool
	// Live is true for a user who is not deleted.
	Live bool
}

// First byte of the second index value of a user.
const (
	userDeleted = "d"
	userLive    = "l"
)

// UserIndex returns the index values of the row of a user. The first is the client user id of a live user,
// which is secret, so that two live users of a team cannot share one. The second is the state and an instant
// (of the creation of a live user, of the deletion of a deleted one), by which lists are sorted. deletedAt is
// zero for a live user.
func UserIndex(id healthlab.UserID, clientUserID string, createdAt, deletedAt time.Time) [2]string {
	if deletedAt.IsZero() {
		return [2]string{clientUserID, userLive + Time(createdAt) + UUID(id.UUID)}
	}
	return [2]string{"", userDeleted + Time(deletedAt) + UUID(id.UUID)}
}

// LiveUsers returns the query for the live users of a team, sorted by creation.
func LiveUsers(team healthlab.TeamID) Query { return users(team, userLive) }

// DeletedUsers returns the query for the deleted users of a team, sorted by deletion.
func DeletedUsers(team healthlab.TeamID) Query { return users(team, userDeleted) }

// DeletedIDs returns the ids of the deleted users of a team, so that lists can leave them out.
func DeletedIDs(ctx context.Context, s Store, team healthlab.TeamID) (map[healthlab.UserID]bool, error) {
	rows, err := s.Read(ctx, DeletedUsers(team).WithoutDocs())
	if err != nil {
		return nil, err
	}
	deleted := map[healthlab.UserID]bool{}
	for _, r := range rows[0] {
		deleted[UserIDOf(r)] = true
	}
	return deleted, nil
}

func users(team healthlab.TeamID, state string) Query {
	return Query{Key: Key{Table: UserTable, Team: team}, By: BySecond, From: state, To: End(state)}
}

// StateOf returns the state of a user from the rows of the query [User].
func StateOf(rows []Row) UserState {
	if len(rows) == 0 {
		return UserState{}
	}
	r := rows[0]
	return UserState{Known: true, Live: len(r.Index[1]) > 0 && r.Index[1][:1] == userLive}
}

// ClientUserIDOf returns the team's own id of the user from the rows of [User]; "" if there is no such user or
// the row has no document. The document of a user is a JSON object with the field ClientUserID.
func ClientUserIDOf(rows []Row) (string, error) {
	if len(rows) == 0 || len(rows[0].Doc) == 0 {
		return "", nil
	}
	var doc struct{ ClientUserID string }
	if err := json.Unmarshal(rows[0].Doc, &doc); err != nil {
		return "", fmt.Errorf("decode the document of a user: %w", err)
	}
	return doc.ClientUserID, nil
}

// UserInstant returns the creation time of the user in a row of [UserTable]; the deletion time of a deleted
// user.
func UserInstant(r Row) time.Time {
	if len(r.Index[1]) < 9 {
		return time.Time{}
	}
	return ParseTime(r.Index[1][1:])
}

// UserIDOf returns the user of a row of [UserTable].
func UserIDOf(r Row) healthlab.UserID { return healthlab.UserID{UUID: ParseUUID(r.ID)} }

// LockUser reads the row of a user as Shared and returns the user's state. After it, a transaction may put new
// rows of the user.
func LockUser(tx Tx, team healthlab.TeamID, user healthlab.UserID) (UserState, error) {
	got, err := tx.Read(User(team, user))
	if err != nil {
		return UserState{}, err
	}
	return StateOf(got[0]), nil
}

// Events stores the events of a change, in the transaction of the change. Package webhook has an implementation
// that stores them for delivery; a host may write its own, for example one that writes to a queue in its
// database. A nil Events in the options of a package means that no event is written.
//
// Append sets the Seq of each event: 1 for the first of a team and key, and one more for each that follows. It
// sets Trace from ctx if it is empty (see healthlab.TraceOf). An event about a deleted user is left out. After
// an error the change must fail.
//
// Forget removes the stored events about a user, in the transaction that deletes the user. The Seq of their
// keys continues.
type Events interface {
	Append(ctx context.Context, tx Tx, events []healthlab.Event) error
	Forget(ctx context.Context, tx Tx, team healthlab.TeamID, user healthlab.UserID) error
}

// AppendEvents appends events, if there are any and to is not nil.
func AppendEvents(ctx context.Context, to Events, tx Tx, events []healthlab.Event) error {
	if to == nil || len(events) == 0 {
		return nil
	}
	return to.Append(ctx, tx, events)
}

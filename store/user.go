package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// UserState says what the row of a user (table [UserTable]) tells to packages that do not decode
// it.
type UserState struct {
	// Known is false if the store has no such user: it was erased, or the host keeps its users
	// elsewhere.
	Known bool
	// Live is true for a user who is not deleted.
	Live bool
}

// The first byte of the second index value of a user.
const (
	userDeleted = "d"
	userLive    = "l"
)

// UserIndex returns the index values of the row of a user: the client user id of a live user, which is
// secret, so that two live users of a team do not share one; and the state and the instant (of the creation of
// a live user, of the deletion of a deleted one), by which lists are ordered. deletedAt is zero for
// a live user.
func UserIndex(id healthlab.UserID, clientUserID string, createdAt, deletedAt time.Time) [2]string {
	if deletedAt.IsZero() {
		return [2]string{clientUserID, userLive + Time(createdAt) + UUID(id.UUID)}
	}
	return [2]string{"", userDeleted + Time(deletedAt) + UUID(id.UUID)}
}

// LiveUsers returns the query for the live users of a team, ordered by creation.
func LiveUsers(team healthlab.TeamID) Query { return users(team, userLive) }

// DeletedUsers returns the query for the deleted users of a team, ordered by deletion.
func DeletedUsers(team healthlab.TeamID) Query { return users(team, userDeleted) }

// DeletedIDs returns the ids of the deleted users of a team, for lists that leave them out.
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

// StateOf returns whether a user is known and live, by the rows that the query [User] found.
func StateOf(rows []Row) UserState {
	if len(rows) == 0 {
		return UserState{}
	}
	r := rows[0]
	return UserState{Known: true, Live: len(r.Index[1]) > 0 && r.Index[1][:1] == userLive}
}

// ClientUserIDOf returns the team's own name for the user of the answer of [User]; "" if there is no
// such user or the row has no document. The document of a user is a JSON object that has it as ClientUserID.
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

// UserInstant returns when the user of a row of [UserTable] was created; of a deleted user, when it was
// deleted.
func UserInstant(r Row) time.Time {
	if len(r.Index[1]) < 9 {
		return time.Time{}
	}
	return ParseTime(r.Index[1][1:])
}

// UserIDOf returns the user of a row of [UserTable].
func UserIDOf(r Row) healthlab.UserID { return healthlab.UserID{UUID: ParseUUID(r.ID)} }

// LockUser reads the row of a user as Shared and returns its state. After it, a transaction may put
// new rows of the user.
func LockUser(tx Tx, team healthlab.TeamID, user healthlab.UserID) (UserState, error) {
	got, err := tx.Read(User(team, user))
	if err != nil {
		return UserState{}, err
	}
	return StateOf(got[0]), nil
}

// Events takes the events of a change, in the transaction of the change. Package webhook has one
// that keeps them for delivery; a host may bring its own, such as one that puts them into a queue
// of its database. A nil Events of a package means that no event is written.
//
// Append draws the Seq of each event: 1 for the first of a team and key, and one more for each that
// follows. It sets Trace from ctx where it is empty (see healthlab.TraceOf). An event about a
// deleted user is left out. After an error the change must fail.
//
// Forget removes what is kept of events about a user, in the transaction that deletes the user. The
// Seq of their keys goes on.
type Events interface {
	Append(ctx context.Context, tx Tx, events []healthlab.Event) error
	Forget(ctx context.Context, tx Tx, team healthlab.TeamID, user healthlab.UserID) error
}

// AppendEvents appends events, if there are any and there is somewhere to append them to.
func AppendEvents(ctx context.Context, to Events, tx Tx, events []healthlab.Event) error {
	if to == nil || len(events) == 0 {
		return nil
	}
	return to.Append(ctx, tx, events)
}

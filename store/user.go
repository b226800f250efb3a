package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// UserState says whether a user exists and is deleted. Packages use it in place of decoding the user's row (table
// [UserTable]).
type UserState struct {
	// Known is false if the store has no row of the user: the user was erased, never existed, or is stored
	// elsewhere by the host.
	Known bool
	// Live is true for a known user who is not marked as deleted.
	Live bool
}

// First byte of the second index value of a user's row: the user's state.
const (
	userDeleted = "d"
	userLive    = "l"
)

// UserIndex returns the two index values of a user's row. The first is the client user id of a live user; the index
// is unique, so two live users of a team cannot share one, and secret, because the id is personal. The second sorts
// lists of users: the state, then the time of creation (of deletion for a deleted user), then the id. deletedAt is
// zero for a live user.
func UserIndex(id healthlab.UserID, clientUserID string, createdAt, deletedAt time.Time) [2]string {
	if deletedAt.IsZero() {
		return [2]string{clientUserID, userLive + Time(createdAt) + UUID(id.UUID)}
	}
	return [2]string{"", userDeleted + Time(deletedAt) + UUID(id.UUID)}
}

// LiveUsers returns the query for the users of a team that are not deleted, ordered by their time of creation.
func LiveUsers(team healthlab.TeamID) Query { return users(team, userLive) }

// DeletedUsers returns the query for the users of a team that are deleted and not yet erased, ordered by their time
// of deletion.
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

// StateOf returns the state of a user. rows is the answer of the query [User].
func StateOf(rows []Row) UserState {
	if len(rows) == 0 {
		return UserState{}
	}
	r := rows[0]
	return UserState{Known: true, Live: len(r.Index[1]) > 0 && r.Index[1][:1] == userLive}
}

// ClientUserIDOf returns the client user id, the team's own id of a user. rows is the answer of the query [User].
// The result is "" if there is no such user or the row has no document. The document must be a JSON object with the
// field ClientUserID.
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

// UserInstant returns the time of creation of a live user, or the time of deletion of a deleted one, from the
// user's row in [UserTable]; the zero time if the row has none.
func UserInstant(r Row) time.Time {
	if len(r.Index[1]) < 9 {
		return time.Time{}
	}
	return ParseTime(r.Index[1][1:])
}

// UserIDOf returns the user's id, which is the ID of the user's row in [UserTable].
func UserIDOf(r Row) healthlab.UserID { return healthlab.UserID{UUID: ParseUUID(r.ID)} }

// LockUser reads the row of a user with the lock Shared and returns the user's state. Afterwards the transaction
// may put new rows of the user.
func LockUser(tx Tx, team healthlab.TeamID, user healthlab.UserID) (UserState, error) {
	got, err := tx.Read(User(team, user))
	if err != nil {
		return UserState{}, err
	}
	return StateOf(got[0]), nil
}

// Events stores the events about a change of data, in the transaction that changes the data. Package webhook has an
// implementation that stores them for delivery; a host may write its own, for example one that writes to a queue in
// its database. A nil Events in the options of a package means that no event is written.
//
// Append numbers the events of each team and Key by Seq: 1 for the first event and one more for each later one. It
// sets an empty Trace from ctx (see healthlab.TraceOf). It leaves out events about a deleted user. If Append fails,
// the caller must let the transaction fail.
//
// Forget removes the stored events about a user, in the transaction that deletes the user. Later events with the
// same Key continue its numbers.
type Events interface {
	Append(ctx context.Context, tx Tx, events []healthlab.Event) error
	Forget(ctx context.Context, tx Tx, team healthlab.TeamID, user healthlab.UserID) error
}

// AppendEvents calls to.Append, unless to is nil or events is empty.
func AppendEvents(ctx context.Context, to Events, tx Tx, events []healthlab.Event) error {
	if to == nil || len(events) == 0 {
		return nil
	}
	return to.Append(ctx, tx, events)
}

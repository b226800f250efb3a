package bulk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/store"
)

// keptOp is a stored operation. Op.Running is nil; Running has these users with their indexes.
type keptOp struct {
	Op      Op
	Running []runningUser `json:",omitempty"`
}

type runningUser struct {
	N    int
	User healthlab.UserID
}

// op returns the operation.
func (k *keptOp) op() Op {
	out := k.Op
	for _, r := range k.Running {
		out.Running = append(out.Running, r.User)
	}
	return out
}

// opTable has the operations, which contain no personal data. The first index sorts the operations of a team, the
// second those in progress at a provider, both by their start. The row of an operation in progress is due at Op.Due.
var opTable = store.Table[keptOp]{Name: "bulk_op", Clear: true, Row: func(k *keptOp) store.Row {
	op := &k.Op
	r := store.Row{Key: opKey(op.Team, op.ID), Index: [2]string{startIndex(op.StartedAt, op.ID)}}
	if op.Status == InProgress {
		r.Index[1] = store.Text(op.Provider) + startIndex(op.StartedAt, op.ID)
		if r.Due = op.Due; r.Due.IsZero() {
			r.Due = time.Unix(0, 0) // due at once
		}
	}
	return r
}}

func opKey(team healthlab.TeamID, id uuid.UUID) store.Key {
	return store.Key{Table: "bulk_op", Team: team, ID: store.UUID(id)}
}

func startIndex(at time.Time, id uuid.UUID) string {
	// The result has beganLen bytes.
	return store.Time(at) + store.UUID(id)
}

const beganLen = 8 + 16

// opID has the id of an operation of any team, so that no two operations have the same id. The row of an ended
// operation is due for Prune.
type opID struct {
	ID   uuid.UUID
	Team healthlab.TeamID
	// EndedAt is zero for an operation in progress.
	EndedAt time.Time
}

var opIDTable = store.Table[opID]{Name: "bulk_op_id", Clear: true, Row: func(o *opID) store.Row {
	return store.Row{Key: opIDKey(o.ID), Due: o.EndedAt}
}}

func opIDKey(id uuid.UUID) store.Key { return store.Key{ID: store.UUID(id)} }

// opIDOf returns the row of the id of an operation.
func opIDOf(op *Op) opID {
	o := opID{ID: op.ID, Team: op.Team}
	if op.Status != InProgress {
		o.EndedAt = op.EndedAt
	}
	return o
}

// keptItem is a stored item with its operation.
type keptItem struct {
	Team healthlab.TeamID
	Op   uuid.UUID
	Item Item
}

// itemTable has the items. They are not encrypted with keys of persons, because a Grant is already sealed and an
// item may have an unknown user. The first index has the items with a Grant.
var itemTable = store.Table[keptItem]{Name: "bulk_item", Clear: true, Row: func(k *keptItem) store.Row {
	r := store.Row{Key: itemKey(k.Team, k.Op, k.Item.N)}
	r.User = k.Item.User
	if k.Item.Grant.Box != nil {
		r.Index[0] = r.ID
	}
	return r
}}

func itemKey(team healthlab.TeamID, op uuid.UUID, n int) store.Key {
	return store.Key{Table: "bulk_item", Team: team, ID: store.UUID(op) + store.Int(int64(n))}
}

func itemsOf(team healthlab.TeamID, op uuid.UUID, by store.By) store.Query {
	prefix := store.UUID(op)
	return store.Query{Key: store.Key{Table: itemTable.Name, Team: team}, By: by, From: prefix, To: store.End(prefix)}
}

// Tables declares the tables of [NewStore]. A store also needs linking.Tables and healthdata.UserTables.
func Tables() []store.Definition {
	return []store.Definition{opTable.Definition(), opIDTable.Definition(), itemTable.Definition()}
}

// NewStore returns a Store on a store whose tables include [Tables], with the connections of links in the same
// store. Erasing a user must call [EraseItems], and deleting a team [DeleteTeam].
func NewStore(s store.Store, links *linking.Rows) Store { return rowStore{s, links} }

type rowStore struct {
	s     store.Store
	links *linking.Rows
}

var (
	errNoOp   = fmt.Errorf("%w: the team has no bulk operation with this id", healthlab.NotFound)
	errNoItem = fmt.Errorf("%w: the bulk operation has no item with this number", healthlab.NotFound)
)

func instant(t time.Time) time.Time { return healthlab.At(t).Time }

func normalOp(op Op) (Op, error) {
	op.Running = slices.Clone(op.Running)
	op.StartedAt, op.EndedAt, op.Due, op.Lease = instant(op.StartedAt), instant(op.EndedAt), instant(op.Due), instant(op.Lease)
	return op, healthlab.CheckText(string(op.Type), op.Provider, string(op.Status))
}

// storedOp returns an operation in its stored form, without Running users who are not in the operation.
func storedOp(tx store.Tx, op Op) (keptOp, error) {
	out := keptOp{Op: op}
	out.Op.Running = nil
	queries := make([]store.Query, len(op.Running))
	for i, u := range op.Running {
		queries[i] = itemsOf(op.Team, op.ID, store.ByUser)
		queries[i].User, queries[i].Limit, queries[i].Bare = u, 1, true
	}
	got, err := tx.Read(queries...)
	if err != nil {
		return keptOp{}, err
	}
	for _, rows := range got {
		for _, r := range rows {
			out.Running = append(out.Running, runningUser{int(store.ParseInt(r.ID[16:])), r.User})
		}
	}
	slices.SortFunc(out.Running, func(a, b runningUser) int { return a.N - b.N })
	out.Running = slices.Compact(out.Running)
	return out, nil
}

// EraseItems removes a user from all operations, in the transaction that erases the user.
func EraseItems(_ context.Context, tx store.Tx, _ healthlab.TeamID, user healthlab.UserID) error {
	// Operations are locked before their items, as UpdateOp does.
	mine := store.Query{Key: store.Key{Table: itemTable.Name, User: user}, By: store.ByUser, Bare: true}
	got, err := tx.Read(mine.Unlocked())
	if err != nil {
		return err
	}
	queries := make([]store.Query, len(got[0]))
	for i, r := range got[0] {
		queries[i] = store.Query{Key: opKey(r.Team, store.ParseUUID(r.ID)), Lock: store.Held}
	}
	if _, err := tx.Read(queries...); err != nil { // reads all rows at once
		return err
	}
	for _, q := range queries {
		e, err := opTable.Get(tx, q.Key, store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		had := len(e.Value.Running)
		e.Value.Running = slices.DeleteFunc(e.Value.Running, func(r runningUser) bool { return r.User == user })
		if len(e.Value.Running) == had {
			continue
		}
		if err := opTable.Put(tx, e); err != nil {
			return err
		}
	}
	if got, err = tx.Read(mine.Hold()); err != nil {
		return err
	}
	deleteRows(tx, got[0])
	return nil
}

// DeleteTeam deletes the operations of a team, in the transaction that deletes the team.
func DeleteTeam(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	got, err := tx.Read(store.Query{Key: store.Key{Table: opTable.Name, Team: team}, By: store.ByID, Lock: store.Held, Bare: true})
	if err != nil {
		return err
	}
	return deleteOps(tx, got[0])
}

// deleteOps deletes operations whose rows are locked, with their ids and items.
func deleteOps(tx store.Tx, ops []store.Row) error {
	var queries []store.Query
	for _, r := range ops {
		id := store.ParseUUID(r.ID)
		items := itemsOf(r.Team, id, store.ByID).Hold()
		items.Bare = true
		queries = append(queries, opIDTable.One(opIDKey(id), store.Held), items)
	}
	got, err := tx.Read(queries...)
	if err != nil {
		return err
	}
	deleteRows(tx, ops)
	for _, rows := range got {
		deleteRows(tx, rows)
	}
	return nil
}

func deleteRows(tx store.Tx, rows []store.Row) {
	for _, r := range rows {
		tx.Delete(r.Key)
	}
}

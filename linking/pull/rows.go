package pull

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// taskTable has the tasks; those of a user are sorted by provider, resource and kind.
var taskTable = store.Table[Task]{
	Name: "pull_task",
	Row:  func(t *Task) store.Row { return store.Row{Key: taskKey(t.Key)} },
	Decode: func(r store.Row, t *Task) error {
		if err := json.Unmarshal(r.Doc, t); err != nil {
			return err
		}
		t.Team, t.User = r.Team, r.User
		provider, rest, _ := store.CutText(r.ID[len(r.User.UUID):])
		resource, kind, _ := store.CutText(rest)
		t.Provider, t.Resource, t.Kind = provider, resource, TaskKind(kind)
		return nil
	},
}

func taskKey(k Key) store.Key {
	return store.Key{Team: k.Team, User: k.User, ID: refID(k.Ref) + store.Text(k.Resource) + string(k.Kind)}
}

func refID(r Ref) string { return store.UUID(r.User.UUID) + store.Text(r.Provider) }

func tasksOf(team healthlab.TeamID, prefix string, lock store.Lock) store.Query {
	return store.Query{Key: store.Key{Table: taskTable.Name, Team: team}, By: store.ByID, From: prefix, To: store.End(prefix), Lock: lock}
}

// queuedTask has the fields that claims need of a task with a Due.
type queuedTask struct {
	Key
	App        string
	Turn       int64
	Due, Lease time.Time
	// Ready reports whether markReady found the task to be due.
	Ready bool
}

// queueTable has the queued tasks of all teams. Rows that are Ready are sorted by application, then in the order
// of [Store].Claim; the others are due when they may become Ready. Only a transaction that locks the task's row
// changes more than Ready.
var queueTable = store.Table[queuedTask]{Name: "pull_queue", Clear: true, Row: func(q *queuedTask) store.Row {
	r := store.Row{Key: queueKey(q.Key)}
	if q.Ready {
		r.Index[0] = appPrefix(q.App) + store.Int(q.Turn) + store.Time(q.Due) + r.ID
	} else {
		r.Due = later(q.Due, q.Lease)
	}
	return r
}}

func queueKey(k Key) store.Key { return store.Key{User: k.User, ID: taskKey(k).ID} }

func appPrefix(app string) string {
	sum := sha256.Sum256([]byte(app))
	return string(sum[:])
}

// keptBudget is a stored budget with its key.
type keptBudget struct {
	BudgetKey
	Budget
}

// budgetTable has the budgets, which contain nothing about a person except the id of a user.
var budgetTable = store.Table[keptBudget]{Name: "pull_budget", Clear: true, Row: func(b *keptBudget) store.Row {
	return store.Row{Key: budgetKey(b.BudgetKey)}
}}

func budgetKey(k BudgetKey) store.Key {
	return store.Key{Team: k.Team, User: k.User, ID: store.UUID(k.User.UUID) + store.Text(k.Provider) + k.Name}
}

// keptRefused is a stored refused item with its user.
type keptRefused struct {
	Team healthlab.TeamID
	User healthlab.UserID
	Item RefusedItem
}

// refusedTable has the refused items. The first index sorts those of a user, the second those of a connection, both in
// the order of [Store].Quarantined.
var refusedTable = store.Table[keptRefused]{Name: "pull_refused", Row: func(k *keptRefused) store.Row {
	user, seen := store.UUID(k.User.UUID), store.Reverse(store.Time(k.Item.At.Time))+store.UUID(k.Item.ID)
	return store.Row{
		Key:   refusedKey(k.Team, k.User, k.Item.ID),
		Index: [2]string{user + seen, user + store.Text(k.Item.Provider) + seen},
	}
}}

func refusedKey(team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID) + store.UUID(id)}
}

func refusedOf(team healthlab.TeamID, by store.By, prefix string, n int) store.Query {
	return store.Query{
		Key: store.Key{Table: refusedTable.Name, Team: team}, By: by, From: prefix, To: store.End(prefix), Limit: n, Lock: store.Plain,
	}
}

// knownNotice is a received notice. It is due when it may be deleted.
type knownNotice struct {
	Provider string
	ID       [32]byte
	At       time.Time
}

var noticeTable = store.Table[knownNotice]{Name: "pull_notice", Clear: true, Row: func(n *knownNotice) store.Row {
	return store.Row{Key: store.Key{ID: store.Text(n.Provider) + string(n.ID[:])}, Due: n.At}
}}

// Tables declares the tables of [NewStore]. A store also needs healthdata.UserTables.
func Tables() []store.Definition {
	return []store.Definition{
		taskTable.Definition(), queueTable.Definition(), budgetTable.Definition(), refusedTable.Definition(), noticeTable.Definition(),
	}
}

// StoreOptions configures [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Events appends the events of plans and tasks. Default: no event is written.
	Events store.Events
}

// NewStore returns a Store on a store whose tables include [Tables] and those of the users. Deleting a team must
// call [DeleteTeam].
func NewStore(s store.Store, opts *StoreOptions) Store {
	if opts == nil {
		opts = &StoreOptions{}
	}
	return rowStore{s, opts.Events, healthdata.NewUserRows(nil)}
}

type rowStore struct {
	s      store.Store
	events store.Events
	users  *healthdata.UserRows
}

var (
	errNoUser       = fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
	errNoConnection = fmt.Errorf("%w: the user has no connection to this provider", healthlab.NotFound)
	errNoTask       = fmt.Errorf("%w: the connection has no task for this resource and kind", healthlab.NotFound)
)

func instant(t time.Time) time.Time { return healthlab.At(t).Time }

// values returns the values of entries.
func values[T any](entries []*store.Entry[T]) []T {
	var out []T
	for _, e := range entries {
		out = append(out, e.Value)
	}
	return out
}

// DeleteTeam deletes the budgets of a team that are not for one of its users, in the transaction that
// deletes the team.
func DeleteTeam(_ context.Context, tx store.Tx, team healthlab.TeamID) error {
	prefix := store.UUID(uuid.Nil)
	got, err := tx.Read(store.Query{
		Key: store.Key{Table: budgetTable.Name, Team: team}, By: store.ByID, From: prefix, To: store.End(prefix), Lock: store.Held, Bare: true,
	})
	if err != nil {
		return err
	}
	for _, r := range got[0] {
		tx.Delete(r.Key)
	}
	return nil
}

// normalTask returns a copy of a task in its stored form.
func normalTask(t Task) (Task, error) {
	if t.Days = slices.Clone(t.Days); len(t.Days) == 0 {
		t.Days = nil
	}
	for _, at := range []*time.Time{
		&t.Linked, &t.From, &t.To, &t.Until, &t.Due, &t.Lease, &t.Seen, &t.Swept, &t.Floor, &t.Announced, &t.Reach,
		&t.ScheduledAt, &t.StartedAt, &t.EndedAt, &t.LastTry, &t.Oldest, &t.Newest,
	} {
		*at = instant(*at)
	}
	return t, healthlab.CheckText(t.Client, t.Lead, t.Provider, t.Resource, string(t.Kind), string(t.Status), t.Cursor, string(t.Error))
}

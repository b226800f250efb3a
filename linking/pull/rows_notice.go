package pull

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// forgottenNotices is the highest number of old notices that are deleted when a new one is stored.
const forgottenNotices = 20

// Notify implements [Store].
func (r rowStore) Notify(ctx context.Context, n Notice, forget time.Time, change func(*Task)) (int, error) {
	if err := healthlab.CheckText(append([]string{n.Provider, n.ExternalUserID, n.Client}, n.Resources...)...); err != nil {
		return 0, err
	}
	found := 0
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		found = 0
		notice := knownNotice{n.Provider, n.ID, instant(n.At)}
		known, err := noticeTable.Get(tx, noticeTable.Row(&notice).Key, store.Held)
		if err != nil || known != nil {
			return err
		}
		if err := forgetNotices(tx, forget); err != nil {
			return err
		}
		if err := noticeTable.Insert(tx, &notice); err != nil { // if two insert at once, one fails and runs again
			return err
		}
		refs, err := r.connectionsOfNotice(tx, &n)
		if err != nil {
			return err
		}
		tasks, err := lockNewsTasks(tx, refs, n.Resources)
		if err != nil {
			return err
		}
		for _, e := range tasks {
			key := e.Value.Key
			change(&e.Value)
			e.Value.Key = key
			if e.Value, err = normalTask(e.Value); err != nil {
				return err
			}
			if err := putTask(tx, e); err != nil {
				return err
			}
		}
		found = len(tasks)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return found, nil
}

// forgetNotices deletes at most forgottenNotices notices from before an instant.
func forgetNotices(tx store.Tx, before time.Time) error {
	got, err := tx.Read(store.Query{
		Key: store.Key{Table: noticeTable.Name}, By: store.ByDue, Until: before.Add(-1), Limit: forgottenNotices, Lock: store.Skip, Bare: true,
	})
	if err != nil {
		return err
	}
	for _, row := range got[0] {
		tx.Delete(row.Key)
	}
	return nil
}

// connectionsOfNotice returns the connections of a notice's account, by user. It locks the rows of the users as Shared.
func (r rowStore) connectionsOfNotice(tx store.Tx, n *Notice) ([]Ref, error) {
	users, err := r.users.UsersOfAccount(tx, n.Provider, n.ExternalUserID)
	if err != nil {
		return nil, err
	}
	users = slices.DeleteFunc(users, func(u healthdata.UserRef) bool { return !n.Team.IsZero() && u.Team != n.Team })
	queries := make([]store.Query, len(users))
	for i, u := range users {
		queries[i] = store.User(u.Team, u.User)
	}
	if _, err := tx.Read(queries...); err != nil { // reads all rows at once
		return nil, err
	}
	var out []Ref
	for _, ref := range users {
		u, err := r.users.Get(tx, ref.Team, ref.User, store.Shared)
		if errors.Is(err, healthlab.NotFound) {
			continue // erased since the account was read
		}
		if err != nil {
			return nil, err
		}
		c := u.Connection(n.Provider)
		if u.Live() && c != nil && c.Status == healthdata.Connected && c.ExternalUserID != nil && *c.ExternalUserID == n.ExternalUserID &&
			(n.Team.IsZero() || c.Client == n.Client) {
			out = append(out, Ref{ref.Team, ref.User, n.Provider})
		}
	}
	slices.SortFunc(out, func(a, b Ref) int { return bytes.Compare(a.User.UUID[:], b.User.UUID[:]) })
	return out, nil
}

// lockNewsTasks returns the queued tasks for new data of some connections, by user and resource; no resources mean all.
// It locks the tasks and their rows in the queue.
func lockNewsTasks(tx store.Tx, refs []Ref, resources []string) ([]*store.Entry[Task], error) {
	queries := make([]store.Query, len(refs))
	for i, ref := range refs {
		queries[i] = tasksOf(ref.Team, refID(ref), store.Held)
	}
	got, err := tx.Read(queries...)
	if err != nil {
		return nil, err
	}
	all, err := taskTable.Decoded(slices.Concat(got...))
	if err != nil {
		return nil, err
	}
	var out []*store.Entry[Task]
	var keys []Key
	for _, e := range all {
		if t := &e.Value; t.Kind == News && !t.Due.IsZero() && (len(resources) == 0 || slices.Contains(resources, t.Resource)) {
			out, keys = append(out, e), append(keys, t.Key)
		}
	}
	return out, lockQueue(tx, keys)
}

package pull

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/store"
)

// queuePage is how many rows of the queue are read at a time.
const queuePage = 200

// Claim implements [Store].
func (r rowStore) Claim(ctx context.Context, q ClaimQuery) ([]Task, error) {
	if q.N <= 0 {
		return nil, ctx.Err()
	}
	for {
		var out []Task
		more := false
		err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) (err error) {
			out = nil
			if more, err = markReady(tx, q.Now); err != nil || more {
				return err
			}
			out, err = claimReady(tx, &q)
			return err
		})
		if err != nil {
			return nil, err
		}
		if !more {
			return out, nil
		}
	}
}

// markReady sets Ready for tasks that are due by now or by the store's clock, at most queuePage tasks. more reports
// whether there may be further ones. claimReady checks both clocks.
func markReady(tx store.Tx, now time.Time) (more bool, err error) {
	due, err := queueTable.Find(tx, store.Query{By: store.ByDue, Until: later(now, tx.Now()), Limit: queuePage, Lock: store.Skip})
	if err != nil {
		return false, err
	}
	for _, e := range due {
		e.Value.Ready = true
		if err := queueTable.Put(tx, e); err != nil {
			return false, err
		}
	}
	return len(due) == queuePage, nil
}

// claimReady claims tasks that are Ready. It skips tasks whose rows another transaction has locked.
func claimReady(tx store.Tx, q *ClaimQuery) ([]Task, error) {
	var out []Task
	tried := map[Key]bool{}
	for len(out) < q.N {
		first, err := firstReady(tx, q, tried, q.N-len(out))
		if err != nil || len(first) == 0 {
			return out, err
		}
		var queries []store.Query
		for _, k := range first {
			tried[k] = true
			queries = append(queries, taskTable.One(taskKey(k), store.Skip), queueTable.One(queueKey(k), store.Skip))
		}
		got, err := tx.Read(queries...)
		if err != nil {
			return nil, err
		}
		for i := range first {
			if len(got[2*i+1]) == 0 {
				continue
			}
			e, err := taskTable.DecodedOne(got[2*i])
			if err != nil {
				return nil, err
			}
			if e == nil || e.Value.Due.IsZero() || !q.canClaim(tx.Now(), e.Value.App(), e.Value.Due, e.Value.Lease) {
				continue // changed since the queue was read
			}
			e.Value.Lease = instant(tx.Now().Add(q.Lease))
			e.Value.Fence++
			out = append(out, e.Value)
			if err := putTask(tx, e); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (q *ClaimQuery) canClaim(at time.Time, app string, due, lease time.Time) bool {
	return !due.After(q.Now) && !lease.After(at) && !slices.Contains(q.Without, app)
}

// firstReady returns the keys of the first n tasks that q can claim and that are not in tried, without a lock. It skips
// an application's further tasks once it has n of them.
func firstReady(tx store.Tx, q *ClaimQuery, tried map[Key]bool, n int) ([]Key, error) {
	left := map[string]int{} // number of tasks still wanted, for each seen application
	for _, app := range q.Without {
		left[app] = 0
	}
	var found []queuedTask
	for from := ""; ; {
		page, err := queueTable.Find(tx, store.Query{By: store.ByFirst, From: from, Limit: queuePage, Lock: store.Plain})
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			t := &e.Value
			if _, seen := left[t.App]; !seen {
				left[t.App] = n
			}
			if left[t.App] > 0 && !tried[t.Key] && q.canClaim(tx.Now(), t.App, t.Due, t.Lease) {
				found = append(found, *t)
				left[t.App]--
			}
		}
		if len(page) < queuePage {
			break
		}
		last := &page[queuePage-1].Value
		if from = queueTable.Row(last).Index[0] + "\x00"; left[last.App] == 0 {
			from = store.End(appPrefix(last.App))
		}
		if from == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b queuedTask) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), a.Due.Compare(b.Due), strings.Compare(taskKey(a.Key).ID, taskKey(b.Key).ID))
	})
	var out []Key
	for _, t := range found[:min(n, len(found))] {
		out = append(out, t.Key)
	}
	return out, nil
}

package memory

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
)

// tables is what a [Store] keeps. The lock of its database guards all of it.
type tables struct {
	users      *userTable
	queue      *queue
	outbox     *outbox
	data       *dataTable
	orders     *orderTable
	persons    *personTable
	reviews    *reviewTable
	testRuns   map[matchtest.RunID]*matchTestRunRecord
	linking    *linkTable
	orgs       *orgTable
	pulls      *pullTable
	bulk       *bulkTable
	reports    *reportTable
	labs       labTable
	exports    exportTable
	continuous *continuousTable
	teams      map[healthlab.TeamID][]byte // JSON of their choices
	access     map[healthlab.TeamID]*accessChain
}

func newTables(db *database, opts *Options) tables {
	users, queue := newUserTable(db.keys), newQueue()
	return tables{
		users:      users,
		queue:      queue,
		outbox:     newOutbox(db, users, queue, opts.Envelope, opts.Retention),
		data:       newDataTable(db.keys, seriesbox.Cipher{Keys: db.keys, Encrypt: opts.EncryptSamples}),
		orders:     newOrderTable(db.keys, users),
		persons:    newPersonTable(),
		reviews:    newReviewTable(db.keys),
		testRuns:   map[matchtest.RunID]*matchTestRunRecord{},
		linking:    newLinkTable(),
		orgs:       newOrgTable(),
		pulls:      newPullTable(),
		bulk:       newBulkTable(),
		reports:    newReportTable(db.keys),
		labs:       labTable{},
		exports:    exportTable{},
		continuous: newContinuousTable(),
		teams:      map[healthlab.TeamID][]byte{},
		access:     map[healthlab.TeamID]*accessChain{},
	}
}

// users is the userStore with the erasure of a user, which goes through all tables.
type users struct {
	userStore
	all *tables
}

func (v users) Erase(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.all
	row := t.users.find(team, user)
	switch {
	case row == nil:
		return noUser()
	case row.user.Live():
		return fmt.Errorf("%w: a live user is deleted first", healthlab.Precondition)
	}
	if err := t.reports.erase(ctx, team, user); err != nil {
		return err
	}
	t.users.erase(row)
	t.data.erase(team, user)
	t.linking.erase(team, user)
	t.pulls.erase(team, user)
	t.bulk.erase(user)
	t.orders.erase(team, user)
	t.persons.erase(team, user)
	t.reviews.erase(team, user)
	t.labs.erase(team, user)
	t.continuous.erase(team, user)
	t.exports.erase(team, user)
	t.outbox.erase(team, user)
	return nil
}

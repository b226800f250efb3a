package memory

import (
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

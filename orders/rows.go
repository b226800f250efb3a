package orders

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/store"
)

// StoreOptions are the options of [NewStore] and exchange.NewReviewStore. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// Events stores the events of changes. Default: no event is written.
	Events store.Events
	// UsersElsewhere is true if the host stores its users outside of the store. Default false: a user without a
	// row in the store is not found.
	UsersElsewhere bool
}

// Tables declares the tables of [NewStore], including those of package critical.
func Tables() []store.Definition {
	return append([]store.Definition{
		orderTable.Definition(), orderNames.Definition(), orderSamples.Definition(), orderReservations.Definition(), orderTransactions.Definition(),
		orderCounters.Definition(), labWork.Definition(), notificationWork.Definition(), visitWork.Definition(), simulationWork.Definition(),
		labFeeds.Definition(),
	}, critical.Tables()...)
}

// orderTable stores orders. Index[0] is the time of creation (newest first) and the id, then the last status
// and the collection method, by which lists are filtered; neither reveals anything about a person's health.
// Index[1] is the transaction, then the id.
var orderTable = store.Table[Record]{Name: "order", Row: func(r *Record) store.Row {
	id := store.UUID(r.ID.UUID)
	return store.Row{
		Key:   store.Key{Team: r.TeamID, User: r.UserID, ID: id},
		Index: [2]string{createdIndex(r.CreatedAt.Time) + id + string(r.LastEvent.Status) + statusEnd + string(r.Method()), store.UUID(r.OrderTransaction.ID.UUID) + id},
	}
}}

// statusEnd separates the status and the method in an index value.
const statusEnd = "\x00"

// placeLength is the length in bytes of the creation time and the order id at the start of Index[0].
const placeLength = 8 + len(uuid.UUID{})

func createdIndex(at time.Time) string { return store.Reverse(store.Time(at)) }

func createdAt(index string) time.Time { return store.ParseTime(store.Reverse(index[:8])) }

func orderKey(team healthlab.TeamID, id OrderID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// orderName has the team of an order, by the order's id, so that ids are unique over all teams.
type orderName struct {
	Name  string `json:"-"`
	Team  healthlab.TeamID
	User  healthlab.UserID
	Order OrderID
}

var orderNames = store.Table[orderName]{Name: "order_name", Clear: true, Row: func(n *orderName) store.Row {
	return store.Row{Key: store.Key{User: n.User, ID: n.Name}}
}}

func nameOfID(id OrderID) string { return "id " + store.UUID(id.UUID) }

// orderSample has the order and team of a sample id, so that sample ids are unique over all teams. The sample
// id is the key of the row and not in its document.
type orderSample struct {
	Team   healthlab.TeamID
	User   healthlab.UserID
	Order  OrderID
	Sample string `json:"-"`
}

var orderSamples = store.Table[orderSample]{
	Name: "order_sample", Clear: true, Unique: [2]bool{true}, Secret: [2]bool{true},
	Row: func(s *orderSample) store.Row {
		return store.Row{Key: store.Key{User: s.User, ID: store.UUID(s.Order.UUID)}, Index: [2]string{digest(s.Sample)}}
	},
}

func withSample(sample string, lock store.Lock) store.Query {
	return store.Query{By: store.ByFirst, Lock: lock}.Equal(digest(sample))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// orderReservation records which order of a team has a reservation (see [Record.Reservations]).
type orderReservation struct {
	Name  string `json:"-"`
	Team  healthlab.TeamID
	User  healthlab.UserID
	Order OrderID
}

var orderReservations = store.Table[orderReservation]{Name: "order_reservation", Clear: true, Row: func(n *orderReservation) store.Row {
	return store.Row{Key: reservationKey(n.Team, n.User, n.Name)}
}}

func reservationKey(team healthlab.TeamID, user healthlab.UserID, name string) store.Key {
	return store.Key{Team: team, User: user, ID: digest(name)}
}

// transactionRow is locked by each change of an order of the transaction.
type transactionRow struct {
	Team healthlab.TeamID
	ID   TransactionID
}

var orderTransactions = store.Table[transactionRow]{Name: "order_transaction", Clear: true, Row: func(t *transactionRow) store.Row {
	return store.Row{Key: transactionKey(t.Team, t.ID)}
}}

func transactionKey(team healthlab.TeamID, id TransactionID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

// orderWork has the times of one kind of background work on an order. The order may be claimed once Due has come by the
// caller's clock and Lease has ended by the store's clock.
type orderWork struct {
	Team       healthlab.TeamID
	User       healthlab.UserID
	Order      OrderID
	Due, Lease time.Time
}

type workTable struct {
	store.Table[orderWork]
	// times returns pointers to the two fields of r that hold the due time and the lease of this kind of work.
	times func(r *Record) (due, lease *time.Time)
}

func newWorkTable(name string, times func(r *Record) (due, lease *time.Time)) *workTable {
	return &workTable{times: times, Table: store.Table[orderWork]{Name: name, Clear: true, Row: func(w *orderWork) store.Row {
		key := orderKey(w.Team, w.Order)
		key.User = w.User
		return store.Row{Key: key, Due: w.Due}
	}}}
}

var (
	labWork = newWorkTable("order_lab_work", func(r *Record) (due, lease *time.Time) {
		return &r.Lab.Due, &r.Lab.Lease
	})
	notificationWork = newWorkTable("order_notification_work", func(r *Record) (due, lease *time.Time) {
		return &r.Notifications.Due, &r.Notifications.Lease
	})
	visitWork = newWorkTable("order_visit_work", func(r *Record) (due, lease *time.Time) {
		return &r.VisitWork.Due, &r.VisitWork.Lease
	})
	simulationWork = newWorkTable("order_simulation_work", func(r *Record) (due, lease *time.Time) {
		return &r.SimulationWork.Due, &r.SimulationWork.Lease
	})
	allWork = [...]*workTable{labWork, notificationWork, visitWork, simulationWork}
)

// labFeed is the feed of a laboratory's messages: the cursor at which reading continues, and the end of the lease of
// the process that reads.
type labFeed struct {
	Lab, Cursor string
	Until       time.Time
}

var labFeeds = store.Table[labFeed]{Name: "order_feed", Row: func(f *labFeed) store.Row {
	return store.Row{Key: feedKey(f.Lab)}
}}

func feedKey(lab string) store.Key { return store.Key{ID: digest(lab)} }

func (o *StoreOptions) newUser(u store.UserState, what string) error {
	if u.Known && !u.Live || !u.Known && !o.UsersElsewhere {
		return fmt.Errorf("%w: the user of the %s does not exist", healthlab.NotFound, what)
	}
	return nil
}

// PlacedFor returns the user of an order; zero if the team has no such order. Packages that store rows about an
// order call it in the transaction in which they write them.
func PlacedFor(tx store.Tx, team healthlab.TeamID, id OrderID) (healthlab.UserID, error) {
	name, err := orderNames.Get(tx, store.Key{ID: nameOfID(id)}, store.Shared)
	if err != nil || name == nil || name.Value.Team != team {
		return healthlab.UserID{}, err
	}
	return name.Value.User, nil
}

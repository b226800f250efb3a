package orders

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/store"
)

// NewStore returns a Store over a store whose tables must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) interface {
	Store
	VisitStore
} {
	return newOrderRows(s, opts)
}

func newOrderRows(s store.Store, opts *StoreOptions) orderRows {
	v := orderRows{s: s, ids: &eventIDBlocks{}}
	if opts != nil {
		v.opts = *opts
	}
	return v
}

// orderRows implements [Store] and [VisitStore].
type orderRows struct {
	s    store.Store
	opts StoreOptions
	ids  *eventIDBlocks
}

// reader runs queries, in a transaction or outside of one.
type reader func(q ...store.Query) ([][]store.Row, error)

func (v orderRows) reader(ctx context.Context) reader {
	return func(q ...store.Query) ([][]store.Row, error) { return v.s.Read(ctx, q...) }
}

func errNoOrder() error { return fmt.Errorf("%w: the team has no such order", healthlab.NotFound) }

// Get implements [Store].
func (v orderRows) Get(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error) {
	return loadOrder(v.reader(ctx), team, id)
}

// loadOrder reads an order, with the fields that are computed at each read.
func loadOrder(read reader, team healthlab.TeamID, id OrderID) (Record, error) {
	list, err := loadOrders(read, orderKey(team, id))
	if err != nil {
		return Record{}, err
	}
	if len(list) == 0 {
		return Record{}, errNoOrder()
	}
	return list[0], nil
}

// loadOrders returns the orders with the given keys, in the order of the keys, with the fields that are computed at
// each read. Orders that do not exist are left out. All orders of one transaction are from one snapshot.
func loadOrders(read reader, keys ...store.Key) ([]Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ask := make([]store.Query, len(keys))
	for i, k := range keys {
		ask[i] = store.Query{Key: orderTable.Key(k), Lock: store.Plain, Bare: true}
	}
	rows, err := read(ask...)
	if err != nil {
		return nil, err
	}
	var places []orderPlace
	for _, r := range slices.Concat(rows...) {
		places = append(places, orderPlace{r.Team, idOfOrder(r.ID), r.User, transactionOf(&r)})
	}
	return loadOrdersOf(read, places)
}

// orderPlace has the ids with which an order's computed fields are read: team, user, order and transaction. A kit may
// be registered for another user after orderPlace was read.
type orderPlace struct {
	team        healthlab.TeamID
	id          OrderID
	user        healthlab.UserID
	transaction TransactionID
}

func transactionOf(r *store.Row) TransactionID {
	return TransactionID{store.ParseUUID(r.Index[1][:len(uuid.UUID{})])}
}

// loadOrdersOf does what loadOrders does, for orders whose ids are known.
func loadOrdersOf(read reader, places []orderPlace) ([]Record, error) {
	if len(places) == 0 {
		return nil, nil
	}
	ask := make([]store.Query, 0, 3*len(places)) // two for each order, then one for each user
	users := make([]teamUser, 0, len(places))
	for _, p := range places {
		ask = append(ask, transactionQuery(p.team, p.transaction), critical.OfOrder(p.team, p.id.UUID).Unlocked())
		users = append(users, teamUser{p.team, p.user})
	}
	deleted := deletedUsers{}
	asked := deleted.unknown(users)
	rows, err := read(append(ask, userQueries(asked)...)...)
	if err != nil {
		return nil, err
	}
	deleted.learn(asked, rows[len(ask):])
	var inTransactions [][]store.Row
	histories := make([][]critical.OrderEntry, len(places))
	for i := range places {
		inTransactions = append(inTransactions, rows[2*i])
		if histories[i], err = critical.HistoryOf(rows[2*i+1]); err != nil {
			return nil, err
		}
	}
	members, err := orderTable.Decoded(slices.Concat(inTransactions...))
	if err != nil {
		return nil, err
	}
	users = users[:0]
	for _, m := range members {
		users = append(users, userOf(&m.Value))
	}
	if asked = deleted.unknown(users); len(asked) > 0 { // of other persons in the transactions
		if rows, err = read(userQueries(asked)...); err != nil {
			return nil, err
		}
		deleted.learn(asked, rows)
	}
	var out []Record
	for i, p := range places {
		n := len(inTransactions[i])
		if r, ok := computeOrder(p.id, members[:n], deleted); ok {
			r.CriticalHistory = histories[i]
			out = append(out, r)
		}
		members = members[n:]
	}
	return out, nil
}

// computeOrder returns the order id of a transaction with the fields that are computed at each read. members are all
// orders of the transaction. False if the order is not among them.
func computeOrder(id OrderID, members []*store.Entry[Record], deleted deletedUsers) (Record, bool) {
	at := -1
	list := []TransactionMember{}
	for i, m := range members {
		if m.Value.ID == id {
			at = i
		}
		if m.Value.ID == id || !deleted[userOf(&m.Value)] {
			list = append(list, m.Value.Member())
		}
	}
	if at < 0 {
		return Record{}, false
	}
	r := members[at].Value
	r.OrderTransaction = NewTransaction(r.OrderTransaction.ID, list)
	r.LabTest.Fill()
	r.UserDeleted = deleted[userOf(&r)]
	return r, true
}

type teamUser struct {
	team healthlab.TeamID
	user healthlab.UserID
}

func userOf(r *Record) teamUser { return teamUser{r.TeamID, r.UserID} }

// deletedUsers maps a user to whether the user is deleted.
type deletedUsers map[teamUser]bool

// unknown returns those of the given users that are not in d, without duplicates.
func (d deletedUsers) unknown(users []teamUser) (out []teamUser) {
	for _, u := range users {
		if _, known := d[u]; !known && !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

func (d deletedUsers) learn(users []teamUser, answers [][]store.Row) {
	for i, u := range users {
		state := store.StateOf(answers[i])
		d[u] = state.Known && !state.Live
	}
}

func userQueries(users []teamUser) []store.Query {
	ask := make([]store.Query, len(users))
	for i, u := range users {
		ask[i] = store.User(u.team, u.user).Unlocked()
	}
	return ask
}

// newOrderQueries returns the reads for placing an order of a user, with their locks.
func newOrderQueries(team healthlab.TeamID, user healthlab.UserID, ids planned) []store.Query {
	return []store.Query{
		store.User(team, user),
		orderTable.One(orderKey(team, ids.order), store.Plain), // an order that already has the id
		orderNames.One(store.Key{ID: nameOfID(ids.order)}, store.Held),
		orderTransactions.One(transactionKey(team, ids.transaction), store.Held),
		transactionQuery(team, ids.transaction),
		critical.OfOrder(team, ids.order.UUID).Unlocked(),
	}
}

func transactionQuery(team healthlab.TeamID, id TransactionID) store.Query {
	prefix := store.UUID(id.UUID)
	return store.Query{Key: orderTable.Key(store.Key{Team: team}), By: store.BySecond, From: prefix, To: store.End(prefix), Lock: store.Plain}
}

// Insert implements [Store].
func (v orderRows) Insert(ctx context.Context, r Record, change Change) (out Record, err error) {
	if err := checkNewOrder(&r); err != nil {
		return Record{}, err
	}
	err = v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		w := &orderWriter{tx: tx, opts: &v.opts, ids: v.ids, team: r.TeamID}
		made, err := w.add(r)
		if err != nil {
			return err
		}
		if err := w.setChangeFields(); err != nil {
			return err
		}
		events, err := change(&made.Record)
		if err != nil {
			return err
		}
		if err := w.write(ctx, events); err != nil {
			return err
		}
		out, err = loadOrder(tx.Read, r.TeamID, r.ID)
		return err
	})
	return out, err
}

// InsertAfter implements [Store].
func (v orderRows) InsertAfter(ctx context.Context, parent OrderID, child Record, change PairChange) (outParent, outChild Record, err error) {
	if err := checkNewOrder(&child); err != nil {
		return Record{}, Record{}, err
	}
	err = v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		w := &orderWriter{tx: tx, opts: &v.opts, ids: v.ids, team: child.TeamID}
		p, err := w.load(parent)
		if err != nil {
			return err
		}
		c, err := w.addAfter(p, child)
		if err != nil {
			return err
		}
		if err := w.setChangeFields(); err != nil {
			return err
		}
		events, err := change(&p.Record, &c.Record)
		if err != nil {
			return err
		}
		if !c.OrderTransaction.ID.IsZero() {
			c.was.transaction = c.OrderTransaction.ID // change may have given the child a transaction of its own
		}
		if err := w.write(ctx, events); err != nil {
			return err
		}
		if outParent, err = loadOrder(tx.Read, child.TeamID, parent); err != nil {
			return err
		}
		outChild, err = loadOrder(tx.Read, child.TeamID, child.ID)
		return err
	})
	return outParent, outChild, err
}

// Update implements [Store].
func (v orderRows) Update(ctx context.Context, team healthlab.TeamID, id OrderID, change Change) (out Record, err error) {
	err = v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		w := &orderWriter{tx: tx, opts: &v.opts, ids: v.ids, team: team}
		r, err := w.load(id)
		if err != nil {
			return err
		}
		if err := w.setChangeFields(); err != nil {
			return err
		}
		events, err := change(&r.Record)
		if err != nil {
			return err
		}
		if err := w.write(ctx, events); err != nil {
			return err
		}
		out, err = loadOrder(tx.Read, team, id)
		return err
	})
	return out, err
}

func checkNewOrder(r *Record) error {
	if r.TeamID.IsZero() || r.ID.IsZero() {
		return fmt.Errorf("%w: order: the team and the id must be set", healthlab.Invalid)
	}
	return nil
}

// orderWriter writes orders of one team in a transaction. Call load, add or addAfter for each order, then
// setChangeFields, then change the returned edits, then call write.
type orderWriter struct {
	tx     store.Tx
	opts   *StoreOptions
	ids    *eventIDBlocks
	team   healthlab.TeamID
	drawn  drawnIDs
	orders []*orderEdit
}

// orderEdit is an order while a change edits it.
type orderEdit struct {
	Record
	entry    store.Entry[Record] // the stored row; without a revision for a new order
	was      orderIdentity
	revision int64
	work     [len(allWork)]*store.Entry[orderWork]
}

// orderIdentity has the fields that no change may change.
type orderIdentity struct {
	team        healthlab.TeamID
	id          OrderID
	transaction TransactionID
}

func identityOf(r *Record) orderIdentity {
	return orderIdentity{r.TeamID, r.ID, r.OrderTransaction.ID}
}

// load reads an existing order for a change, and locks its transaction.
func (w *orderWriter) load(id OrderID) (*orderEdit, error) {
	key := orderKey(w.team, id)
	ask := []store.Query{orderTable.One(key, store.Held)}
	for _, t := range allWork {
		ask = append(ask, t.One(key, store.Held))
	}
	got, err := w.tx.Read(ask...)
	if err != nil {
		return nil, err
	}
	stored, err := orderTable.DecodedOne(got[0])
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, errNoOrder()
	}
	e := &orderEdit{entry: *stored, revision: stored.Value.Revision}
	for i, t := range allWork {
		if e.work[i], err = t.DecodedOne(got[1+i]); err != nil {
			return nil, err
		}
	}
	was := &e.entry.Value
	_, err = w.tx.Read(orderTransactions.One(transactionKey(w.team, was.OrderTransaction.ID), store.Held),
		store.User(w.team, was.UserID))
	if err != nil {
		return nil, err
	}
	if e.Record, err = loadOrder(w.tx.Read, w.team, id); err != nil {
		return nil, err
	}
	e.was = identityOf(&e.Record)
	w.orders = append(w.orders, e)
	return e, nil
}

// add adds a new order of a live user.
func (w *orderWriter) add(r Record) (*orderEdit, error) {
	e, user, err := w.addNew(r)
	if err != nil {
		return nil, err
	}
	return e, w.opts.newUser(user, "order")
}

// addAfter adds a new order to the transaction of another one. The user of the new order may be deleted.
func (w *orderWriter) addAfter(parent *orderEdit, child Record) (*orderEdit, error) {
	child.OrderTransaction = NewTransaction(parent.OrderTransaction.ID, append(slices.Clone(parent.OrderTransaction.Orders),
		TransactionMember{ID: child.ID, Origin: child.Origin, ParentID: &parent.ID, CreatedAt: child.CreatedAt, UpdatedAt: child.CreatedAt}))
	e, user, err := w.addNew(child)
	if err == nil && !user.Known {
		err = w.opts.newUser(user, "order")
	}
	return e, err
}

// addNew adds a new order to w, and returns its edit and the state of its user. Conflict if an order with the id
// exists.
func (w *orderWriter) addNew(r Record) (*orderEdit, store.UserState, error) {
	got, err := w.tx.Read(store.User(w.team, r.UserID), orderNames.One(store.Key{ID: nameOfID(r.ID)}, store.Held))
	if err != nil {
		return nil, store.UserState{}, err
	}
	if len(got[1]) > 0 {
		return nil, store.UserState{}, fmt.Errorf("%w: an order with this id exists", healthlab.Conflict)
	}
	r.Revision = 0
	e := &orderEdit{Record: r, was: identityOf(&r)}
	w.orders = append(w.orders, e)
	return e, store.StateOf(got[0]), nil
}

// setChangeFields sets the fields that a change reads, NextEventID and StoreTime, in each order of w.
func (w *orderWriter) setChangeFields() error {
	last := int64(0)
	for _, e := range w.orders {
		last = max(last, e.LastEvent.ID)
	}
	var err error
	if w.drawn, err = w.ids.draw(w.tx, w.team, int64(len(w.orders))*eventRoom, last); err != nil {
		return err
	}
	for i, e := range w.orders {
		e.NextEventID, e.StoreTime = w.drawn.first+int64(i)*eventRoom, w.tx.Now()
	}
	return nil
}

// write writes the changed orders and their events.
func (w *orderWriter) write(ctx context.Context, events []healthlab.Event) error {
	if len(w.orders) == 0 {
		return store.AppendEvents(ctx, w.opts.Events, w.tx, events)
	}
	next := w.drawn.first
	for _, e := range w.orders {
		if identityOf(&e.Record) != e.was {
			return fmt.Errorf("%w: order: an update must not change its id, team or transaction", healthlab.Invalid)
		}
		if err := w.writeOrder(e); err != nil {
			return err
		}
		next = max(next, e.LastEvent.ID+1)
	}
	w.ids.returnUnused(w.drawn, next)
	if err := store.AppendEvents(ctx, w.opts.Events, w.tx, events); err != nil {
		return err
	}
	for _, e := range w.orders {
		was, r := &e.entry.Value, &e.Record
		moved := e.entry.Revision != 0 && was.UserID != r.UserID
		if !moved && (r.Results == nil || reflect.DeepEqual(was.Results, r.Results)) {
			continue
		}
		if err := critical.Follow(ctx, w.tx, w.opts.Events, r.criticalReport()); err != nil {
			return err
		}
	}
	return nil
}

func (w *orderWriter) writeOrder(e *orderEdit) error {
	r := &e.Record
	r.Revision = e.revision + 1
	r.CriticalHistory = nil
	me := r.Member()
	r.OrderTransaction = OrderTransaction{ID: r.OrderTransaction.ID, Orders: []TransactionMember{me}}
	for _, t := range allWork {
		due, lease := t.times(r)
		*due, *lease = healthlab.At(*due).Time, healthlab.At(*lease).Time
	}
	was := &e.entry.Value
	switch {
	case e.entry.Revision != 0 && was.UserID != r.UserID:
		if err := w.writeNameUser(r); err != nil {
			return err
		}
	case e.entry.Revision == 0:
		if err := w.lockTransaction(r.OrderTransaction.ID); err != nil {
			return err
		}
		if err := orderNames.Insert(w.tx, &orderName{nameOfID(r.ID), r.TeamID, r.UserID, r.ID}); err != nil {
			return err
		}
	}
	if err := w.writeSample(was, r); err != nil {
		return err
	}
	if err := w.writeReservations(was, r); err != nil {
		return err
	}
	for i, t := range allWork {
		if err := t.write(w.tx, e.work[i], r); err != nil {
			return err
		}
	}
	return orderTable.Put(w.tx, &store.Entry[Record]{Value: *r, Revision: e.entry.Revision})
}

// lockTransaction locks the row of a new order's transaction, and inserts it if it does not exist.
func (w *orderWriter) lockTransaction(id TransactionID) error {
	t, err := orderTransactions.Get(w.tx, transactionKey(w.team, id), store.Held)
	if err != nil || t != nil {
		return err
	}
	return orderTransactions.Insert(w.tx, &transactionRow{w.team, id})
}

// writeNameUser writes the user of r to its row in orderNames, after a kit was registered for another user.
func (w *orderWriter) writeNameUser(r *Record) error {
	got, err := w.tx.Read(store.User(w.team, r.UserID),
		orderNames.One(store.Key{ID: nameOfID(r.ID)}, store.Held))
	if err != nil {
		return err
	}
	if u := store.StateOf(got[0]); !u.Known {
		if err := w.opts.newUser(u, "order"); err != nil {
			return err
		}
	}
	name, err := orderNames.DecodedOne(got[1])
	if err != nil || name == nil {
		return err
	}
	name.Value.Name, name.Value.User = nameOfID(r.ID), r.UserID
	return orderNames.Put(w.tx, name)
}

// writeSample deletes the order's old sample id and inserts its present one.
func (w *orderWriter) writeSample(was, r *Record) error {
	if was.SampleID != nil && r.SampleID != nil && *was.SampleID == *r.SampleID && was.UserID == r.UserID {
		return nil
	}
	if was.SampleID == nil && r.SampleID == nil {
		return nil
	}
	e, err := orderSamples.Get(w.tx, store.Key{ID: store.UUID(r.ID.UUID)}, store.Held)
	switch {
	case err != nil:
		return err
	case r.SampleID == nil && e == nil:
		return nil
	case r.SampleID == nil:
		orderSamples.Delete(w.tx, e)
		return nil
	case e == nil:
		e = &store.Entry[orderSample]{}
	}
	found, err := orderSamples.Find(w.tx, withSample(*r.SampleID, store.Held))
	if err != nil {
		return err
	}
	if len(found) > 0 && found[0].Value.Order != r.ID {
		return fmt.Errorf("%w: another order has this sample id", healthlab.Conflict)
	}
	e.Value = orderSample{r.TeamID, r.UserID, r.ID, *r.SampleID}
	return orderSamples.Put(w.tx, e)
}

// writeReservations inserts and deletes rows so that they are the Reservations of r. before is the stored record: its
// reservations that r lacks are deleted.
func (w *orderWriter) writeReservations(before, r *Record) error {
	was, want := before.Reservations(), r.Reservations()
	var names []string // names of reservations to insert or delete, without duplicates
	for _, name := range slices.Concat(was, want) {
		changes := before.UserID != r.UserID || slices.Contains(was, name) != slices.Contains(want, name)
		if changes && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	ask := make([]store.Query, len(names))
	for i, name := range names {
		ask[i] = orderReservations.One(reservationKey(w.team, r.UserID, name), store.Held)
	}
	got, err := w.tx.Read(ask...)
	if err != nil {
		return err
	}
	for i, name := range names {
		if slices.Contains(was, name) {
			w.tx.Delete(ask[i].Key)
		} else if len(got[i]) > 0 {
			return &ReservedError{Name: name}
		}
		if !slices.Contains(want, name) {
			continue
		}
		if err := orderReservations.Insert(w.tx, &orderReservation{name, r.TeamID, r.UserID, r.ID}); err != nil {
			return err
		}
	}
	return nil
}

// write stores the due time and the lease of r in its row; it deletes the row if no work is due. stored is the existing
// row, nil for none.
func (t *workTable) write(tx store.Tx, stored *store.Entry[orderWork], r *Record) error {
	due, lease := t.times(r)
	if due.IsZero() {
		if stored != nil {
			t.Delete(tx, stored)
		}
		return nil
	}
	if stored == nil {
		stored = &store.Entry[orderWork]{}
	}
	next := orderWork{r.TeamID, r.UserID, r.ID, *due, *lease}
	if stored.Revision != 0 && stored.Value.User == r.UserID && stored.Value.Due.Equal(*due) && stored.Value.Lease.Equal(*lease) {
		return nil
	}
	stored.Value = next
	return t.Put(tx, stored)
}

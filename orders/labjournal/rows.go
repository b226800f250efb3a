package labjournal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// journal is the row with the highest places of a laboratory's deliveries and messages. A transaction that adds a
// delivery locks this row.
type journal struct {
	Lab            string
	Place, Message int64
}

var journals = store.Table[journal]{Name: "lab_journal", Clear: true, Row: func(j *journal) store.Row {
	return store.Row{Key: journalKey(j.Lab)}
}}

func journalKey(lab string) store.Key { return store.Key{ID: digest(lab)} }

// digest returns the SHA-256 hash of texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		h.Write([]byte(store.Text(text)))
	}
	return string(h.Sum(nil))
}

func placeID(lab string, place int64) string { return digest(lab) + store.Int(place) }

// owned has the team and the user of the row with the same ID in another table. It is needed because callers know only
// the laboratory and the number, key or place of that row.
type owned struct {
	ID   string `json:"-"`
	Team healthlab.TeamID
	User healthlab.UserID
}

func ownedTable(name string) store.Table[owned] {
	return store.Table[owned]{Name: name, Clear: true, Decode: decodeOwned, Row: func(o *owned) store.Row {
		return store.Row{Key: store.Key{User: o.User, ID: o.ID}}
	}}
}

func decodeOwned(r store.Row, o *owned) error {
	o.ID = r.ID
	return json.Unmarshal(r.Doc, o)
}

func (o *owned) key() store.Key { return store.Key{Team: o.Team, User: o.User, ID: o.ID} }

// Records are found by laboratory and number.
var (
	recordOwners = ownedTable("lab_record_owner")
	recordRows   = store.Table[recordRow]{Name: "lab_record", Row: func(r *recordRow) store.Row {
		return store.Row{Key: store.Key{Team: r.Team, User: r.User, ID: digest(r.Lab, r.Number)}}
	}}
)

type recordRow struct {
	Lab string
	Record
}

// Deliveries are found by laboratory and key. Index[0] is the order's number, then the place; empty for a
// delivery without an order.
var (
	deliveryOwners = ownedTable("lab_delivery_owner")
	deliveryRows   = store.Table[deliveryRow]{Name: "lab_delivery", Row: func(d *deliveryRow) store.Row {
		r := store.Row{Key: store.Key{Team: d.Team, User: d.User, ID: digest(d.Lab, d.Delivery.Key)}}
		if d.Number != "" {
			r.Index[0] = digest(d.Lab, d.Number) + store.Int(d.Place)
		}
		return r
	}}
)

// deliveryRow is a delivery with the number of its order.
type deliveryRow struct {
	Lab      string
	Number   string // number of the order; empty if the delivery is under review or belongs to no order
	Team     healthlab.TeamID
	User     healthlab.UserID
	Place    int64
	Delivery Delivery
}

// reviewed is the row of a delivery that is under review, found by laboratory and place.
type reviewed struct {
	Lab   string
	Place int64
	Team  healthlab.TeamID
	Key   string
}

var reviewRows = store.Table[reviewed]{Name: "lab_review", Row: func(r *reviewed) store.Row {
	return store.Row{Key: store.Key{ID: placeID(r.Lab, r.Place)}}
}}

// Messages are read by laboratory and place. The first index of messageOwners lists only messages about unknown
// persons, by place, because a read message of these is deleted.
var (
	messageOwners = store.Table[owned]{Name: "lab_message_owner", Clear: true, Decode: decodeOwned, Row: func(o *owned) store.Row {
		r := store.Row{Key: store.Key{User: o.User, ID: o.ID}}
		if o.User.IsZero() {
			r.Index[0] = o.ID
		}
		return r
	}}
	messageRows = store.Table[messageRow]{Name: "lab_message", Row: func(m *messageRow) store.Row {
		return store.Row{Key: store.Key{Team: m.Team, User: m.User, ID: placeID(m.Lab, m.Place)}}
	}}
)

type messageRow struct {
	Lab string
	Entry
}

// Tables declares the tables of [NewStore].
func Tables() []store.Definition {
	return []store.Definition{
		journals.Definition(), recordOwners.Definition(), recordRows.Definition(), deliveryOwners.Definition(),
		deliveryRows.Definition(), reviewRows.Definition(), messageOwners.Definition(), messageRows.Definition(),
	}
}

// StoreOptions are the options of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// UsersElsewhere is true if the host stores its users outside of the store. Default false: a record of a
	// user without a row in the store is refused with healthlab.NotFound, and a message about such a user is
	// left out, because the user was erased.
	UsersElsewhere bool
}

// NewStore returns a Store over a store whose tables must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) Store {
	v := rows{s: s}
	if opts != nil {
		v.opts = *opts
	}
	return v
}

type rows struct {
	s    store.Store
	opts StoreOptions
}

func errNoRecord() error {
	return fmt.Errorf("%w: the laboratory journal has no such order", healthlab.NotFound)
}

// lockUser locks a user, and reports whether the store may add rows of the user: false for an unknown or erased user,
// unless users are stored elsewhere ([StoreOptions].UsersElsewhere). Call it before adding rows of the user. A zero
// user is always allowed.
func (v rows) lockUser(tx store.Tx, team healthlab.TeamID, user healthlab.UserID) (bool, error) {
	if user.IsZero() {
		return true, nil
	}
	u, err := store.LockUser(tx, team, user)
	return u.Known || v.opts.UsersElsewhere, err
}

// Open implements [Store].
func (v rows) Open(ctx context.Context, lab string, r Record) (out Record, err error) {
	if err := checkNames(lab, "Record.Number", r.Number); err != nil {
		return Record{}, err
	}
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := recordOf(tx, lab, r.Number, store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			known, err := v.lockUser(tx, r.Team, r.User)
			if err != nil {
				return err
			}
			if !known {
				return fmt.Errorf("%w: the user of the order does not exist", healthlab.NotFound)
			}
			if err := recordOwners.Insert(tx, &owned{digest(lab, r.Number), r.Team, r.User}); err != nil {
				return err
			}
			if err := recordRows.Insert(tx, &recordRow{lab, r}); err != nil {
				return err
			}
			if e, err = recordOf(tx, lab, r.Number, store.Held); err != nil {
				return err
			}
		}
		out = e.Value.Record
		return nil
	})
	return out, err
}

// recordOf returns the record of an order number, read with the given lock; nil if there is none.
func recordOf(tx store.Tx, lab, number string, lock store.Lock) (*store.Entry[recordRow], error) {
	owner, err := recordOwners.Get(tx, store.Key{ID: digest(lab, number)}, lock)
	if err != nil || owner == nil {
		return nil, err
	}
	return recordRows.Get(tx, owner.Value.key(), lock)
}

// Record implements [Store].
func (v rows) Record(ctx context.Context, lab, number string) (Record, error) {
	if err := checkNames(lab, "the number of the record", number); err != nil {
		return Record{}, err
	}
	owner, err := recordOwners.LookOne(ctx, v.s, recordOwners.Key(store.Key{ID: digest(lab, number)}))
	if err != nil {
		return Record{}, err
	}
	if owner == nil {
		return Record{}, errNoRecord()
	}
	r, err := recordRows.LookOne(ctx, v.s, recordRows.Key(owner.Value.key()))
	if err != nil {
		return Record{}, err
	}
	if r == nil {
		return Record{}, errNoRecord()
	}
	return r.Value.Record, nil
}

// Take implements [Store].
func (v rows) Take(ctx context.Context, lab string, d Delivery, numbers []string, change Change) (fresh bool, err error) {
	if err := checkNames(lab, "Delivery.Key", d.Key, numbers...); err != nil {
		return false, err
	}
	err = v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		fresh = false
		head, err := journals.Get(tx, journalKey(lab), store.Held)
		if err != nil {
			return err
		}
		if head == nil {
			head = &store.Entry[journal]{Value: journal{Lab: lab}}
		}
		known, err := deliveryOwners.Get(tx, store.Key{ID: digest(lab, d.Key)}, store.Held)
		if err != nil || known != nil {
			return err
		}
		if d.Resolves != 0 {
			if err := resolve(tx, lab, d.Resolves); err != nil {
				return err
			}
		}
		fresh = true
		t := taking{rows: v, tx: tx, lab: lab, head: &head.Value}
		if err := t.apply(d, numbers, change); err != nil {
			return err
		}
		return journals.Put(tx, head)
	})
	return fresh && err == nil, err
}

// resolve ends the review of the delivery with the given place, and deletes its raw message. The key stays stored, so
// that a repeated message has no effect. NotFound if the delivery is not under review.
func resolve(tx store.Tx, lab string, place int64) error {
	r, err := reviewRows.Get(tx, store.Key{ID: placeID(lab, place)}, store.Held)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("%w: no delivery with the place %d is under review", healthlab.NotFound, place)
	}
	d, err := deliveryRows.Get(tx, store.Key{Team: r.Value.Team, ID: digest(lab, r.Value.Key)}, store.Held)
	if err != nil {
		return err
	}
	if d != nil {
		d.Value.Delivery.Review, d.Value.Delivery.Raw = "", nil
		if err := deliveryRows.Put(tx, d); err != nil {
			return err
		}
	}
	reviewRows.Delete(tx, r)
	return nil
}

// taking is the state of a transaction that stores one delivery of a laboratory.
type taking struct {
	rows
	tx   store.Tx
	lab  string
	head *journal
}

func (t *taking) apply(d Delivery, numbers []string, change Change) error {
	stored := map[string]*store.Entry[recordRow]{}
	found := map[string]*Record{}
	for _, number := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		e, err := recordOf(t.tx, t.lab, number, store.Held)
		if err != nil {
			return err
		}
		if e != nil {
			stored[number] = e
			r := e.Value.Record
			found[number] = &r
		}
	}
	out, err := change(found)
	if err != nil {
		return err
	}
	for number, e := range stored {
		if r := found[number]; r != nil {
			e.Value.Doc = r.Doc // change may edit the Doc only
		}
		if err := recordRows.Put(t.tx, e); err != nil {
			return err
		}
	}
	for _, m := range out.Messages {
		if err := t.addMessage(m); err != nil {
			return err
		}
	}
	t.head.Place++
	kept := deliveryRow{Lab: t.lab, Team: d.Team, Place: t.head.Place, Delivery: d}
	kept.Delivery.Place, kept.Delivery.At, kept.Delivery.Review, kept.Delivery.Resolves = t.head.Place, healthlab.At(d.At).Time, out.Review, 0
	if owner := ownerOf(found, numbers, out.Review); owner != nil {
		r := stored[owner.Number].Value
		kept.Number, kept.Team, kept.User = r.Number, r.Team, r.User
	} else if out.Review == "" {
		kept.Delivery.Raw = nil
	}
	return t.addDelivery(&kept)
}

func (t *taking) addMessage(m Message) error {
	known, err := t.lockUser(t.tx, m.Team, m.User)
	if err != nil || !known {
		return err
	}
	t.head.Message++
	row := messageRow{t.lab, Entry{t.head.Message, m}}
	if err := messageRows.Insert(t.tx, &row); err != nil {
		return err
	}
	return messageOwners.Insert(t.tx, &owned{placeID(t.lab, row.Place), m.Team, m.User})
}

func (t *taking) addDelivery(d *deliveryRow) error {
	if _, err := t.lockUser(t.tx, d.Team, d.User); err != nil {
		return err
	}
	id := digest(t.lab, d.Delivery.Key)
	if d.Delivery.Review != "" {
		if err := reviewRows.Insert(t.tx, &reviewed{t.lab, d.Place, d.Team, d.Delivery.Key}); err != nil {
			return err
		}
	}
	if err := deliveryOwners.Insert(t.tx, &owned{id, d.Team, d.User}); err != nil {
		return err
	}
	return deliveryRows.Insert(t.tx, d)
}

// Deliveries implements [Store].
func (v rows) Deliveries(ctx context.Context, lab, number string) ([]Delivery, error) {
	if err := checkNames(lab, "the number of the record", number); err != nil {
		return nil, err
	}
	id := digest(lab, number)
	owner, err := recordOwners.LookOne(ctx, v.s, recordOwners.Key(store.Key{ID: id}))
	if err != nil || owner == nil {
		return nil, err
	}
	ask := store.Query{Key: store.Key{Team: owner.Value.Team}, By: store.ByFirst, From: id, To: store.End(id)}
	list, err := deliveryRows.Look(ctx, v.s, ask)
	if err != nil {
		return nil, err
	}
	var out []Delivery
	for _, e := range list {
		out = append(out, e.Value.Delivery)
	}
	return out, nil
}

// Review implements [Store].
func (v rows) Review(ctx context.Context, lab string, after int64, n int) ([]Delivery, error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	list, err := reviewRows.Look(ctx, v.s, behind(lab, after, n))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ask := make([]store.Query, len(list))
	for i, e := range list {
		ask[i] = deliveryRows.One(store.Key{Team: e.Value.Team, ID: digest(lab, e.Value.Key)}, store.Plain)
	}
	got, err := v.s.Read(ctx, ask...)
	if err != nil {
		return nil, err
	}
	var out []Delivery
	for _, rows := range got {
		d, err := deliveryRows.Decoded(rows)
		if err != nil {
			return nil, err
		}
		if len(d) > 0 && d[0].Value.Delivery.Review != "" {
			out = append(out, d[0].Value.Delivery)
		}
	}
	return out, nil
}

func behind(lab string, after int64, n int) store.Query {
	ask := store.Query{By: store.ByID, To: store.End(digest(lab))}
	return ask.After(placeID(lab, max(after, 0)), n)
}

// Feed implements [Store].
func (v rows) Feed(ctx context.Context, lab string, after int64, n int) ([]Entry, error) {
	read := store.Query{Key: messageOwners.Key(store.Key{}), By: store.ByFirst, From: digest(lab), To: placeID(lab, after) + "\x00", Limit: 1}
	got, err := v.s.Read(ctx, journals.One(journalKey(lab), store.Plain), read)
	if err != nil {
		return nil, err
	}
	head, err := journals.Decoded(got[0])
	if err != nil || len(head) == 0 {
		return nil, err
	}
	if after > head[0].Value.Message {
		after = 0
	} else if len(got[1]) > 0 {
		if err := v.deleteRead(ctx, read); err != nil {
			return nil, err
		}
	}
	var out []Entry
	for len(out) < n {
		list, err := messageOwners.Look(ctx, v.s, behind(lab, after, n-len(out)))
		if err != nil || len(list) == 0 {
			return out, err
		}
		more, err := v.messages(ctx, list)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
		after = store.ParseInt(list[len(list)-1].Value.ID[sha256.Size:])
	}
	return out, nil
}

// messages returns the messages of the given owner rows, in their order, without messages that were erased since these
// rows were read.
func (v rows) messages(ctx context.Context, owners []*store.Entry[owned]) ([]Entry, error) {
	ask := make([]store.Query, len(owners))
	for i, o := range owners {
		ask[i] = messageRows.One(o.Value.key(), store.Plain)
	}
	got, err := v.s.Read(ctx, ask...)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, rows := range got {
		list, err := messageRows.Decoded(rows)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			out = append(out, e.Value.Entry)
		}
	}
	return out, nil
}

// forgetAtOnce is the highest number of messages that one call of Feed deletes.
const forgetAtOnce = 500

// deleteRead deletes messages about unknown persons. passed is the query for those that a reader has passed.
func (v rows) deleteRead(ctx context.Context, passed store.Query) error {
	passed.Limit = forgetAtOnce
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		list, err := messageOwners.Find(tx, passed.Hold())
		for _, o := range list {
			messageOwners.Delete(tx, o)
			tx.Delete(messageRows.Key(o.Value.key()))
		}
		return err
	})
}

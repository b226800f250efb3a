package store

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store keeps rows in transactions. A host implements it for a database of its own; the suite
// of package storetest says whether an implementation keeps these promises.
//
// Both methods are safe for concurrent use. Once ctx has ended, a call returns the context's
// error and commits nothing. Rows that go in or come out share no memory with what is stored.
// Times are kept in UTC to the microsecond.
type Store interface {
	// Update runs run and commits what it put and deleted: all of it, or, if run or the commit
	// fails, nothing. An error of run is returned unchanged. An error of the connection during
	// the commit leaves the outcome unknown.
	//
	// Update may run run again after a conflict with another transaction, so run is pure: no I/O
	// and no effect other than on the Tx and on variables that each run sets anew.
	//
	// The context that run gets carries the transaction. An Update or a Read of the same Store
	// with that context joins it: its rows commit with those of the outer Update. If the inner
	// run fails, what it put is undone, and the outer run decides whether it goes on.
	Update(ctx context.Context, run func(context.Context, Tx) error) error

	// Read answers queries from one snapshot, without locks and in one trip. The answers are in
	// the order of the queries. Locks of the queries are ignored.
	Read(ctx context.Context, q ...Query) ([][]Row, error)
}

// Tx is a transaction. It belongs to one goroutine and ends with the run that got it.
//
// A rule that is about a row that the transaction does not write reads that row with the lock
// [Shared]. A rule about a range (a count, a free name that no unique index holds) is safe only
// if the transaction reads the row that names the range, such as the user or the team, with the
// lock [Held], and each transaction that writes in the range reads that row at least Shared.
//
// The lock of the row of a user (see [User]) holds where there is no such row, too, so that these
// rules work for a host that keeps its users elsewhere. Other rows that do not exist are not locked.
type Tx interface {
	// Now returns the store's clock at the begin of the transaction, in UTC to the microsecond.
	// Leases and due times count from it.
	Now() time.Time

	// Read answers queries in one trip to the engine, in the order of the queries. Rows that the
	// transaction put or deleted before are answered as it left them. A query that was answered
	// before under the same or a stronger lock costs no trip.
	Read(q ...Query) ([][]Row, error)

	// Put writes rows at the commit. A row with Revision 0 must be new; any other must have the
	// stored revision, and is stored with the next one. Put once more, it has the next one already.
	//
	// The commit fails if a rule of locks was broken: a row was read and is put without the lock
	// [Held], or a new row of a user is put and the row of the user (table [UserTable]) was not
	// read as Shared or Held. So no row of a person is added beside the erasure of the person.
	Put(r ...Row)

	// Delete removes rows at the commit. Deleting a row that does not exist is a no-op. The rule
	// for rows that were read is that of Put.
	Delete(k ...Key)

	// AfterCommit has f called once the transaction has committed, the outermost one if it was
	// joined. f must not block.
	AfterCommit(f func())
}

// UserTable is the name of the table that has one row for each user, with the ID [UserKey].
const UserTable = "user"

// UserKey returns the key of the row of a user.
func UserKey(team healthlab.TeamID, user healthlab.UserID) Key {
	return Key{Table: UserTable, Team: team, User: user, ID: UUID(user.UUID)}
}

// Key names a row. Table, Team and ID are unique together.
type Key struct {
	// Table is the name of a declared table.
	Table string
	// Team is whose row it is; zero for a row that is looked up before the team is known.
	Team healthlab.TeamID
	// User is the person whom the row is about; zero for none. The erasure of the user deletes
	// the row. A query for a row may leave it zero.
	User healthlab.UserID
	// ID is 1 to [MaxID] bytes of any value. Rows are ordered by the bytes; see [Text], [Int],
	// [Time] and [UUID].
	ID string
}

// MaxID is the greatest length of an ID and of an index value in bytes.
const MaxID = 1024

// Row is a value under its key. An engine does not look into Doc.
type Row struct {
	Key
	// Due is when background work looks at the row; zero for never.
	Due time.Time
	// Index are two more values by which the row is found within its table and team, ordered by
	// bytes; "" for none. The declaration of the table says whether a value is unique.
	Index [2]string
	// Revision counts the writes of the row; 0 for a row that is not stored yet.
	Revision int64
	// Doc is the value. It is encrypted above the engine where the value is personal.
	Doc []byte
}

// Definition declares a table to an engine.
type Definition struct {
	// Name is lower_snake and unique among the tables of a store.
	Name string
	// Unique says which values of Row.Index no two rows of one team share.
	Unique [2]bool
	// Clear says that new documents of the table are not encrypted. Encrypted ones are read, too.
	Clear bool
	// Sealed says which rows of a table that is Clear are encrypted all the same, by their ID. Nil: none.
	Sealed func(id string) bool
	// ReadClear says that documents of a table that is not Clear are read, too, if they are not
	// encrypted, because the table was Clear before.
	ReadClear bool
	// PerUser says that every row has a User, with which its ID begins (see [UUID]), and neither a Due
	// nor unique values; and that queries for a row or a range of ids name the user and are about the
	// IDs of that user. An engine may keep the rows of a user together, on a machine of their own, and
	// refuse a row or a query that breaks the rule.
	PerUser bool
	// Secret says which values of Row.Index are personal. Above the engine they are replaced by a
	// digest under the key of the team, so rows are found by equality alone (see [Query.Equal]),
	// and Row.Index of an answer has the digest.
	Secret [2]bool
}

// By says what a query goes by.
type By uint8

const (
	// ByKey finds the one row of Table, Team and ID.
	ByKey By = iota
	// ByID finds the rows of Table and Team with From <= ID < To, ordered by ID.
	ByID
	// ByFirst finds the rows of Table and Team with From <= Index[0] < To, ordered by Index[0],
	// then ID. Rows without a value are left out.
	ByFirst
	// BySecond is ByFirst for Index[1].
	BySecond
	// ByUser finds the rows of User with From <= ID < To, ordered by table, team and ID; of all
	// tables if Table is empty. Team is ignored.
	ByUser
	// ByDue finds the rows of Table, of all teams, with a Due at or before Until, ordered by
	// Due, team and ID.
	ByDue
)

// Lock says what other transactions may do to the rows of an answer before the end of this one.
type Lock uint8

const (
	// Shared rows are changed by none. It is the default.
	Shared Lock = iota
	// Held rows are changed by none and read as Shared or Held by none. A transaction holds what
	// it will put or delete.
	Held
	// Plain rows are not locked.
	Plain
	// Skip is Held without waiting: rows that another transaction has locked are left out.
	Skip
)

// Query asks for one row or for a range of rows. It is comparable.
type Query struct {
	Key
	By By
	// From (inclusive) and To (exclusive) bound the values in the order of their bytes. An empty
	// From is the lowest value; an empty To sets no bound.
	From, To string
	// Until bounds Due, inclusive.
	Until time.Time
	// Desc turns the order of the answer around.
	Desc bool
	// Limit is the greatest number of rows; 0 for all.
	Limit int
	Lock  Lock
	// Bare leaves out the documents: Doc is nil.
	Bare bool
}

// Hold returns the query with the lock [Held].
func (q Query) Hold() Query { q.Lock = Held; return q }

// Unlocked returns the query with the lock [Plain].
func (q Query) Unlocked() Query { q.Lock = Plain; return q }

// WithoutDocs returns the query with Bare.
func (q Query) WithoutDocs() Query { q.Bare = true; return q }

// After returns the query for at most n rows, without rows whose value is at or below last.
func (q Query) After(last string, n int) Query {
	if last != "" {
		q.From = last + "\x00"
	}
	q.Limit = n
	return q
}

// Equal returns the query for the rows with exactly this value.
func (q Query) Equal(value string) Query {
	q.From, q.To = value, value+"\x00"
	return q
}

// User returns the query for the row of a user.
func User(team healthlab.TeamID, user healthlab.UserID) Query {
	return Query{Key: UserKey(team, user)}
}

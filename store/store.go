package store

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores rows in transactions. A host can implement it for its own database; the suite of package
// storetest tests an implementation.
//
// Both methods are safe for concurrent use. Once ctx has ended, a call returns the context's error and commits
// nothing. Arguments and results share no memory with stored rows. Times are kept in UTC to the microsecond.
type Store interface {
	// Update calls run and commits its writes: all of them, or, if run or the commit fails, none. An error of
	// run is returned unchanged. After an error of the connection during the commit the outcome is unknown.
	//
	// Update may call run again after a conflict with another transaction, so run must be pure: no I/O and no
	// effect other than on the Tx and on variables that each run sets anew.
	//
	// The context of run has the transaction. An Update or a Read of the same Store with that context joins it:
	// its rows commit with those of the outer Update. If the inner run fails, its writes are undone, and the
	// outer run decides whether to continue.
	Update(ctx context.Context, run func(context.Context, Tx) error) error

	// Read answers queries from one snapshot, without locks and in one round trip. The answers are in the order
	// of the queries. Locks of the queries are ignored.
	Read(ctx context.Context, q ...Query) ([][]Row, error)
}

// Tx is a transaction. It must be used by one goroutine and ends with its run.
//
// Two rules make business rules safe under concurrency. A rule about a row that the transaction does not write
// must read that row with the lock [Shared]. A rule about a range (a count, a free name without a unique index)
// must read the row that stands for the range, such as the user or the team, with the lock [Held], and each
// transaction that writes in the range must read that row at least Shared.
//
// The row of a user (see [User]) can be locked even if it does not exist, so that these rules work for a host
// that stores its users elsewhere. Other missing rows are not locked.
type Tx interface {
	// Now returns the store's clock at the start of the transaction, in UTC to the microsecond. Leases and due
	// times count from it.
	Now() time.Time

	// Read answers queries in one round trip to the engine, in the order of the queries. The answers include
	// the transaction's own writes. A query that was answered before under the same or a stronger lock costs no
	// round trip.
	Read(q ...Query) ([][]Row, error)

	// Put writes rows at the commit. A row with Revision 0 must be new; any other must have the stored
	// revision, and is stored with the next one. A row that is put twice has the next revision after the first
	// Put.
	//
	// The commit fails if a rule of locks was broken: a row was read and is put without the lock [Held], or a
	// new row of a user is put and the row of the user (table [UserTable]) was not read as Shared or Held. So
	// no row of a person can be added during the erasure of the person.
	Put(r ...Row)

	// Delete removes rows at the commit. Deleting a missing row is a no-op. The rule of Put for rows that were
	// read applies here too.
	Delete(k ...Key)

	// AfterCommit calls f after the transaction has committed; after the outermost commit if it was joined. f
	// must not block.
	AfterCommit(f func())
}

// UserTable is the name of the table that has one row for each user, with the ID [UserKey].
const UserTable = "user"

// UserKey returns the key of the row of a user.
func UserKey(team healthlab.TeamID, user healthlab.UserID) Key {
	return Key{Table: UserTable, Team: team, User: user, ID: UUID(user.UUID)}
}

// Key identifies a row. Table, Team and ID are unique together.
type Key struct {
	// Table is the name of a declared table.
	Table string
	// Team is the team of the row; zero for a row that is looked up before the team is known.
	Team healthlab.TeamID
	// User is the person that the row is about; zero for none. The erasure of the user deletes the row. A query
	// for a row may leave it zero.
	User healthlab.UserID
	// ID is 1 to [MaxID] bytes of any value. Rows are ordered by the bytes; see [Text], [Int],
	// [Time] and [UUID].
	ID string
}

// MaxID is the highest length of an ID and of an index value in bytes.
const MaxID = 1024

// Row is a value with its key. An engine does not read Doc.
type Row struct {
	Key
	// Due is the time at which background work processes the row; zero for never.
	Due time.Time
	// Index are two more values by which the row is found within its table and team, ordered by
	// bytes; "" for none. The declaration of the table says whether a value is unique.
	Index [2]string
	// Revision is the number of writes of the row; 0 for a row that is not stored yet.
	Revision int64
	// Doc is the value. A layer above the engine encrypts personal values.
	Doc []byte
}

// Definition declares a table to an engine.
type Definition struct {
	// Name is lower_snake and unique among the tables of a store.
	Name string
	// Unique selects the values of Row.Index that no two rows of one team may share.
	Unique [2]bool
	// Clear is true if new documents of the table are not encrypted. Encrypted ones can be read too.
	Clear bool
	// Sealed selects rows of a Clear table that are encrypted all the same, by their ID. Nil: none.
	Sealed func(id string) bool
	// ReadClear is true if unencrypted documents of a table that is not Clear can be read, because the table
	// was Clear before.
	ReadClear bool
	// PerUser is true if every row has a User, with which its ID begins (see [UUID]), and neither a Due nor
	// unique values; and if queries for a row or a range of ids have the user and are about the IDs of that
	// user. An engine may store the rows of a user together, on one machine, and refuse a row or a query that
	// breaks the rule.
	PerUser bool
	// Secret selects the values of Row.Index that are personal. A layer above the engine replaces them by
	// digests under the key of the team. So such rows can be found by equality only (see [Query.Equal]), and
	// Row.Index of an answer has the digest.
	Secret [2]bool
}

// By is the index that a query uses.
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

// Lock is the restriction on other transactions for the rows of an answer until the end of this one.
type Lock uint8

const (
	// Shared: no other transaction can change the rows. It is the default.
	Shared Lock = iota
	// Held: no other transaction can change the rows, or read them as Shared or Held. A transaction must hold
	// the rows that it will put or delete.
	Held
	// Plain: the rows are not locked.
	Plain
	// Skip is Held without waiting: rows that another transaction has locked are left out.
	Skip
)

// Query selects one row or a range of rows. It is comparable.
type Query struct {
	Key
	By By
	// From (inclusive) and To (exclusive) are the limits of the values in byte order. An empty From is the
	// lowest value; an empty To means no limit.
	From, To string
	// Until is the upper limit of Due, inclusive.
	Until time.Time
	// Desc reverses the order of the answer.
	Desc bool
	// Limit is the highest number of rows; 0 for all.
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

// After returns the query for at most n rows with values above last.
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

package store

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Store stores rows in transactions. A host can implement it for its own database; the suite of package storetest
// tests an implementation.
//
// Both methods are safe for concurrent use. Once ctx has ended, a call returns the context's error and commits
// nothing. A Store copies arguments and results, so the caller may change them. Times are kept in UTC to the
// microsecond.
type Store interface {
	// Update calls run and commits its writes: all of them, or, if run or the commit fails, none. An error of run
	// is returned unchanged. After an error of the connection during the commit the outcome is unknown.
	//
	// Update may call run again after a conflict with another transaction, so run must be pure: no I/O, and no
	// effect other than on the Tx and on variables that run itself resets at its start.
	//
	// The context that run gets carries the transaction. An Update or a Read of the same Store with this context
	// joins the transaction: the rows of the inner Update commit with those of the outer one. If the inner run
	// fails, its writes are undone, and the outer run decides whether to continue.
	Update(ctx context.Context, run func(context.Context, Tx) error) error

	// Read answers all queries from one snapshot, in one round trip to the database. The answers are in the order
	// of the queries. Locks of the queries are ignored.
	Read(ctx context.Context, q ...Query) ([][]Row, error)
}

// Tx is a transaction. It must be used by one goroutine, and not after the run function to which it was passed has
// returned.
//
// Two rules make business rules safe under concurrency. A rule about a row that the transaction does not write must
// read that row with the lock [Shared]. A rule about a range of rows (such as their highest number) must read one row
// that represents the range, such as that of the user or the team, with the lock [Held]; each transaction that writes
// in the range must read this row as Shared or Held.
//
// The row of a user (see [User]) can be locked even if it does not exist, so that these rules work for a host that
// stores its users elsewhere. Any other row that does not exist cannot be locked.
type Tx interface {
	// Now returns the store's clock at the start of the transaction, in UTC to the microsecond. Leases and due
	// times are computed from it, because the clocks of processes differ.
	Now() time.Time

	// Read answers queries in one round trip to the engine, in the order of the queries. The answers include the
	// transaction's own writes. Repeating a query with the same or a weaker lock costs no round trip.
	Read(q ...Query) ([][]Row, error)

	// Put writes rows at the commit. A row with Revision 0 must be new. Any other row must have the Revision of the
	// stored row; the commit stores it with Revision+1. To put a row twice in one transaction, add 1 to its
	// Revision before the second Put.
	//
	// The commit fails if a rule of locks was broken: a row was read and is put without the lock [Held], or a new
	// row of a user is put and the row of the user (table [UserTable]) was not read as Shared or Held. The lock on
	// the user keeps a transaction from adding rows of a person while another erases the person.
	Put(r ...Row)

	// Delete removes rows at the commit. Deleting a missing row is a no-op. A row that was read before it is
	// deleted must have been read with the lock [Held].
	Delete(k ...Key)

	// AfterCommit calls f once the transaction has committed; for a transaction that joined an outer one, once the
	// outer one has committed. f must not block.
	AfterCommit(f func())
}

// UserTable is the name of the table of users. It has one row for each user, with the key [UserKey].
const UserTable = "user"

// UserKey returns the key of a user's row in the table [UserTable].
func UserKey(team healthlab.TeamID, user healthlab.UserID) Key {
	return Key{Table: UserTable, Team: team, User: user, ID: UUID(user.UUID)}
}

// Key identifies a row. Table, Team and ID are unique together.
type Key struct {
	// Table is the name of a declared table.
	Table string
	// Team is the team of the row; zero for a row that is looked up before the team is known.
	Team healthlab.TeamID
	// User is the person that the row is about; zero for none. The row is deleted when this person is erased. A
	// query by ID may leave User zero.
	User healthlab.UserID
	// ID is 1 to [MaxID] bytes of any value. Rows are ordered by these bytes; [Text], [Int], [Time] and [UUID]
	// encode values in their natural order.
	ID string
}

// MaxID is the highest length of an ID and of an index value in bytes.
const MaxID = 1024

// Row is a stored document with its key and the values by which queries find it. An engine never reads Doc.
type Row struct {
	Key
	// Due is the time at which background work processes the row; zero for never.
	Due time.Time
	// Index has two more values by which queries find the row within its table and team, ordered by bytes; "" for
	// none. [Definition.Unique] says whether two rows of a team may share a value.
	Index [2]string
	// Revision is the number of writes of the row; 0 for a row that is not stored yet.
	Revision int64
	// Doc is the encoded value of a [Table], or any bytes. A layer above the engine encrypts personal values.
	Doc []byte
}

// Definition declares a table to an engine.
type Definition struct {
	// Name is written in lower_snake case. No two tables of a store may have the same name.
	Name string
	// Unique is true for each value of Row.Index that two rows of one team may not share.
	Unique [2]bool
	// Clear is true if the documents of the table are stored without encryption. Documents that were encrypted
	// earlier can still be read.
	Clear bool
	// Sealed returns true for the IDs whose documents are encrypted although the table is Clear. Nil encrypts none
	// of them.
	Sealed func(id string) bool
	// ReadClear is true for an encrypted table that was Clear before: its old unencrypted documents can still be
	// read.
	ReadClear bool
	// PerUser lets an engine store the rows of a user together, on one machine. Then every row must have a User,
	// its ID must begin with that user (see [UUID]), and it has no Due and no unique values. A query for a row or a
	// range of ids must name the user and stay within the IDs of that user. An engine may refuse rows and queries
	// that break these rules.
	PerUser bool
	// Secret is true for each value of Row.Index that is personal. A layer above the engine replaces such a value
	// by a digest made with the key of the team. So queries can only compare it for equality (see [Query.Equal]),
	// and the rows they return have the digest in Index.
	Secret [2]bool
}

// By selects the values by which a query finds and orders rows.
type By uint8

const (
	// ByKey finds the one row of Table, Team and ID.
	ByKey By = iota
	// ByID finds the rows of Table and Team with From <= ID < To, ordered by ID.
	ByID
	// ByFirst finds the rows of Table and Team with From <= Index[0] < To, ordered by Index[0], then ID. Rows with
	// an empty Index[0] are left out.
	ByFirst
	// BySecond is the same as ByFirst, with Index[1] in place of Index[0].
	BySecond
	// ByUser finds the rows of User with From <= ID < To, ordered by table, team and ID; of all
	// tables if Table is empty. Team is ignored.
	ByUser
	// ByDue finds the rows of Table, of all teams, with a Due at or before Until, ordered by
	// Due, team and ID.
	ByDue
)

// Lock says what other transactions may do with the rows of an answer until this transaction ends.
type Lock uint8

const (
	// Shared: no other transaction can change the rows. It is the default.
	Shared Lock = iota
	// Held: no other transaction can change the rows, or read them as Shared or Held. A transaction must hold
	// the rows that it will put or delete.
	Held
	// Plain: the rows are not locked.
	Plain
	// Skip locks like Held, but does not wait: the answer leaves out rows that another transaction has locked.
	Skip
)

// Query selects one row or a range of rows. It is comparable with ==.
type Query struct {
	Key
	By By
	// From (inclusive) and To (exclusive) limit the IDs or index values, in byte order. An empty From means from
	// the lowest value; an empty To means no limit.
	From, To string
	// Until is the latest Due of the rows, inclusive, for ByDue.
	Until time.Time
	// Desc reverses the order of the answer.
	Desc bool
	// Limit is the highest number of rows; 0 for all.
	Limit int
	Lock  Lock
	// Bare leaves the documents out of the answer: Doc is nil.
	Bare bool
}

// Hold returns the query with the lock [Held].
func (q Query) Hold() Query { q.Lock = Held; return q }

// Unlocked returns the query with the lock [Plain].
func (q Query) Unlocked() Query { q.Lock = Plain; return q }

// WithoutDocs returns the query with Bare set: the rows of the answer have no documents.
func (q Query) WithoutDocs() Query { q.Bare = true; return q }

// After returns the query for the next page: at most n rows with values (of the index that By names) above last. An
// empty last means the first page.
func (q Query) After(last string, n int) Query {
	if last != "" {
		q.From = last + "\x00"
	}
	q.Limit = n
	return q
}

// Equal returns the query for the rows whose value (of the index that By names) equals value.
func (q Query) Equal(value string) Query {
	q.From, q.To = value, value+"\x00"
	return q
}

// User returns the query for a user's row in the table [UserTable].
func User(team healthlab.TeamID, user healthlab.UserID) Query {
	return Query{Key: UserKey(team, user)}
}

package accesslog_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/store"
)

// rowLog is a log over rows of an engine in memory.
type rowLog struct {
	*accesslog.Service
	rows store.Store
}

// newRowLog returns a Service of a process over the rows; over new rows if they are nil.
func newRowLog(t *testing.T, rows store.Store) rowLog {
	t.Helper()
	if rows == nil {
		var err error
		rows, err = memstore.New(accesslog.Tables(), nil)
		require.NoError(t, err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	s, err := accesslog.New(accesslog.NewStore(rows, nil), key, nil)
	require.NoError(t, err)
	return rowLog{s, rows}
}

func (l rowLog) counts(t *testing.T, team healthlab.TeamID) [2]int64 {
	t.Helper()
	v, err := l.Verify(t.Context(), team)
	require.NoError(t, err)
	return [2]int64{v.Lines, v.Unsealed}
}

// Run seals what a process left at its start, what this process stores a tenth of a second later,
// what another stores within a second, and the rest before it returns.
func TestRun_sealsLinesOfEveryProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newRowLog(t, nil)
		other := newRowLog(t, log.rows) // does not run
		team := healthlab.TeamID{UUID: uuid.New()}
		access := accesslog.Entry{Team: team, Operation: "op"}
		require.NoError(t, other.Record(t.Context(), access))
		require.Equal(t, [2]int64{0, 1}, log.counts(t, team))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- log.Run(ctx) }()
		synctest.Wait()
		require.Equal(t, [2]int64{1, 0}, log.counts(t, team), "at the start")

		require.NoError(t, log.Record(t.Context(), access))
		require.NoError(t, log.Add(t.Context(), access))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, [2]int64{3, 0}, log.counts(t, team), "its own")

		require.NoError(t, other.Record(t.Context(), access))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, [2]int64{4, 0}, log.counts(t, team), "those of another process")

		require.NoError(t, log.Record(t.Context(), access))
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, [2]int64{5, 0}, log.counts(t, team), "at the end")
	})
}

// notedTables is an engine that notes which tables transactions read and put.
type notedTables struct {
	store.Store
	tables map[string]bool
}

func (n notedTables) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return n.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return run(ctx, notedTx{tx, n.tables}) })
}

type notedTx struct {
	store.Tx
	tables map[string]bool
}

func (t notedTx) Read(q ...store.Query) ([][]store.Row, error) {
	for i := range q {
		t.tables[q[i].Table] = true
	}
	return t.Tx.Read(q...)
}

func (t notedTx) Put(rows ...store.Row) {
	for i := range rows {
		t.tables[rows[i].Table] = true
	}
	t.Tx.Put(rows...)
}

// A transaction that adds a line neither reads nor puts the head of its team, which would make other
// requests of the team wait.
func TestRecord_locksNoRowOfItsTeam(t *testing.T) {
	rows, err := memstore.New(accesslog.Tables(), nil)
	require.NoError(t, err)
	noted := notedTables{rows, map[string]bool{}}
	log := newRowLog(t, noted)
	require.NoError(t, log.Record(t.Context(), accesslog.Entry{Team: healthlab.TeamID{UUID: uuid.New()}}))
	require.Equal(t, map[string]bool{"access_line": true}, noted.tables)
}

// A line that is added in a transaction is there if the transaction commits.
func TestAdd_storesTheLineOnlyIfTheTransactionCommits(t *testing.T) {
	log := newRowLog(t, nil)
	team := healthlab.TeamID{UUID: uuid.New()}
	undone := errors.New("undone")
	add := func(fails error) error {
		return log.rows.Update(t.Context(), func(ctx context.Context, _ store.Tx) error {
			if err := log.Add(ctx, accesslog.Entry{Team: team, Operation: "op"}); err != nil {
				return err
			}
			return fails
		})
	}
	require.ErrorIs(t, add(undone), undone)
	require.Equal(t, [2]int64{0, 0}, log.counts(t, team))
	require.NoError(t, add(nil))
	lines, err := log.Lines(t.Context(), accesslog.Query{Team: team, N: 9})
	require.NoError(t, err)
	require.Len(t, lines, 1, "a line can be read once it is stored")
	require.False(t, lines[0].At.IsZero())
}

// Several processes that seal and add at once make one chain.
func TestSeal_ofSeveralProcessesMakesOneChain(t *testing.T) {
	first := newRowLog(t, nil)
	team := healthlab.TeamID{UUID: uuid.New()}
	const processes, lines = 4, 50
	ended := make(chan error, processes)
	for range processes {
		go func() {
			log := newRowLog(t, first.rows)
			var err error
			for range lines {
				err = errors.Join(err, log.Add(t.Context(), accesslog.Entry{Team: team}), log.Seal(t.Context()))
			}
			ended <- err
		}()
	}
	for range processes {
		require.NoError(t, <-ended)
	}
	require.Equal(t, [2]int64{processes * lines, 0}, first.counts(t, team))
}

// A team none of whose lines is sealed is verified too.
func TestVerifyAll_findsTeamsWithoutAChain(t *testing.T) {
	log := newRowLog(t, nil)
	team := healthlab.TeamID{UUID: uuid.New()}
	require.NoError(t, log.Add(t.Context(), accesslog.Entry{Team: team}, accesslog.Entry{Team: team}))
	found := map[healthlab.TeamID]accesslog.Verification{}
	require.NoError(t, log.VerifyAll(t.Context(), nil, func(team healthlab.TeamID, v accesslog.Verification, _ error) { found[team] = v }))
	require.Equal(t, map[healthlab.TeamID]accesslog.Verification{team: {Head: accesslog.Head{Team: team}, Unsealed: 2}}, found)
}

package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// diskEnv names the file that the process of [TestStore_fullDiskMakesWritesUnavailable] fills.
const diskEnv = "HEALTHLABTEST_FULL_DISK"

// putNew puts a row under a new id.
func putNew(s *sqlite.Store) (id string, err error) {
	id = uuid.NewString()
	return id, s.Update(context.Background(), func(_ context.Context, tx store.Tx) error {
		tx.Put(store.Row{Key: store.Key{Table: "plain", ID: id}, Doc: make([]byte, 2000)})
		return nil
	})
}

// requireStored fails if a row that was answered is not there.
func requireStored(t *testing.T, s *sqlite.Store, answered []string) {
	t.Helper()
	rows, err := s.Read(t.Context(), store.Query{Key: store.Key{Table: "plain"}, By: store.ByID, Bare: true})
	require.NoError(t, err)
	stored := map[string]bool{}
	for _, r := range rows[0] {
		stored[r.ID] = true
	}
	for _, id := range answered {
		require.True(t, stored[id], "an answered row is lost")
	}
}

// While the disk takes no more, writes are Unavailable and reads go on; nothing that was answered is
// lost, and the store is well once there is room. The system refuses to let the files of a process of its
// own grow, as a full disk does.
func TestStore_fullDiskMakesWritesUnavailable(t *testing.T) {
	path := os.Getenv(diskEnv)
	if path == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestStore_fullDiskMakesWritesUnavailable$")
		cmd.Env = append(os.Environ(), diskEnv+"="+filepath.Join(t.TempDir(), "rows.db"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	signal.Ignore(syscall.SIGXFSZ) // a write that is too long returns an error
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	s, err := sqlite.Open(t.Context(), path, storetest.Tables(), nil)
	require.NoError(t, err)
	var answered []string
	for round := range uint64(3) {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: (round + 1) << 20, Max: was.Max}))
		for err = nil; err == nil; {
			var id string
			if id, err = putNew(s); err == nil {
				answered = append(answered, id)
			}
			require.Less(t, len(answered), 100_000, "the disk is full at some time")
		}
		require.ErrorIs(t, err, healthlab.Unavailable)
		for range 10 {
			if id, err := putNew(s); err == nil {
				answered = append(answered, id)
			} else {
				require.ErrorIs(t, err, healthlab.Unavailable)
			}
		}
		requireStored(t, s, answered)

		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
		id, err := putNew(s)
		require.NoError(t, err, "there is room")
		answered = append(answered, id)
	}
	require.NoError(t, s.Close())
	s, err = sqlite.Open(t.Context(), path, storetest.Tables(), nil)
	require.NoError(t, err)
	requireStored(t, s, answered)
	require.NoError(t, s.Close())
}

// While another program locks the file, writes are Unavailable within ten seconds and reads go on; the
// store is well once the file is free.
func TestStore_lockedFileMakesWritesUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.db")
	s := open(t, path)
	first, err := putNew(s)
	require.NoError(t, err)
	other, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, other.Exec("begin immediate"))
	began := time.Now()
	_, err = putNew(s)
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.Less(t, time.Since(began), 10*time.Second)
	began = time.Now()
	failed := make(chan error, 4)
	for range cap(failed) {
		go func() {
			_, err := putNew(s)
			failed <- err
		}()
	}
	for range cap(failed) {
		require.ErrorIs(t, <-failed, healthlab.Unavailable)
	}
	require.Less(t, time.Since(began), 10*time.Second, "writes that wait in turn have one limit of time, not one each")
	requireStored(t, s, []string{first})
	require.NoError(t, errors.Join(other.Exec("rollback"), other.Close()))
	second, err := putNew(s)
	require.NoError(t, err, "the file is free")
	requireStored(t, s, []string{first, second})
}

package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

func open(t testing.TB, path string) *sqlite.Store {
	s, err := sqlite.Open(t.Context(), path, storetest.Tables(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore_passesTheStoreSuite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		return storetest.Harness{Store: open(t, filepath.Join(t.TempDir(), "rows.db"))}
	})
}

// TestOpen_refusesLockedNewerAndUnwritableFiles opens files that another process has, that a newer program made, and
// folders that cannot be written.
func TestOpen_refusesLockedNewerAndUnwritableFiles(t *testing.T) {
	refuse := func(path string, kind error, text string) {
		t.Helper()
		_, err := sqlite.Open(t.Context(), path, storetest.Tables(), nil)
		require.ErrorIs(t, err, kind)
		require.ErrorContains(t, err, text)
	}
	path := filepath.Join(t.TempDir(), "rows.db")
	s, err := sqlite.Open(t.Context(), path, storetest.Tables(), nil)
	require.NoError(t, err)
	refuse(path, healthlab.Unavailable, "another process")
	require.NoError(t, s.Close())

	c, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Exec("pragma user_version=99"))
	require.NoError(t, c.Close())
	refuse(path, healthlab.Precondition, "newer program")
	refuse(filepath.Join(t.TempDir(), "missing", "rows.db"), healthlab.Unavailable, "cannot be written")
}

// TestBackup_copiesTheStoreDuringUpdates copies a store beside running updates.
func TestBackup_copiesTheStoreDuringUpdates(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "rows.db"))
	put := func(id string) {
		require.NoError(t, s.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			tx.Put(store.Row{Key: store.Key{Table: "plain", ID: id}})
			return nil
		}))
	}
	put("before")
	require.NoError(t, s.Backup(t.Context(), filepath.Join(dir, "copy.db")))
	put("after")
	require.ErrorIs(t, s.Backup(t.Context(), filepath.Join(dir, "copy.db")), healthlab.Conflict)
	restored := open(t, filepath.Join(dir, "copy.db"))
	rows, err := restored.Read(t.Context(), store.Query{Key: store.Key{Table: "plain"}, By: store.ByID})
	require.NoError(t, err)
	require.Len(t, rows[0], 1)
	require.Equal(t, "before", rows[0][0].ID)
}

// writerEnv names the file of a process that TestStore_killedProcessLosesNoAcknowledgedRow starts and kills.
const writerEnv = "HEALTHLABTEST_SQLITE_WRITER"

// TestStore_killedProcessLosesNoAcknowledgedRow kills a process that writes, and finds everything that it had answered.
func TestStore_killedProcessLosesNoAcknowledgedRow(t *testing.T) {
	if path := os.Getenv(writerEnv); path != "" {
		write(t, path)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "rows.db")
	answered := map[string]bool{}
	for range prove.Counts(2, 4, 40) {
		cmd := exec.Command(self, "-test.run", "^TestStore_killedProcessLosesNoAcknowledgedRow$")
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; n < 200 && lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
				answered[id] = true
			}
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "stored "); ok && len(id) == 36 {
				answered[id] = true
			}
		}
		_ = cmd.Wait() // it was killed
	}
	require.NotEmpty(t, answered)
	s := open(t, path)
	rows, err := s.Read(t.Context(), store.Query{Key: store.Key{Table: "plain"}, By: store.ByID, Bare: true})
	require.NoError(t, err)
	stored := map[string]bool{}
	for _, r := range rows[0] {
		stored[r.ID] = true
	}
	for id := range answered {
		require.True(t, stored[id], "an answered row is lost")
	}
}

// write puts rows from eight goroutines until the process is killed, and prints the id of each after
// its commit.
func write(t *testing.T, path string) {
	s, err := sqlite.Open(t.Context(), path, storetest.Tables(), nil)
	require.NoError(t, err)
	var out sync.Mutex
	for range 8 {
		go func() {
			for {
				id := uuid.NewString()
				err := s.Update(context.Background(), func(_ context.Context, tx store.Tx) error {
					tx.Put(store.Row{Key: store.Key{Table: "plain", ID: id}, Doc: make([]byte, 500)})
					return nil
				})
				if err != nil {
					return
				}
				out.Lock()
				fmt.Println("stored " + id)
				out.Unlock()
			}
		}()
	}
	select {}
}

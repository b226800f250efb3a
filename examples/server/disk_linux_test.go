package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() {
	if os.Getenv(childEnv) != "" {
		signal.Ignore(syscall.SIGXFSZ) // a file that may not grow returns an error
	}
}

// addUser asks for a new user, and returns the status of the answer.
func addUser(p *program, name string) int {
	p.Helper()
	began := time.Now()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url+"/v2/user/", strings.NewReader(`{"client_user_id":"`+name+`"}`))
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	r.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(p, errors.Join(err, answer.Body.Close()))
	require.Less(p, time.Since(began), answerLimit)
	if answer.StatusCode != http.StatusOK {
		require.Equal(p, http.StatusServiceUnavailable, answer.StatusCode, "%s", body)
		require.NotEmpty(p, answer.Header.Get("Retry-After"))
		require.True(p, json.Valid(bytes.TrimSpace(body)), "%s", body)
	}
	return answer.StatusCode
}

func requireWell(p *program, name string) {
	p.Helper()
	for deadline := time.Now().Add(returnLimit); addUser(p, name) != http.StatusOK; {
		require.True(p, time.Now().Before(deadline), "well again")
	}
}

// While another program locks the data, requests are refused in time and can be sent again; the server is
// well once the file is free.
func TestData_lockedFileAnswers503UntilItIsFree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, process := spawn(t, "-data", dir)
	require.Equal(t, http.StatusOK, addUser(p, "before"))
	other, err := sqlite3.Open(filepath.Join(dir, "healthlab.db"))
	require.NoError(t, err)
	require.NoError(t, other.Exec("pragma busy_timeout=10000; begin immediate")) // the server writes on its own, too
	require.Equal(t, http.StatusServiceUnavailable, addUser(p, "during"))
	began := time.Now()
	answer, err := http.Get(p.url + "/readyz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Less(t, time.Since(began), readyLimit)
	require.NoError(t, errors.Join(other.Exec("rollback"), other.Close()))
	requireWell(p, "after")
	require.ElementsMatch(t, []string{"before", "after"}, p.names())
	p.kill(process)
}

// While the disk takes no more, requests are refused and can be sent again; nothing that was answered is
// lost, and the server is well once there is room. The system refuses to let the files of the server grow.
func TestData_fullDiskAnswers503AndLosesNoAcknowledgedData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, process := spawn(t, "-data", dir)
	limit := func(bytes uint64) {
		require.NoError(t, unix.Prlimit(process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil))
	}
	var answered []string
	for round := range 2 {
		info, err := os.Stat(filepath.Join(dir, "healthlab.db"))
		require.NoError(t, err)
		limit(uint64(info.Size()) + 256<<10)
		for full := false; !full; {
			require.Less(t, len(answered), 20_000, "the disk is full at some time")
			name := fmt.Sprintf("%d-%d", round, len(answered))
			if full = addUser(p, name) != http.StatusOK; !full {
				answered = append(answered, name)
			}
		}
		limit(unix.RLIM_INFINITY)
		name := fmt.Sprintf("room-%d", round)
		requireWell(p, name)
		answered = append(answered, name)
	}
	p.kill(process)
	p, process = spawn(t, "-data", dir)
	stored := map[string]bool{}
	for offset := 0; ; {
		var page struct {
			Users []struct {
				ClientUserID string `json:"client_user_id"`
			} `json:"users"`
			Total int `json:"total"`
		}
		p.get(fmt.Sprintf("/v2/user/?limit=500&offset=%d", offset), &page)
		for _, u := range page.Users {
			stored[u.ClientUserID] = true
		}
		if offset += len(page.Users); len(page.Users) == 0 || offset >= page.Total {
			break
		}
	}
	for _, name := range answered {
		require.True(t, stored[name], "an answered user is lost")
	}
	p.kill(process)
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// eventCounter is a receiver of events that counts their types.
type eventCounter struct {
	mu    sync.Mutex
	types map[string]int
}

func (i *eventCounter) count(name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.types[name]
}

func (i *eventCounter) listen(t *testing.T) string {
	i.types = map[string]int{}
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Type string `json:"event_type"`
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.types[e.Type]++
	})
}

// ask makes a request and decodes the answer.
func ask(p *program, method, path, body string, status int, out any, header ...string) {
	p.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = p.url + path
	}
	r, err := http.NewRequestWithContext(p.Context(), method, target, strings.NewReader(body))
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	if body != "" {
		r.Header.Set("content-type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	require.Equal(p, status, answer.StatusCode, "%s %s: %s", method, path, b)
	if out != nil {
		require.NoError(p, json.Unmarshal(b, out))
	}
}

func connect(p *program, user, provider, name string) string {
	p.Helper()
	return signIn(p, user, provider, name, 200)
}

// signIn is connect where the way ends with another status.
func signIn(p *program, user, provider, name string, status int) string {
	p.Helper()
	var token struct {
		Token string `json:"link_token"`
	}
	ask(p, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, user), 200, &token)
	var source struct {
		URL string `json:"oauth_url"`
	}
	ask(p, "GET", "/v2/link/provider/oauth/"+provider, "", 200, &source, "x-service-link-token", token.Token)
	form := url.Values{"name": {name}, "answer": {"allow"}}
	ask(p, "POST", source.URL, form.Encode(), status, nil, "content-type", "application/x-www-form-urlencoded") // and follows it back
	return token.Token
}

func status(p *program, user string) string {
	p.Helper()
	var list struct {
		Providers []struct {
			Slug   string `json:"slug"`
			Status string `json:"status"`
		} `json:"providers"`
	}
	p.get("/v2/user/providers/"+user, &list)
	require.Len(p, list.Providers, 1)
	return list.Providers[0].Status
}

// A person links a source: its history comes and is told of, a refresh brings news, and
// consent that was taken back ends in an error that linking again heals.
func TestPull_fetchesHistoryThenNewDataUntilConsentIsRevoked(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(t *testing.T) []string{
		"memory":   func(*testing.T) []string { return nil },
		"folder":   func(t *testing.T) []string { return []string{"-data", t.TempDir()} },
		"postgres": func(t *testing.T) []string { return []string{"-database-url", pgtest.Empty(t), "-files", t.TempDir()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in eventCounter
			secret := secretFile(t)
			p := start(t, append(args(t), "-webhook-url", in.listen(t), "-secret-file", secret)...)
			var user struct {
				ID string `json:"user_id"`
			}
			ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
			ask(p, "POST", "/v2/user/refresh/"+user.ID, "", 400, nil)

			connect(p, user.ID, "fern_diary", "ann+withdrawn")
			wait(t, func() bool { return in.count("provider.connection.error") == 1 })
			require.Equal(t, "error", status(p, user.ID))
			var refreshed struct {
				Failed []string `json:"failed_sources"`
			}
			ask(p, "POST", "/v2/user/refresh/"+user.ID, "", 200, &refreshed)
			require.Contains(t, refreshed.Failed, "fern_diary/meal")

			token := connect(p, user.ID, "fern_diary", "ann")
			for _, resource := range []string{"meal", "water", "caffeine", "carbohydrates", "body"} {
				wait(t, func() bool { return in.count("historical.data."+resource+".created") == 1 })
			}
			require.Equal(t, "connected", status(p, user.ID))
			require.Equal(t, 1, in.count("provider.connection.error"))
			require.Positive(t, in.count("provider.connection.created"), "the first may have been overtaken by the error")
			var water struct {
				Groups map[string][]struct {
					Data []json.RawMessage `json:"data"`
				} `json:"groups"`
			}
			begin := time.Now().AddDate(0, 0, -20).UTC().Format("2006-01-02")
			p.get("/v2/timeseries/"+user.ID+"/water/grouped?start_date="+begin, &water)
			require.NotEmpty(t, water.Groups["fern_diary"], "what was announced can be read")

			r, err := http.Get(p.url + "/link/done?token=" + url.QueryEscape(token))
			require.NoError(t, err)
			defer r.Body.Close()
			page, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Contains(t, string(page), "Fern Diary is connected")
			require.Contains(t, string(page), "5")

			var seen struct {
				Data []struct {
					Provider map[string]struct {
						Pulled map[string]struct{ Status string } `json:"pulled"`
					} `json:"provider"`
				} `json:"data"`
			}
			p.get("/v2/introspect/historical_pull?user_id="+user.ID, &seen)
			require.Equal(t, "success", seen.Data[0].Provider["fern_diary"].Pulled["meal"].Status)
			ask(p, "POST", "/v2/link/push/fern_diary", `{}`, 401, nil)

			var done struct {
				Refreshed []string `json:"refreshed_sources"`
			}
			ask(p, "POST", "/v2/user/refresh/"+user.ID+"?timeout=60", "", 200, &done)
			require.Equal(t, []string{
				"fern_diary/body", "fern_diary/meal", "fern_diary/vitals/caffeine", "fern_diary/vitals/carbohydrates", "fern_diary/vitals/water",
			}, done.Refreshed)

			// The provider says that there is something new.
			before := lastTry(p, user.ID, "meal")
			m, err := newMaster(secret)
			require.NoError(t, err)
			key, err := m.derive("sandbox pushes")
			require.NoError(t, err)
			diary := sandbox.NewConnector("fern_diary", &sandbox.ConnectorOptions{PushKey: key})
			header, body := diary.Push("1", "ann", time.Time{}, "meal")
			ask(p, "POST", "/v2/link/push/fern_diary", string(body), 204, nil, sandbox.PushTime, header.Get(sandbox.PushTime),
				sandbox.PushSignature, header.Get(sandbox.PushSignature))
			wait(t, func() bool { return lastTry(p, user.ID, "meal").After(before) })
			p.quit()
		})
	}
}

// lastTry is when a resource of the diary was last asked for.
func lastTry(p *program, user, resource string) time.Time {
	p.Helper()
	var seen struct {
		Data []struct {
			Provider map[string]map[string]struct {
				Last struct {
					At time.Time `json:"timestamp"`
				} `json:"last_attempt"`
			} `json:"provider"`
		} `json:"data"`
	}
	p.get("/v2/introspect/resources?user_id="+user, &seen)
	return seen.Data[0].Provider["fern_diary"][resource].Last.At
}

// Two processes share what is to be fetched. One is killed somewhere in a history, and the
// other one finishes it: everything is there, and told once.
func TestPull_anotherProcessFinishesTheHistoryOfAKilledOne(t *testing.T) {
	var in eventCounter
	args := []string{
		"-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir(), "-lease", "2s", "-webhook-url", in.listen(t),
	}
	stays, other := spawn(t, args...)
	rounds := prove.Count(2, 20)
	for round := range rounds {
		dies, process := spawn(t, args...)
		var user struct {
			ID healthlab.UserID `json:"user_id"`
		}
		ask(stays, "POST", "/v2/user/", fmt.Sprintf(`{"client_user_id":"person %d"}`, round), 200, &user)
		begin := time.Now()
		connect(dies, user.ID.String(), "fern_diary", fmt.Sprint("person ", round))
		time.Sleep(time.Duration(round*150%900) * time.Millisecond) // somewhere
		dies.kill(process)
		for _, resource := range []string{"meal", "water", "caffeine", "carbohydrates", "body"} {
			wait(t, func() bool { return in.count("historical.data."+resource+".created") == round+1 })
		}
		from := begin.AddDate(0, 0, -28)
		var want []string
		for day := healthlab.DateOf(from.UTC()); !day.After(healthlab.DateOf(begin.UTC())); day = day.AddDays(1) {
			_, samples := sandbox.Provider{}.Samples(user.ID, "water", day, time.UTC)
			for _, s := range samples {
				if s.Timestamp.After(from.Add(time.Minute)) && s.Timestamp.Before(begin) {
					want = append(want, s.Timestamp.String())
				}
			}
		}
		var water struct {
			Groups map[string][]struct {
				Data []struct {
					Timestamp healthlab.Time `json:"timestamp"`
				} `json:"data"`
			} `json:"groups"`
		}
		stays.get("/v2/timeseries/"+user.ID.String()+"/water/grouped?start_date="+from.UTC().Format("2006-01-02"), &water)
		var got []string
		for _, group := range water.Groups["fern_diary"] {
			for _, s := range group.Data {
				if s.Timestamp.After(from.Add(time.Minute)) && s.Timestamp.Before(begin) {
					got = append(got, s.Timestamp.String())
				}
			}
		}
		require.Equal(t, want, got)
	}
	require.Equal(t, rounds, in.count("historical.data.water.created"))
	stays.kill(other)
}

// wait calls so until it returns true, and fails the test after two minutes: a guard against a hang, with
// room for a busy machine. It calls so in the test's goroutine, so that so may end the test.
func wait(t testing.TB, so func() bool, about ...any) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, "the condition is not met after two minutes", about...)
		}
	}
}

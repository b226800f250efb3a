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

	"github.com/healthlab-dev/healthlab/internal/pgtest"
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

// connect signs a user in at a provider, under a name, and returns the link token.
func connect(p *program, user, provider, name string) string {
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
	ask(p, "POST", source.URL, form.Encode(), 200, nil, "content-type", "application/x-www-form-urlencoded") // and follows it back
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
func TestPulls(t *testing.T) {
	for name, args := range map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string {
			return []string{"-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var in eventCounter
			p := start(t, append(args(t), "-webhook-url", in.listen(t))...)
			var user struct {
				ID string `json:"user_id"`
			}
			ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
			ask(p, "POST", "/v2/user/refresh/"+user.ID, "", 400, nil)

			connect(p, user.ID, "fern_diary", "ann+withdrawn")
			wait(t, func() bool { return in.count("provider.connection.error") == 1 })
			require.Equal(t, "error", status(p, user.ID))
			ask(p, "POST", "/v2/user/refresh/"+user.ID, "", 400, nil)

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
			p.quit()
		})
	}
}

// wait waits until something is so.
func wait(t *testing.T, so func() bool) {
	t.Helper()
	require.Eventually(t, so, 30*time.Second, 20*time.Millisecond)
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A person signs in at the page of a double, and the history comes.
func TestDoubles_signInPullsTheHistory(t *testing.T) {
	t.Parallel()
	p := start(t, "-doubles")
	at := map[string]string{} // the addresses for healthlab-check
	for range doubles {
		slug, address, _ := strings.Cut(strings.TrimPrefix(p.until("double of "), "double of "), ": ")
		at[slug] = address
	}
	var user struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200, &user)
	for _, provider := range []string{"google_health", "withings"} {
		var token struct {
			Token string `json:"link_token"`
		}
		ask(p, "POST", "/v2/link/token", fmt.Sprintf(`{"user_id":%q}`, user.ID), 200, &token)
		var source struct {
			URL string `json:"oauth_url"`
		}
		ask(p, "GET", "/v2/link/provider/oauth/"+provider, "", 200, &source, "x-service-link-token", token.Token)
		page := func(url string) string {
			r, err := http.Get(url)
			require.NoError(t, err)
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, r.StatusCode, string(b))
			return string(b)
		}
		require.NotEmpty(t, at[provider])
		require.True(t, strings.HasPrefix(source.URL, at[provider]+"/"), source.URL)
		person := regexp.MustCompile(`person=(\d+)`).FindStringSubmatch(page(source.URL))
		require.NotNil(t, person)
		page(source.URL + "&person=" + person[1]) // and back
	}
	wait(t, func() bool {
		var nights struct {
			Sleep []struct {
				Source struct{ Slug string } `json:"source"`
			} `json:"sleep"`
		}
		p.get("/v2/summary/sleep/"+user.ID+"?start_date="+time.Now().AddDate(0, 0, -9).Format(time.DateOnly), &nights)
		of := map[string]bool{}
		for _, n := range nights.Sleep {
			doc, err := json.Marshal(n)
			require.NoError(t, err)
			require.NotEmpty(t, n.Source.Slug, string(doc))
			of[n.Source.Slug] = true
		}
		return of["google_health"] && of["withings"]
	})
}

func TestDoubles_areRefusedInProduction(t *testing.T) {
	t.Parallel()
	_, _, err := flags([]string{"-env", "production", "-doubles"}, io.Discard)
	require.ErrorContains(t, err, "-doubles")
}

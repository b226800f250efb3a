package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders/portal"
)

// Links lead to the portal that the flags name, and the portal can read them with the key
// that the secret file gives.
func TestPortal_linksAreReadableWithTheDerivedKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	p := start(t, "-secret-file", file, "-portal-url", "https://portal.example.com/")
	post(p, "/v2/user/", `{"client_user_id":"a"}`)
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/a", &user)
	send := func(method, path, body string, out any) {
		r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("x-service-api-key", p.key)
		r.Header.Set("content-type", "application/json")
		p.do(r, out)
	}
	var info any
	send(http.MethodPatch, "/v2/user/"+user.ID+"/info", `{"first_name":"Ana","last_name":"Ray","email":"ana@example.com","phone_number":"+15550100","gender":"Female",
		"dob":"1988-03-07","address":{"first_line":"1 Elm Street","city":"Duluth","state":"MN","zip_code":"55802"}}`, &info)
	var link portal.Link
	send(http.MethodPost, "/v2/user/"+user.ID+"/create_portal_url", `{"context":"communications"}`, &link)
	token, ok := strings.CutPrefix(link.URL, "https://portal.example.com/l/")
	require.True(t, ok, "%s %v", link.URL, info)
	kept, err := newMaster(file)
	require.NoError(t, err)
	key, err := kept.derive("portal links")
	require.NoError(t, err)
	read, err := portal.ReadToken(key, token, time.Now())
	require.NoError(t, err)
	require.Equal(t, user.ID, read.User.String())
	p.quit()
}

package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/linking"
)

// A team names the origins whose pages may read answers of the link API.
func TestLinkAPI_answersBrowsersOfTheTeamsOrigins(t *testing.T) {
	c := newFixture(t, nil)
	c.config.Teams = newTeams(t, memory.New(nil), c.health, teamsettings.Choices{})
	c.config.AuthenticateManagement = func(*http.Request) (httpapi.Manager, error) { return httpapi.Manager{Mandate: httpapi.EveryTeam}, nil }
	c.config.Environment = healthlab.Sandbox
	_, err := c.config.Teams.Change(t.Context(), team, func(x *teamsettings.Choices) { x.LinkOrigins = []string{"https://app.example"} })
	require.NoError(t, err)
	issued, err := c.config.Linking.CreateToken(t.Context(), team, linking.NewToken{User: c.user})
	require.NoError(t, err)
	foreign, err := c.config.Linking.CreateToken(t.Context(), otherTeam, linking.NewToken{User: c.foreign})
	require.NoError(t, err)
	routes := []httpapi.Route{}
	for _, r := range httpapi.Routes(c.config.of()) {
		if r.Preflight != nil || r.ID == "create_link_token" {
			routes = append(routes, r)
		}
	}
	h := httpapi.Mux(routes)
	ask := func(method, path, origin, token, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", origin)
		if token != "" {
			r.Header.Set("x-service-link-token", token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const allowed = "Access-Control-Allow-Origin"
	for _, r := range routes {
		method, path, _ := strings.Cut(r.Pattern, " ")
		if r.Preflight == nil {
			require.Equal(t, http.StatusMethodNotAllowed, ask("OPTIONS", path, "https://app.example", "", "").Code, r.ID)
			continue
		}
		path = strings.NewReplacer("{oauth_provider}", "acme_band", "{provider}", "acme_band").Replace(path)
		w := ask("OPTIONS", path, "https://app.example", "", "")
		require.Equal(t, http.StatusNoContent, w.Code, r.ID)
		require.Equal(t, "https://app.example", w.Header().Get(allowed))
		require.Equal(t, method, w.Header().Get("Access-Control-Allow-Methods"))
		require.Contains(t, w.Header().Get("Access-Control-Allow-Headers"), "x-service-link-token")
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))

		body := `{"link_token":"` + issued.Token + `","provider":"acme_band"}`
		token := issued.Token
		switch r.ID {
		case "check_link_token":
			body, token = `{"token":"`+issued.Token+`"}`, ""
		case "start_link":
			token = ""
		}
		w = ask(method, path, "https://app.example", token, body)
		require.Equal(t, "https://app.example", w.Header().Get(allowed), r.ID)
		require.Equal(t, []string{"Origin"}, w.Header().Values("Vary"))
		w = ask(method, path, "https://evil.example", token, body)
		require.Empty(t, w.Header().Get(allowed), r.ID)
		w = ask(method, path, "https://app.example", foreign.Token, strings.ReplaceAll(body, issued.Token, foreign.Token))
		require.Empty(t, w.Header().Get(allowed), "%s with the token of a team that named no origin", r.ID)
	}
	require.Greater(t, len(routes), 8)

	for _, bad := range []string{"app.example", "http://app.example", "https://app.example/", "https://APP.example", "https://user@app.example", "*", "null"} {
		_, err := c.config.Teams.Change(t.Context(), team, func(x *teamsettings.Choices) { x.LinkOrigins = []string{bad} })
		require.Error(t, err, bad)
	}
}

// Every answer has a request id: the caller's if it is one, else a new one. Logs carry it.
func TestRequestID_isTheCallersIfValidElseANewOne(t *testing.T) {
	c := newFixture(t, nil)
	c.config.AuthenticateManagement = nil
	c.config.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{}, context.DeadlineExceeded }
	h := c.config.handler()
	send := func(path, id string) string {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		if id != "" {
			r.Header.Set("X-Request-Id", id)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Header().Get("X-Request-Id")
	}
	const path, trace = "/v2/user", "4bf92f3577b34da6a3ce929d0e0e4736"
	require.Equal(t, trace, send(path, trace))
	require.Contains(t, c.logs.Take(), `"request":"`+trace+`"`)
	first, second := send(path, ""), send(path, "")
	require.Len(t, first, 32)
	require.NotEqual(t, first, second)
	require.Len(t, send("/nothing/here", ""), 32)
	require.Len(t, send(path, "two words"), 32, "not an id")
	require.Len(t, send(path, "patient-77"), 32, "it may say something of a person")
}

// Answers are compressed as the caller asks.
func TestAnswers_areCompressedAsAcceptEncodingAsks(t *testing.T) {
	c := newFixture(t, nil)
	var items []string
	for i := range 200 {
		items = append(items, `{"timestamp":"2026-03-01T07:`+fmt.Sprintf("%02d", i/60)+`:`+fmt.Sprintf("%02d", i%60)+`Z","unit":"bpm","value":60}`)
	}
	c.post(c.timeseries("heartrate"), upload(items...), 200)
	h := c.config.handler()
	read := func(path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("x-service-api-key", goodKey)
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
		return w
	}
	path := c.timeseries("heartrate") + "/grouped" + year
	plain := read(path, "")
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	for encoding, reader := range map[string]func(*httptest.ResponseRecorder) ([]byte, error){
		"gzip": func(w *httptest.ResponseRecorder) ([]byte, error) {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(z)
		},
		"zstd": func(w *httptest.ResponseRecorder) ([]byte, error) {
			z, err := zstd.NewReader(w.Body)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(z)
		},
	} {
		w := read(path, encoding)
		require.Equal(t, encoding, w.Header().Get("Content-Encoding"))
		require.Contains(t, w.Header().Values("Vary"), "Accept-Encoding")
		require.Less(t, w.Body.Len(), plain.Body.Len()/4)
		got, err := reader(w)
		require.NoError(t, err)
		require.JSONEq(t, plain.Body.String(), string(got))
	}
	require.Empty(t, read("/v2/user/"+c.user.String(), "gzip").Header().Get("Content-Encoding"), "a short answer")

	r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	r.Header = http.Header{"X-Service-Api-Key": {goodKey}, "Accept-Encoding": {"br", "gzip"}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), "a list in two lines")
}

// Bodies are read without their content-encoding. The limit is that of what comes out.
func TestCompressedBody_isDecodedAndLimitedByItsDecodedSize(t *testing.T) {
	c := newFixture(t, nil)
	c.config.MaxIngestBody = 1 << 20
	h := c.config.handler()
	send := func(coding string, body []byte) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", c.timeseries("heartrate"), bytes.NewReader(body))
		r.Header.Set("x-service-api-key", goodKey)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", coding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	zip := func(text []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	std := func(text []byte) []byte {
		z, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return z.EncodeAll(text, nil)
	}
	body := func(space int) []byte {
		return []byte(strings.Repeat(" ", space) + upload(`{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":60}`))
	}
	for coding, compress := range map[string]func([]byte) []byte{
		"gzip": zip, "x-gzip": zip, "GZIP": zip, " zstd": std, "identity": func(b []byte) []byte { return b },
		"gzip, identity": zip, "identity,zstd": std, "": func(b []byte) []byte { return b }, ",": func(b []byte) []byte { return b },
	} {
		for _, space := range []int{0, 100_000} {
			w := send(coding, compress(body(space)))
			require.Equal(t, 200, w.Code, "%s %d %s", coding, space, w.Body)
		}
		w := send(coding, compress(body(1<<20)))
		require.Equal(t, 413, w.Code, coding)
		require.Contains(t, w.Body.String(), "BODY_TOO_LARGE")
		if !strings.ContainsAny(coding, "gzZ") {
			continue
		}
		require.Less(t, len(compress(body(1<<20))), 10_000)
		for _, bad := range [][]byte{body(0), compress(body(0))[:20], append(compress(body(0))[:25], body(100)...)} {
			w := send(coding, bad)
			require.Equal(t, 400, w.Code, coding)
			require.Contains(t, w.Body.String(), "BODY_CODING_INVALID")
		}
		require.Equal(t, 422, send(coding, nil).Code, "no body")
	}
	require.Equal(t, 1, c.stored())
	for _, coding := range []string{"br", "deflate", "gzip, gzip", "gzip, zstd", "none"} {
		w := send(coding, body(0))
		require.Equal(t, 415, w.Code, coding)
		require.Equal(t, "gzip, zstd", w.Header().Get("Accept-Encoding"))
		require.Contains(t, w.Body.String(), "must be one of gzip, zstd")
	}
}

// A body that is compressed without saying so, and one in UTF-16, are answered with what is wrong with them.
func TestBody_wrongEncodingErrorNamesTheExpectedEncoding(t *testing.T) {
	c := newFixture(t, nil)
	h := c.config.handler()
	text := upload(`{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":60}`)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	std, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	wide := func(little bool, mark string) string {
		out := []byte(mark)
		for _, b := range []byte(text) {
			if little {
				out = append(out, b, 0)
			} else {
				out = append(out, 0, b)
			}
		}
		return string(out)
	}
	const compressed, utf8 = "content-encoding: gzip or zstd", "application/json in UTF-8"
	for body, want := range map[string]string{
		zipped.String(): compressed, string(std.EncodeAll([]byte(text), nil)): compressed,
		wide(true, ""): utf8, wide(false, ""): utf8, wide(true, "\xff\xfe"): utf8, wide(false, "\xfe\xff"): utf8,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", c.timeseries("heartrate"), strings.NewReader(body))
		r.Header.Set("x-service-api-key", goodKey)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, 415, w.Code)
		require.Contains(t, w.Body.String(), want)
	}
	require.Zero(t, c.stored())
}

// An upload connects an on-device store, also again, unless the team says otherwise.
func TestUpload_connectsAnOnDeviceStoreUnlessTheTeamForbidsIt(t *testing.T) {
	explicit := false
	c := newFixture(t, &healthdata.Options{Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
		return healthdata.TeamSettings{ExplicitConnect: explicit}, nil
	}})
	body := func(second int) string {
		return strings.Replace(upload(`{"timestamp":"2026-03-01T07:00:`+fmt.Sprintf("%02d", second)+`Z","unit":"bpm","value":60}`), "acme_band", "acme_store", 1)
	}
	disconnect := func() { c.Send(t, "DELETE", "/v2/user/"+c.user.String()+"/acme_store", nil).Want(t, 200) }
	c.post(c.timeseries("heartrate"), body(1), 200)
	disconnect()
	c.post(c.timeseries("heartrate"), body(2), 200)
	require.Contains(t, string(c.get(c.timeseries("heartrate")+year, 200).Body), "07:00:02")
	disconnect()
	explicit = true
	reply := c.post(c.timeseries("heartrate"), body(3), 400)
	require.Equal(t, "NO_CONNECTION", reply.ErrorType(t))
	require.Contains(t, string(reply.Body), "explicit_connect")
	c.post("/v2/link/provider/manual/acme_store", object{"user_id": c.user.String()}, 200)
	c.post(c.timeseries("heartrate"), body(3), 200)
}

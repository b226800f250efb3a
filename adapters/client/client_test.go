package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/client"
)

// service answers requests without a network.
type service func(*http.Request) (*http.Response, error)

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return s(r)
}

func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func newClient(t *testing.T, s service, o client.Options) *client.Client {
	t.Helper()
	o.HTTP = &http.Client{Transport: s}
	c, err := client.New("https://health.example.org/", "sk_us_example", &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Which requests are repeated, how often, and after which waits.
func TestRequest_isRetriedByMethodAndStatus(t *testing.T) {
	const busy = `{"detail": {"error_type": "RATE_LIMITED", "error_message": "a limit is reached; try again later"}}`
	for name, test := range map[string]struct {
		request  client.Request
		options  client.Options
		answers  []func() (*http.Response, error)
		attempts int
		least    time.Duration // that the call lasts
		most     time.Duration
		status   int // of the error; 0 for none
	}{
		"a read, after the wait that is asked for": {
			request: client.Request{Method: "GET"}, attempts: 2, least: 7 * time.Second, most: 7 * time.Second,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(429, busy, "Retry-After", "7"), nil }},
		},
		"a read, at a date": {
			request: client.Request{Method: "GET"}, attempts: 2, least: 9 * time.Second, most: 9 * time.Second,
			answers: []func() (*http.Response, error){func() (*http.Response, error) {
				return answer(503, busy, "Date", "Sun, 01 Mar 2026 07:00:51 GMT", "Retry-After", "Sun, 01 Mar 2026 07:01:00 GMT"), nil
			}},
		},
		"a read that gets no answer": {
			request: client.Request{Method: "GET"}, attempts: 3, least: 375 * time.Millisecond, most: 750 * time.Millisecond,
			answers: []func() (*http.Response, error){
				func() (*http.Response, error) { return nil, errors.New("connection reset") },
				func() (*http.Response, error) { return nil, errors.New("connection reset") },
			},
		},
		"a deletion": {
			request: client.Request{Method: "DELETE"}, attempts: 2, most: time.Second,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(502, ""), nil }},
		},
		"a creation with a key": {
			request: client.Request{Method: "POST", IdempotencyKey: "a", Body: map[string]int{"n": 1}}, attempts: 3, most: time.Second,
			answers: []func() (*http.Response, error){
				func() (*http.Response, error) { return answer(504, ""), nil },
				func() (*http.Response, error) {
					return answer(409, `{"detail": {"error_type": "IDEMPOTENCY_IN_PROGRESS"}}`), nil
				},
			},
		},
		"a creation without a key: once": {
			request: client.Request{Method: "POST", Body: map[string]int{"n": 1}}, attempts: 1, status: 429,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(429, busy, "Retry-After", "1"), nil }},
		},
		"a change: once": {
			request: client.Request{Method: "PATCH"}, attempts: 1, status: 503,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(503, busy), nil }},
		},
		"an error that stays: once": {
			request: client.Request{Method: "GET"}, attempts: 1, status: 404,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(404, busy), nil }},
		},
		"no longer than MaxWait": {
			request: client.Request{Method: "GET"}, options: client.Options{MaxWait: 5 * time.Second}, attempts: 1, status: 429,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(429, busy, "Retry-After", "6"), nil }},
		},
		"never, if so chosen": {
			request: client.Request{Method: "GET"}, options: client.Options{Retries: -1}, attempts: 1, status: 503,
			answers: []func() (*http.Response, error){func() (*http.Response, error) { return answer(503, busy), nil }},
		},
		"not more often than Retries": {
			request: client.Request{Method: "PUT"}, options: client.Options{Retries: 2}, attempts: 3, most: time.Second, status: 503,
			answers: slices.Repeat([]func() (*http.Response, error){func() (*http.Response, error) { return answer(503, busy), nil }}, 9),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				c := newClient(t, func(r *http.Request) (*http.Response, error) {
					attempts++
					if body, err := io.ReadAll(r.Body); err != nil || test.request.Body != nil && string(body) != `{"n":1}` {
						t.Errorf("attempt %d has the body %s", attempts, body)
					}
					if attempts <= len(test.answers) {
						return test.answers[attempts-1]()
					}
					return answer(200, `{}`), nil
				}, test.options)
				start := time.Now()
				test.request.Path = "/v2/user"
				err := c.Do(t.Context(), test.request)
				status := 0
				if e, ok := errors.AsType[*client.Error](err); ok {
					status = e.Status
				}
				if took := time.Since(start); attempts != test.attempts || status != test.status || (err != nil) != (status != 0) || took < test.least || took > test.most {
					t.Errorf("%d attempts in %s: %v", attempts, took, err)
				}
			})
		})
	}
}

// The context ends a wait, and an attempt.
func TestRequest_isCancelledWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, func(*http.Request) (*http.Response, error) { return answer(503, "", "Retry-After", "20"), nil }, client.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.User(ctx, "a")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if _, err := c.User(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Each form of an error answer.
func TestError_readsEachFormOfAnErrorAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answer *http.Response
		want   string
	}{
		"a rule":              {answer(404, `{"detail": {"error_type": "NOT_FOUND", "error_message": "user not found"}}`, "X-Request-Id", "r"), "status 404 NOT_FOUND user not found"},
		"fields":              {answer(422, `{"detail": [{"loc": ["body", "data", 0, "unit"], "msg": "must be bpm", "type": "enum"}]}`, "X-Request-Id", "r"), "status 422; body.data.0.unit must be bpm"},
		"a proxy's":           {answer(403, `<html>`, "X-Request-Id", "r"), "status 403"},
		"a redirect's":        {answer(302, ``, "Location", "https://elsewhere.example.org", "X-Request-Id", "r"), "status 302"},
		"a list of texts":     {answer(422, `{"detail": ["a"]}`, "X-Request-Id", "r"), "status 422"},
		"nothing, with 5xx":   {answer(500, ``, "X-Request-Id", "r"), "status 500"},
		"a detail of a text":  {answer(500, `{"detail": "a"}`, "X-Request-Id", "r"), "status 500"},
		"a detail that lacks": {answer(500, `{}`, "X-Request-Id", "r"), "status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, func(*http.Request) (*http.Response, error) { return test.answer, nil }, client.Options{}).User(t.Context(), "a")
			e, ok := errors.AsType[*client.Error](err)
			if !ok || e.Error() != test.want || e.RequestID != "r" {
				t.Errorf("%v", err)
			}
		})
	}
}

// Pages are read as far as the caller goes on, and an error is the last element.
func TestPages_areReadOnDemandAndEndWithTheError(t *testing.T) {
	const total = 1203
	requests := 0
	fail := -1
	c := newClient(t, func(r *http.Request) (*http.Response, error) {
		requests++
		offset := 0
		fmt.Sscan(r.URL.Query().Get("offset"), &offset)
		if fail >= 0 && offset >= fail {
			return answer(403, `{"detail": {"error_type": "SCOPE_MISSING"}}`), nil
		}
		var users []string
		for i := offset; i < min(offset+500, total); i++ {
			users = append(users, fmt.Sprintf(`{"client_user_id": "%d"}`, i))
		}
		return answer(200, fmt.Sprintf(`{"users": [%s], "total": %d, "offset": %d, "limit": 500}`, strings.Join(users, ","), total, offset)), nil
	}, client.Options{})
	read := func(most int) (n int, last error) {
		for user, err := range c.Users(t.Context()) {
			if err != nil {
				last = err
				continue
			}
			if user.ClientUserID != fmt.Sprint(n) {
				t.Fatalf("user %d is %s", n, user.ClientUserID)
			}
			if n++; n == most {
				break
			}
		}
		return n, last
	}
	if n, err := read(0); n != total || err != nil || requests != 3 {
		t.Errorf("%d users in %d requests: %v", n, requests, err)
	}
	requests = 0
	if n, err := read(500); n != 500 || err != nil || requests != 1 {
		t.Errorf("%d users in %d requests: %v", n, requests, err)
	}
	fail = 500
	if n, err := read(0); n != 500 || err == nil {
		t.Errorf("%d users: %v", n, err)
	}
}

// Keys go where they belong, ids are escaped, and an id that is empty reaches no other operation.
func TestRequest_sendsEachKeyInItsHeaderAndEscapesIDs(t *testing.T) {
	var got []string
	c := newClient(t, func(r *http.Request) (*http.Response, error) {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("x-service-api-key"), " ", r.Header.Get("x-manager")))
		return answer(200, `{"sleep": []}`), nil
	}, client.Options{ManagementKey: "manager", ManagementKeyHeader: "x-manager"})
	ctx := t.Context()
	_, err := c.UserByClientID(ctx, "a/b?c d")
	_, err2 := c.CreateWebhook(ctx, "o", "t", "sandbox", client.NewWebhook{URL: "https://hooks.example.org"})
	_, err3 := client.Summaries[client.Sleep](ctx, c, "u", "sleep", url.Values{"start_date": {"2026-03-01"}})
	want := []string{
		"GET /v2/user/resolve/a%2Fb%3Fc%20d sk_us_example ",
		"POST /v1/org/o/team/t/sandbox/webhook  manager",
		"GET /v2/summary/sleep/u?start_date=2026-03-01 sk_us_example ",
	}
	if err = errors.Join(err, err2, err3); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %v", got, err)
	}
	for _, id := range []string{"", ".", ".."} {
		if err := c.DeleteUser(ctx, id); err == nil {
			t.Errorf("%q is an id", id)
		}
	}
	for _, base := range []string{"", "health.example.org", "ftp://health.example.org", "https://a:b@health.example.org", "https://health.example.org?a=b", "https:///v2", ":"} {
		if _, err := client.New(base, "k", nil); err == nil {
			t.Errorf("%q is a base", base)
		}
	}
}

// Errors and printed clients have no key, and no value of a person.
func TestErrors_containNoKeyOrPersonalValue(t *testing.T) {
	const person, key = "person-value", "sk_us_example"
	var texts []string
	for _, s := range []service{
		func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") },
		func(*http.Request) (*http.Response, error) { return answer(200, `{"created_on": "`+person+`"}`), nil },
	} {
		c := newClient(t, s, client.Options{Retries: -1, ManagementKey: key})
		_, err := c.UserByClientID(t.Context(), person)
		texts = append(texts, err.Error(), fmt.Sprintf("%v %+v %#v %s %v", c, c, c, c, *c))
	}
	for _, text := range texts {
		if text == "" || strings.Contains(text, person) || strings.Contains(text, key) {
			t.Errorf("printed: %s", text)
		}
	}
}

// A redirect is not followed, as another host would get the key.
func TestRedirect_isNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s", r.Method)
	}))
	defer other.Close()
	here := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	c, err := client.New(here.URL, "k", &client.Options{HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.User(t.Context(), "a"); err == nil {
		t.Error("no error")
	}
}

// What the package exports has at most 300 lines.
func TestPackage_exportedCodeHasAtMost300Lines(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
	}
	if lines < 100 || lines > 300 {
		t.Errorf("%d lines", lines)
	}
}

// A list without a filter has pages, too.
func TestPages_listWithoutAFilterReadsEveryPage(t *testing.T) {
	c := newClient(t, func(r *http.Request) (*http.Response, error) {
		next := `"two"`
		if r.URL.Query().Get("next_cursor") == "two" {
			next = "null"
		}
		return answer(200, `{"data": [{"name": "a"}], "next_cursor": `+next+`}`), nil
	}, client.Options{})
	n := 0
	for _, err := range c.LabTests(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Fatalf("%d items of 2 pages", n)
	}
}

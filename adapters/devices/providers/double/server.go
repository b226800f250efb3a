package double

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Options adjusts a test double. The zero value means the defaults.
type Options struct {
	People []*Person
	// ClientID and ClientSecret are the only client. Default "id" and "secret".
	ClientID, ClientSecret string
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// TokenLife is how long an access token is valid. Default an hour.
	TokenLife time.Duration
	// Limits are the rate limits by window, the shortest first. A request counts in all of them. Default: no limit.
	Limits []Limit
	// Faults are the errors that the double produces.
	Faults Faults
	// PageSize limits the number of items on a page. Default the provider's own limit.
	PageSize int
}

// Limit is the largest number of requests in a time window.
type Limit struct {
	Requests int
	Per      time.Duration
	// Aligned windows start at multiples of Per from midnight UTC. Other windows are sliding.
	Aligned bool
}

// room is the remaining number of requests of a rate limit, and the time until it increases.
type room struct {
	Limit
	left int
	wait time.Duration
}

func (r room) used() int { return r.Requests - r.left }

func (r room) seconds() string { return strconv.Itoa(int(r.wait/time.Second) + 1) }

func padLimits(all []room, n int) []room {
	for len(all) < n {
		all = append(all, room{Limit{Requests: 1_000_000, Per: 24 * time.Hour}, 999_999, 24 * time.Hour})
	}
	return all
}

func fewestLeft(all []room) room {
	return slices.MinFunc(all, func(a, b room) int { return cmp.Compare(a.left, b.left) })
}

// Faults selects requests that fail on purpose.
type Faults struct {
	// Every fails each n-th request with status 503; 0 means none.
	Every int
	// Reject refuses each n-th request with status 401, like an expired token; 0 means none.
	Reject int
}

// Server is a test double of the API of one provider. Safe for concurrent use.
type Server struct {
	name string
	opts Options
	mux  *http.ServeMux
	// limited writes the headers of the rate limits. all has at least one element. Nil means no headers.
	limited func(h http.Header, all []room)
	// granted returns additional members of the token response. Nil means none.
	granted func(*Person) object
	// tokens writes the response of the token URL. Default: the function reply.
	tokens func(w http.ResponseWriter, status int, doc object)
	// keepRefresh means that a refresh token stays valid after its use.
	keepRefresh bool
	// accessToken returns an access token that contains the unique text word. Default: word.
	accessToken func(p *Person, word string) string
	// key is a header that every data request must have, and keyValue its value. Default: none.
	key, keyValue string
	// codeLife is how long an authorization code is valid. 0 means without limit.
	codeLife time.Duration
	// permanent means that access tokens last ten years and that there are no refresh tokens.
	permanent bool

	mu        sync.Mutex
	people    map[string]*Person
	codes     map[string]code
	access    map[string]grant
	refresh   map[string]string // valid refresh token → person id
	issued    int
	exchanges int
	requests  int
	refused   int
	recent    []time.Time
}

type code struct {
	person, challenge, redirect string
	at                          time.Time
}

type grant struct {
	person string
	ends   time.Time
}

// paths holds the URL paths of the OAuth endpoints of a test double.
type paths struct{ authorize, token, revoke string }

func newServer(name string, at paths, o Options) *Server {
	if o.ClientID == "" {
		o.ClientID, o.ClientSecret = "id", "secret"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.TokenLife <= 0 {
		o.TokenLife = time.Hour
	}
	s := &Server{
		name: name, opts: o, mux: http.NewServeMux(), people: map[string]*Person{}, codes: map[string]code{},
		access: map[string]grant{}, refresh: map[string]string{},
	}
	for _, p := range o.People {
		s.people[p.ID] = p
	}
	s.mux.HandleFunc("GET "+at.authorize, s.login)
	s.tokens = func(w http.ResponseWriter, status int, doc object) { reply(w, status, doc) }
	if at.token != "" {
		s.mux.HandleFunc("POST "+at.token, s.token)
	}
	if at.revoke != "" {
		s.mux.HandleFunc(at.revoke, s.revokeGrant)
	}
	return s
}

// ServeHTTP responds as the provider does. It adds the header X-Double.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Double", "not the real "+s.name)
	s.mux.ServeHTTP(w, r)
}

// Exchanges returns the number of successful token renewals.
func (s *Server) Exchanges() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exchanges
}

// Exceeded returns how many requests exceeded a rate limit.
func (s *Server) Exceeded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Requests returns the number of received data requests, including failed ones.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

var loginPage = template.Must(template.New("login").Parse(`<!doctype html><meta charset="utf-8"><title>Double of {{.Name}}</title>
<h1>This is a double of {{.Name}}</h1><p>It is not the real service, and its people are made up. Sign in as:</p>
<ul>{{range .People}}<li><a href="{{.URL}}">{{.Name}}</a></li>{{end}}</ul>`))

// login serves the sign-in page with all people, and signs in the person who was chosen there.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != s.opts.ClientID || q.Get("response_type") != "code" || len(q.Get("state")) < 8 {
		http.Error(w, "the sign-in needs client_id, response_type=code, redirect_uri and a state of 8 characters", http.StatusBadRequest)
		return
	}
	if person := q.Get("person"); s.people[person] != nil {
		s.mu.Lock()
		s.issued++
		word := fmt.Sprint("code-", s.issued)
		s.codes[word] = code{person, q.Get("code_challenge"), q.Get("redirect_uri"), s.opts.Now()}
		s.mu.Unlock()
		answer := back.Query()
		answer.Set("code", word)
		answer.Set("state", q.Get("state"))
		back.RawQuery = answer.Encode()
		http.Redirect(w, r, back.String(), http.StatusSeeOther) //nolint:gosec // a double takes any redirect address, and is for tests
		return
	}
	type entry struct{ URL, Name string }
	view := struct {
		Name   string
		People []entry
	}{Name: s.name}
	for _, p := range s.opts.People {
		q.Set("person", p.ID)
		view.People = append(view.People, entry{"?" + q.Encode(), p.Name})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = loginPage.Execute(w, view) // an error means that the caller has disconnected
}

func reply(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc) // an error means that the caller has disconnected
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(status int, code string) { s.tokens(w, status, object{"error": code}) }
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != s.opts.ClientID || secret != s.opts.ClientSecret {
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	}
	var person string
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		c, ok := s.codes[r.PostFormValue("code")]
		delete(s.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || s.codeLife > 0 && s.opts.Now().Sub(c.at) > s.codeLife || c.redirect != r.PostFormValue("redirect_uri") ||
			c.challenge != "" && c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
		person = c.person
	case "refresh_token":
		old := r.PostFormValue("refresh_token")
		if person = s.refresh[old]; person == "" {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
		if !s.keepRefresh {
			delete(s.refresh, old) // a refresh token can be used once
		}
		s.exchanges++
	default:
		refuse(http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	s.issued++
	access, renewal := fmt.Sprint("access-", s.issued), fmt.Sprint("refresh-", s.issued)
	if s.accessToken != nil {
		access = s.accessToken(s.people[person], access)
	}
	for t, g := range s.access {
		if g.person == person {
			delete(s.access, t)
		}
	}
	life := s.opts.TokenLife
	if s.permanent {
		life = 10 * 365 * 24 * time.Hour
	}
	s.access[access] = grant{person, s.opts.Now().Add(life)}
	answer := object{"access_token": access, "token_type": "bearer", "expires_in": int(life / time.Second)}
	if !s.permanent && !(s.keepRefresh && r.PostFormValue("grant_type") == "refresh_token") {
		s.refresh[renewal] = person
		answer["refresh_token"] = renewal
	}
	if s.granted != nil {
		maps.Copy(answer, s.granted(s.people[person]))
	}
	s.tokens(w, http.StatusOK, answer)
}

// revokeGrant revokes the grant to which the access token in the Authorization header or in the query belongs.
func (s *Server) revokeGrant(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := bearer(r)
	if word == "" {
		word = r.URL.Query().Get("access_token")
	}
	g, ok := s.access[word]
	if !ok {
		reply(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	s.revoke(g.person)
	w.WriteHeader(http.StatusNoContent)
}

// revoke removes all tokens of a person. The caller holds s.mu.
func (s *Server) revoke(person string) {
	for t, g := range s.access {
		if g.person == person {
			delete(s.access, t)
		}
	}
	for t, of := range s.refresh {
		if of == person {
			delete(s.refresh, t)
		}
	}
}

func bearer(r *http.Request) string {
	const scheme = "Bearer "
	if h := r.Header.Get("Authorization"); len(h) > len(scheme) && h[:len(scheme)] == scheme {
		return h[len(scheme):]
	}
	return ""
}

func (s *Server) data(path string, answer func(p *Person, q url.Values) (any, error)) {
	s.serve(path, func(p *Person, r *http.Request) (any, error) { return answer(p, r.URL.Query()) })
}

func (s *Server) one(path string, answer func(p *Person, id string) any) {
	s.serve(path, func(p *Person, r *http.Request) (any, error) { return answer(p, r.PathValue("id")), nil })
}

func (s *Server) serve(path string, answer func(*Person, *http.Request) (any, error)) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		p, status, _ := s.checkRequest(w, bearer(r))
		if s.key != "" && r.Header.Get(s.key) != s.keyValue {
			status = http.StatusUnauthorized
		}
		if status != 0 {
			reply(w, status, map[string]string{"title": http.StatusText(status)})
			return
		}
		doc, err := answer(p, r)
		if err != nil {
			reply(w, http.StatusBadRequest, map[string]string{"title": err.Error()})
			return
		}
		if doc == nil {
			reply(w, http.StatusNotFound, map[string]string{"title": "not found"})
			return
		}
		reply(w, http.StatusOK, doc)
	})
}

// checkRequest counts a data request. It returns the person to whom the access token belongs. If it refuses the
// request, it returns the HTTP status and, for 429, the time to wait.
func (s *Server) checkRequest(w http.ResponseWriter, token string) (*Person, int, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	now := s.opts.Now()
	if len(s.opts.Limits) > 0 {
		all, full := s.count(now)
		if s.limited != nil {
			s.limited(w.Header(), all)
		}
		if full > 0 {
			s.refused++
			return nil, http.StatusTooManyRequests, full
		}
		s.recent = append(s.recent, now)
	}
	f := s.opts.Faults
	if f.Every > 0 && s.requests%f.Every == 0 {
		return nil, http.StatusServiceUnavailable, 0
	}
	g, ok := s.access[token]
	if !ok || !g.ends.After(now) || f.Reject > 0 && s.requests%f.Reject == f.Reject-1 {
		return nil, http.StatusUnauthorized, 0
	}
	return s.people[g.person], 0, 0
}

// count returns what remains of each rate limit after one more request. full is the time to wait if a limit is
// exceeded; else 0.
func (s *Server) count(now time.Time) (all []room, full time.Duration) {
	oldest := len(s.recent)
	for _, l := range s.opts.Limits {
		began := now.Add(-l.Per)
		if l.Aligned {
			began = now.Truncate(l.Per).Add(-time.Nanosecond)
		}
		first, _ := slices.BinarySearchFunc(s.recent, began, func(at, began time.Time) int {
			if at.After(began) {
				return 1
			}
			return -1
		})
		oldest = min(oldest, first)
		within := s.recent[first:]
		r := room{l, max(l.Requests-len(within)-1, 0), l.Per}
		switch {
		case l.Aligned:
			r.wait = now.Truncate(l.Per).Add(l.Per).Sub(now)
		case len(within) > 0:
			r.wait = within[0].Add(l.Per).Sub(now)
		}
		if len(within) >= l.Requests {
			full = max(full, r.wait)
		}
		all = append(all, r)
	}
	s.recent = s.recent[oldest:]
	return all, full
}

// page returns at most size items of a list, and the token of the next page; empty on the last page. token is the index
// of the first item; empty means 0.
func page[T any](all []T, token string, size int) (items []T, next string) {
	from, _ := strconv.Atoi(token)
	from = min(max(from, 0), len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next
}

// Truth holds the values that a connector must return for a person. The outer key is a resource. The inner key of a
// sample is its RFC 3339 time in UTC, followed by a space and its type if it has one. The inner key of a summary's
// field is the start or the day of the summary (profile for a profile), a dot and a name of the field.
type Truth map[string]map[string]float64

func (t Truth) put(resource, key string, v float64) {
	if t[resource] == nil {
		t[resource] = map[string]float64{}
	}
	t[resource][key] = v
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

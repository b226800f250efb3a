package console

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	cookieName  = "healthlab_console"
	sessionLife = 12 * time.Hour
	maxSessions = 1000
)

// session is one signed-in browser. It is immutable.
type session struct {
	key, csrf string // management key, and CSRF token
	ends      time.Time
}

// sessionKey is the context key of the session.
type sessionKey struct{}

// holder is the holder of a management key.
type holder struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

// May reports whether the holder's role includes role. The role admin includes all others, and developer includes
// viewer.
func (h *holder) May(role string) bool {
	return h.Role == role || h.Role == "admin" || h.Role == "developer" && role == "viewer"
}

func (s *session) hasCSRFToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.csrf), []byte(token)) == 1
}

// link is a single-use address that starts a session and opens a page.
type link struct {
	key, page string
	ends      time.Time
}

const (
	linkLife = time.Hour
	maxLinks = 100
)

// sessions holds, in memory, the sessions by the value of their cookie, and the single-use links by the last part of
// their path.
type sessions struct {
	now   func() time.Time
	mu    *sync.Mutex
	ids   map[string]*session
	links map[string]link
}

func newSessions(now func() time.Time) sessions {
	return sessions{now: now, mu: new(sync.Mutex), ids: map[string]*session{}, links: map[string]link{}}
}

func (s sessions) find(r *http.Request) *session {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.ids[c.Value]
	if on == nil || !s.now().Before(on.ends) {
		return nil
	}
	return on
}

// add starts a session and returns its id; "" if there are too many sessions.
func (s sessions) add(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, on := range s.ids {
		if !s.now().Before(on.ends) {
			delete(s.ids, id)
		}
	}
	if len(s.ids) >= maxSessions {
		return ""
	}
	id := rand.Text()
	s.ids[id] = &session{key: key, csrf: rand.Text(), ends: s.now().Add(sessionLife)}
	return id
}

func (s sessions) remove(r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ids, c.Value)
	}
}

func (s *Console) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	s.enter(w, r, r.PostFormValue("key"), "/")
}

// enter starts a session with a management key, and redirects to a page.
func (s *Console) enter(w http.ResponseWriter, r *http.Request, key, page string) {
	_, err := s.checkKey(r, key)
	var refused *apiError
	switch {
	case errors.As(err, &refused):
		text := "This management key does not open the team. Check the key and try once more."
		if refused.Status == http.StatusTooManyRequests || refused.Status >= 500 {
			text = "The API does not answer. Try again in a minute."
		}
		s.render(w, r, nil, refused.Status, "signin", "Sign in", text)
		return
	case err != nil:
		s.Log.ErrorContext(r.Context(), "console sign-in failed", "error", err)
		s.render(w, r, nil, http.StatusInternalServerError, "signin", "Sign in", "The sign-in failed. The log has the error.")
		return
	}
	id := s.sessions.add(key)
	if id == "" {
		s.render(w, r, nil, http.StatusServiceUnavailable, "signin", "Sign in", "Too many people are signed in. Try again later.")
		return
	}
	s.setCookie(w, id, int(sessionLife.Seconds()))
	http.Redirect(w, r, s.Path+page, http.StatusSeeOther)
}

// Link returns the path of a page with a button. The button signs in the visitor with the management key, and opens
// page, a path below Config.Path, such as "/users". The returned path works once, within an hour, in this process. Link
// returns "" if 100 links are still unused.
func (s *Console) Link(key, page string) string {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	now := s.sessions.now()
	for id, l := range s.sessions.links {
		if !now.Before(l.ends) {
			delete(s.sessions.links, id)
		}
	}
	if len(s.sessions.links) >= maxLinks {
		return ""
	}
	id := rand.Text()
	s.sessions.links[id] = link{key: key, page: page, ends: now.Add(linkLife)}
	return s.Path + "/links/" + id
}

// findLink returns an unused link that has not expired. If use is true, the link cannot be used again.
func (s sessions) findLink(id string, use bool) (link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[id]
	if !ok || !s.now().Before(l.ends) {
		return link{}, false
	}
	if use {
		delete(s.links, id)
	}
	return l, true
}

func (s *Console) openLink(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.sessions.findLink(r.PathValue("link"), false); !ok {
		s.render(w, r, nil, http.StatusNotFound, "signin", "Sign in", "This link was used or is older than an hour. Sign in with a management key.")
		return
	}
	s.render(w, r, nil, http.StatusOK, "link", "Open the console", nil)
}

func (s *Console) useLink(w http.ResponseWriter, r *http.Request) {
	l, ok := s.sessions.findLink(r.PathValue("link"), true)
	if !ok {
		s.openLink(w, r)
		return
	}
	s.enter(w, r, l.key, l.page)
}

func (s *Console) checkKey(r *http.Request, key string) (*holder, error) {
	who := new(holder)
	err := s.manage(r, &session{key: key}, http.MethodGet, "/team/"+s.Team+"/management_key", nil, nil, who)
	return who, err
}

func (s *Console) signOut(w http.ResponseWriter, r *http.Request, _ *session) error {
	s.sessions.remove(r)
	s.setCookie(w, "", -1)
	http.Redirect(w, r, s.Path+"/sign-in", http.StatusSeeOther)
	return nil
}

func (s *Console) setCookie(w http.ResponseWriter, value string, age int) {
	//nolint:gosec // Secure follows Config.Secure: development servers have no TLS
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, Path: s.Path, MaxAge: age, HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode})
}

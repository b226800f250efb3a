// Sessions is a clinic with users and sessions of its own. It mounts the health data of the person who is signed in:
// go run ./examples/sessions, then POST http://127.0.0.1:8080/login?name=ann, and GET /health/v2/user/ with its cookie.
package main

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"sync"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func main() {
	ctx, team := context.Background(), healthlab.TeamID{UUID: uuid.UUID{2}} // a fixed id of the clinic's team
	must(0, httpserver.New(clinic(ctx, team), nil).Serve(must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:8080"))))
}

func clinic(ctx context.Context, team healthlab.TeamID) http.Handler {
	store := memory.New(&memory.Options{Events: stores.NoEvents}) // or stores.New over sqlite.Open or postgres.Open
	providers := must(healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Class: "manual", Category: "app"}}))
	health := must(healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox}))
	go func() { must(0, health.Deletions().Run(ctx)) }()                         // erases deleted users after their grace period
	mux, sessions := http.NewServeMux(), new(sync.Map)                           // user by session cookie
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { // a real clinic checks a password here
		ann, _, err := health.CreateOrGet(r.Context(), team, healthdata.NewUser{ClientUserID: r.FormValue("name")})
		if session := rand.Text(); err == nil { // after an error the person is not signed in
			sessions.Store(session, ann.ID)
			http.SetCookie(w, &http.Cookie{Name: "session", Value: session, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		}
	})
	mux.Handle("/health/", http.StripPrefix("/health", httpapi.Handler(httpapi.Config{
		Parts: []httpapi.Part{httpapi.HealthData(health)},
		URL:   "/health", SignIn: []byte(`{"type": "apiKey", "in": "cookie", "name": "session"}`),
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			for _, cookie := range r.CookiesNamed("session") {
				if user, ok := sessions.Load(cookie.Value); ok {
					return httpapi.Caller{Team: team, User: user.(healthlab.UserID)}, nil
				}
			}
			return httpapi.Caller{}, healthlab.Unauthenticated
		},
	})))
	return mux
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// double is a test server with the provider's API. It has one invented person, ann, with a weighing at 7:00 each
// day.
type double struct {
	mu     sync.Mutex
	tokens map[string]bool
	issued int
}

const pageSize = 10

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch r.Method + " " + r.URL.Path {
	case "POST /token":
		var in struct{ Name, Password string }
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Name != "ann" || in.Password != "correct horse" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		d.issued++
		token = fmt.Sprint("token-", d.issued)
		d.tokens[token] = true
		reply(w, map[string]any{"token": token, "account": "account-ann"})
	case "DELETE /token":
		if !d.tokens[token] {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		delete(d.tokens, token)
		w.WriteHeader(http.StatusNoContent)
	case "GET /weighings":
		if !d.tokens[token] {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		q := r.URL.Query()
		from, err1 := time.Parse(time.RFC3339, q.Get("from"))
		to, err2 := time.Parse(time.RFC3339, q.Get("to"))
		skip, err3 := strconv.Atoi("0" + q.Get("page"))
		if err1 != nil || err2 != nil || err3 != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		all := weighings(from, to)
		end := min(skip+pageSize, len(all))
		out := map[string]any{"weighings": all[min(skip, end):end]}
		if end < len(all) {
			out["next"] = strconv.Itoa(end)
		}
		reply(w, out)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// weighings returns ann's weighings in a time range, as the JSON of the API.
func weighings(from, to time.Time) []map[string]any {
	out := []map[string]any{}
	for at := from.Truncate(24 * time.Hour).Add(7 * time.Hour); at.Before(to); at = at.AddDate(0, 0, 1) {
		if !at.Before(from) {
			out = append(out, map[string]any{"at": at, "kg": 70 + float64(at.YearDay()%10)/10})
		}
	}
	return out
}

func reply(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc) // an error means that the caller has disconnected
}

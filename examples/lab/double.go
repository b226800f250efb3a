package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab/orders"
)

// double is a test server with the laboratory's API. Each call of Work advances every order by one step: first a
// partial report, then a final one.
type double struct {
	mu      sync.Mutex
	taken   []*job
	reports []any
	at      time.Time
	down    bool
}

// job is an order that the laboratory has accepted.
type job struct {
	id        orders.OrderID
	number    string
	in        requisition
	steps     int
	cancelled bool
}

func newDouble() *double { return &double{at: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)} }

// Work simulates an hour of the laboratory's work: every order gets its next report.
func (d *double) Work() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.at.Add(time.Hour)
	kinds := []string{"partial", "final"}
	for _, j := range d.taken {
		if j.cancelled || j.steps == len(kinds) {
			continue
		}
		r := report{head: d.head(j.id), Kind: kinds[j.steps], patient: j.in.patient}
		r.Lines = append(r.Lines, line{Code: "FER", Name: "Ferritin", LOINC: "2276-4", Value: "18", Unit: "ug/L", Range: "13-150"})
		if r.Kind == "final" {
			r.Lines = append(r.Lines, line{Code: "IRON", Name: "Iron", LOINC: "2498-4", Value: "52", Unit: "ug/dL", Range: "60-170"})
		}
		d.reports = append(d.reports, r)
		j.steps++
	}
}

func (d *double) head(id orders.OrderID) head {
	i := slices.IndexFunc(d.taken, func(j *job) bool { return j.id == id })
	return head{ID: fmt.Sprintf("report-%d", len(d.reports)+1), Order: id, Team: d.taken[i].in.Team, At: d.at}
}

// Report adds a report of an order. edit gets a correct final report, and returns the value that the API sends as JSON.
func (d *double) Report(id orders.OrderID, edit func(*report) any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.taken, func(j *job) bool { return j.id == id })
	r := report{head: d.head(id), Kind: "final", patient: d.taken[i].in.patient}
	r.Lines = []line{{Code: "FER", Name: "Ferritin", LOINC: "2276-4", Value: "18", Unit: "ug/L", Range: "13-150"}}
	d.reports = append(d.reports, edit(&r))
}

// Fail makes the API answer every later request with an error.
func (d *double) Fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = true
}

// ServeHTTP serves the laboratory's API.
func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", d.acceptOrder)
	mux.HandleFunc("DELETE /orders/{id}", d.cancel)
	mux.HandleFunc("GET /reports", d.list)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	mux.ServeHTTP(w, r)
}

// find returns the accepted order that a request names; nil if there is none.
func (d *double) find(r *http.Request) *job {
	i := slices.IndexFunc(d.taken, func(j *job) bool { return j.id.String() == r.PathValue("id") })
	if i < 0 {
		return nil
	}
	return d.taken[i]
}

// acceptOrder accepts an order. An order with a known id is not added again.
func (d *double) acceptOrder(w http.ResponseWriter, r *http.Request) {
	j := d.find(r)
	if j == nil {
		j = &job{number: fmt.Sprintf("TL-%04d", len(d.taken)+1)}
		if json.NewDecoder(r.Body).Decode(&j.in) != nil || j.id.UnmarshalText([]byte(r.PathValue("id"))) != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		d.taken = append(d.taken, j)
	}
	reply(w, map[string]string{"number": j.number})
}

func (d *double) cancel(w http.ResponseWriter, r *http.Request) {
	switch j := d.find(r); {
	case j == nil:
		w.WriteHeader(http.StatusNotFound)
	case j.steps > 0:
		w.WriteHeader(http.StatusConflict)
	default:
		j.cancelled = true
		w.WriteHeader(http.StatusNoContent)
	}
}

func (d *double) list(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.Atoi(r.FormValue("after"))
	limit, err2 := strconv.Atoi(r.FormValue("limit"))
	if err != nil || err2 != nil || after < 0 || limit < 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	after = min(after, len(d.reports))
	reply(w, append([]any{}, d.reports[after:min(after+limit, len(d.reports))]...))
}

func reply(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc) // an error means that the caller has disconnected
}

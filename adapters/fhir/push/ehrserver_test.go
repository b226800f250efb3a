package push_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

type object = map[string]any

// stored is a resource of an ehrServer, with its versions, the latest last.
type stored struct {
	kind, id string
	versions []object
}

func (s *stored) last() object { return s.versions[len(s.versions)-1] }

// fault is what an ehrServer does with a transaction, beside taking it or not.
type fault int

const (
	none            fault = iota
	dropped               // closes the connection, and takes nothing
	droppedAfter          // takes it, and closes the connection
	half                  // takes it, and sends half an answer
	fewer                 // takes it, and answers without the last entry
	busy                  // 429 with Retry-After
	unavailable           // 503
	conflicting           // 409
	proxy                 // 404 with a page of a proxy
	misconfigured         // 403
	entryBusy             // 200 with 503 for an entry, and takes nothing
	faults                // how many there are
	retryAfterBusy  = "7" // seconds
	markerInOutcome = "outcome-marker"
)

// ehrServer is a FHIR server that takes transactions as R4 says: all of one or none, with conditional creates
// and updates. It is safe for concurrent use.
type ehrServer struct {
	mu       sync.Mutex
	all      []*stored
	requests int
	posts    []object // the transactions that were taken
	// next says what goes wrong with a transaction; nil for nothing.
	next func(transaction object) fault
	// refuse says whether a resource is refused with 422; nil for none.
	refuse func(resource object) bool
	// token is the bearer token that is required; empty for none.
	token string
	// before is called before a transaction is taken, and after it was.
	before, after func()
}

func (s *ehrServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	var b object
	if err != nil || json.Unmarshal(body, &b) != nil || r.Method != http.MethodPost || b["type"] != "transaction" {
		s.outcome(w, http.StatusBadRequest, "structure", "")
		return
	}
	if s.before != nil {
		s.before()
	}
	what := none
	if s.next != nil {
		what = s.next(b)
	}
	switch what {
	case dropped:
		panic(http.ErrAbortHandler)
	case busy:
		w.Header().Set("Retry-After", retryAfterBusy)
		s.outcome(w, http.StatusTooManyRequests, "throttled", "")
		return
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case conflicting:
		s.outcome(w, http.StatusConflict, "conflict", "")
		return
	case proxy:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html>not found</html>")
		return
	case misconfigured:
		s.outcome(w, http.StatusForbidden, "forbidden", "")
		return
	}
	answer, status, place := s.take(b, what != entryBusy)
	if status != 0 {
		s.outcome(w, status, "processing", place)
		return
	}
	if what == entryBusy {
		list := answer["entry"].([]any)
		list[len(list)-1].(object)["response"].(object)["status"] = "503 Service Unavailable"
	} else if s.after != nil {
		s.after()
	}
	if what == fewer {
		list := answer["entry"].([]any)
		answer["entry"] = list[:len(list)-1]
	}
	text, _ := json.Marshal(answer)
	switch what {
	case droppedAfter:
		panic(http.ErrAbortHandler)
	case half:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/fhir+json")
	_, _ = w.Write(text)
}

func (s *ehrServer) outcome(w http.ResponseWriter, status int, code, place string) {
	w.Header().Set("Content-Type", "application/fhir+json")
	w.WriteHeader(status)
	issue := object{"severity": "error", "code": code, "diagnostics": markerInOutcome, "expression": []string{"Patient.name.where(family = '" + markerInOutcome + "')"}}
	if place != "" {
		issue["expression"] = append(issue["expression"].([]string), place)
	}
	_ = json.NewEncoder(w).Encode(object{"resourceType": "OperationOutcome", "issue": []any{issue}})
}

// take applies a transaction if all of it can be taken; else it returns the status and the place of what cannot.
func (s *ehrServer) take(b object, keep bool) (answer object, status int, place string) {
	entries, _ := b["entry"].([]any)
	type change struct {
		at       *stored
		resource object
		isNew    bool
		skipped  bool
	}
	changes := make([]change, len(entries))
	links := map[string]string{} // fullUrl to reference
	var added []*stored
	for i, e := range entries {
		place = fmt.Sprintf("Bundle.entry[%d].resource", i)
		e := e.(object)
		resource, request := e["resource"].(object), e["request"].(object)
		if s.refuse != nil && s.refuse(resource) {
			return nil, http.StatusUnprocessableEntity, place
		}
		kind := resource["resourceType"].(string)
		var query string
		switch request["method"] {
		case "POST":
			query = request["ifNoneExist"].(string)
		case "PUT":
			query = strings.TrimPrefix(request["url"].(string), kind+"?")
		default:
			return nil, http.StatusMethodNotAllowed, place
		}
		found, ok := s.find(kind, query)
		if !ok || len(found) > 1 || !slices.Contains(identifiers(resource), criterion(query)) {
			return nil, http.StatusPreconditionFailed, place
		}
		c := change{resource: resource}
		switch {
		case len(found) == 1:
			c.at, c.skipped = found[0], request["method"] == "POST"
		default:
			c.at, c.isNew = &stored{kind: kind, id: fmt.Sprintf("srv-%d", len(s.all)+len(added)+1)}, true
			added = append(added, c.at)
		}
		changes[i] = c
		full := e["fullUrl"].(string)
		if links[full] != "" {
			return nil, http.StatusBadRequest, place // two entries of one name
		}
		links[full] = kind + "/" + c.at.id
	}
	out := []any{}
	for i := range changes {
		if changes[i].skipped {
			continue
		}
		if !s.resolve(changes[i].resource, links) {
			return nil, http.StatusUnprocessableEntity, fmt.Sprintf("Bundle.entry[%d].resource", i)
		}
	}
	for i := range changes {
		c := &changes[i]
		status := "200 OK"
		if c.isNew {
			status = "201 Created"
		}
		out = append(out, object{"response": object{"status": status, "location": c.at.kind + "/" + c.at.id}})
		if !keep || c.skipped {
			continue
		}
		if c.isNew {
			s.all = append(s.all, c.at)
		}
		c.at.versions = append(c.at.versions, c.resource)
	}
	if keep {
		s.posts = append(s.posts, b)
	}
	return object{"resourceType": "Bundle", "type": "transaction-response", "entry": out}, 0, ""
}

func criterion(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get("identifier")
}

func identifiers(resource object) (out []string) {
	list, _ := resource["identifier"].([]any)
	for _, x := range list {
		x := x.(object)
		out = append(out, fmt.Sprint(x["system"], "|", x["value"]))
	}
	return out
}

// find returns the resources that an identifier finds. False if the query is none by identifier.
func (s *ehrServer) find(kind, query string) (out []*stored, ok bool) {
	want := criterion(query)
	if want == "" {
		return nil, false
	}
	for _, r := range s.all {
		if r.kind == kind && slices.Contains(identifiers(r.last()), want) {
			out = append(out, r)
		}
	}
	return out, true
}

// resolve replaces the references of a value by those of the server. False if one leads nowhere.
func (s *ehrServer) resolve(v any, links map[string]string) bool {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if !s.resolve(x, links) {
				return false
			}
		}
	case object:
		for _, x := range v {
			if !s.resolve(x, links) {
				return false
			}
		}
		ref, ok := v["reference"].(string)
		if !ok {
			return true
		}
		if to := links[ref]; to != "" {
			v["reference"] = to
			return true
		}
		kind, query, conditional := strings.Cut(ref, "?")
		if !conditional {
			return false
		}
		for full := range links {
			if full == ref {
				return false
			}
		}
		found, ok := s.find(kind, query)
		if !ok || len(found) != 1 {
			return false
		}
		v["reference"] = kind + "/" + found[0].id
	}
	return true
}

// of returns the resources of a type, by the value of their identifier of a system.
func (s *ehrServer) of(kind, system string) map[string]*stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]*stored{}
	for _, r := range s.all {
		if r.kind != kind {
			continue
		}
		for _, id := range identifiers(r.last()) {
			if value, ok := strings.CutPrefix(id, system+"|"); ok {
				out[value] = r
			}
		}
	}
	return out
}

func (s *ehrServer) change(edit func(*ehrServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(s)
}

func (s *ehrServer) count() (requests, resources int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, len(s.all)
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

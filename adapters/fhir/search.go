package fhir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Sizes of a page.
const (
	defaultCount = 50
	maxCount     = 500
)

// query holds the parameters of a search.
type query struct {
	url      string     // base address of the server
	values   url.Values // as sent, to build links from
	ids      []string
	patients []healthlab.UserID
	// byPatient and byID are true if the search names patients or ids, even if patients or ids is empty.
	byPatient, byID bool
	// Each holds one element for each time that its parameter is given; all must match. An element lists alternative
	// tokens, of which one must match.
	code, category, status, identifier [][]token
	date, updated                      [][]moment
	count                              int
	after                              string
	offset                             int // number of Patients before the page
	interval                           interval
	since                              time.Time
	order                              order
	noTotal                            bool
	elements                           map[string]bool // elements to send; nil means all
	includes                           []include
	provenance                         bool // include each Provenance of a match
}

// token is a code in a search parameter, with its system if one is named.
type token struct {
	system, code       string
	anySystem, anyCode bool
}

// moment is a bound of a date parameter: a prefix such as ge, and the period that the date covers.
type moment struct {
	prefix string
	span
}

// match is a resource with the values that searches compare.
type match struct {
	resource
	codes, categories []coding
	identifiers       []coding // system and value of each identifier; the value is the Code
	status            string
	when              span
	updated           time.Time
}

// found is the result of a search.
type found struct {
	all   []match
	total int
	next  string // position of the next page for _after; empty on the last page
}

// readQuery reads the parameters of a search. With handling lenient it ignores unknown ones. Its problems never
// repeat a value.
func readQuery(text string, k *kind, url string, handling handling) (*query, []healthlab.Problem) {
	q := &query{count: defaultCount, url: url, order: latestFirst}
	values, problems := parseParams(text, k.name, k.known(), handling)
	q.values = values
	wrong := func(name, msg string) { problems = append(problems, parameterProblem(name, msg)) }
	// In this order _summary is read after _count and _elements, which it overrides.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			if msg := q.set(name, value, k); msg != "" {
				wrong(name, msg)
			}
		}
	}
	if k.byID && !q.byID && len(problems) == 0 {
		wrong("_id", "is required: this type can only be searched by _id")
	}
	filtered := len(q.code)+len(q.category)+len(q.status)+len(q.date)+len(q.updated) > 0 || !q.since.IsZero()
	if slices.Contains(k.params, "patient") && !q.byPatient && (!q.byID || filtered) && len(problems) == 0 {
		wrong("patient", "is required, as the id of a Patient, unless _id is the only filter")
	}
	if q.interval == sampled || q.interval == byHour {
		limit := map[interval]int{byHour: 366, sampled: 31}[q.interval]
		first, last := days(q.date, healthlab.Date{Year: 1, Month: 1, Day: 3}, healthlab.Date{Year: 9999, Month: 1, Day: 1})
		if !q.byID && last.After(first.AddDays(limit+2)) {
			wrong("date", fmt.Sprintf("must bound at most %d days on both sides where interval is %s", limit, q.interval))
		}
	}
	return q, problems
}

// handling says what happens to unknown search parameters (Prefer: handling).
type handling bool

const (
	strict  handling = false // they are refused
	lenient handling = true  // they are ignored
)

func handlingOf(r *http.Request) handling { return handling(prefers(r, "handling=lenient")) }

// parseParams parses a query string, and returns the known parameters and the problems.
func parseParams(text, what string, known []string, handling handling) (url.Values, []healthlab.Problem) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, []healthlab.Problem{parameterProblem("query", "must be a well-formed query string: two hexadecimal digits after each %, and no unescaped semicolon")}
	}
	var problems []healthlab.Problem
	for _, name := range slices.Sorted(maps.Keys(values)) {
		base, modifier, modified := strings.Cut(name, ":")
		switch {
		case slices.Contains(known, name):
			continue
		case modified && modifier == "Patient" && slices.Contains([]string{"patient", "subject"}, base) && slices.Contains(known, base):
			values[base] = append(values[base], values[name]...) // the reference can only be to a Patient
		case modified && slices.Contains(known, base):
			problems = append(problems, parameterProblem(base, "must have no modifier: those such as :missing and :not are not supported"))
		case handling == lenient:
		default:
			problems = append(problems, healthlab.Problem{
				Path: []any{"query", parameterName(name)}, Code: "unknown_parameter", Msg: fmt.Sprintf("is not a parameter of %s, which takes %s", what, strings.Join(known, ", ")),
			})
		}
		delete(values, name)
	}
	return values, problems
}

// parameterName returns the name of a parameter for the text of a problem; "a name" if it is long or has unusual
// characters.
func parameterName(name string) string {
	const most = 64
	if len(name) > most || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:$") != "" {
		return "a name"
	}
	return name
}

func parameterProblem(name, msg string) healthlab.Problem {
	return healthlab.Problem{Path: []any{"query", name}, Code: "invalid", Msg: msg}
}

// set reads one parameter, and returns what is wrong with its value; "" if nothing is.
func (q *query) set(name, value string, k *kind) string {
	switch name {
	case "_pretty", "_total", "_since", "_summary", "_elements", "_sort":
		return q.setResult(name, value, k)
	case "_include", "_revinclude":
		return q.setInclude(name, value, k)
	case "_count":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Sprintf("must be a whole number from 0, which returns the total only, to %d", maxCount)
		}
		q.count = min(n, maxCount)
	case "_after":
		q.after = value
		if k.name != "Patient" || strings.Contains(value, "~") {
			_, _, wrong := position(value)
			return wrong
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return afterRule
		}
		q.offset = n
	case "_id":
		ids := alternatives(value)
		if q.byID { // a repeated parameter: both must match
			ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(q.ids, id) })
		}
		if q.ids, q.byID = ids, true; len(ids) > maxCount {
			return fmt.Sprintf("must have at most %d ids", maxCount)
		}
	case "patient", "subject":
		return q.setPatients(value)
	case "interval":
		q.interval = interval(value)
		if !slices.Contains([]interval{byDay, byHour, sampled}, q.interval) {
			return "must be day, hour or sampled"
		}
	case "code", "category", "status", "identifier":
		into := map[string]*[][]token{"code": &q.code, "category": &q.category, "status": &q.status, "identifier": &q.identifier}[name]
		list := readTokens(value)
		if name == "identifier" && slices.ContainsFunc(list, func(t token) bool { return t.code == "" }) {
			return "must be a value, or a system and a value with | between them"
		}
		if slices.ContainsFunc(list, func(t token) bool { return t.code == "" && t.system == "" }) {
			return "must be a code, a system and a code with | between them, or a system with | behind it"
		}
		*into = append(*into, list)
	case "date", "authored", "_lastUpdated":
		var either []moment
		for _, text := range alternatives(value) {
			m, ok := readMoment(text)
			if !ok {
				return "must be a date or a time, with one of the prefixes eq, ne, gt, lt, ge, le, sa, eb or none"
			}
			either = append(either, m)
		}
		if name == "_lastUpdated" {
			q.updated = append(q.updated, either)
		} else {
			q.date = append(q.date, either)
		}
	}
	return ""
}

func (q *query) setPatients(value string) string {
	list, ok := readPatients(value, q.url)
	if !ok {
		return fmt.Sprintf("must be the ids of at most %d Patients", maxPatients)
	}
	if q.byPatient { // a repeated parameter: both must match
		list = slices.DeleteFunc(list, func(id healthlab.UserID) bool { return !slices.Contains(q.patients, id) })
	}
	q.patients, q.byPatient = list, true
	return ""
}

// alternatives splits the value of a parameter at its commas. A comma after a backslash is part of a value.
func alternatives(value string) []string {
	out := []string{""}
	for i := 0; i < len(value); i++ {
		last := &out[len(out)-1]
		switch {
		case value[i] == ',':
			out = append(out, "")
		case value[i] == '\\' && i+1 < len(value) && strings.IndexByte(`,$\`, value[i+1]) >= 0:
			i++
			*last += value[i : i+1]
		default:
			*last += value[i : i+1]
		}
	}
	return out
}

func plus(value string) string {
	return strings.ReplaceAll(value, " ", "+") // a plus sign that the client did not encode was decoded as a space
}

// maxPatients is the largest number of Patients in a search.
const maxPatients = 10

// readPatients reads references to Patients: x, Patient/x, or an address of this server.
func readPatients(value, url string) (out []healthlab.UserID, ok bool) {
	for _, text := range alternatives(value) {
		id, err := uuid.Parse(strings.TrimPrefix(strings.TrimPrefix(text, url+"/"), "Patient/"))
		if err != nil {
			return nil, false
		}
		if user := (healthlab.UserID{UUID: id}); !slices.Contains(out, user) {
			out = append(out, user)
		}
	}
	return out, len(out) <= maxPatients
}

func readTokens(value string) (out []token) {
	for _, text := range alternatives(value) {
		system, code, both := strings.Cut(text, "|")
		if both {
			out = append(out, token{system: system, code: code, anyCode: code == ""})
		} else {
			out = append(out, token{code: text, anySystem: true})
		}
	}
	return out
}

// readMoment reads a date or time with a prefix. A date is a day in UTC, and a time without an offset is in UTC.
func readMoment(value string) (moment, bool) {
	m := moment{prefix: "eq"}
	value = plus(value)
	if len(value) > 2 && slices.Contains([]string{"eq", "ne", "gt", "lt", "ge", "le", "sa", "eb"}, value[:2]) {
		m.prefix, value = value[:2], value[2:]
	}
	for _, form := range []struct {
		layout string
		next   func(time.Time) time.Time
	}{
		{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
		{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
		{time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
		{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
		{"2006-01-02T15:04Z07:00", func(t time.Time) time.Time { return t.Add(time.Minute) }},
		{"2006-01-02T15:04:05", second},
		{time.RFC3339, second},
	} {
		if t, err := time.Parse(form.layout, value); err == nil {
			m.from, m.to = t.UTC(), form.next(t).UTC()
			return m, true
		}
	}
	return m, false
}

func second(t time.Time) time.Time {
	if t.Nanosecond() != 0 {
		return t.Add(time.Millisecond) // the precision of meta.lastUpdated
	}
	return t.Add(time.Second)
}

func anyMatches(bounds []moment, s span) bool {
	return slices.ContainsFunc(bounds, func(b moment) bool { return b.matches(s) })
}

// matches reports whether a period satisfies the bound. The zero period satisfies none.
func (m moment) matches(s span) bool {
	if s.from.IsZero() {
		return false
	}
	within := !s.from.Before(m.from) && !s.to.After(m.to)
	switch m.prefix {
	case "ne":
		return !within
	case "gt":
		return s.to.After(m.to)
	case "lt":
		return s.from.Before(m.from)
	case "ge":
		return within || s.to.After(m.to)
	case "le":
		return within || s.from.Before(m.from)
	case "sa":
		return !s.from.Before(m.to)
	case "eb":
		return !s.to.After(m.from)
	}
	return within
}

func hasToken(wanted [][]token, codes []coding) bool {
	for _, alternatives := range wanted {
		if !slices.ContainsFunc(alternatives, func(t token) bool {
			return slices.ContainsFunc(codes, func(c coding) bool {
				return (t.anySystem || t.system == c.System) && (t.anyCode || t.code == c.Code)
			})
		}) {
			return false
		}
	}
	return true
}

// matches reports whether a match satisfies all parameters of the query.
func (q *query) matches(m *match) bool {
	return (!q.byID || slices.Contains(q.ids, m.start().ID)) && hasToken(q.code, m.codes) && hasToken(q.category, m.categories) &&
		hasToken(q.identifier, m.identifiers) && (m.updated.IsZero() || !m.updated.Before(q.since)) &&
		hasToken(q.status, []coding{{Code: m.status}, {System: statusSystems[m.start().ResourceType], Code: m.status}}) &&
		!slices.ContainsFunc(q.date, func(either []moment) bool { return !anyMatches(either, m.when) }) &&
		!slices.ContainsFunc(q.updated, func(either []moment) bool {
			at := m.updated.Truncate(time.Millisecond) // the precision of meta.lastUpdated
			return m.updated.IsZero() || !anyMatches(either, span{at, at.Add(time.Millisecond)})
		})
}

// statusSystems maps resource types to the code system of their element status.
var statusSystems = map[string]string{
	"Observation": "http://hl7.org/fhir/observation-status", "DiagnosticReport": "http://hl7.org/fhir/diagnostic-report-status",
	"ServiceRequest": "http://hl7.org/fhir/request-status", "Specimen": "http://hl7.org/fhir/specimen-status",
	"Appointment": "http://hl7.org/fhir/appointmentstatus", "Coverage": "http://hl7.org/fhir/fm-status", "Device": "http://hl7.org/fhir/device-status",
	"Consent": "http://hl7.org/fhir/consent-state-codes", "DocumentReference": "http://hl7.org/fhir/document-reference-status",
}

// page returns one page of the matches in all, in the order of the query.
func (q *query) page(all []match) found {
	all = slices.DeleteFunc(all, func(m match) bool { return !q.matches(&m) })
	slices.SortFunc(all, func(a, b match) int { return q.order.compare(&a, q.order.key(&b), b.start().ID) })
	out := found{total: len(all)}
	if q.count == 0 {
		return out
	}
	if q.after != "" {
		key, id, _ := position(q.after)
		i, exact := slices.BinarySearchFunc(all, id, func(m match, id string) int { return q.order.compare(&m, key, id) })
		if exact {
			i++
		}
		all = all[i:]
	}
	if len(all) > q.count {
		all = all[:q.count]
		last := &all[q.count-1]
		out.next = strconv.FormatInt(q.order.key(last), 10) + "~" + last.start().ID
	}
	out.all = all
	return out
}

// compare compares a match with a position in the sorted matches: a sort key and an id. Equal keys are ordered by id.
func (o order) compare(a *match, key int64, id string) int {
	by := cmp.Compare(o.key(a), key)
	if o.descending {
		by = -by
	}
	if o.by == "_id" && o.descending {
		return strings.Compare(id, a.start().ID)
	}
	return cmp.Or(by, strings.Compare(a.start().ID, id))
}

// afterRule is the problem of a parameter _after that no link to a next page has.
const afterRule = "must be the value of _after in the next link of a page"

// position reads the value of _after in the link to a next page: a sort key and an id. wrong says what is wrong; "" if
// nothing is.
func position(text string) (key int64, id, wrong string) {
	number, id, ok := strings.Cut(text, "~")
	key, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil {
		return 0, "", afterRule
	}
	return key, id, ""
}

// byIDs finds a page of resources by their ids. It leaves out those that the caller may not read.
func (s *server) byIDs(ctx context.Context, by caller, q *query, read func(context.Context, caller, string) (resource, error)) (found, error) {
	var all []match
	ids := slices.Clone(q.ids)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		r, err := read(ctx, by, id)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return found{}, err
		}
		all = append(all, match{resource: r})
	}
	return q.page(all), nil
}

type bundle struct {
	ResourceType string  `json:"resourceType"`
	Type         string  `json:"type"`
	Total        *int    `json:"total,omitempty"`
	Link         []link  `json:"link"`
	Entry        []entry `json:"entry,omitempty"`
}

type link struct {
	Relation string `json:"relation"`
	URL      string `json:"url"`
}

type entry struct {
	FullURL  string   `json:"fullUrl"`
	Resource resource `json:"resource"`
	Search   struct {
		Mode string `json:"mode"`
	} `json:"search"`
}

func (s *server) bundle(k *kind, q *query, f found, included []resource) (*bundle, error) {
	at := func(values url.Values) string {
		if len(values) == 0 {
			return s.URL + "/" + k.name
		}
		return s.URL + "/" + k.name + "?" + values.Encode()
	}
	b := &bundle{ResourceType: "Bundle", Type: "searchset", Link: []link{{"self", at(q.values)}}}
	if !q.noTotal {
		b.Total = &f.total
	}
	add := func(r resource, mode string) error {
		if _, err := seal(r); err != nil {
			return err
		}
		h := r.start()
		e := entry{FullURL: s.URL + "/" + h.ResourceType + "/" + h.ID, Resource: r}
		if q.elements != nil && mode == "match" {
			e.Resource = &subset{r, q.elements}
		}
		e.Search.Mode = mode
		b.Entry = append(b.Entry, e)
		return nil
	}
	for i := range f.all {
		if err := add(f.all[i].resource, "match"); err != nil {
			return nil, err
		}
	}
	for _, r := range included {
		if err := add(r, "include"); err != nil {
			return nil, err
		}
	}
	if f.next != "" {
		values := maps.Clone(q.values)
		values.Set("_after", f.next)
		b.Link = append(b.Link, link{"next", at(values)})
	}
	return b, nil
}

package fhir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// streamTime is the longest duration of the answer to $everything, and of the download of an export file.
const streamTime = time.Hour

// everythingParams lists the parameters of $everything.
var everythingParams = []string{"start", "end", "_since", "_type", "_count", "_after", "interval", "_format", "_pretty"}

// selection holds the parameters of $everything or of an export: which resources of a person are sent.
type selection struct {
	query
	types []string
	// filters are searches. A resource is sent only if it matches one of them. Without filters all resources are sent.
	filters []*query
	place   place
}

// place is the position at which a page of $everything begins.
type place struct {
	n    int    // number of resources before the page
	last string // last resource before the page, such as Patient/1
}

// readSelection reads the parameters of $everything.
func (s *server) readSelection(text string, handling handling) (*selection, []healthlab.Problem) {
	out := &selection{}
	k := &kind{name: "$everything", params: []string{"date", "interval"}}
	values, problems := parseParams(text, k.name, everythingParams, handling)
	out.values = values
	for name, list := range values {
		for _, value := range list {
			if msg := out.parseParam(s, k, name, value); msg != "" {
				problems = append(problems, parameterProblem(name, msg))
			}
		}
	}
	if out.interval == sampled {
		problems = append(problems, parameterProblem("interval", "must be day or hour"))
	}
	return out, problems
}

// parseParam reads the parameter name of $everything. k lists the allowed search parameters. It returns what is wrong
// with value; "" if nothing is.
func (l *selection) parseParam(s *server, k *kind, name, value string) string {
	switch name {
	case "start", "end":
		if strings.Contains(value, ",") {
			return "must be one date or time"
		}
		return l.set("date", map[string]string{"start": "ge", "end": "le"}[name]+value, k)
	case "_type":
		for _, t := range strings.Split(value, ",") {
			if !slices.ContainsFunc(s.kinds(), func(k kind) bool { return k.name == t }) {
				return "must be types that /metadata lists, with commas between them"
			}
			l.types = append(l.types, t)
		}
	case "_count":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return "must be a whole number of at least 1"
		}
		l.count = n
	case "_after":
		n, last, ok := strings.Cut(value, "~")
		number, err := strconv.Atoi(n)
		if err != nil || !ok || number < 1 {
			return afterRule
		}
		l.place = place{number, last}
	default:
		return l.set(name, value, k)
	}
	return ""
}

func (l *selection) hasType(name string) bool {
	return len(l.types) == 0 || slices.Contains(l.types, name)
}

func (l *selection) matches(m *match) bool {
	// Bounds of dates do not exclude a resource without a time, nor does _since one without a time of its last
	// change.
	return (m.updated.IsZero() || !m.updated.Before(l.since)) &&
		(len(l.filters) == 0 || slices.ContainsFunc(l.filters, func(q *query) bool { return q.matches(m) })) &&
		(m.when.from.IsZero() || !slices.ContainsFunc(l.date, func(either []moment) bool { return !anyMatches(either, m.when) }))
}

// everything answers with the resources of a person that the parameters select; without parameters, with all. It
// streams them, so that memory does not grow with their number.
func (s *server) everything(w http.ResponseWriter, r *http.Request, by caller) error {
	if !acceptsJSON(r, r.URL.Query()) {
		return refuseFormat(w)
	}
	params, broken, err := operationParams(r, by)
	if err != nil {
		return err
	}
	l, problems := s.readSelection(params, handlingOf(r))
	problems = append(problems, broken...)
	if len(problems) > 0 {
		return refuse(w, httpapi.Refusal{Status: http.StatusBadRequest, Problems: problems})
	}
	may, err := s.rightsOf(r)
	if err != nil {
		return err
	}
	if !s.restrict(l, may) {
		return lacking(w, "system/*.read, or those of the types")
	}
	id, ok := parseUUID(r.PathValue("id"))
	if !ok {
		by.Concerns(healthlab.UserID{})
		return refuseUnknown(w, "Patient")
	}
	u, err := s.user(r.Context(), by, healthlab.UserID{UUID: id})
	if errors.Is(err, healthlab.NotFound) {
		return refuseUnknown(w, "Patient")
	}
	if err != nil {
		return err
	}
	if l.place.n > 0 {
		if l.place, err = s.locatePage(r.Context(), &u, l); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", mediaType)
	out := bufio.NewWriterSize(w, 64<<10)
	links, err := s.writeEntries(r.Context(), out, &u, l)
	if err != nil {
		return err
	}
	at := s.URL + "/Patient/" + u.ID.String() + "/$everything"
	for i := range links {
		values := l.values
		if links[i].URL != "" { // the link to the next page names its position
			values = maps.Clone(values)
			values.Set("_after", links[i].URL)
		}
		if links[i].URL = at; len(values) > 0 {
			links[i].URL += "?" + values.Encode()
		}
	}
	_, _ = out.WriteString(`],"link":`)
	if err := encode(out, links); err != nil {
		return err
	}
	_ = out.WriteByte('}')
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	return nil
}

// errPageFull stops the reading of a person's resources when the page is complete.
var errPageFull = errors.New("the page is full")

// locatePage returns the position of a page in the person's current resources. It looks for the last resource before
// the page; if that resource no longer exists, it uses the number of resources before the page.
func (s *server) locatePage(ctx context.Context, u *healthdata.User, l *selection) (place, error) {
	n := 0
	err := s.selectedResources(ctx, u, l, func(k string, res resource) error {
		if n++; k+"/"+res.start().ID == l.place.last {
			return errPageFull
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		return place{n, l.place.last}, nil
	}
	return l.place, err
}

// writeEntries writes the beginning of a bundle and its entries. It returns the links of the bundle: self and, unless
// this page is the last, next. The URL of next holds only the position of the next page, as parsed for _after.
func (s *server) writeEntries(ctx context.Context, out *bufio.Writer, u *healthdata.User, l *selection) ([]link, error) {
	_, _ = out.WriteString(`{"resourceType":"Bundle","type":"searchset","entry":[`)
	links, last, n, sent := []link{{Relation: "self"}}, "", 0, 0
	err := s.selectedResources(ctx, u, l, func(k string, res resource) error {
		if n++; n <= l.place.n {
			return nil
		}
		if l.count > 0 && sent == l.count {
			links = append(links, link{"next", strconv.Itoa(n-1) + "~" + last})
			return errPageFull
		}
		if sent > 0 {
			_ = out.WriteByte(',')
		}
		sent++
		last = k + "/" + res.start().ID
		b, err := seal(res)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, `{"fullUrl":%q,"resource":%s,"search":{"mode":"match"}}`, s.URL+"/"+last, b); err != nil {
			return fmt.Errorf("send resource: %w", err)
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return links, err
}

func encode(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode resource: %w", err)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("send resource: %w", err)
	}
	return nil
}

// selectedResources calls use with each selected resource of a person, the Patient first. It leaves out insurance
// records if the team may not read them.
func (s *server) selectedResources(ctx context.Context, u *healthdata.User, l *selection, use func(kind string, r resource) error) error {
	if l.hasType("Patient") {
		p, err := s.patientOf(ctx, u)
		if err != nil {
			return err
		}
		if err := use("Patient", p); err != nil {
			return err
		}
	}
	var kinds []kind
	for _, k := range s.kinds() {
		if k.name == "Coverage" && healthlab.KindOf(s.mayRead(ctx, u.Team, u.ID)) == healthlab.Forbidden {
			continue
		}
		if l.hasType(k.name) {
			kinds = append(kinds, k)
		}
	}
	labs := map[string]bool{} // laboratories that were sent, because orders share them
	return s.eachResource(ctx, u, &l.query, kinds, func(k *kind, list []match) error {
		for i := range list {
			m := &list[i]
			if !l.matches(m) || labs[m.start().ID] {
				continue
			}
			if k.name == "Organization" {
				labs[m.start().ID] = true
			}
			if err := use(k.name, m.resource); err != nil {
				return err
			}
		}
		return nil
	})
}

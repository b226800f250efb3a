package fhir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// streamTime is the longest that $everything may take.
const streamTime = time.Hour

// everythingParams are those of $everything.
var everythingParams = []string{"start", "end", "_since", "_type", "interval", "_format"}

// selection is which resources of a person are sent.
type selection struct {
	query
	types []string
	since time.Time
}

// readSelection reads the parameters of $everything.
func (s *server) readSelection(text string) (*selection, []healthlab.Problem) {
	out := &selection{}
	k := &kind{name: "$everything", params: []string{"date", "interval"}}
	values, problems := parseParams(text, k.name, everythingParams)
	for name, list := range values {
		for _, value := range list {
			if msg := out.take(s, k, name, value); msg != "" {
				problems = append(problems, parameterProblem(name, msg))
			}
		}
	}
	if out.interval == sampled {
		problems = append(problems, parameterProblem("interval", "must be day or hour"))
	}
	return out, problems
}

// take reads one parameter, and returns what is wrong with it.
func (l *selection) take(s *server, k *kind, name, value string) string {
	switch name {
	case "start":
		return l.set("date", "ge"+value, k)
	case "end":
		return l.set("date", "le"+value, k)
	case "_since":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return "must be a time with an offset, such as 2026-01-31T00:00:00Z"
		}
		l.since = at
	case "_type":
		for _, t := range strings.Split(value, ",") {
			if !slices.ContainsFunc(s.kinds(), func(k kind) bool { return k.name == t }) {
				return "must be types that /metadata lists, with commas between them"
			}
			l.types = append(l.types, t)
		}
	default:
		return l.set(name, value, k)
	}
	return ""
}

func (l *selection) hasType(name string) bool {
	return len(l.types) == 0 || slices.Contains(l.types, name)
}

func (l *selection) keeps(m *match) bool {
	// A resource without a time is sent whatever the bounds of dates, and one without a time of its last change
	// whatever _since.
	return (m.updated.IsZero() || !m.updated.Before(l.since)) &&
		(m.when.from.IsZero() || !slices.ContainsFunc(l.date, func(b moment) bool { return !b.holds(m.when) }))
}

// everything answers all that the team has of a person, as a stream: what is kept in memory does not grow
// with it.
func (s *server) everything(w http.ResponseWriter, r *http.Request, by caller) error {
	l, problems := s.readSelection(r.URL.RawQuery)
	if len(problems) > 0 {
		return refuse(w, httpapi.Refusal{Status: http.StatusBadRequest, Problems: problems})
	}
	may, err := s.may(r)
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
	w.Header().Set("Content-Type", mediaType)
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(`{"resourceType":"Bundle","type":"searchset","entry":[`)
	first := true
	err = s.person(r.Context(), &u, l, func(k string, res resource) error {
		if !first {
			_ = out.WriteByte(',')
		}
		first = false
		e := entry{FullURL: s.URL + "/" + k + "/" + res.start().ID, Resource: res}
		e.Search.Mode = "match"
		return encode(out, e)
	})
	if err != nil {
		return err
	}
	_, _ = out.WriteString("]}")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send answer: %w", err)
	}
	return nil
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

// person uses the resources of a person that a selection has, sealed: the Patient first. Insurance records
// are left out where the team may not read them.
func (s *server) person(ctx context.Context, u *healthdata.User, l *selection, use func(kind string, r resource) error) error {
	give := func(k string, r resource) error {
		if err := seal(r); err != nil {
			return err
		}
		return use(k, r)
	}
	if l.hasType("Patient") {
		p, err := s.patientOf(ctx, u)
		if err != nil {
			return err
		}
		if err := give("Patient", p); err != nil {
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
	labs := map[string]bool{} // orders share them
	return s.each(ctx, u, &l.query, kinds, func(k *kind, list []match) error {
		for i := range list {
			m := &list[i]
			if !l.keeps(m) || labs[m.start().ID] {
				continue
			}
			if k.name == "Organization" {
				labs[m.start().ID] = true
			}
			if err := give(k.name, m.resource); err != nil {
				return err
			}
		}
		return nil
	})
}

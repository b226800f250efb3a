package fhir

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// Resource is a FHIR resource that a [Reader] has read.
type Resource struct {
	Type, ID, Version string
	// JSON is the encoded resource.
	JSON []byte
	// Day is the day of an Observation of devices and apps; zero for other resources.
	Day healthlab.Date
	// Until is the time at which the status of an Observation of devices and apps changes from preliminary to final; zero
	// if the status does not change.
	Until time.Time
}

// Reader reads resources for a program that pushes them to other servers, outside an HTTP request. It does not record
// accesses; the program must. It is safe for concurrent use.
type Reader struct{ s *server }

// NewReader returns a Reader. It uses URL, Health, Aggregate, Orders, Continuous and Now of c. It returns Invalid if
// one of the first three is missing.
func NewReader(c Config) (*Reader, error) {
	if base, err := url.Parse(c.URL); err != nil || base.Host == "" || strings.HasSuffix(c.URL, "/") || c.Health == nil || c.Aggregate == nil {
		return nil, fmt.Errorf("%w: fhir: Config.Health, Config.Aggregate, Config.URL: must be set; URL must be an address without a slash at the end", healthlab.Invalid)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Reader{&server{c}}, nil
}

// URL returns Config.URL, with which the systems of identifiers begin.
func (r *Reader) URL() string { return r.s.URL }

func (m *measurement) source() string {
	if m.table != "" {
		return m.table
	}
	return m.resource
}

// Resources returns the slugs of the health data from which Observations are made.
func Resources() (out []string) {
	for i := range measurements {
		if slug := measurements[i].source(); !slices.Contains(out, slug) {
			out = append(out, slug)
		}
	}
	return out
}

// Person returns a user as a Patient, and the user's name if the team has given one. It returns NotFound for an
// unknown user.
func (r *Reader) Person(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (Resource, string, error) {
	u, err := r.s.Health.User(ctx, team, user)
	if err != nil {
		return Resource{}, "", fmt.Errorf("read user: %w", err)
	}
	p, err := r.s.patientOf(ctx, &u)
	if err != nil {
		return Resource{}, "", err
	}
	out, err := toResource(p)
	return out, u.ClientUserID, err
}

// Bounds returns the first and the last day for which Observations are made.
func (r *Reader) Bounds() (first, last healthlab.Date) {
	return r.s.firstDay(), r.s.lastDay()
}

// Days returns the Observations of the days from first to last that are made from the health data of a slug. The
// range has at most 366 days.
func (r *Reader) Days(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, slug string, first, last healthlab.Date) ([]Resource, error) {
	var kinds []*measurement
	for i := range measurements {
		if measurements[i].source() == slug {
			kinds = append(kinds, &measurements[i])
		}
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	all, err := r.s.queryMeasurements(ctx, team, user, kinds, byDay, first, last)
	if err != nil {
		return nil, err
	}
	out := make([]Resource, len(all))
	for i := range all {
		if out[i], err = toResource(all[i].resource); err != nil {
			return nil, err
		}
		id, _ := parseMeasurementID(out[i].ID)
		out[i].Day = id.day
		if all[i].status == "preliminary" {
			out[i].Until = final(id.day)
		}
	}
	return out, nil
}

// Orders returns the ids of the orders of a user.
func (r *Reader) Orders(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (out []orders.OrderID, err error) {
	if r.s.Orders == nil {
		return nil, nil
	}
	err = r.s.eachRecord(ctx, team, user, func(o *orders.Record) error {
		out = append(out, o.ID)
		return nil
	})
	return out, err
}

// orderKinds lists the types that [Reader.Order] returns. A type comes after those to which it refers.
var orderKinds = []string{"Organization", "Practitioner", "ServiceRequest", "Specimen", "Observation", "DiagnosticReport"}

// Order returns the ServiceRequest of an order, its Specimens, results and DiagnosticReport, and the Organizations
// and Practitioner that they name. A resource comes after those to which it refers. It returns NotFound if the user
// has no such order.
func (r *Reader) Order(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id orders.OrderID) ([]Resource, error) {
	if r.s.Orders == nil {
		return nil, fmt.Errorf("read order: %w", healthlab.NotFound)
	}
	record, err := r.s.Orders.Record(ctx, team, id)
	if err == nil && record.UserID != user {
		err = healthlab.NotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read order: %w", err)
	}
	var out []Resource
	kinds := r.s.kinds()
	for _, name := range orderKinds {
		k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
		list, err := k.ofOrder(ctx, &record)
		if err != nil {
			return nil, err
		}
		for i := range list {
			one, err := toResource(list[i].resource)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// toResource converts a resource to a Resource: it sets the version, and encodes the resource as JSON.
func toResource(r resource) (Resource, error) {
	b, err := seal(r)
	if err != nil {
		return Resource{}, err
	}
	h := r.start()
	return Resource{Type: h.ResourceType, ID: h.ID, Version: h.Meta.VersionID, JSON: b}, nil
}

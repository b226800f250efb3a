package fhir

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// includes lists the search parameters that _include may follow, by resource type, each with the element that
// contains the references.
var includes = map[string]map[string]string{
	"Observation":       {"patient": "subject", "subject": "subject", "based-on": "basedOn", "specimen": "specimen", "performer": "performer"},
	"DiagnosticReport":  {"patient": "subject", "subject": "subject", "based-on": "basedOn", "specimen": "specimen", "performer": "performer", "result": "result"},
	"ServiceRequest":    {"patient": "subject", "subject": "subject", "requester": "requester"},
	"Specimen":          {"patient": "subject", "subject": "subject"},
	"DocumentReference": {"patient": "subject", "subject": "subject", "related": "context"},
	"Coverage":          {"patient": "beneficiary", "beneficiary": "beneficiary", "payor": "payor"},
	"Appointment":       {"patient": "participant", "actor": "participant", "based-on": "basedOn"},
	"Provenance":        {"target": "target", "agent": "agent"},
	"Device":            {"patient": "patient"},
	"Consent":           {"patient": "patient"},
}

// provenanceOf is the only supported value of _revinclude. It adds each Provenance that refers to a match.
const provenanceOf = "Provenance:target"

func (k *kind) isTarget() bool { return k.name == "DiagnosticReport" || k.name == "Observation" }

// setInclude reads _include or _revinclude, and returns what is wrong with the value; "" if nothing is.
func (q *query) setInclude(name, value string, k *kind) string {
	if name == "_revinclude" {
		q.provenance = true
		return enumProblem(value, provenanceOf)
	}
	parts := strings.Split(value, ":")
	var allowed []string
	for param := range includes[k.name] {
		allowed = append(allowed, k.name+":"+param)
	}
	slices.Sort(allowed)
	if len(parts) < 2 || len(parts) > 3 || !slices.Contains(allowed, parts[0]+":"+parts[1]) {
		return "must be one of " + strings.Join(allowed, ", ")
	}
	of := include{element: includes[k.name][parts[1]], only: append(parts, "")[2]}
	if parts[1] == "patient" {
		of.only = "Patient"
	}
	q.includes = append(q.includes, of)
	return ""
}

// include is a value of _include. It follows the references of an element to resources of the type only. An empty only
// means every type.
type include struct{ element, only string }

// references appends the references in a part of a resource, such as Patient/1, to out.
func references(v any, out []string) []string {
	switch v := v.(type) {
	case map[string]any:
		if at, ok := v["reference"].(string); ok {
			return append(out, at)
		}
		for _, part := range v {
			out = references(part, out)
		}
	case []any:
		for _, part := range v {
			out = references(part, out)
		}
	}
	return out
}

// includedResources returns the resources to which the matches of a page refer, and those that refer to matches, as far
// as the query asks for them, sorted by type and id. It leaves out what the caller may not read.
func (s *server) includedResources(ctx context.Context, by caller, may rights, q *query, page []match) ([]resource, error) {
	if len(q.includes) == 0 && !q.provenance {
		return nil, nil
	}
	kinds := map[string]*kind{}
	for _, k := range s.kinds() {
		if may.reads(k.name) && !slices.ContainsFunc(k.scopes, func(needed organisation.Scope) bool { return !by.Scopes.Has(needed) }) {
			kinds[k.name] = &k
		}
	}
	seen, held := map[string]bool{}, &ordersHeld{s: s, by: by, all: map[string][]match{}}
	for i := range page {
		h := page[i].start()
		seen[h.ResourceType+"/"+h.ID] = true
	}
	var wanted []string
	for i := range page {
		list, err := q.referred(page[i].resource)
		if err != nil {
			return nil, err
		}
		if h := page[i].start(); q.provenance && !page[i].isOfDevice() {
			id, _, _ := strings.Cut(h.ID, ".")
			list = append(list, "Provenance/"+id)
		}
		wanted = append(wanted, list...)
	}
	slices.Sort(wanted)
	var out []resource
	for _, at := range slices.Compact(wanted) {
		name, id, _ := strings.Cut(at, "/")
		k := kinds[name]
		if seen[at] || k == nil {
			continue
		}
		r, err := held.read(ctx, k, id)
		if healthlab.KindOf(err) == healthlab.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p, ok := r.(*provenanceResource); ok && !p.isAbout(seen) {
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

func (m *match) isOfDevice() bool {
	_, ok := parseMeasurementID(m.start().ID)
	return ok
}

func (p *provenanceResource) isAbout(seen map[string]bool) bool {
	return slices.ContainsFunc(p.Target, func(r reference) bool { return seen[r.Reference] })
}

// referred returns the references of a resource that the query follows.
func (q *query) referred(r resource) (out []string, err error) {
	if len(q.includes) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.start().ResourceType, err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.start().ResourceType, err)
	}
	for _, i := range q.includes {
		for _, at := range references(all[i.element], nil) {
			if i.only == "" || strings.HasPrefix(at, i.only+"/") {
				out = append(out, at)
			}
		}
	}
	return out, nil
}

// ordersHeld reads resources by id. It caches the resources of an order: reading one reads all of the same type and
// order.
type ordersHeld struct {
	s   *server
	by  caller
	all map[string][]match // key: type and order
}

func (h *ordersHeld) read(ctx context.Context, k *kind, id string) (resource, error) {
	begin, _, _ := strings.Cut(id, ".")
	if _, ok := parseUUID(begin); k.ofOrder == nil || !ok || k.name == "Organization" {
		return k.read(ctx, h.by, id)
	}
	key := k.name + "/" + begin
	list, ok := h.all[key]
	if !ok {
		record, err := h.s.record(ctx, h.by, begin)
		if err == nil {
			list, err = k.ofOrder(ctx, &record)
		}
		if err != nil {
			return nil, err
		}
		h.all[key] = list
	}
	return resourceByID(list, id, nil)
}

package fhir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// resultParams lists the search parameters that every type supports. Except for _since, they change the form of the
// answer, not the matches.
var resultParams = []string{"_count", "_after", "_format", "_pretty", "_summary", "_elements", "_total", "_since"}

// sortKeys lists the parameters by which matches can be sorted.
var sortKeys = []string{"date", "authored", "_lastUpdated", "_id"}

// sorts returns the values of _sort for a type, each also with a leading minus sign; nil if its order is fixed.
func (k *kind) sorts() (out []string) {
	if !slices.Contains(k.params, "patient") {
		return nil
	}
	for _, key := range sortKeys {
		if slices.Contains(k.params, key) {
			out = append(out, key)
		}
	}
	return out
}

// known returns all parameters of a search for a type.
func (k *kind) known() []string {
	out := slices.Clone(resultParams)
	if k.sorts() != nil {
		out = append(out, "_sort")
	}
	if len(includes[k.name]) > 0 {
		out = append(out, "_include")
	}
	if k.ofOrder != nil && k.isTarget() {
		out = append(out, "_revinclude")
	}
	return append(out, k.params...)
}

// order is the sort order of the matches of a search: by a time, or by id only.
type order struct {
	by         string // one of sortKeys; empty means date
	descending bool
}

// latestFirst is the default of _sort.
var latestFirst = order{"", true}

// key returns the sort key of a match. Matches without a time come last.
func (o order) key(m *match) int64 {
	at := m.when.from
	switch o.by {
	case "_id":
		return 0
	case "_lastUpdated":
		at = m.updated
	}
	switch {
	case at.IsZero() && o.descending:
		return -1 << 63
	case at.IsZero():
		return 1<<63 - 1
	}
	return at.UnixMilli()
}

// setResult reads one of resultParams, and returns what is wrong with its value; "" if nothing is.
func (q *query) setResult(name, value string, k *kind) string {
	switch name {
	case "_pretty": // the answer is as compact as ever
		return enumProblem(value, "true", "false")
	case "_total":
		q.noTotal = value == "none"
		return enumProblem(value, "none", "estimate", "accurate")
	case "_since":
		at, err := time.Parse(time.RFC3339, plus(value))
		if err != nil {
			return "must be a time with an offset, such as 2026-01-31T00:00:00Z"
		}
		q.since = at
	case "_summary":
		switch value {
		case "count":
			q.count = 0
		case "text":
			q.elements = map[string]bool{"text": true}
		case "true":
			q.elements = map[string]bool{}
			for _, name := range summaryElements[k.name] {
				q.elements[name] = true
			}
		}
		return enumProblem(value, "true", "text", "data", "count", "false")
	case "_elements":
		q.elements = map[string]bool{}
		for _, one := range strings.Split(value, ",") {
			of, name, typed := strings.Cut(strings.TrimSpace(one), ".")
			switch {
			case !typed:
				q.elements[of] = true
			case of == k.name:
				q.elements[name] = true
			}
		}
	case "_sort":
		field, descending := strings.CutPrefix(value, "-")
		if !slices.Contains(k.sorts(), field) {
			return "must be one of " + strings.Join(k.sorts(), ", ") + ", or one of them with - before it"
		}
		q.order = order{field, descending}
	}
	return ""
}

func enumProblem(value string, allowed ...string) string {
	if slices.Contains(allowed, value) {
		return ""
	}
	return "must be one of " + strings.Join(allowed, ", ")
}

// requiredElements lists the elements that R4 requires of each type. They are sent even if _elements does not name
// them.
var requiredElements = map[string][]string{
	"Appointment": {"status", "participant"}, "Consent": {"status", "scope", "category", "policyRule"}, "Coverage": {"status", "beneficiary", "payor"},
	"DiagnosticReport": {"status", "code"}, "DocumentReference": {"status", "content"}, "Group": {"type", "actual"},
	"Observation": {"status", "code"}, "Provenance": {"target", "recorded", "agent"}, "ServiceRequest": {"status", "intent", "subject"},
}

// summaryElements lists, of the elements that this server sends, those that R4 marks as part of a summary.
var summaryElements = map[string][]string{
	"Appointment": {"identifier", "status", "appointmentType", "start", "end"},
	"Consent":     {"status", "scope", "category", "patient", "dateTime", "policyRule", "provision"},
	"Coverage":    {"status", "subscriber", "subscriberId", "beneficiary", "period", "payor", "order"},
	"Device":      {"status"},
	"DiagnosticReport": {
		"identifier", "status", "category", "code", "subject", "effectiveDateTime", "_effectiveDateTime", "issued", "performer",
	},
	"DocumentReference": {"identifier", "status", "type", "category", "subject", "date", "content", "context"},
	"Group":             {"identifier", "active", "type", "actual", "quantity"},
	"Observation": {
		"basedOn", "status", "code", "subject", "effectiveDateTime", "effectivePeriod", "issued", "performer", "valueQuantity", "valueCodeableConcept", "valueString", "component",
	},
	"Organization": {"identifier", "active", "type", "name"},
	"Patient":      {"identifier", "name", "telecom", "gender", "birthDate", "address"},
	"Practitioner": {"identifier", "name"},
	"Provenance":   {"target", "recorded"},
	"ServiceRequest": {
		"identifier", "status", "intent", "category", "priority", "code", "subject", "authoredOn", "requester", "reasonCode",
	},
	"Specimen": {"identifier", "accessionIdentifier", "status", "type", "subject", "receivedTime", "condition"},
}

// subset is a resource of which only some elements are sent. It has the tag SUBSETTED, which says so.
type subset struct {
	resource
	elements map[string]bool
}

// MarshalJSON writes the requested elements and those that the type requires.
func (s *subset) MarshalJSON() ([]byte, error) {
	h := s.start()
	b, err := json.Marshal(s.resource)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", h.ResourceType, err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("encode %s: %w", h.ResourceType, err)
	}
	tagged := struct {
		meta
		Tag []coding `json:"tag"`
	}{h.Meta, []coding{{"http://terminology.hl7.org/CodeSystem/v3-ObservationValue", "SUBSETTED", "subsetted"}}}
	first, err := json.Marshal(struct {
		ResourceType string `json:"resourceType"`
		ID           string `json:"id"`
		Meta         any    `json:"meta"`
	}{h.ResourceType, h.ID, tagged})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", h.ResourceType, err)
	}
	out := bytes.NewBuffer(first[:len(first)-1])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains([]string{"resourceType", "id", "meta"}, name) || !s.elements[strings.TrimPrefix(name, "_")] && !s.elements[name] && !slices.Contains(requiredElements[h.ResourceType], name) {
			continue
		}
		fmt.Fprintf(out, ",%q:%s", name, all[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

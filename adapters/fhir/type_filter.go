package fhir

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// nextFilter matches the comma before a further filter. Other commas separate the values of a parameter.
var nextFilter = regexp.MustCompile(`,[A-Z][A-Za-z]+\?`)

// filtersOf splits a value of _typeFilter, such as Observation?code=8867-4,9279-1,Device?status=active.
func filtersOf(value string) (out []string) {
	for {
		at := nextFilter.FindStringIndex(value)
		if at == nil {
			return append(out, value)
		}
		out, value = append(out, value[:at[0]]), value[at[0]+1:]
	}
}

func typeOf(filter string) string {
	name, _, _ := strings.Cut(filter, "?")
	return name
}

func (k *kind) filterParams() []string {
	return slices.DeleteFunc(slices.Clone(k.params), func(name string) bool {
		return slices.Contains([]string{"_id", "patient", "subject", "identifier", "interval"}, name)
	})
}

// readFilter parses one search of _typeFilter. It returns its resource type and query; or, in wrong, what is wrong with
// the search.
func (s *server) readFilter(text string) (name string, q *query, wrong string) {
	name, params, _ := strings.Cut(text, "?")
	kinds := s.kinds()
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name && len(k.filterParams()) > 0 })
	if i < 0 {
		return "", nil, "must be searches such as Observation?category=laboratory, of types that have parameters"
	}
	k := &kinds[i]
	values, problems := parseParams(params, k.name, k.filterParams(), strict)
	q = &query{url: s.URL}
	for param, list := range values {
		for _, value := range list {
			if msg := q.set(param, value, k); msg != "" {
				problems = append(problems, parameterProblem(param, msg))
			}
		}
	}
	if len(problems) > 0 {
		return "", nil, fmt.Sprintf("%s: %s", k.name, problems[0])
	}
	return name, q, ""
}

// filtered returns the filters of an export for a resource type; nil means that all resources of the type are sent.
func (s *server) filtered(x *export, name string) (out []*query) {
	for _, text := range x.Filters {
		if of, q, wrong := s.readFilter(text); wrong == "" && of == name {
			out = append(out, q)
		}
	}
	return out
}

package hl7

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// testIdentity is what a report states about which test of the order it is about.
type testIdentity struct {
	// Codes lists the laboratory's codes of the test.
	Codes []string
	// Filler is the laboratory's order number; empty if unknown.
	Filler string `json:",omitempty"`
	// Parent is the result that led to the test; nil without one. Susceptibility tests of several isolates have the same
	// numbers and codes.
	Parent *labresult.ParentResult
	// Specimens lists the ids of the samples, and Began is the collection time of the order segment (OBR-7); empty and
	// nil if unknown.
	Specimens []string                       `json:",omitempty"`
	Began     *labresult.TimestampWithOffset `json:",omitempty"`
}

func (t *TestReport) identity() testIdentity {
	id := testIdentity{Codes: t.Codes, Filler: t.Filler, Parent: t.Parent, Began: t.began}
	for _, s := range t.Specimens {
		id.Specimens = append(id.Specimens, s.ids...)
	}
	return id
}

// key is equal for tests with the same number, codes and parent.
func (id testIdentity) key() string {
	key := id.Filler
	for _, c := range id.Codes {
		key += "|" + c
	}
	if p := id.Parent; p != nil {
		key += "|parent " + p.FillerNumber + "|" + p.Group
		if p.Result != nil && len(p.Result.Codes) > 0 {
			key += "|" + p.Result.Codes[0].Code
		}
	}
	return key
}

// bestFit is the grade of a report that states the same as the test.
const bestFit = 4

// fit grades how well a report, said, fits a test. The grade is lower for each part that only one of them states, or
// that a correction changes. It is -1 if the report is about another test: another code, number, parent or sample, or
// without a sample another collection time.
func (id testIdentity) fit(said testIdentity, correction bool) int {
	a, b := testIdentity{Parent: id.Parent}, testIdentity{Parent: said.Parent}
	sameSample := overlap(id.Specimens, said.Specimens)
	moved := compareTimes(id.Began, said.Began) != 0
	switch {
	case a.key() != b.key(), !sameCodes(id.Codes, said.Codes), id.Filler != said.Filler && id.Filler != "" && said.Filler != "",
		!sameSample && len(id.Specimens) > 0 && len(said.Specimens) > 0, moved && !sameSample && !correction:
		return -1
	}
	grade := 0
	for _, equal := range []bool{
		len(id.Codes) == len(said.Codes), id.Filler == said.Filler, sameSample || len(id.Specimens) == len(said.Specimens),
		!moved && (id.Began == nil) == (said.Began == nil),
	} {
		if equal {
			grade++
		}
	}
	return grade
}

// with fills what is unknown from another report of the test.
func (id testIdentity) with(other testIdentity) testIdentity {
	if len(other.Codes) > len(id.Codes) {
		id.Codes = other.Codes
	}
	id.Filler, id.Began = cmp.Or(id.Filler, other.Filler), cmp.Or(id.Began, other.Began)
	id.Specimens = slices.Clone(id.Specimens)
	for _, s := range other.Specimens {
		if !contains(id.Specimens, s) {
			id.Specimens = append(id.Specimens, s)
		}
	}
	return id
}

func sameCodes(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a // a report may add codes of other systems
	}
	return (len(a) > 0 || len(b) == 0) && !slices.ContainsFunc(a, func(code string) bool { return !contains(b, code) })
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return contains(b, s) })
}

// find returns for each report the key of the test that it is about, and whether it may be about several tests. The key
// is empty if it is about none of the known tests. Reports of one message are about different tests; those that state
// the same are in the order of the tests.
func (s *orderState) find(tests []TestReport) (keys []string, unclear []bool) {
	keys, unclear = make([]string, len(tests)), make([]bool, len(tests))
	alike := map[string][]int{} // the reports that state the same
	var order []string
	for i, t := range tests {
		key := fmt.Sprint(t.class(), t.corrects())
		if !t.statusOnly() {
			if alike[key] == nil {
				order = append(order, key)
			}
			alike[key] = append(alike[key], i)
		}
	}
	free := s.testsInOrder()
	for grade := bestFit; grade >= 0; grade-- {
		for _, key := range order {
			open := alike[key]
			if len(open) == 0 {
				continue
			}
			fits := s.fitting(free, &tests[open[0]], grade, len(open))
			if len(fits) > len(open) {
				for _, i := range open {
					unclear[i] = true
				}
				alike[key] = nil
				continue
			}
			for n, k := range fits {
				keys[open[n]] = k
			}
			alike[key] = open[len(fits):]
			free = slices.DeleteFunc(free, func(k string) bool { return contains(fits, k) })
		}
	}
	return keys, unclear
}

// class is equal for reports with the same identity.
func (t *TestReport) class() string {
	id := t.identity()
	began := ""
	if id.Began != nil {
		began = id.Began.Text()
	}
	return fmt.Sprintf("%s|%q|%s", id.key(), id.Specimens, began)
}

// fitting returns those of the tests that a report fits with a grade. If there are more than n, only those that have
// one of its results count, if any has.
func (s *orderState) fitting(keys []string, t *TestReport, grade, n int) []string {
	var fits []string
	said, correction := t.identity(), t.corrects()
	for _, k := range keys {
		if s.Tests[k].fit(said, correction) == grade {
			fits = append(fits, k)
		}
	}
	if len(fits) <= n {
		return fits
	}
	var known []string
	for _, k := range fits {
		if slices.ContainsFunc(s.matchResults(k, t.Observations), func(result string) bool { return result != "" }) {
			known = append(known, k)
		}
	}
	if len(known) == 0 {
		return fits
	}
	return known
}

// resultKeys returns for each report, which must have been added to the state, the keys of its results.
func (s *orderState) resultKeys(tests []TestReport) [][]string {
	out := make([][]string, len(tests))
	for i, t := range tests {
		out[i] = s.matchResults(t.held, t.Observations)
	}
	return out
}

// matchResults returns for each observation of a test the key of the result that it reports again; empty for a new
// result. The codes and the group name a result, and its name only if it has no code. Of several such results the
// observation is about the one with its name, else about the next one, unless there are more results than observations.
func (s *orderState) matchResults(test string, observations []Observation) []string {
	out := make([]string, len(observations))
	var free []string
	for _, k := range s.inOrder() {
		if s.Results[k].Test == test {
			free = append(free, k)
		}
	}
	take := func(i int, fits func(held labresult.Result) bool) {
		if n := slices.IndexFunc(free, func(k string) bool { return fits(s.Results[k].Result) }); n >= 0 {
			out[i] = free[n]
			free = slices.Delete(free, n, n+1)
		}
	}
	for i, o := range observations {
		take(i, func(held labresult.Result) bool {
			return held.Slug == o.Result.Slug && sameResult(held, o.Result) && equalCodes(held, o.Result)
		})
	}
	for i, o := range observations {
		if out[i] != "" || len(free) == 0 {
			continue
		}
		surplus := 0 // of observations over results
		for j, other := range observations {
			if out[j] == "" && sameResult(other.Result, o.Result) {
				surplus++
			}
		}
		for _, k := range free {
			if sameResult(s.Results[k].Result, o.Result) {
				surplus--
			}
		}
		if surplus >= 0 {
			take(i, func(held labresult.Result) bool { return sameResult(held, o.Result) })
		}
	}
	return out
}

func sameResult(a, b labresult.Result) bool {
	codes := resultCodes(a)
	return a.Group == b.Group && sameCodes(codes, resultCodes(b)) && (len(codes) > 0 || a.Slug == b.Slug)
}

func equalCodes(a, b labresult.Result) bool { return len(resultCodes(a)) == len(resultCodes(b)) }

func resultCodes(r labresult.Result) []string {
	return slices.Compact(nonEmpty(text(r.ProviderID), text(r.LOINC)))
}

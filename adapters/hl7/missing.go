package hl7

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/orders"
)

// gone reports whether the laboratory will report nothing of anything, and says so or says
// why.
func (d *Dossier) gone() bool {
	s := &d.State
	lost := s.unreported()
	for key, t := range s.Tests {
		failure, _ := s.why(orders.LabResult{}, t)
		lost[key] = t.Status == "X" || lost[key] && failure != orders.UnknownFailure
	}
	for _, h := range s.Results {
		t := s.Tests[h.Test]
		if t.Status == "X" {
			continue
		}
		failure, _ := s.why(h.Result, t)
		if !h.absent() || h.Status != "X" && h.Result.Result == "" && failure == orders.UnknownFailure {
			return false
		}
		lost[h.Test] = true
	}
	for key := range s.Tests {
		if !lost[key] {
			return false // without results, such as a report that is a document
		}
	}
	return true
}

// refusal returns why the laboratory reports nothing of the order, if it says so.
func (d *Dossier) refusal() orders.StatusDetail {
	s := &d.State
	for _, k := range s.inOrder() {
		if h := s.Results[k]; h.absent() {
			if _, detail := s.why(h.Result, s.Tests[h.Test]); detail != "" {
				return detail
			}
		}
	}
	unreported := s.unreported()
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		if _, detail := s.why(orders.LabResult{}, s.Tests[key]); unreported[key] && detail != "" {
			return detail
		}
	}
	return ""
}

// unreported returns the keys of the tests that ended and have no result, no missing one, and
// no document. A test whose results are those of tests that it led to is not one.
func (s *State) unreported() map[string]bool {
	out := map[string]bool{}
	children := map[string]int{} // tests by the number of their parent's test
	parent := func(t HeldTest) string {
		if t.Parent == nil {
			return ""
		}
		return t.Parent.FillerNumber
	}
	for _, t := range s.Tests {
		children[parent(t)]++
	}
	for key, t := range s.Tests {
		number := text(t.Data.ControlNumber)
		others := children[number]
		if parent(t) == number {
			others--
		}
		out[key] = t.Status == "X" || rank(t.Status) > 0 && !t.Document && (number == "" || others == 0)
	}
	for _, h := range s.Results {
		if s.Tests[h.Test].Status != "X" || h.absent() {
			out[h.Test] = false
		}
	}
	return out
}

func (s *State) missing(r orders.LabResult, t HeldTest) orders.MissingResult {
	out := orders.MissingResult{
		Name: r.Name, Slug: r.Slug, LOINC: r.LOINC, LOINCSlug: r.LOINCSlug, ProviderID: r.ProviderID, SourceMarkers: r.SourceMarkers,
		Group: r.Group, Codes: r.Codes, Methods: r.Methods, Parent: r.Parent, Note: optional(s.note(r, t)),
	}
	out.InferredFailureType, _ = s.why(r, t)
	return out
}

// note returns what the laboratory says of a missing result; where that is a word alone,
// such as TNP, also the next reason.
func (s *State) note(r orders.LabResult, t HeldTest) string {
	own := strings.TrimSpace(r.Result + "\n" + text(r.Notes))
	if len(strings.Fields(own)) > 1 {
		return own
	}
	for _, other := range s.reasons(r, t)[2:] {
		if other != "" {
			return strings.TrimSpace(own + "\n" + string([]rune(other)[:min(len([]rune(other)), longestReason)]))
		}
	}
	return own
}

// longestReason bounds how much of the notes on a test or a patient, in characters, is
// repeated with each of its missing results.
const longestReason = 1000

// why infers from the laboratory's words why a result of a test is missing.
func (s *State) why(r orders.LabResult, t HeldTest) (failure orders.FailureType, detail orders.StatusDetail) {
	for _, words := range s.reasons(r, t) {
		if failure, detail = reason(words); failure != orders.UnknownFailure {
			break
		}
	}
	return cmp.Or(failure, orders.UnknownFailure), detail
}

// reasons are the laboratory's words on why a result of a test is missing, the nearest first.
func (s *State) reasons(r orders.LabResult, t HeldTest) []string {
	out := []string{text(r.Notes), r.Result, t.Notes}
	for _, data := range append([]orders.SampleData{t.Data}, slices.Collect(maps.Values(t.More))...) {
		for _, why := range data.RejectReasons {
			out = append(out, why.Text)
		}
	}
	return append(out, s.notes())
}

// absent reports whether the laboratory says that there is no result: by the status, by the
// text, or by nothing where a final result belongs.
func (h Held) absent() bool {
	return h.Status == "X" || rank(h.Status) > 0 && (strings.TrimSpace(h.Result.Result) == "" || notPerformed(h.Result))
}

// notPerformed reports whether the text of a result, or one of its codes, says that there is
// none.
func notPerformed(r orders.LabResult) bool {
	says := func(words string) bool { return absence.MatchString(strings.TrimLeft(words, " *-(")) }
	return r.Type == orders.CommentResult && (says(r.Result) || slices.ContainsFunc(r.Codes, func(c orders.Code) bool { return says(c.Code) || says(c.Text) }))
}

// absence is how laboratories write that a test was not performed.
var absence = regexp.MustCompile(`(?i)^(TNP|QNS|CANC|CANCEL|CANCELED|CANCELLED|DNR|TEST (NOT (PERFORMED|DONE)|CANCELED|CANCELLED)|NOT (PERFORMED|DONE|TESTED)|` +
	`QUANTITY (NOT SUFFICIENT|INSUFFICIENT)|INSUFFICIENT (QUANTITY|SAMPLE|SPECIMEN)|(SAMPLE|SPECIMEN) REJECTED)([^\pL\pN]|$)`)

// reason infers from a laboratory's words why there is no result.
func reason(words string) (orders.FailureType, orders.StatusDetail) {
	words = strings.ToLower(words)
	for _, r := range reasons {
		for _, w := range r.words {
			if strings.Contains(words, w) {
				return r.failure, r.detail
			}
		}
	}
	return orders.UnknownFailure, ""
}

// Words that laboratories explain a missing result with, and what they mean.
var reasons = []struct {
	words   []string
	failure orders.FailureType
	detail  orders.StatusDetail
}{
	{[]string{"mislabel", "unlabel"}, orders.CollectionProcessFailure, ""}, // it is not known whose it is
	{[]string{"quantity not sufficient", "qns", "insufficient", "not enough"}, orders.QuantityNotSufficientFailure, orders.SampleQuantityNotSufficient},
	{[]string{"hemoly", "haemoly"}, orders.CollectionProcessFailure, orders.SampleHemolyzed},
	{[]string{"contaminat"}, orders.CollectionProcessFailure, orders.SampleContaminated},
	{[]string{"stability", "too old", "expired", "thawed", "frozen", "temperature"}, orders.DropOffFailure, orders.SampleStabilityExceeded},
	{[]string{"clotted", "wrong tube", "improper", "not centrifuged"}, orders.CollectionProcessFailure, orders.SampleImproperCollection},
	{[]string{"lab accident", "laboratory accident", "lab error", "laboratory error"}, orders.InternalLabFailure, ""},
	{[]string{"duplicate"}, orders.NonFailure, ""},
	{[]string{"not ordered", "order entry"}, orders.OrderEntryFailure, ""},
}

package hl7

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// rejected reports whether the laboratory has reported no result at all, and for each test either that it is
// cancelled or why its result is missing.
func (d *dossier) rejected() bool {
	s := &d.State
	lost := s.unreported()
	for key, t := range s.Tests {
		failure, _ := s.failureReason(labresult.Result{}, t)
		lost[key] = t.Status == "X" || lost[key] && failure != labresult.UnknownFailure
	}
	for _, h := range s.Results {
		t := s.Tests[h.Test]
		if t.Status == "X" && (h.absent() || h.hidden()) {
			continue
		}
		failure, _ := s.failureReason(h.Result, t)
		if !h.absent() || failure == labresult.MissingResultCalcFailure || h.Status != "X" && h.Result.Result == "" && failure == labresult.UnknownFailure {
			return false // the reason does not concern the sample
		}
		lost[h.Test] = true
	}
	for key := range s.Tests {
		if !lost[key] {
			return false // such as a report that consists of a document
		}
	}
	return true
}

// rejectDetail returns the first known reason of a rejected order; empty without one.
func (d *dossier) rejectDetail() orders.StatusDetail {
	s := &d.State
	for _, k := range s.inOrder() {
		if h := s.Results[k]; h.absent() {
			if _, detail := s.failureReason(h.Result, s.Tests[h.Test]); detail != "" {
				return detail
			}
		}
	}
	unreported := s.unreported()
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		if _, detail := s.failureReason(labresult.Result{}, s.Tests[key]); unreported[key] && detail != "" {
			return detail
		}
	}
	return ""
}

// unreported returns the keys of the final tests without a result, a missing result and a
// document. Parents of other tests are left out.
func (s *orderState) unreported() map[string]bool {
	out := map[string]bool{}
	children := map[string]int{} // number of tests by the number of their parent test
	parent := func(t heldTest) string {
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
		if s.Tests[h.Test].Status != "X" || !h.hidden() {
			out[h.Test] = false
		}
	}
	return out
}

func (s *orderState) missing(r labresult.Result, t heldTest) labresult.Missing {
	out := labresult.Missing{
		Name: r.Name, Slug: r.Slug, LOINC: r.LOINC, LOINCSlug: r.LOINCSlug, ProviderID: r.ProviderID, SourceMarkers: r.SourceMarkers,
		Group: r.Group, Codes: r.Codes, Methods: r.Methods, Equipment: r.Equipment, Parent: r.Parent, Note: optional(s.note(r, t)),
	}
	out.InferredFailureType, _ = s.failureReason(r, t)
	return out
}

// note returns the laboratory's text about a missing result. A text of one word, such as TNP, is followed by the next
// of the reasons.
func (s *orderState) note(r labresult.Result, t heldTest) string {
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

// longestReason is the number of characters of the notes on a test or a patient that are copied to each missing
// result.
const longestReason = 1000

// failureReason infers from the laboratory's texts why the result of a test is missing. failure is UnknownFailure and
// detail empty if no text says it.
func (s *orderState) failureReason(r labresult.Result, t heldTest) (failure labresult.FailureType, detail orders.StatusDetail) {
	for _, words := range s.reasons(r, t) {
		if failure, detail = reason(words); failure != labresult.UnknownFailure {
			break
		}
	}
	return cmp.Or(failure, labresult.UnknownFailure), detail
}

// reasons returns the laboratory's texts that may say why a result of a test is missing, the most specific first.
func (s *orderState) reasons(r labresult.Result, t heldTest) []string {
	out := []string{text(r.Notes), r.Result, t.Notes}
	for _, data := range append([]labresult.SampleData{t.Data}, slices.Collect(maps.Values(t.More))...) {
		if c := data.ClinicalInformation; c != nil && text(c.Notes) != t.Notes {
			out = append(out, text(c.Notes))
		}
		for _, why := range data.RejectReasons {
			out = append(out, why.Text)
		}
	}
	return append(out, s.notes())
}

func (h heldResult) hidden() bool {
	return h.Status == "D" || h.Status == "W" || h.Status == "R" // deleted, wrong, not verified
}

func (h heldResult) absent() bool {
	return h.Status == "X" || rank(h.Status) > 0 && (strings.TrimSpace(h.Result.Result) == "" || notPerformed(h.Result))
}

func notPerformed(r labresult.Result) bool {
	says := func(words string) bool { return absence.MatchString(strings.TrimLeft(words, " *-(")) }
	return r.Type == labresult.Comment && (says(r.Result) || slices.ContainsFunc(r.Codes, func(c labresult.Code) bool { return says(c.Code) || says(c.Text) }))
}

// absence matches texts that mean that a test was not performed. "No specimen" means it only without a word that says
// what the specimen lacks, such as anomalies.
var absence = regexp.MustCompile(`(?i)^(TNP|DNP|QNS|NSQ|DNR|CANC|CNCL|CXL|CANCEL|CANCELED|CANCELLED|NOT (PERFORMED|DONE|TESTED|CALCULATED)|` +
	`TEST (NOT (PERFORMED|DONE)|CANCELED|CANCELLED)|UNABLE TO (PERFORM|REPORT|CALCULATE)|QUANTITY (NOT SUFFICIENT|INSUFFICIENT)|` +
	`INSUFFICIENT (QUANTITY|SAMPLE|SPECIMEN|VOLUME)|NO (SAMPLE|SPECIMEN)S?( *([-.,:;]|\([^)]*|$)| ((WAS|WERE) )?(RECEIVED|SUBMITTED|COLLECTED|SENT|AVAILABLE|OBTAINED))|` +
	`(SAMPLE|SPECIMEN) (REJECTED|NOT RECEIVED))([^\pL\pN]|$)`)

// reason infers from one text of the laboratory why a result is missing.
func reason(words string) (labresult.FailureType, orders.StatusDetail) {
	words = strings.ToLower(words)
	for _, r := range reasons {
		for _, w := range r.words {
			if strings.Contains(words, w) {
				return r.failure, r.detail
			}
		}
	}
	return labresult.UnknownFailure, ""
}

// reasons maps words in notes on missing results to causes. The first match counts.
var reasons = []struct {
	words   []string
	failure labresult.FailureType
	detail  orders.StatusDetail
}{
	{[]string{"mislabel", "unlabel"}, labresult.CollectionProcessFailure, ""}, // it is unknown whose sample it is
	{[]string{"quantity not sufficient", "qns", "insufficient", "not enough"}, labresult.QuantityNotSufficientFailure, orders.SampleQuantityNotSufficient},
	{[]string{"hemoly", "haemoly"}, labresult.CollectionProcessFailure, orders.SampleHemolyzed},
	{[]string{"contaminat"}, labresult.CollectionProcessFailure, orders.SampleContaminated},
	{[]string{"stability", "too old", "expired", "thawed", "frozen", "temperature"}, labresult.DropOffFailure, orders.SampleStabilityExceeded},
	{[]string{"clotted", "wrong tube", "improper", "not centrifuged"}, labresult.CollectionProcessFailure, orders.SampleImproperCollection},
	{[]string{"lab accident", "laboratory accident", "lab error", "laboratory error"}, labresult.InternalLabFailure, ""},
	{[]string{"leak", "broken"}, labresult.DropOffFailure, ""},
	{[]string{"unable to calculate", "not calculated", "cannot be calculated"}, labresult.MissingResultCalcFailure, ""},
	{[]string{"duplicate"}, labresult.NonFailure, ""},
	{[]string{"not ordered", "order entry"}, labresult.OrderEntryFailure, ""},
}

package fhirlab

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// orderState is everything that a laboratory has reported about one order. A late or repeated bundle does not replace
// newer data.
type orderState struct {
	// Reports holds the newest version of each report, by its key.
	Reports map[string]heldReport
	// Seq is the highest sequence number in Reports. FinalSent is true if a message to the orders.Service contained a
	// final result. SentDigest is the digest of the last message to the orders.Service.
	Seq        int
	FinalSent  bool
	SentDigest string
}

// heldReport is the newest version of one report, with the newest version of each of its results.
type heldReport struct {
	Seq     int
	Status  string
	At      time.Time
	Codes   []string
	Head    labresult.Metadata
	Samples map[string]labresult.SampleData
	Results []heldResult
	File    string
}

type heldResult struct {
	ReportedResult
	At time.Time
	// Corrects is true if the bundle that was received last corrected the value of this result.
	Corrects bool
}

// rank orders the versions of a report or result: preliminary, final, corrected, withdrawn.
func rank(status string) int {
	switch status {
	case "final", "appended", "cancelled":
		return 1
	case "amended", "corrected":
		return 2
	case "entered-in-error":
		return 3
	}
	return 0 // registered, partial, preliminary, unknown
}

// newer reports whether a version with a status and a time replaces a held version. A final status replaces a
// preliminary one, then the later time wins, then the higher rank.
func newer(status string, at time.Time, held string, heldAt time.Time) bool {
	if final, was := rank(status) > 0, rank(held) > 0; final != was {
		return final // a preliminary version never replaces a final one, however late it comes
	}
	if !at.Equal(heldAt) {
		return at.After(heldAt)
	}
	return rank(status) >= rank(held)
}

// addReports adds the reports of a bundle to the state.
func (s *orderState) addReports(reports []*Report) {
	s.Reports = maps.Clone(s.Reports)
	if s.Reports == nil {
		s.Reports = map[string]heldReport{}
	}
	for key, h := range s.Reports {
		h.Results = slices.Clone(h.Results)
		for i := range h.Results {
			h.Results[i].Corrects = false
		}
		s.Reports[key] = h
	}
	for _, r := range reports {
		held, ok := s.Reports[r.Key]
		if !ok {
			s.Seq++
			held.Seq = s.Seq
		}
		if !ok || newer(r.Status, r.At, held.Status, held.At) {
			held.Status, held.At, held.Codes, held.Head = r.Status, r.At, r.Codes, r.Head
			samples := maps.Clone(held.Samples)
			if samples == nil {
				samples = map[string]labresult.SampleData{}
			}
			maps.Copy(samples, r.Samples)
			held.Samples, held.File = samples, ""
			if len(r.Documents) == 1 {
				held.File = digestID(string(r.Documents[0]))
			}
		}
		for _, one := range r.Results {
			held.result(one, r)
		}
		s.Reports[r.Key] = held
	}
}

func (h *heldReport) result(one ReportedResult, r *Report) {
	i := slices.IndexFunc(h.Results, func(was heldResult) bool { return was.Key == one.Key })
	if i < 0 {
		h.Results = append(h.Results, heldResult{ReportedResult: one, At: r.At})
		return
	}
	was := h.Results[i]
	if !newer(one.Status, r.At, was.Status, was.At) {
		return
	}
	corrected := rank(one.Status) == 2 || rank(r.Status) == 2
	corrects := was.Corrects || corrected && was.Result.Result != "" && one.Result.Result != "" && was.Result.Result != one.Result.Result
	h.Results[i] = heldResult{ReportedResult: one, At: r.At, Corrects: corrects}
}

// inOrder returns the reports that are not withdrawn, in the order in which they first arrived.
func (s *orderState) inOrder() (out []heldReport) {
	for _, h := range s.Reports {
		if h.Status != "entered-in-error" {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b heldReport) int { return a.Seq - b.Seq })
	return out
}

func (t *orderedTest) is(code string, opts *Options) bool {
	return code != "" && (code == t.Code || opts.Tests[code] == t.Code)
}

func (d *dossier) complete(opts *Options) bool {
	done, ok := d.reported(opts)
	return ok && (len(done) == 0 || len(done) == len(d.Tests)) // the codes of the laboratory may be unknown
}

// awaited returns the ids of the ordered markers without a final report; nil if a report or a result is not final.
func (d *dossier) awaited(opts *Options) []int {
	done, ok := d.reported(opts)
	if !ok {
		return nil
	}
	out := []int{}
	for i := range d.Tests {
		if !done[d.Tests[i].Code] {
			out = append(out, d.Tests[i].Marker.MarkerID)
		}
	}
	return out
}

// reported returns the codes of the ordered tests that are reported; false if there is no report, or if a report or a
// result is not final.
func (d *dossier) reported(opts *Options) (map[string]bool, bool) {
	list := d.State.inOrder()
	if len(list) == 0 {
		return nil, false
	}
	done := map[string]bool{}
	for _, h := range list {
		if rank(h.Status) == 0 {
			return nil, false
		}
		found := slices.Clone(h.Codes)
		for _, one := range h.Results {
			if rank(one.Status) == 0 {
				return nil, false
			}
			for _, code := range []*string{one.Result.ProviderID, one.Result.LOINC} {
				if code != nil {
					found = append(found, *code)
				}
			}
		}
		for i := range d.Tests {
			if slices.ContainsFunc(found, func(code string) bool { return d.Tests[i].is(code, opts) }) {
				done[d.Tests[i].Code] = true
			}
		}
	}
	return done, true
}

// results returns the combined report of the order, and whether it has a result. done makes the report final, with a
// list of missing results.
func (d *dossier) results(opts *Options, done bool) (labresult.Report, bool) {
	out := labresult.Report{Results: []labresult.Result{}, SampleInformation: map[string]labresult.SampleData{}}
	out.Metadata.Status = labresult.Partial
	if done {
		out.Metadata.Status, out.MissingResults = labresult.Final, []labresult.Missing{}
	}
	var newest time.Time
	for i, h := range d.State.inOrder() {
		if i == 0 || !h.At.Before(newest) {
			status := out.Metadata.Status
			newest, out.Metadata = h.At, h.Head
			out.Metadata.Status = status
		}
		for id, sample := range h.Samples {
			if have, ok := out.SampleInformation[id]; ok && sample.PerformingLaboratories == nil {
				sample.PerformingLaboratories = have.PerformingLaboratories
			}
			out.SampleInformation[id] = sample
		}
		for _, one := range h.Results {
			r := one.Result
			r.SourceMarkers = d.markers(&r, h.Codes, opts)
			if one.Corrects && !d.State.FinalSent {
				at := healthlab.At(one.At)
				r.CorrectedAt = &at
			}
			switch {
			case one.Status == "entered-in-error":
			case one.Missing || one.Status == "cancelled":
				if done {
					out.MissingResults = append(out.MissingResults, labresult.Missing{
						Name: r.Name, Slug: r.Slug, InferredFailureType: labresult.UnknownFailure, Note: r.Notes, LOINC: r.LOINC, ProviderID: r.ProviderID,
						SourceMarkers: r.SourceMarkers, Group: r.Group, Methods: r.Methods,
					})
				}
			default:
				out.Results = append(out.Results, r)
			}
		}
	}
	return out, len(out.Results) > 0
}

// markers returns the ordered tests to which a result belongs, found by the result's codes, or else by those of its
// report.
func (d *dossier) markers(r *labresult.Result, report []string, opts *Options) (out []labresult.SourceMarker) {
	var own []string
	for _, code := range []*string{r.ProviderID, r.LOINC} {
		if code != nil {
			own = append(own, *code)
		}
	}
	for _, list := range [][]string{own, report} {
		for i := range d.Tests {
			if slices.ContainsFunc(list, func(code string) bool { return d.Tests[i].is(code, opts) }) {
				out = append(out, d.Tests[i].Marker)
			}
		}
		if out != nil {
			return out
		}
	}
	return nil
}

// message returns the message to the orders.Service about a bundle, which arrived at a time and has a delivery key. It
// returns nil if the message would repeat the last one. It also returns nil for an order without a result, unless the
// order is complete with missing results and no final result was sent: then the message says that the sample was
// rejected.
func (d *dossier) message(key string, at time.Time, patient *orders.ReportedPatient, opts *Options) *exchange.Message {
	s := &d.State
	m := exchange.Message{Team: d.Team, Order: d.Order, SampleID: d.Number, At: at, Lab: opts.LabSlug, Patient: patient}
	done := d.complete(opts) || s.FinalSent
	results, some := d.results(opts, done)
	corrects := false
	for _, r := range results.Results {
		corrects = corrects || r.CorrectedAt != nil
	}
	for _, sample := range results.SampleInformation {
		if c := sample.DateCollected; c != nil && (m.CollectedAt.IsZero() || c.Timestamp.Before(m.CollectedAt)) {
			m.CollectedAt = c.Timestamp.Time
		}
	}
	final := false
	switch {
	case s.FinalSent && some, done && some && corrects:
		m.On, final = orders.CorrectedResult, true
	case done && some:
		m.On, final = orders.FinalResult, true
	case some:
		m.On, m.Awaited = orders.PartialResult, d.awaited(opts)
	case done && len(results.MissingResults) > 0 && !s.FinalSent:
		m.On = orders.SampleRejected
		results.Results = nil
	default:
		return nil
	}
	m.Results = &results
	sum, err := json.Marshal(struct {
		Final   bool
		Results any
		Missing any
		Samples any
	}{final, withoutCorrectionTime(results.Results), results.MissingResults, results.SampleInformation})
	if err != nil {
		return nil
	}
	digest := digestID(string(sum))
	if s.SentDigest == digest {
		return nil
	}
	s.SentDigest, s.FinalSent = digest, s.FinalSent || final
	if list := s.inOrder(); len(list) == 1 {
		m.ReportFile = list[0].File
	}
	m.ID = digestID(d.Number, key, digest)
	return &m
}

// withoutCorrectionTime returns the results without the time of their correction, so that two messages can be compared.
func withoutCorrectionTime(list []labresult.Result) []labresult.Result {
	out := slices.Clone(list)
	for i := range out {
		out[i].CorrectedAt = nil
	}
	return out
}

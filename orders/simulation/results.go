package simulation

import (
	"hash/fnv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Results generates a report of an order for the trigger on: the expected results of the ordered markers, or one result
// for each marker without expected results. A report for PartialResult has the first half of them. expected has the
// expected results of each marker, by marker id. The same arguments give the same report.
func Results(o *orders.Order, expected map[int][]catalogue.ExpectedResult, flags orders.SimulationFlags, on orders.Trigger, at time.Time) labresult.Report {
	due := dueResults(o.LabTest, expected)
	lose := on != orders.PartialResult && flags.HasMissingResults != nil && *flags.HasMissingResults
	if lose && len(due) == 1 && flags.Interpretation != "" {
		// The flags set the interpretation of the only result, so an additional result is the missing one.
		due = append(due, dueResult{missing: labresult.Missing{Name: o.LabTest.Name, Slug: o.LabTest.Slug, SourceMarkers: due[0].missing.SourceMarkers}})
	}
	out := labresult.Report{Metadata: o.ReportHead(at), Results: []labresult.Result{}}
	if on != orders.PartialResult {
		out.MissingResults = []labresult.Missing{}
	}
	t, day := healthlab.At(at), rules.UTCDay(at).String()
	for i, d := range due {
		if on == orders.PartialResult && i > 0 && i >= (len(due)+1)/2 {
			break
		}
		if lose && i == len(due)-1 {
			d.missing.InferredFailureType = labresult.InternalLabFailure
			out.MissingResults = append(out.MissingResults, d.missing)
			continue
		}
		reading := labresult.Normal
		if flags.Interpretation == labresult.UnknownInterpretation || i == 0 && flags.Interpretation != "" {
			reading = flags.Interpretation // unknown applies to every result, any other flag to the first
		}
		seed := hash(o.ID.String(), d.missing.Slug, string(on))
		marker, known := markerOf(d.missing.LOINC, d.unit)
		types := flags.ResultTypes
		switch {
		case len(types) > 0:
		case known:
			types = marker.types()
		default:
			types = []labresult.Type{labresult.Numeric, labresult.Comment, labresult.Range}
		}
		r := unknownResult(types[i%len(types)], reading, seed)
		if known && !marker.qualitative && r.Type == labresult.Numeric {
			r = marker.result(reading, seed)
			d.unit = r.Unit
		}
		r.Name, r.Slug, r.ProviderID, r.SourceMarkers = d.missing.Name, d.missing.Slug, d.missing.ProviderID, d.missing.SourceMarkers
		r.LOINC, r.LOINCSlug, r.Unit = d.missing.LOINC, d.missing.LOINCSlug, d.unit
		r.Timestamp, r.SourceSampleID = &t, o.SampleID
		out.Results = append(out.Results, r)
	}
	out.Metadata.DateCollected, out.Metadata.DateReceived = &day, &day
	if o.SampleID != nil {
		when := &labresult.TimestampWithOffset{Timestamp: t}
		out.SampleInformation = map[string]labresult.SampleData{*o.SampleID: {SampleID: o.SampleID, DateCollected: when, DateReceived: when, DateReported: when}}
	}
	return out
}

// dueResult is a result to generate: its names, codes and markers are in missing.
type dueResult struct {
	missing labresult.Missing
	unit    *string
}

func dueResults(t catalogue.LabTest, expected map[int][]catalogue.ExpectedResult) []dueResult {
	var due []dueResult
	for _, m := range t.Markers {
		source := []labresult.SourceMarker{{MarkerID: m.ID, Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID}}
		for _, e := range expected[m.ID] {
			d := dueResult{labresult.Missing{Name: e.Name, Slug: e.Slug, ProviderID: e.ProviderID, SourceMarkers: source}, m.Unit}
			if e.LOINC != nil {
				d.missing.LOINC, d.missing.LOINCSlug, d.unit = &e.LOINC.Code, &e.LOINC.Slug, e.LOINC.Unit
			}
			due = append(due, d)
		}
		if len(expected[m.ID]) == 0 {
			due = append(due, dueResult{labresult.Missing{Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID, SourceMarkers: source}, m.Unit})
		}
	}
	if len(due) == 0 {
		due = append(due, dueResult{missing: labresult.Missing{Name: t.Name, Slug: t.Slug}})
	}
	return due
}

// unknownResult generates a result of the type t with the interpretation reading, without the data of markerTable. The
// reference range is 3.0 to 7.0 for Numeric and below 7 for Range; other types have none. The same seed gives the same
// result.
func unknownResult(t labresult.Type, reading labresult.Interpretation, seed uint64) labresult.Result {
	tenth := func(n uint64) catalogue.Number { return catalogue.Number{Decimal: decimal.New(int64(n), -1)} }
	low, high, none := tenth(30), tenth(70), catalogue.Number{Decimal: decimal.NewFromInt(-1)}
	span, above, below := "3.0-7.0", false, false
	r := labresult.Result{Type: t, Value: &none, Interpretation: reading, SourceInterpretation: "N"}
	value := tenth(30 + seed%41)
	switch reading {
	case labresult.Abnormal:
		value, above, r.SourceInterpretation = tenth(71+seed%20), true, "H"
	case labresult.Critical:
		value, above, r.SourceInterpretation = tenth(150+seed%20), true, "HH"
	case labresult.UnknownInterpretation:
		r.SourceInterpretation = ""
	default:
	}
	switch t {
	case labresult.Numeric:
		r.Result, r.Value = value.String(), &value
		r.ReferenceRange, r.MinRangeValue, r.MaxRangeValue = &span, &low, &high
		r.IsAboveMaxRange, r.IsBelowMinRange = &above, &below
	case labresult.Range:
		under := "<" + high.String()
		r.Result, r.ReferenceRange, r.MaxRangeValue, r.IsAboveMaxRange = "<"+low.String(), &under, &high, &above
		if above {
			r.Result = ">" + value.String()
		}
		text := r.Result
		r.Notes = &text
	case labresult.CodedValue:
		r.Result = "NOT_DETECTED"
		if above {
			r.Result = "DETECTED"
		}
	default:
		r.Result = "no finding"
		if above {
			r.Result = "finding"
		}
		text := r.Result
		r.Notes = &text
	}
	return r
}

// hash returns a 64-bit FNV-1a hash of texts.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

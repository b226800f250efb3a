package hl7

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// results returns the current report of the order, and whether it has a result.
func (d *dossier) results(opts *Options, done bool) (labresult.Report, bool) {
	s := &d.State
	out := labresult.Report{Metadata: s.Head, Results: []labresult.Result{}, SampleInformation: map[string]labresult.SampleData{}}
	out.Metadata.Status = labresult.Partial
	if done {
		out.Metadata.Status, out.MissingResults = labresult.Final, []labresult.Missing{}
	}
	out.Metadata.Notes = optional(s.notes())
	sampleOf := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		sampleOf[key] = d.addSamples(out.SampleInformation, s.Tests[key])
	}
	for _, k := range s.inOrder() {
		h := s.Results[k]
		t := s.Tests[h.Test]
		h.Result.SourceMarkers, h.Result.SourceSampleID = d.source(t, opts), optional(sampleOf[h.Test])
		h.Result.Result = strings.TrimRight(h.Result.Result, "\n")
		if h.Corrects && !s.FinalSent {
			h.Result.CorrectedAt = new(healthlab.At(h.At))
		}
		switch {
		case h.hidden():
		case h.absent():
			if done {
				out.MissingResults = append(out.MissingResults, s.missing(h.Result, t))
			}
		case h.Result.Result != "":
			if n := h.Result.Notes; n == nil || *n == "" {
				h.Result.Notes = nil
				if h.Result.Type == labresult.Range || h.Result.Type == labresult.Comment {
					h.Result.Notes = optional(h.Result.Result)
				}
			}
			out.Results = append(out.Results, h.Result)
		}
	}
	unreported := s.unreported()
	for _, key := range slices.Sorted(maps.Keys(s.Tests)) {
		if t := s.Tests[key]; done && unreported[key] {
			gone := labresult.Result{Name: t.Name, Slug: slug(t.Name), SourceMarkers: d.source(t, opts), Parent: t.Parent}
			if len(t.Codes) > 0 {
				gone.ProviderID = optional(t.Codes[0])
			}
			out.MissingResults = append(out.MissingResults, s.missing(gone, t))
		}
	}
	return out, len(out.Results) > 0
}

// corrects reports whether the last message corrects a value of one of the results.
func (s *orderState) corrects() bool {
	for _, h := range s.Results {
		if h.Corrects {
			return true
		}
	}
	return false
}

func (s *orderState) inOrder() []string {
	return slices.SortedFunc(maps.Keys(s.Results), func(a, b string) int { return s.Results[a].Seq - s.Results[b].Seq })
}

func (s *orderState) notes() string {
	list := slices.SortedFunc(maps.Keys(s.Notes), func(a, b string) int {
		return cmp.Or(s.Notes[a].Compare(s.Notes[b]), strings.Compare(a, b))
	})
	return strings.Join(list, "\n")
}

// addSamples adds the samples of a test to a report, and returns the key of the first one. Tests may share a sample.
// If a test describes the sample otherwise, such as an isolate under the number of the blood that it grew from, its
// sample gets another key.
func (d *dossier) addSamples(to map[string]labresult.SampleData, t heldTest) string {
	add := func(id string, data labresult.SampleData) string {
		key := id
		for n := 2; descriptionsDiffer(to[key], data); n++ {
			if n > 50 { // give up the search for an equal sample
				n = len(to) + 1
			}
			key = fmt.Sprintf("%s-%d", id, n)
		}
		if have, ok := to[key]; ok {
			labs := maps.Clone(data.PerformingLaboratories)
			if labs == nil {
				labs = map[string]labresult.PerformingLaboratory{}
			}
			maps.Copy(labs, have.PerformingLaboratories)
			if len(labs) > 0 {
				have.PerformingLaboratories = labs
			}
			fillSample(&have, data)
			have.ClinicalInformation = mergeClinicalInformation(have.ClinicalInformation, data.ClinicalInformation)
			data = have
		}
		to[key] = data
		return key
	}
	first := add(cmp.Or(t.Sample, d.SampleID, d.Number), t.Data)
	for _, id := range slices.Sorted(maps.Keys(t.More)) {
		add(id, t.More[id])
	}
	return first
}

// descriptionsDiffer reports whether two descriptions of a sample contradict each other in a property such as the type
// or the container. A property that only one of them has does not count.
func descriptionsDiffer(a, b labresult.SampleData) bool {
	one := func(a, b *labresult.Coded) bool { return a != nil && b != nil && !reflect.DeepEqual(a, b) }
	list := func(a, b []labresult.Coded) bool { return a != nil && b != nil && !reflect.DeepEqual(a, b) }
	return one(a.ContainerType, b.ContainerType) || list(a.Additives, b.Additives) || a.Description != "" && b.Description != "" && a.Description != b.Description ||
		one(a.SpecimenType, b.SpecimenType) || one(a.SpecimenSite, b.SpecimenSite) ||
		one(a.CollectionMethod, b.CollectionMethod) || one(a.CollectionSite, b.CollectionSite) ||
		list(a.TypeModifiers, b.TypeModifiers) || list(a.SiteModifiers, b.SiteModifiers) ||
		list(a.Conditions, b.Conditions) || list(a.RejectReasons, b.RejectReasons)
}

// mergeClinicalInformation returns the notes of both arguments, and the volume of the first that has one.
func mergeClinicalInformation(a, b *labresult.ClinicalInformation) *labresult.ClinicalInformation {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	notes := []string{text(a.Notes)}
	if text(b.Notes) != notes[0] {
		notes = append(notes, text(b.Notes))
	}
	return clinical(strings.Join(nonEmpty(notes...), "\n"), cmp.Or(text(a.TotalVolume), text(b.TotalVolume)))
}

func (d *dossier) source(t heldTest, opts *Options) []labresult.SourceMarker {
	var out []labresult.SourceMarker
	for _, o := range d.Tests {
		if t.matches(o, opts) {
			out = append(out, o.Marker)
		}
	}
	return out
}

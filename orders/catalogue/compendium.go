package catalogue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/internal/textsearch"
)

// SearchMode selects the result of a compendium search.
type SearchMode string

// Search modes.
const (
	// SearchCanonical finds measurements, independent of the lab.
	SearchCanonical SearchMode = "canonical"
	// SearchCrosswalk finds the markers for one measurement at every lab.
	SearchCrosswalk SearchMode = "crosswalk"
)

// CompendiumRelation is the relation between the measurements of two markers.
type CompendiumRelation string

// Relations of a marker's LOINC codes to the searched codes: equal, fewer, more, or partly shared. Suggested
// means that the names match, and that one of the two has no LOINC codes.
const (
	RelationExact     CompendiumRelation = "exact"
	RelationSubset    CompendiumRelation = "subset"
	RelationSuperset  CompendiumRelation = "superset"
	RelationOverlap   CompendiumRelation = "overlap"
	RelationSuggested CompendiumRelation = "suggested"
)

// CompendiumRequest searches the compendium, which lists what labs can measure.
type CompendiumRequest struct {
	Mode  SearchMode `json:"mode"`
	Query *string    `json:"query"`
	// CPTCodes limit the result to measurements with one of these procedure codes.
	CPTCodes []string `json:"cpt_codes" wire:"opt,max=100"`
	// LOINCSetHash searches for one measurement, by the hash in [CanonicalCandidate]. It is for a crosswalk only,
	// instead of Query.
	LOINCSetHash *string `json:"loinc_set_hash"`
	// Labs are the slugs of labs; all labs if empty.
	Labs []string `json:"labs" wire:"opt,max=50"`
	// IncludeRelated adds similar measurements to the result of a crosswalk. Default true.
	IncludeRelated *bool `json:"include_related"`
	// Limit is the highest number of candidates in each list of the result: 1 to 10, or 1 to 20 for a
	// crosswalk. Default 3.
	Limit *int `json:"limit"`
}

// CanonicalCandidate is one measurement, independent of the lab. All markers with the same set of LOINC codes
// share one candidate.
type CanonicalCandidate struct {
	LOINCSetHash    string   `json:"loinc_set_hash"`
	DisplayName     string   `json:"display_name"`
	Aliases         []string `json:"aliases"`
	LOINCCodes      []string `json:"loinc_codes"`
	ProviderIDs     []string `json:"provider_ids"`
	LOINCComponents []string `json:"loinc_components"`
	LOINCGroups     []string `json:"loinc_groups"`
	CPTCodes        []string `json:"cpt_codes"`
	PopularityScore float64  `json:"popularity_score"`
	Confidence      float64  `json:"confidence"`
}

// PerLabCandidate is a marker of one lab that matches the searched measurement or code.
type PerLabCandidate struct {
	MarkerID              int                `json:"marker_id"`
	LabID                 int                `json:"lab_id"`
	LabSlug               *string            `json:"lab_slug"`
	ProviderID            *string            `json:"provider_id"`
	Name                  string             `json:"name"`
	LOINCSetHash          string             `json:"loinc_set_hash"`
	Relation              CompendiumRelation `json:"relation"`
	ResultNames           []string           `json:"result_names"`
	LOINCCodes            []string           `json:"loinc_codes"`
	LOINCComponents       []string           `json:"loinc_components"`
	LOINCGroups           []string           `json:"loinc_groups"`
	CPTCodes              []string           `json:"cpt_codes"`
	ReasonCodes           []string           `json:"reason_codes"`
	Confidence            float64            `json:"confidence"`
	MarkerPopularityScore float64            `json:"marker_popularity_score"`
}

// RelatedCandidate is a measurement that shares LOINC codes with the selected one, or only its name if one of
// the two has no codes.
type RelatedCandidate struct {
	Canonical   CanonicalCandidate `json:"canonical"`
	Relation    CompendiumRelation `json:"relation"`
	Confidence  float64            `json:"confidence"`
	ReasonCodes []string           `json:"reason_codes"`
}

// CompendiumResult is the result of a compendium search.
type CompendiumResult struct {
	Mode                SearchMode                   `json:"mode"`
	SelectedCanonical   *CanonicalCandidate          `json:"selected_canonical"`
	CanonicalCandidates []CanonicalCandidate         `json:"canonical_candidates"`
	PerLab              map[string][]PerLabCandidate `json:"per_lab"`
	Related             []RelatedCandidate           `json:"related"`
}

// ConvertRequest asks for another lab's codes of the same measurements.
type ConvertRequest struct {
	// LabTestID or ProviderIDs: exactly one of the two must be given.
	LabTestID   *LabTestID `json:"lab_test_id"`
	ProviderIDs []string   `json:"provider_ids" wire:"opt,max=100"`
	TargetLab   string     `json:"target_lab"`
	// Limit is the highest number of candidates for each code: 1 to 20. Default 3.
	Limit *int `json:"limit"`
}

// ConvertedCode lists the target lab's markers for one code of the source, the best first.
type ConvertedCode struct {
	SourceProviderID string            `json:"source_provider_id"`
	Candidates       []PerLabCandidate `json:"candidates"`
}

// Conversion maps the codes of one lab to those of another.
type Conversion struct {
	SourceLabTestID       *LabTestID               `json:"source_lab_test_id"`
	SourceLabID           *int                     `json:"source_lab_id"`
	TargetLabID           int                      `json:"target_lab_id"`
	TargetLabSlug         string                   `json:"target_lab_slug"`
	SourceProviderIDs     []string                 `json:"source_provider_ids"`
	ConvertedProviderIDs  []string                 `json:"converted_provider_ids"`
	UnresolvedProviderIDs []string                 `json:"unresolved_provider_ids"`
	BySourceProviderID    map[string]ConvertedCode `json:"by_source_provider_id"`
}

// OrderableRequest asks for a lab's markers that match codes of any lab.
type OrderableRequest struct {
	ProviderIDs []string `json:"provider_ids" wire:"max=100"`
	TargetLab   string   `json:"target_lab"`
	// PerProviderLimit is the highest number of markers for each code: 1 to 20. Default 1.
	PerProviderLimit *int `json:"per_provider_limit"`
}

// MarkerFacts are the billing codes (CPT) and the popularity of a lab's marker, which [Marker] does not have.
type MarkerFacts struct {
	Lab        string   `json:"lab"`
	ProviderID string   `json:"provider_id"`
	CPTCodes   []string `json:"cpt_codes"`
	// Popularity is 0 to 1: how often the marker is ordered, relative to others.
	Popularity float64 `json:"popularity"`
}

// Check returns Invalid with every problem of the request.
func (r *CompendiumRequest) Check() error {
	var p healthlab.Problems
	rules.OneOf(&p, r.Mode, []SearchMode{SearchCanonical, SearchCrosswalk}, "mode")
	query, hash := r.Query != nil && strings.TrimSpace(*r.Query) != "", r.LOINCSetHash != nil && *r.LOINCSetHash != ""
	most := 10
	switch {
	case r.Mode == SearchCrosswalk:
		most = 20
		if query == hash {
			p.Add("exactly_one", "must have exactly one of query and loinc_set_hash", "query")
		}
	case !query:
		p.Add("missing", "is required", "query")
	case r.LOINCSetHash != nil:
		p.Add("forbidden", "must be left out unless mode is crosswalk", "loinc_set_hash")
	}
	limited(&p, r.Limit, most, "limit")
	return p.Err()
}

// Check returns Invalid with every problem of the request.
func (r *ConvertRequest) Check() error {
	var p healthlab.Problems
	if (r.LabTestID == nil) == (len(r.ProviderIDs) == 0) {
		p.Add("exactly_one", "must have exactly one of lab_test_id and provider_ids", "provider_ids")
	}
	rules.Check{Problems: &p}.Text(r.TargetLab, "target_lab", 1, rules.MaxText)
	limited(&p, r.Limit, 20, "limit")
	return p.Err()
}

// Check returns Invalid with every problem of the request.
func (r *OrderableRequest) Check() error {
	var p healthlab.Problems
	if len(r.ProviderIDs) > 100 {
		p.Add("too_long", "must have at most 100 codes", "provider_ids")
	}
	rules.Check{Problems: &p}.Text(r.TargetLab, "target_lab", 1, rules.MaxText)
	limited(&p, r.PerProviderLimit, 20, "per_provider_limit")
	return p.Err()
}

// compendium indexes the orderable markers of the central labs by their set of LOINC codes.
type compendium struct {
	labs    []Lab
	markers []entry
	byID    map[int]int      // index of each marker by id
	sets    map[string][]int // indexes of markers, by the hash of their LOINC codes
}

// entry is a marker with its LOINC codes.
type entry struct {
	MarkerComplete
	MarkerFacts
	lab   *Lab
	hash  string
	codes []string // LOINC, sorted
	// name has the words of the marker's name; synonyms are its other names, in the same form. The words of each are
	// folded and sorted, so that names are compared without the order of words.
	name     string
	synonyms []string
}

// compendium builds the compendium from all orderable markers of the central labs. Forbidden unless the team may use
// it.
func (s *Service) compendium(ctx context.Context, team healthlab.TeamID) (*compendium, error) {
	allowed, err := s.opts.CompendiumTools(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("team settings: %w", err)
	}
	if !allowed {
		return nil, rules.NotEnabled("the compendium")
	}
	labs, err := s.CentralLabs(ctx)
	if err != nil {
		return nil, err
	}
	c := &compendium{labs: labs, byID: map[int]int{}, sets: map[string][]int{}}
	for page := 1; ; page++ {
		found, err := s.source.FindMarkers(ctx, MarkerQuery{Page: page, Size: MaxPageSize})
		if err != nil {
			return nil, fmt.Errorf("read compendium: %w", err)
		}
		for _, m := range found.Markers {
			i := slices.IndexFunc(c.labs, func(l Lab) bool { return m.LabID != nil && *m.LabID == l.ID })
			if i < 0 {
				continue
			}
			e := entry{MarkerComplete: m, lab: &c.labs[i], MarkerFacts: s.facts(c.labs[i].Slug, m.Marker)}
			for _, r := range m.ExpectedResults {
				if r.LOINC != nil {
					e.codes = append(e.codes, r.LOINC.Code)
				}
			}
			slices.Sort(e.codes)
			e.codes = slices.Compact(e.codes)
			text := strings.Join(e.codes, " ")
			if text == "" {
				text = fmt.Sprint("marker ", m.ID) // a marker without codes equals no other marker
			}
			sum := sha256.Sum256([]byte(text))
			e.hash = hex.EncodeToString(sum[:12])
			e.setNames()
			c.byID[e.ID] = len(c.markers)
			c.sets[e.hash] = append(c.sets[e.hash], len(c.markers))
			c.markers = append(c.markers, e)
		}
		if len(found.Markers) < MaxPageSize {
			return c, nil
		}
	}
}

// facts returns the billing codes and the popularity of a marker; zero facts if they are unknown. lab is the lab's
// slug.
func (s *Service) facts(lab string, m Marker) MarkerFacts {
	if m.ProviderID != nil {
		if f, ok := s.opts.Facts(lab, *m.ProviderID); ok {
			return f
		}
	}
	return MarkerFacts{CPTCodes: []string{}}
}

// canonical returns the measurement of all markers whose set of LOINC codes has the hash. confidence is stored in the
// result.
func (c *compendium) canonical(hash string, confidence float64) CanonicalCandidate {
	out := CanonicalCandidate{LOINCSetHash: hash, Aliases: []string{}, LOINCCodes: []string{}, ProviderIDs: []string{},
		LOINCComponents: []string{}, LOINCGroups: []string{}, CPTCodes: []string{}, Confidence: confidence}
	for i, at := range c.sets[hash] {
		e := c.markers[at]
		if i == 0 {
			out.DisplayName, out.LOINCCodes, out.LOINCComponents = e.Name, rules.NonNil(e.codes), e.components()
		} else if e.Name != out.DisplayName && !slices.Contains(out.Aliases, e.Name) {
			out.Aliases = append(out.Aliases, e.Name)
		}
		if e.Marker.ProviderID != nil {
			out.ProviderIDs = append(out.ProviderIDs, *e.Marker.ProviderID)
		}
		out.CPTCodes = append(out.CPTCodes, e.CPTCodes...)
		out.PopularityScore = max(out.PopularityScore, e.Popularity)
	}
	slices.Sort(out.CPTCodes)
	out.CPTCodes = slices.Compact(out.CPTCodes)
	return out
}

// components returns the LOINC names of the marker's expected results, without duplicates.
func (e *entry) components() []string {
	out := []string{}
	for _, r := range e.ExpectedResults {
		if r.LOINC != nil && !slices.Contains(out, r.LOINC.Name) {
			out = append(out, r.LOINC.Name)
		}
	}
	return out
}

// setNames sets name and synonyms. The synonyms are the initials of the name and, if the marker has one expected
// result, the names of that result and of its LOINC code.
func (e *entry) setNames() {
	words := func(text string) string {
		return strings.Join(slices.Compact(slices.Sorted(slices.Values(textsearch.Words(text)))), " ")
	}
	e.name, e.synonyms = words(e.Name), []string{textsearch.Initials(textsearch.Words(e.Name))}
	if len(e.ExpectedResults) == 1 {
		r := e.ExpectedResults[0]
		e.synonyms = append(e.synonyms, words(r.Name))
		if r.LOINC != nil {
			e.synonyms = append(e.synonyms, words(r.LOINC.Name))
		}
	}
}

func sameName(a, b *entry) bool { return a.name == b.name && a.name != "" }

func synonym(a, b *entry) bool {
	return b.name != "" && slices.Contains(a.synonyms, b.name) || a.name != "" && slices.Contains(b.synonyms, a.name)
}

// match is the similarity of a marker to a searched set of LOINC codes.
type match struct {
	relation   CompendiumRelation
	confidence float64
	reason     string
}

// match compares a marker with the markers whose set of LOINC codes has the hash; false if they have nothing in common.
// If one of the two has no codes, match compares names; such a match has a lower confidence than any match by codes.
func (c *compendium) match(e *entry, hash string) (match, bool) {
	set := c.sets[hash]
	if e.hash == hash {
		return match{RelationExact, 1, "EXACT_LOINC_SET"}, true
	}
	with := c.markers[set[0]].codes
	if len(e.codes) > 0 && len(with) > 0 {
		return relation(e.codes, with)
	}
	called := func(as func(a, b *entry) bool) bool {
		return slices.ContainsFunc(set, func(i int) bool { return as(e, &c.markers[i]) })
	}
	switch {
	case called(sameName):
		return match{RelationSuggested, 0.2, "NAME_MATCH"}, true
	case called(synonym):
		return match{RelationSuggested, 0.1, "SYNONYM_MATCH"}, true
	}
	return match{}, false
}

// relation compares the set codes with another set of LOINC codes, with; false if they share none. The relation
// RelationSubset means that codes is a subset of with.
func relation(codes, with []string) (match, bool) {
	shared := 0
	for _, code := range codes {
		if slices.Contains(with, code) {
			shared++
		}
	}
	union := len(codes) + len(with) - shared
	part := float64(shared) / float64(union)
	switch shared {
	case 0:
		return match{}, false
	case len(codes):
		return match{RelationSubset, 0.3 + 0.6*part, "SUBSET"}, true
	case len(with):
		return match{RelationSuperset, 0.3 + 0.6*part, "SUPERSET"}, true
	}
	return match{RelationOverlap, 0.2 + 0.5*part, "OVERLAP"}, true
}

// perLab returns the marker as a candidate of its lab, with the similarity m to the searched codes.
func (e *entry) perLab(m match) PerLabCandidate {
	out := PerLabCandidate{MarkerID: e.ID, LabID: e.lab.ID, LabSlug: &e.lab.Slug, ProviderID: e.Marker.ProviderID, Name: e.Name,
		LOINCSetHash: e.hash, Relation: m.relation, ResultNames: []string{}, LOINCCodes: rules.NonNil(e.codes), LOINCComponents: e.components(),
		LOINCGroups: []string{}, CPTCodes: rules.NonNil(e.CPTCodes), ReasonCodes: []string{m.reason}, Confidence: m.confidence,
		MarkerPopularityScore: e.Popularity}
	for _, r := range e.ExpectedResults {
		out.ResultNames = append(out.ResultNames, r.Name)
	}
	return out
}

func bestFirst(found []PerLabCandidate) {
	slices.SortStableFunc(found, func(a, b PerLabCandidate) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(b.MarkerPopularityScore, a.MarkerPopularityScore))
	})
}

// markersAt returns at most limit markers of the lab with the slug lab, the best first. They share LOINC codes or a
// name with the markers whose set of LOINC codes has the hash.
func (c *compendium) markersAt(lab, hash string, limit int) []PerLabCandidate {
	out := []PerLabCandidate{}
	for i := range c.markers {
		if e := &c.markers[i]; e.lab.Slug == lab {
			if m, ok := c.match(e, hash); ok {
				out = append(out, e.perLab(m))
			}
		}
	}
	bestFirst(out)
	return out[:min(len(out), limit)]
}

// SearchCompendium finds measurements, and the markers of labs that measure them. Invalid lists every problem
// of the request; Forbidden unless the team may use the compendium.
func (s *Service) SearchCompendium(ctx context.Context, team healthlab.TeamID, req CompendiumRequest) (CompendiumResult, error) {
	out := CompendiumResult{Mode: req.Mode, CanonicalCandidates: []CanonicalCandidate{}, PerLab: map[string][]PerLabCandidate{}, Related: []RelatedCandidate{}}
	c, err := s.compendium(ctx, team)
	if err != nil {
		return out, err
	}
	if err := req.Check(); err != nil {
		return out, err
	}
	var p healthlab.Problems
	CheckLabs(&p, c.labs, req.Labs)
	if err := p.Err(); err != nil {
		return out, err
	}
	limit := orElse(req.Limit, 3)
	wanted := func(k CanonicalCandidate) bool {
		return len(req.CPTCodes) == 0 || slices.ContainsFunc(k.CPTCodes, func(code string) bool { return slices.Contains(req.CPTCodes, code) })
	}
	if req.LOINCSetHash != nil && *req.LOINCSetHash != "" {
		if len(c.sets[*req.LOINCSetHash]) > 0 {
			out.CanonicalCandidates = append(out.CanonicalCandidates, c.canonical(*req.LOINCSetHash, 1))
		}
		out.CanonicalCandidates = slices.DeleteFunc(out.CanonicalCandidates, func(k CanonicalCandidate) bool { return !wanted(k) })
	} else if out.CanonicalCandidates, err = s.search(ctx, c, *req.Query, wanted); err != nil {
		return out, err
	}
	if req.Mode == SearchCrosswalk {
		limit = min(limit, 20)
		out.CanonicalCandidates = out.CanonicalCandidates[:min(len(out.CanonicalCandidates), 1)]
	}
	out.CanonicalCandidates = out.CanonicalCandidates[:min(len(out.CanonicalCandidates), limit)]
	if len(out.CanonicalCandidates) == 0 {
		return out, nil
	}
	best := out.CanonicalCandidates[0]
	out.SelectedCanonical = &best
	if req.Mode == SearchCrosswalk {
		for _, l := range c.labs {
			if found := c.markersAt(l.Slug, best.LOINCSetHash, limit); len(found) > 0 && (len(req.Labs) == 0 || slices.Contains(req.Labs, l.Slug)) {
				out.PerLab[l.Slug] = found
			}
		}
		if req.IncludeRelated == nil || *req.IncludeRelated {
			out.Related = c.related(best.LOINCSetHash, limit)
		}
	}
	return out, nil
}

// search returns the measurements whose markers match the search text query and for which wanted returns true, the best
// first. The confidence is 80 % the rank in the search result and 20 % the popularity.
func (s *Service) search(ctx context.Context, c *compendium, query string, wanted func(CanonicalCandidate) bool) ([]CanonicalCandidate, error) {
	out, seen := []CanonicalCandidate{}, map[string]bool{}
	for place, page := 0, 1; len(out) < MaxPageSize; page++ {
		found, err := s.source.FindMarkers(ctx, MarkerQuery{Name: query, Page: page, Size: MaxPageSize})
		if err != nil {
			return nil, fmt.Errorf("search compendium: %w", err)
		}
		for _, m := range found.Markers {
			i, ok := c.byID[m.ID]
			if ok && !seen[c.markers[i].hash] {
				seen[c.markers[i].hash] = true
				if k := c.canonical(c.markers[i].hash, 0); wanted(k) {
					match := 1 / (1 + 0.2*float64(place))
					k.Confidence = 0.8*match + 0.2*k.PopularityScore
					out = append(out, k)
				}
			}
			place++
		}
		if len(found.Markers) < MaxPageSize {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b CanonicalCandidate) int { return cmp.Compare(b.Confidence, a.Confidence) })
	return out, nil
}

// related returns at most limit measurements that share LOINC codes or a name with the measurement whose hash is with,
// the closest first.
func (c *compendium) related(with string, limit int) []RelatedCandidate {
	out := []RelatedCandidate{}
	for _, hash := range slices.Sorted(maps.Keys(c.sets)) {
		for _, i := range c.sets[hash] {
			if m, ok := c.match(&c.markers[i], with); ok && hash != with {
				out = append(out, RelatedCandidate{c.canonical(hash, m.confidence), m.relation, m.confidence, []string{m.reason}})
				break
			}
		}
	}
	slices.SortStableFunc(out, func(a, b RelatedCandidate) int { return cmp.Compare(b.Confidence, a.Confidence) })
	return out[:min(len(out), limit)]
}

// targetLab returns the lab with a slug. Invalid if the compendium has no such lab.
func (c *compendium) targetLab(slug string) (*Lab, error) {
	i := slices.IndexFunc(c.labs, func(l Lab) bool { return l.Slug == slug })
	if i < 0 {
		var p healthlab.Problems
		rules.OneOf(&p, slug, Slugs(c.labs), "target_lab")
		return nil, p.Err()
	}
	return &c.labs[i], nil
}

func (c *compendium) sources(code string, lab int) []entry {
	return slices.DeleteFunc(slices.Clone(c.markers), func(e entry) bool {
		return e.Marker.ProviderID == nil || *e.Marker.ProviderID != code || lab >= 0 && e.lab.ID != lab
	})
}

// Convert finds the target lab's codes for the codes of another lab, or of a lab test. Invalid lists every
// problem of the request; NotFound for a lab test that the team does not have; Forbidden unless the team may
// use the compendium.
func (s *Service) Convert(ctx context.Context, team healthlab.TeamID, req ConvertRequest) (Conversion, error) {
	c, err := s.compendium(ctx, team)
	if err != nil {
		return Conversion{}, err
	}
	if err := req.Check(); err != nil {
		return Conversion{}, err
	}
	target, err := c.targetLab(req.TargetLab)
	if err != nil {
		return Conversion{}, err
	}
	out := Conversion{SourceLabTestID: req.LabTestID, TargetLabID: target.ID, TargetLabSlug: target.Slug, SourceProviderIDs: rules.NonNil(req.ProviderIDs),
		ConvertedProviderIDs: []string{}, UnresolvedProviderIDs: []string{}, BySourceProviderID: map[string]ConvertedCode{}}
	from := -1
	if req.LabTestID != nil {
		t, err := s.LabTest(ctx, team, nil, *req.LabTestID)
		if err != nil {
			return Conversion{}, err
		}
		for _, m := range t.Markers {
			if m.ProviderID != nil {
				out.SourceProviderIDs = append(out.SourceProviderIDs, *m.ProviderID)
			}
		}
		if t.Lab != nil {
			from, out.SourceLabID = t.Lab.ID, &t.Lab.ID
		}
	}
	for _, code := range out.SourceProviderIDs {
		found := c.candidatesFor(code, from, target.Slug, orElse(req.Limit, 3))
		out.BySourceProviderID[code] = ConvertedCode{code, found}
		if len(found) == 0 || found[0].ProviderID == nil {
			out.UnresolvedProviderIDs = append(out.UnresolvedProviderIDs, code)
		} else if best := *found[0].ProviderID; !slices.Contains(out.ConvertedProviderIDs, best) {
			out.ConvertedProviderIDs = append(out.ConvertedProviderIDs, best)
		}
	}
	return out, nil
}

// candidatesFor returns at most limit markers of the lab target for another lab's code, the best first. from is the id
// of the lab that has the code; -1 means all labs with the code.
func (c *compendium) candidatesFor(code string, from int, target string, limit int) []PerLabCandidate {
	var all []PerLabCandidate
	for _, e := range c.sources(code, from) {
		all = append(all, c.markersAt(target, e.hash, limit)...)
	}
	bestFirst(all)
	out := []PerLabCandidate{}
	for _, k := range all {
		if !slices.ContainsFunc(out, func(have PerLabCandidate) bool { return have.MarkerID == k.MarkerID }) {
			out = append(out, k)
		}
	}
	return out[:min(len(out), limit)]
}

// SearchOrderable returns the target lab's markers for each given code of any lab, the best first. Invalid
// lists every problem of the request; Forbidden unless the team may use the compendium.
func (s *Service) SearchOrderable(ctx context.Context, team healthlab.TeamID, req OrderableRequest) (map[string][]PerLabCandidate, error) {
	c, err := s.compendium(ctx, team)
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	target, err := c.targetLab(req.TargetLab)
	if err != nil {
		return nil, err
	}
	out := map[string][]PerLabCandidate{}
	for _, code := range req.ProviderIDs {
		out[code] = c.candidatesFor(code, -1, target.Slug, orElse(req.PerProviderLimit, 1))
	}
	return out, nil
}

func orElse(n *int, def int) int {
	if n == nil {
		return def
	}
	return *n
}

func limited(p *healthlab.Problems, n *int, most int, field string) {
	if n != nil && (*n < 1 || *n > most) {
		p.Add("out_of_range", fmt.Sprintf("must be from 1 to %d", most), field)
	}
}

package people

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/internal/textsearch"
)

// RegistryContents has the payors, diagnosis codes and insurance rules that a host configures, in Go or as a
// JSON file.
type RegistryContents struct {
	// ClearingHouses are the names of the clearing houses at which payors have codes.
	ClearingHouses []string        `json:"clearing_houses"`
	Payors         []RegistryPayor `json:"payors"`
	// StatePlans maps the code of a program to its payor codes by state (two letters).
	StatePlans map[string]map[string]string `json:"state_plans"`
	Diagnoses  []DiagnosisEntry             `json:"diagnoses"`
	// NotInsurable are the markers that no insurer pays for.
	NotInsurable []NotInsurable `json:"not_insurable"`
	// Markers are the billing codes and the popularity of markers.
	Markers []catalogue.MarkerFacts `json:"markers"`
}

// RegistryPayor is a payor with its codes at clearing houses: IDs lists them by the name of the clearing house.
type RegistryPayor struct {
	Payor
	IDs map[string][]string `json:"ids"`
}

// UnmarshalJSON reads a payor and refuses unknown fields; payor_code may be named code.
func (p *RegistryPayor) UnmarshalJSON(b []byte) error {
	var in struct {
		Payor
		Code string              `json:"code"`
		IDs  map[string][]string `json:"ids"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	in.PayorCode = cmp.Or(in.PayorCode, in.Code)
	*p = RegistryPayor{in.Payor, in.IDs}
	return nil
}

// DiagnosisEntry is a diagnosis code (ICD-10-CM), or the prefix of several codes, whose exclusions apply to all
// of them.
type DiagnosisEntry struct {
	Code        string `json:"code"`
	Description string `json:"description"`
	// Header is true if the code is too short to be given to an insurer.
	Header bool `json:"header"`
	// Excludes1 are prefixes of codes that must not be combined with this code, Excludes2 of codes that are
	// rarely combined with it.
	Excludes1 []string `json:"excludes1"`
	Excludes2 []string `json:"excludes2"`
}

// NotInsurable is a marker of a lab that insurers do not pay for in the given states; in all states if none is
// given.
type NotInsurable struct {
	Lab        string   `json:"lab"`
	ProviderID string   `json:"provider_id"`
	States     []string `json:"states"`
}

// Diagnosis is one result of a search for diagnosis codes.
type Diagnosis struct {
	DiagnosisCode string `json:"diagnosis_code"`
	Description   string `json:"description"`
	IsSecondary   bool   `json:"is_secondary"`
}

// DiagnosisCheck is the result of checking a combination of diagnosis codes.
type DiagnosisCheck struct {
	// Valid is true if there is neither an error nor a violation.
	Valid bool `json:"valid"`
	// Errors are texts with the position of each code that is malformed or unknown.
	Errors []string `json:"errors"`
	// Violations are pairs of codes that must not be combined.
	Violations []DiagnosisConflict `json:"violations"`
	// Warnings are pairs of codes that are rarely combined.
	Warnings []DiagnosisOverlap `json:"warnings"`
}

// DiagnosisConflict is a pair of codes that must not be combined.
type DiagnosisConflict struct {
	Code          string `json:"code"`
	ConflictsWith string `json:"conflicts_with"`
	// Type is always excludes1, the name of the exclusion in ICD-10-CM.
	Type string `json:"type"`
}

// DiagnosisOverlap is a pair of codes that are rarely combined.
type DiagnosisOverlap struct {
	Code         string `json:"code"`
	OverlapsWith string `json:"overlaps_with"`
	// Type is always excludes2, the name of the exclusion in ICD-10-CM.
	Type string `json:"type"`
}

// Registry has payors and diagnosis codes. It is immutable and safe for concurrent use; nil is an empty
// registry, which checks only the form of codes.
type Registry struct {
	houses    []string
	payors    []RegistryPayor
	byCode    map[string]int
	plans     map[string]map[string]string
	diagnoses []DiagnosisEntry // by code
	known     map[string]int   // by code without its dot
	words     *textsearch.Index
	never     []NotInsurable
	of        map[[2]string]catalogue.MarkerFacts
}

// ReadRegistry reads a registry from JSON in the form of [RegistryContents]. Invalid as [NewRegistry], or if
// the JSON has another form.
func ReadRegistry(r io.Reader) (*Registry, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var c RegistryContents
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: registry at byte %d: %v", healthlab.Invalid, d.InputOffset(), err)
	}
	return NewRegistry(c)
}

// NewRegistry checks the contents and returns a registry. Invalid lists every problem: duplicate or malformed
// codes, unknown clearing houses and plans.
func NewRegistry(c RegistryContents) (*Registry, error) {
	var p healthlab.Problems
	g := &Registry{of: map[[2]string]catalogue.MarkerFacts{}, houses: slices.Clone(c.ClearingHouses), byCode: map[string]int{}, known: map[string]int{}, plans: c.StatePlans, never: slices.Clone(c.NotInsurable)}
	for i, payor := range c.Payors {
		if _, taken := g.byCode[payor.PayorCode]; taken || payor.PayorCode == "" {
			p.Add("duplicate", "must not be the code of another payor", "payors", i, "payor_code")
		}
		for house := range payor.IDs {
			if !slices.Contains(c.ClearingHouses, house) {
				p.Add("unknown_clearing_house", rules.Allowed(house, c.ClearingHouses, "clearing_houses"), "payors", i, "ids")
			}
		}
		payor.Aliases, payor.Source = rules.NonNil(payor.Aliases), PlatformPayor
		g.byCode[payor.PayorCode] = i
		g.payors = append(g.payors, payor)
	}
	for programme, plans := range c.StatePlans {
		for _, code := range plans {
			if _, ok := g.byCode[code]; !ok {
				p.Add("unknown_payor", "must be the code of one of the payors", "state_plans", programme)
			}
		}
	}
	for _, f := range c.Markers {
		f.CPTCodes = rules.NonNil(f.CPTCodes)
		g.of[[2]string{f.Lab, f.ProviderID}] = f
	}
	g.diagnoses = slices.Clone(c.Diagnoses)
	slices.SortFunc(g.diagnoses, func(a, b DiagnosisEntry) int { return strings.Compare(a.Code, b.Code) })
	names := make([]string, len(g.diagnoses))
	for i, d := range g.diagnoses {
		if _, taken := g.known[normalizeCode(d.Code)]; taken {
			p.Add("diagnosis", "must not be the code of another diagnosis", "diagnoses", i, "code")
		} else if !rules.ICDForm.MatchString(d.Code) {
			p.Add("diagnosis", "must be an ICD-10 code, such as E11.9", "diagnoses", i, "code")
		}
		g.known[normalizeCode(d.Code)] = i
		names[i] = d.Description
	}
	g.words = textsearch.New(names, func(int) []string { return nil })
	return g, p.Err()
}

func normalizeCode(code string) string { return strings.ReplaceAll(strings.ToUpper(code), ".", "") }

func (g *Registry) clearingHouses() []string {
	if g == nil {
		return nil
	}
	return g.houses
}

func (g *Registry) entries() []RegistryPayor {
	if g == nil {
		return nil
	}
	return rules.DeepCopy(g.payors)
}

// payor returns the payor with a code. If the code is that of a program, payor returns the program's plan in the state
// (two letters). False if there is none.
func (g *Registry) payor(code, state string) (Payor, bool) {
	if g == nil {
		return Payor{}, false
	}
	if plans, ok := g.plans[code]; ok {
		code = plans[state]
	}
	i, ok := g.byCode[code]
	if !ok {
		return Payor{}, false
	}
	return rules.DeepCopy(g.payors[i].Payor), true
}

// Facts returns the billing codes and the popularity of a marker, by the lab's slug and the lab's code of the marker.
// False if the registry does not have the marker.
func (g *Registry) Facts(lab, providerID string) (catalogue.MarkerFacts, bool) {
	if g == nil {
		return catalogue.MarkerFacts{}, false
	}
	f, ok := g.of[[2]string{lab, providerID}]
	return f, ok
}

// ValidDiagnosis reports whether a diagnosis code may be given to an insurer: it is in the registry and not a header.
// If the registry has no diagnosis codes, only the form of the code is checked.
func (g *Registry) ValidDiagnosis(code string) bool {
	if !rules.ICDForm.MatchString(code) {
		return false
	}
	if g == nil || len(g.diagnoses) == 0 {
		return true
	}
	i, ok := g.known[normalizeCode(code)]
	return ok && !g.diagnoses[i].Header
}

// Insurable reports whether insurers pay for a lab's marker in a state (two letters). lab is the slug of the lab.
func (g *Registry) Insurable(lab string, m catalogue.Marker, state string) bool {
	return g == nil || m.ProviderID == nil || !slices.ContainsFunc(g.never, func(n NotInsurable) bool {
		return n.Lab == lab && n.ProviderID == *m.ProviderID && (len(n.States) == 0 || slices.ContainsFunc(n.States, func(s string) bool { return strings.EqualFold(s, state) }))
	})
}

// find returns at most 100 diagnoses for a search text: codes that begin with the text, then descriptions that have its
// words, then descriptions that contain it. If there are none, it returns similar descriptions.
func (g *Registry) find(text string) []Diagnosis {
	out := []Diagnosis{}
	if g == nil || strings.TrimSpace(text) == "" {
		return out
	}
	seen := map[int]bool{}
	add := func(i int) {
		if d := g.diagnoses[i]; !seen[i] && !d.Header && len(out) < maxFound {
			seen[i] = true
			out = append(out, Diagnosis{DiagnosisCode: d.Code, Description: d.Description})
		}
	}
	for i, d := range g.diagnoses {
		if strings.HasPrefix(normalizeCode(d.Code), normalizeCode(strings.TrimSpace(text))) {
			add(i)
		}
	}
	hits := g.words.Find(text)
	for _, h := range hits {
		if h.Cost == 0 {
			add(h.Text)
		}
	}
	for i, d := range g.diagnoses {
		if rules.ContainsFold(d.Description, strings.TrimSpace(text)) {
			add(i)
		}
	}
	if len(out) == 0 {
		for _, h := range hits {
			add(h.Text)
		}
	}
	return out
}

// excludes reports whether the code other is excluded by the code or by one of its prefixes. notes returns the kind of
// exclusions to check, Excludes1 or Excludes2 of an entry. Both codes are without their dot.
func (g *Registry) excludes(code, other string, notes func(DiagnosisEntry) []string) bool {
	if g == nil {
		return false
	}
	for n := 3; n <= len(code); n++ {
		i, ok := g.known[code[:n]]
		if ok && slices.ContainsFunc(notes(g.diagnoses[i]), func(begin string) bool { return strings.HasPrefix(other, normalizeCode(begin)) }) {
			return true
		}
	}
	return false
}

// SearchDiagnoses returns at most 100 diagnosis codes that begin with the text, or whose description matches it.
func (s *Service) SearchDiagnoses(text string) []Diagnosis { return s.opts.Registry.find(text) }

// CheckDiagnoses checks whether diagnosis codes are valid and may be combined. The result lists invalid codes
// and excluded pairs.
func (s *Service) CheckDiagnoses(codes []string) DiagnosisCheck {
	out := DiagnosisCheck{Errors: []string{}, Violations: []DiagnosisConflict{}, Warnings: []DiagnosisOverlap{}}
	g := s.opts.Registry
	valid := make([]bool, len(codes))
	for i, code := range codes {
		switch valid[i] = g.ValidDiagnosis(code); {
		case !rules.ICDForm.MatchString(code):
			out.Errors = append(out.Errors, fmt.Sprintf("codes[%d] is not an ICD-10 code", i))
		case !valid[i]:
			out.Errors = append(out.Errors, fmt.Sprintf("codes[%d] is not a known code", i))
		}
	}
	one := func(e DiagnosisEntry) []string { return e.Excludes1 }
	two := func(e DiagnosisEntry) []string { return e.Excludes2 }
	for i, a := range codes {
		for j, b := range codes[:i] {
			x, y := normalizeCode(b), normalizeCode(a)
			switch {
			case !valid[i] || !valid[j] || x == y:
			case g.excludes(x, y, one) || g.excludes(y, x, one):
				out.Violations = append(out.Violations, DiagnosisConflict{Code: b, ConflictsWith: a, Type: "excludes1"})
			case g.excludes(x, y, two) || g.excludes(y, x, two):
				out.Warnings = append(out.Warnings, DiagnosisOverlap{Code: b, OverlapsWith: a, Type: "excludes2"})
			}
		}
	}
	out.Valid = len(out.Errors)+len(out.Violations) == 0
	return out
}

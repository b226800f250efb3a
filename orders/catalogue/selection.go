package catalogue

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Selection has the ordered tests and markers of a request, as the caller gave them.
type Selection struct {
	LabTests []LabTestID
	Markers  []int
	// ProviderIDs are the lab's own codes of markers.
	ProviderIDs []string
	// Method is the collection method; nil for that of the lab tests.
	Method *CollectionMethod
	// Account is the lab account; nil for the only active account at the lab.
	Account *LabAccountID
}

// Chosen is the one lab test that a selection orders, with its collection method.
type Chosen struct {
	LabTest LabTest
	Method  CollectionMethod
}

// resolve combines a selection into one lab test. g has the catalogue entries that the selection names. onSite is true
// if the team draws samples itself. If the selection is not just one lab test, resolve builds one with the given id.
func resolve(w Selection, g Candidates, onSite bool, id uuid.UUID) (Chosen, error) {
	found, err := orderable(w, g.LabTests)
	if err != nil {
		return Chosen{}, err
	}
	added, lab, err := selectMarkers(w, found, g)
	if err != nil {
		return Chosen{}, err
	}
	method, err := methodOf(w, found, lab, onSite)
	if err != nil {
		return Chosen{}, err
	}
	if err := checkALaCarte(added); err != nil {
		return Chosen{}, err
	}
	if len(found) == 1 && len(added) == 0 {
		found[0].Markers = slices.Clone(found[0].Markers)
		numberEqualMarkers(found[0].Markers)
		return Chosen{found[0], method}, nil
	}
	return Chosen{BuildLabTest(found, added, lab, method, id), method}, nil
}

// orderable returns the selected ones of tests, without duplicates. LAB_TEST_NOT_FOUND or LAB_TEST_NOT_ORDERABLE if one
// of them is missing or not active.
func orderable(w Selection, tests []LabTest) ([]LabTest, error) {
	found := make([]LabTest, 0, len(w.LabTests))
	for _, want := range w.LabTests {
		i := slices.IndexFunc(tests, func(t LabTest) bool { return t.ID == want })
		if i < 0 {
			return nil, rules.Missing(LabTestNotFound, "the team has no such lab test")
		}
		if tests[i].Status != LabTestActive {
			return nil, rules.Broken(LabTestNotOrderable, "lab_test_id: must be a lab test with the status active")
		}
		if !slices.ContainsFunc(found, func(t LabTest) bool { return t.ID == want }) {
			found = append(found, tests[i])
		}
	}
	return found, nil
}

// checkALaCarte returns MARKER_NOT_A_LA_CARTE unless each marker can be ordered outside of a lab test.
func checkALaCarte(markers []Marker) error {
	for _, m := range markers {
		if !m.ALaCarteEnabled || m.IsOrderable != nil && !*m.IsOrderable {
			return rules.Broken(MarkerNotALaCarte, fmt.Sprintf("marker_ids or provider_ids: the marker %d must be one that can be ordered outside a lab test (a_la_carte_enabled and is_orderable)", m.ID))
		}
	}
	return nil
}

// selectMarkers returns the markers that the selection adds to its lab tests, and the one lab of all tests and markers;
// nil if none of them names a lab. tests are the selected lab tests.
func selectMarkers(w Selection, tests []LabTest, g Candidates) ([]Marker, *Lab, error) {
	lab := -1
	several := false
	add := func(id int) {
		several = several || lab >= 0 && lab != id
		lab = id
	}
	for _, t := range tests {
		if t.Lab != nil {
			add(t.Lab.ID)
		}
	}
	var added []Marker
	for at, id := range w.Markers {
		i := slices.IndexFunc(g.Markers, func(m Marker) bool { return m.ID == id })
		if i < 0 {
			return nil, nil, rules.Broken(MarkerNotFound, fmt.Sprintf("marker_ids[%d]: must be the id of a marker; GET /v3/lab_tests/markers lists the markers", at))
		}
		added = append(added, g.Markers[i])
	}
	coded, err := markersByCode(w, lab, g)
	if err != nil {
		return nil, nil, err
	}
	added = append(added, coded...)
	for _, m := range added {
		if m.LabID != nil {
			add(*m.LabID)
		}
	}
	if several {
		return nil, nil, rules.Broken(MultipleLabs, "the lab tests and markers of an order must all be of one lab")
	}
	i := slices.IndexFunc(g.Labs, func(l Lab) bool { return l.ID == lab })
	if i < 0 {
		return added, nil, nil
	}
	return added, &g.Labs[i], nil
}

// markersByCode returns the markers for the lab's codes in a selection (ProviderIDs). If markers of several labs have a
// code, it takes those of the lab with the id lab; if lab is negative, those of the lab of the selection's account,
// else of the only lab that has all codes.
func markersByCode(w Selection, lab int, g Candidates) ([]Marker, error) {
	all := make([][]Marker, len(w.ProviderIDs))
	for i, code := range w.ProviderIDs {
		all[i] = slices.DeleteFunc(slices.Clone(g.Markers), func(m Marker) bool { return m.ProviderID == nil || *m.ProviderID != code })
		if len(all[i]) == 0 {
			return nil, rules.Broken(MarkerNotFound, fmt.Sprintf("provider_ids[%d]: must be the code of a marker at a lab", i))
		}
	}
	at := func(id int) func(Marker) bool { return func(m Marker) bool { return m.LabID != nil && *m.LabID == id } }
	if lab < 0 && w.Account != nil {
		for _, a := range g.Accounts.Linked {
			if i := slices.IndexFunc(g.Labs, func(l Lab) bool { return l.Slug == a.Lab }); i >= 0 && a.ID == *w.Account {
				lab = g.Labs[i].ID
			}
		}
	}
	if lab < 0 {
		var whole []int
		for _, l := range g.Labs {
			if !slices.ContainsFunc(all, func(of []Marker) bool { return !slices.ContainsFunc(of, at(l.ID)) }) {
				whole = append(whole, l.ID)
			}
		}
		if len(whole) == 1 {
			lab = whole[0]
		}
	}
	var out []Marker
	for i, of := range all {
		if slices.ContainsFunc(of, at(lab)) {
			of = slices.DeleteFunc(of, func(m Marker) bool { return !at(lab)(m) })
		}
		if len(of) > 1 {
			return nil, rules.Broken(MultipleLabs, fmt.Sprintf("provider_ids[%d]: the code belongs to markers of several labs (%s); name the lab with lab_account_id", i, labsOf(of, g.Labs)))
		}
		out = append(out, of[0])
	}
	return out, nil
}

// labsOf returns the slugs of the labs of markers, as a text for errors.
func labsOf(markers []Marker, labs []Lab) string {
	var slugs []string
	for _, l := range labs {
		if slices.ContainsFunc(markers, func(m Marker) bool { return m.LabID != nil && *m.LabID == l.ID }) {
			slugs = append(slugs, l.Slug)
		}
	}
	return rules.List(slugs)
}

// requireMethod returns Invalid if none of the selected lab tests has the collection method; nil without tests. Do not
// call it if the selection adds markers, because they may be collected in another way.
func requireMethod(tests []LabTest, method CollectionMethod) error {
	var have []string
	for _, t := range tests {
		if t.Method == method {
			return nil
		}
		if !slices.Contains(have, string(t.Method)) {
			have = append(have, string(t.Method))
		}
	}
	if len(have) == 0 {
		return nil
	}
	var p healthlab.Problems
	p.Add("enum", "must be the collection method of a selected lab test: "+strings.Join(have, ", "), "collection_method")
	return p.Err()
}

func methodNotSupported(lab *Lab) error {
	return rules.Broken(MethodNotSupported, "collection_method: must be one that the lab accepts: "+rules.List(lab.CollectionMethods))
}

// methodOf returns the collection method of the selection: the requested one, else that of the lab tests. onSite is
// true if the team draws samples itself.
func methodOf(w Selection, tests []LabTest, lab *Lab, onSite bool) (CollectionMethod, error) {
	var method CollectionMethod
	if w.Method != nil {
		method = *w.Method
	} else {
		for _, t := range tests {
			if method != "" && t.Method != method {
				return "", rules.Broken(MultipleMethods, "collection_method is required, because the lab tests are collected in different ways")
			}
			method = t.Method
		}
	}
	if lab != nil && !slices.Contains(lab.CollectionMethods, method) {
		return "", methodNotSupported(lab)
	}
	if method == OnSiteCollection && !onSite {
		return "", rules.NotEnabled("on-site collection")
	}
	if len(w.Markers) == 0 && len(w.ProviderIDs) == 0 {
		if err := requireMethod(tests, method); err != nil {
			return "", err
		}
	}
	return method, nil
}

// numberEqualMarkers makes the names of markers unique, as numberEqualNames does.
func numberEqualMarkers(markers []Marker) {
	var names []string
	for _, m := range markers {
		names = append(names, m.Name)
	}
	for i, name := range numberEqualNames(names) {
		markers[i].Name = name
	}
}

// numberEqualNames returns names with a number appended to each repeated name: Glucose, Glucose (2).
func numberEqualNames(names []string) []string {
	out := make([]string, 0, len(names))
	for i, name := range names {
		for n := 2; slices.Contains(out, name) || name != names[i] && slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s (%d)", names[i], n)
		}
		out = append(out, name)
	}
	return out
}

// BuildLabTest combines lab tests and added markers into one lab test with the given id. Its name joins the names of
// tests and added markers. Repeated names get numbers, also those of its markers. Its price is unknown if one of the
// parts has no price.
func BuildLabTest(tests []LabTest, added []Marker, lab *Lab, method CollectionMethod, id uuid.UUID) LabTest {
	t := LabTest{
		ID: LabTestID{id}, Slug: id.String(), SampleType: Serum, Method: method, IsActive: true,
		Status: LabTestActive, Lab: lab, AutoGenerated: true, Markers: []Marker{},
	}
	if lab != nil {
		if kind, ok := sampleOf(method, lab); ok {
			t.SampleType = kind
		}
	}
	var names []string
	markers := slices.Clone(added)
	for _, test := range tests {
		names = append(names, test.Name)
		t.SampleType, t.Fasting = test.SampleType, t.Fasting || test.Fasting
		t.Price, t.PriceUnknown = Number{t.Price.Add(test.Price.Decimal)}, t.PriceUnknown || test.PriceUnknown
		markers = append(markers, test.Markers...)
	}
	for _, m := range added {
		names = append(names, m.Name)
	}
	price, known := totalPrice(added)
	if t.Price = (Number{t.Price.Add(price.Decimal)}); t.PriceUnknown || !known {
		t.Price, t.PriceUnknown = Number{}, true
	}
	for _, m := range markers {
		if !slices.ContainsFunc(t.Markers, func(have Marker) bool { return have.ID == m.ID }) {
			t.Markers = append(t.Markers, m)
		}
	}
	slices.SortFunc(t.Markers, func(a, b Marker) int { return cmp.Compare(a.ID, b.ID) })
	t.Name = strings.Join(numberEqualNames(names), " + ")
	numberEqualMarkers(t.Markers)
	t.CommonTATDays = SlowestTurnaround(t.Markers, func(m Marker) *int { return m.CommonTATDays })
	t.WorstCaseTATDays = SlowestTurnaround(t.Markers, func(m Marker) *int { return m.WorstCaseTATDays })
	return t
}

// totalPrice returns the sum of the markers' prices; false if the price of a marker is unknown.
func totalPrice(markers []Marker) (Number, bool) {
	var sum Number
	for _, m := range markers {
		if m.Price == nil {
			return Number{}, false
		}
		price, err := ParseNumber(*m.Price)
		if err != nil {
			return Number{}, false
		}
		sum = Number{sum.Add(price.Decimal)}
	}
	return sum, true
}

// SlowestTurnaround returns the highest value that days returns for a marker; nil if days returns nil for any marker.
func SlowestTurnaround(markers []Marker, days func(Marker) *int) *int {
	var out *int
	for _, m := range markers {
		d := days(m)
		if d == nil {
			return nil
		}
		if out == nil || *d > *out {
			out = d
		}
	}
	return out
}

// AccountFor returns the lab account of an order at lab: the account want, if it is not nil; else the team's only
// active account at the lab; else the platform's account, if the team has none at the lab. An imported order may use a
// pending account. Without lab and want it returns nil. RuleErrors: LAB_ACCOUNT_NOT_FOUND, LAB_ACCOUNT_WRONG_LAB and
// LAB_ACCOUNT_NOT_ACTIVE about want; else NO_LAB_ACCOUNT, LAB_ACCOUNT_AMBIGUOUS or NO_ACTIVE_LAB_ACCOUNT.
func AccountFor(lab *Lab, want *LabAccountID, accounts Accounts, imported bool) (*LabAccount, error) {
	usable := func(a LabAccount) bool {
		return a.Status == LabAccountActive || imported && a.Status == LabAccountPending
	}
	if want != nil {
		i := slices.IndexFunc(accounts.Linked, func(a LabAccount) bool { return a.ID == *want })
		switch {
		case i < 0:
			return nil, rules.Missing(LabAccountNotFound, "the team has no such lab account")
		case lab == nil || accounts.Linked[i].Lab != lab.Slug:
			return nil, rules.Broken(LabAccountWrongLab, "lab_account_id: must be an account at the lab of the tests")
		case !usable(accounts.Linked[i]):
			return nil, rules.Broken(LabAccountNotActive, "lab_account_id: must be an account with the status active")
		}
		return &accounts.Linked[i], nil
	}
	if lab == nil {
		return nil, nil
	}
	here := slices.DeleteFunc(slices.Clone(accounts.Linked), func(a LabAccount) bool { return a.Lab != lab.Slug })
	if len(here) == 0 {
		if a, ok := accounts.Platform[lab.Slug]; ok && usable(a) {
			return &a, nil
		}
		return nil, rules.Broken(NoLabAccount, "the team has no account at the lab "+lab.Slug+"; link one, or choose tests of another lab")
	}
	active := slices.DeleteFunc(slices.Clone(here), func(a LabAccount) bool { return a.Status != LabAccountActive })
	pending := slices.DeleteFunc(here, func(a LabAccount) bool { return a.Status != LabAccountPending })
	switch {
	case len(active) == 1:
		return &active[0], nil
	case len(active) > 1:
		return nil, rules.Broken(LabAccountAmbiguous, "lab_account_id is required, because the team has several active accounts at the lab "+lab.Slug)
	case imported && len(pending) == 1:
		return &pending[0], nil
	}
	return nil, rules.Broken(NoActiveLabAccount, "the team has accounts at the lab "+lab.Slug+", but none with the status active")
}

// CheckBilling checks that the account allows the billing type in the patient's state (two letters). It allows
// everything for a nil account. If state is empty, it checks the billing type only.
func CheckBilling(a *LabAccount, billing BillingType, state string) error {
	if a == nil {
		return nil
	}
	_, ok := a.AllowedBilling[billing]
	switch {
	case !ok:
		return rules.Broken(BillingTypeNotAllowed, "billing_type: must be one that the lab account accepts: "+rules.List(billingOf(a, "")))
	case !slices.Contains(billingOf(a, state), billing):
		return rules.Broken(BillingStateNotAllowed, "billing_type: must be one that the lab account accepts in the patient's state: "+rules.List(billingOf(a, state)))
	}
	return nil
}

func billingOf(a *LabAccount, state string) []BillingType {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.AllowedBilling)), func(b BillingType) bool {
		return state != "" && !slices.ContainsFunc(a.AllowedBilling[b], func(s string) bool { return strings.EqualFold(s, state) })
	})
}

// Delegated reports whether orders of an account are ordered by the team's own physicians; false for nil.
func Delegated(a *LabAccount) bool {
	return a != nil && (a.DelegatedFlow == OrderDelegated || a.DelegatedFlow == FullyDelegated)
}

// CheckAnswers checks the answers to the questions of t, and returns them with the default answers of unanswered
// questions. A required question whose code is in fasting may have no answer, because an instruction to fast does not
// mean that the patient fasted. RuleErrors: AOE_MISSING, AOE_INVALID.
func CheckAnswers(t LabTest, given []AOEAnswer, fasting []string) ([]AOEAnswer, error) {
	out := slices.Clone(given)
	known := 0
	for marker, q := range t.Questions() {
		of := slices.DeleteFunc(slices.Clone(given), func(a AOEAnswer) bool {
			return a.MarkerID != marker || a.QuestionID != q.ID
		})
		known += len(of)
		if len(of) == 0 {
			preset, ok := q.Preset()
			if q.Required && !slices.Contains(fasting, q.Code) {
				return nil, unanswered(marker, q.ID)
			}
			if ok {
				out = append(out, AOEAnswer{marker, q.ID, preset})
			}
			continue
		}
		if err := q.checkAnswers(of); err != nil {
			return nil, err
		}
	}
	if known != len(given) {
		return nil, rules.Broken(AOEInvalid, "aoe_answers: each must be for a question of the ordered markers")
	}
	return out, nil
}

// Questions iterates over the questions of the markers, each with the id of its marker.
func (t LabTest) Questions() iter.Seq2[int, Question] {
	return func(yield func(int, Question) bool) {
		for _, m := range t.Markers {
			if m.AOE == nil {
				continue
			}
			for _, q := range m.AOE.Questions {
				if !yield(m.ID, q) {
					return
				}
			}
		}
	}
}

// Preset returns the default answer of an optional question; false if it has none.
func (q Question) Preset() (string, bool) {
	if q.Default != nil && !q.Required {
		return *q.Default, true
	}
	return "", false
}

func unanswered(marker int, question int64) error {
	return rules.Broken(AOEMissing, fmt.Sprintf("aoe_answers: must have an answer to the required question %d of the marker %d", question, marker))
}

// maxListed is the highest number of allowed answers that an error lists.
const maxListed = 20

// allowed returns the codes of the allowed answers as a text for errors, or their number if there are many.
func (q Question) allowed() string {
	if len(q.Answers) > maxListed {
		return fmt.Sprintf("must be the code of one of its %d answers", len(q.Answers))
	}
	codes := make([]string, len(q.Answers))
	for i, a := range q.Answers {
		codes[i] = a.Code
	}
	return "must be one of " + rules.List(codes)
}

// checkAnswers returns an error unless of is a valid set of answers to the question.
func (q Question) checkAnswers(of []AOEAnswer) error {
	if len(of) > 1 && q.Type != MultiChoiceQuestion {
		return rules.Broken(AOEInvalid, fmt.Sprintf("aoe_answers: the question %d of the marker %d must have one answer, because its type is %s", q.ID, of[0].MarkerID, q.Type))
	}
	for _, a := range of {
		switch q.Type {
		case ChoiceQuestion, MultiChoiceQuestion:
			if !slices.ContainsFunc(q.Answers, func(allowed Answer) bool { return allowed.Code == a.Answer }) {
				return rules.Broken(AOEInvalid, fmt.Sprintf("aoe_answers: the answer to the question %d of the marker %d %s", q.ID, a.MarkerID, q.allowed()))
			}
		case NumericQuestion:
			if _, err := ParseNumber(a.Answer); err != nil {
				return rules.Broken(AOEInvalid, fmt.Sprintf("aoe_answers: the answer to the question %d of the marker %d must be a decimal number, such as 12.5", q.ID, a.MarkerID))
			}
		case TextQuestion:
			if q.Required && strings.TrimSpace(a.Answer) == "" {
				return unanswered(a.MarkerID, q.ID)
			}
		}
	}
	return nil
}

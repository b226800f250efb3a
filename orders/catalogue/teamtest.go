package catalogue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// TeamTest is a stored lab test that a team made. It has the team's choices; its lab and markers are read from
// the catalogue.
type TeamTest struct {
	ID   LabTestID
	Team healthlab.TeamID
	// Slug is made from the first name and does not change.
	Slug        string
	Name        string
	Description string
	Method      CollectionMethod
	SampleType  SampleType
	Fasting     bool
	Status      LabTestStatus
	// LabID and MarkerIDs refer to the catalogue.
	LabID     int
	MarkerIDs []int
	// Auto is true if the service built the test for orders of several tests or of single markers. Price is
	// then the sum of the prices, if all are known; else nil.
	Auto                 bool
	Price                *Number
	CreatedAt, UpdatedAt time.Time
}

// TeamTestQuery selects lab tests of a team. The zero value selects all of them.
type TeamTestQuery struct {
	// IDs limit the tests; nil means any.
	IDs []LabTestID
	// Generation selects manual tests, which the team made, or auto tests, which the service built. Empty
	// selects both.
	Generation Generation
}

// LabTestStore stores the lab tests that teams make.
//
// All methods are safe for concurrent use and atomic. Text that is not UTF-8 or has a NUL is healthlab.Invalid.
// Times are kept in UTC to the microsecond. The caller may edit returned values. Once ctx has ended, a call
// returns its error and writes nothing.
type LabTestStore interface {
	// InsertLabTest adds a test. Conflict if any team has a test with the id.
	InsertLabTest(ctx context.Context, t TeamTest) error
	// UpdateLabTest lets change edit a test of the team, except its id and team, and returns the test. An error
	// of change is returned unchanged and nothing is written; change may run more than once, so it must be
	// pure. Concurrent changes behave as if they ran one after another. NotFound if the team has no such test.
	UpdateLabTest(ctx context.Context, team healthlab.TeamID, id LabTestID, change func(*TeamTest) error) (TeamTest, error)
	// TeamTests returns the team's tests that match q, sorted by creation time, then by id.
	TeamTests(ctx context.Context, team healthlab.TeamID, q TeamTestQuery) ([]TeamTest, error)
}

// LabTestRequest is the request of a team to make a lab test.
type LabTestRequest struct {
	// MarkerIDs or ProviderIDs (the lab's codes): exactly one of the two must be given.
	MarkerIDs   []int            `json:"marker_ids" wire:"opt,max=500"`
	ProviderIDs []string         `json:"provider_ids" wire:"opt,max=500"`
	Name        string           `json:"name"`
	Method      CollectionMethod `json:"method"`
	Description string           `json:"description"`
	Fasting     bool             `json:"fasting" wire:"opt"`
	// LabAccountID, if given, restricts the markers to the lab of this account.
	LabAccountID *LabAccountID `json:"lab_account_id"`
	// LabSlug, if given, restricts the markers to the lab with this slug. If several labs use the codes, LabSlug or
	// LabAccountID is needed.
	LabSlug *string `json:"lab_slug"`
}

// LabTestChange changes a lab test; nil leaves a field as it is.
type LabTestChange struct {
	Name   *string `json:"name"`
	Active *bool   `json:"active"`
}

// Values of [healthlab.RuleError].Type for lab tests that teams make.
const (
	MarkerIDsMissing   = "MARKER_IDS_MISSING"
	MarkerIDsConflict  = "MARKER_IDS_CONFLICT"
	MarkerNotOrderable = "MARKER_NOT_ORDERABLE"
	LabTestPending     = "LAB_TEST_PENDING_APPROVAL"
	LabTestNotYours    = "LAB_TEST_NOT_YOURS"
)

// Check returns Invalid with every problem of the request.
func (r *LabTestRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.Name, "name", 1, rules.MaxText)
	c.Text(r.Description, "description", 0, rules.MaxNotes)
	rules.OneOf(&p, r.Method, CollectionMethods(), "method")
	c.Optional(r.LabSlug, "lab_slug", rules.MaxText)
	return p.Err()
}

// CreateLabTest makes a lab test of the team from markers of one lab. It can be ordered at once, or waits for
// [Service.ApproveLabTest] with [Options].HoldLabTests.
//
// Invalid lists every problem of the request. RuleErrors: MARKER_IDS_MISSING, MARKER_IDS_CONFLICT,
// MARKER_NOT_FOUND, MARKER_NOT_ORDERABLE, MARKER_NOT_IN_LAB, MULTIPLE_LABS, METHOD_NOT_SUPPORTED,
// LAB_ACCOUNT_NOT_FOUND. Unimplemented without a store for lab tests.
func (s *Service) CreateLabTest(ctx context.Context, team healthlab.TeamID, req LabTestRequest) (LabTest, error) {
	if s.opts.LabTests == nil {
		return LabTest{}, fmt.Errorf("create lab test: %w: teams cannot create lab tests in this installation, because Options.LabTests is nil", healthlab.Unimplemented)
	}
	if err := req.Check(); err != nil {
		return LabTest{}, err
	}
	switch {
	case len(req.MarkerIDs) == 0 && len(req.ProviderIDs) == 0:
		return LabTest{}, rules.Broken(MarkerIDsMissing, "marker_ids or provider_ids is required for a lab test")
	case len(req.MarkerIDs) > 0 && len(req.ProviderIDs) > 0:
		return LabTest{}, rules.Broken(MarkerIDsConflict, "marker_ids or provider_ids is required, and not both")
	}
	markers, lab, err := s.markersOfOneLab(ctx, team, req)
	if err != nil {
		return LabTest{}, err
	}
	at := s.now()
	t := TeamTest{
		ID: LabTestID{s.opts.NewID()}, Team: team, Name: req.Name, Description: req.Description, Method: req.Method,
		Fasting: req.Fasting, Status: LabTestActive, LabID: lab.ID, CreatedAt: at, UpdatedAt: at,
	}
	t.Slug = slugOf(req.Name + " " + t.ID.String()[28:])
	var ok bool
	if t.SampleType, ok = sampleOf(req.Method, lab); !ok {
		return LabTest{}, methodNotSupported(lab)
	}
	if s.opts.HoldLabTests {
		t.Status = LabTestPendingApproval
	}
	for _, m := range markers {
		if !slices.Contains(t.MarkerIDs, m.ID) {
			t.MarkerIDs = append(t.MarkerIDs, m.ID)
		}
	}
	if err := s.opts.LabTests.InsertLabTest(ctx, t); err != nil {
		return LabTest{}, fmt.Errorf("create lab test: %w", err)
	}
	return s.LabTest(ctx, team, nil, t.ID)
}

// markersOfOneLab returns the requested markers and the one lab to which they all belong.
func (s *Service) markersOfOneLab(ctx context.Context, team healthlab.TeamID, req LabTestRequest) ([]Marker, *Lab, error) {
	found, err := s.Find(ctx, team, Selection{Markers: req.MarkerIDs, ProviderIDs: req.ProviderIDs})
	if err != nil {
		return nil, nil, err
	}
	only := ""
	if req.LabSlug != nil {
		only = *req.LabSlug
	}
	if req.LabAccountID != nil {
		linked, err := s.LabAccounts(ctx, team, req.LabAccountID, "")
		if err != nil {
			return nil, nil, err
		}
		if len(linked) == 0 {
			return nil, nil, rules.Broken(LabAccountNotFound, "the team has no such lab account")
		}
		if only != "" && only != linked[0].Lab {
			return nil, nil, rules.Broken(MarkerNotInLab, "lab_slug: must be the lab of the account")
		}
		only = linked[0].Lab
	}
	here := found.Markers
	if only != "" {
		i := slices.IndexFunc(found.Labs, func(l Lab) bool { return l.Slug == only })
		here = slices.DeleteFunc(slices.Clone(here), func(m Marker) bool {
			return i < 0 || m.LabID == nil || *m.LabID != found.Labs[i].ID
		})
	}
	if len(here) == 0 && len(found.Markers) > 0 {
		return nil, nil, rules.Broken(MarkerNotInLab, "marker_ids: each must be a marker of the lab")
	}
	added, lab, err := selectMarkers(Selection{Markers: req.MarkerIDs, ProviderIDs: req.ProviderIDs}, nil, Candidates{Markers: here, Labs: found.Labs})
	switch {
	case err != nil:
		return nil, nil, err
	case lab == nil:
		return nil, nil, rules.Broken(MarkerNotFound, "marker_ids: the markers must belong to a lab")
	}
	for _, m := range added {
		if m.IsOrderable != nil && !*m.IsOrderable {
			return nil, nil, rules.Broken(MarkerNotOrderable, "marker_ids: each must be orderable; one of them is only reported with the result of another marker")
		}
	}
	return added, lab, nil
}

// sampleOf returns the usual sample type of a lab for a collection method; for a kit it prefers one that
// patients can take themselves. False if the lab does not accept the method or has no sample type.
func sampleOf(m CollectionMethod, lab *Lab) (SampleType, bool) {
	if !slices.Contains(lab.CollectionMethods, m) {
		return "", false
	}
	usual := []SampleType{Serum, Urine, Saliva, Stool, DriedBloodSpot, ArmCollector}
	if m == Testkit {
		usual = []SampleType{DriedBloodSpot, ArmCollector, Saliva, Urine, Stool, Serum}
	}
	for _, t := range usual {
		if slices.Contains(lab.SampleTypes, t) {
			return t, true
		}
	}
	return "", false
}

// ChangeLabTest renames a lab test of the team, or deactivates or activates it. Orders of the test continue.
// RuleErrors: LAB_TEST_NOT_FOUND, LAB_TEST_NOT_YOURS (Forbidden) for a test that the team sees and did not
// make, LAB_TEST_PENDING_APPROVAL.
func (s *Service) ChangeLabTest(ctx context.Context, team healthlab.TeamID, id LabTestID, change LabTestChange) (LabTest, error) {
	var p healthlab.Problems
	if change.Name != nil {
		rules.Check{Problems: &p}.Text(*change.Name, "name", 1, rules.MaxText)
	}
	if err := p.Err(); err != nil {
		return LabTest{}, err
	}
	at := s.now()
	return s.editLabTest(ctx, team, id, func(t *TeamTest) error {
		if change.Active != nil && t.Status == LabTestPendingApproval {
			if *change.Active {
				return rules.Broken(LabTestPending, "the lab test must be approved first; its status is pending_approval")
			}
		} else if change.Active != nil {
			t.Status = LabTestInactive
			if *change.Active {
				t.Status = LabTestActive
			}
		}
		if change.Name != nil {
			t.Name = *change.Name
		}
		t.UpdatedAt = at
		return nil
	})
}

// ApproveLabTest makes a lab test that waits for approval orderable. It leaves any other test unchanged. The host calls
// it; no operation of the HTTP API does.
func (s *Service) ApproveLabTest(ctx context.Context, team healthlab.TeamID, id LabTestID) (LabTest, error) {
	at := s.now()
	return s.editLabTest(ctx, team, id, func(t *TeamTest) error {
		if t.Status == LabTestPendingApproval {
			t.Status, t.UpdatedAt = LabTestActive, at
		}
		return nil
	})
}

func (s *Service) editLabTest(ctx context.Context, team healthlab.TeamID, id LabTestID, change func(*TeamTest) error) (LabTest, error) {
	seen, err := s.LabTest(ctx, team, nil, id)
	if err != nil {
		return LabTest{}, err
	}
	notYours := &healthlab.RuleError{Kind: healthlab.Forbidden, Type: LabTestNotYours, Msg: "the lab test was not made by the team"}
	if s.opts.LabTests == nil {
		return LabTest{}, notYours
	}
	_, err = s.opts.LabTests.UpdateLabTest(ctx, team, id, change)
	switch {
	case healthlab.KindOf(err) == healthlab.NotFound:
		return LabTest{}, notYours
	case err != nil:
		return LabTest{}, fmt.Errorf("change lab test: %w", err)
	}
	return s.LabTest(ctx, team, nil, seen.ID)
}

// teamCatalogue is a Source that adds the tests that teams made to another Source.
type teamCatalogue struct {
	Source
	made   LabTestStore
	sheets InstructionSource // nil if the source has no instructions
}

// teamTests returns the team's tests that match q, as lab tests with catalogue data and, in the same order, as they are
// stored. The lab tests share memory with the catalogue until detach copies it.
func (s teamCatalogue) teamTests(ctx context.Context, team healthlab.TeamID, q TeamTestQuery) ([]LabTest, []TeamTest, error) {
	made, err := s.made.TeamTests(ctx, team, q)
	if err != nil || len(made) == 0 {
		return nil, nil, err
	}
	var ids []int
	for _, t := range made {
		ids = append(ids, t.MarkerIDs...)
	}
	slices.Sort(ids)
	list, err := s.Markers(ctx, slices.Compact(ids), nil)
	if err != nil {
		return nil, nil, err
	}
	markers := map[int]Marker{}
	for _, m := range list {
		markers[m.ID] = m
	}
	labs, err := s.Labs(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := make([]LabTest, 0, len(made))
	for _, t := range made {
		out = append(out, t.labTest(markers, labs))
	}
	return out, made, nil
}

// detach makes a lab test that teamTests returned independent of the catalogue's memory, and sets
// HasCollectionInstructions. It is slow: call it only for tests that are returned to the caller.
func (s teamCatalogue) detach(ctx context.Context, t *LabTest) error {
	for i, m := range t.Markers {
		t.Markers[i] = MarkerComplete{Marker: m}.clone().Marker
	}
	t.CommonTATDays, t.WorstCaseTATDays = rules.ClonePtr(t.CommonTATDays), rules.ClonePtr(t.WorstCaseTATDays)
	if t.Lab != nil {
		lab := rules.DeepCopy(*t.Lab)
		t.Lab = &lab
	}
	return setHasInstructions(ctx, s.sheets, t)
}

// labTest returns a team's test with the given markers, by id, and its lab. If one of its markers is missing, the test
// is inactive.
func (t TeamTest) labTest(markers map[int]Marker, labs []Lab) LabTest {
	out := LabTest{
		ID: t.ID, Slug: t.Slug, Name: t.Name, Description: &t.Description, SampleType: t.SampleType,
		Method: t.Method, IsActive: t.Status == LabTestActive, Status: t.Status, Fasting: t.Fasting, Markers: make([]Marker, 0, len(t.MarkerIDs)),
	}
	if i := slices.IndexFunc(labs, func(l Lab) bool { return l.ID == t.LabID }); i >= 0 {
		out.Lab = &labs[i]
	}
	for _, id := range t.MarkerIDs {
		m, ok := markers[id]
		if !ok {
			continue // the catalogue no longer has the marker
		}
		out.Markers = append(out.Markers, m)
	}
	if len(out.Markers) < len(t.MarkerIDs) {
		// A test whose markers are not all available cannot be ordered.
		out.IsActive, out.Status = false, LabTestInactive
	}
	if t.Auto {
		out.AutoGenerated, out.Description = true, nil
	}
	if t.Price != nil {
		out.Price = *t.Price
	} else {
		price, known := totalPrice(out.Markers)
		out.Price, out.PriceUnknown = price, !known || len(out.Markers) < len(t.MarkerIDs)
	}
	out.CommonTATDays = SlowestTurnaround(out.Markers, func(m Marker) *int { return m.CommonTATDays })
	out.WorstCaseTATDays = SlowestTurnaround(out.Markers, func(m Marker) *int { return m.WorstCaseTATDays })
	return out
}

// StoreBuilt stores a lab test that [Offer.Choose] or [BuildLabTest] built, so that it can be read and listed. It sets
// the id and the slug of t. Equal tests of one team get the same id. It is a no-op for a test that was not built.
// Without [Options].LabTests it only sets id and slug.
func (s *Service) StoreBuilt(ctx context.Context, team healthlab.TeamID, t *LabTest, at time.Time) error {
	if !t.AutoGenerated {
		return nil
	}
	made := TeamTest{Team: team, Name: t.Name, Method: t.Method, SampleType: t.SampleType, Fasting: t.Fasting, Status: LabTestActive,
		MarkerIDs: t.MarkerIDs(), Auto: true}
	if !t.PriceUnknown {
		made.Price = &t.Price
	}
	if t.Lab != nil {
		made.LabID = t.Lab.ID
	}
	text, err := json.Marshal(made)
	if err != nil {
		return fmt.Errorf("encode lab test: %w", err)
	}
	made.ID = LabTestID{uuid.NewSHA1(team.UUID, text)}
	made.Slug, made.CreatedAt, made.UpdatedAt = made.ID.String(), at, at
	t.ID, t.Slug = made.ID, made.Slug
	if s.opts.LabTests == nil {
		return nil
	}
	if err := s.opts.LabTests.InsertLabTest(ctx, made); err != nil && healthlab.KindOf(err) != healthlab.Conflict {
		return fmt.Errorf("keep lab test: %w", err)
	}
	return nil
}

// LabTests implements [Source].
func (s teamCatalogue) LabTests(ctx context.Context, team healthlab.TeamID, ids []LabTestID) ([]LabTest, error) {
	found, err := s.Source.LabTests(ctx, team, ids)
	if err != nil || len(found) == len(ids) {
		return found, err
	}
	own, _, err := s.teamTests(ctx, team, TeamTestQuery{IDs: ids})
	if err != nil {
		return nil, err
	}
	for i := range own {
		if err := s.detach(ctx, &own[i]); err != nil {
			return nil, err
		}
	}
	return append(found, own...), nil
}

// FindLabTests implements [Source]. Tests of the catalogue count as older than those that teams made.
func (s teamCatalogue) FindLabTests(ctx context.Context, q LabTestQuery) (LabTestPage, error) {
	q, err := q.normalized()
	if err != nil {
		return LabTestPage{}, err
	}
	own, made, err := s.teamTests(ctx, q.Team, TeamTestQuery{Generation: q.Generation})
	if err != nil {
		return LabTestPage{}, err
	}
	if len(own) == 0 {
		return s.Source.FindLabTests(ctx, q)
	}
	whole := q
	whole.Limit, whole.Cursor = 0, ""
	page, err := s.Source.FindLabTests(ctx, whole)
	if err != nil {
		return LabTestPage{}, err
	}
	if q.Sort == SortTestsByUpdated {
		changed := map[LabTestID]time.Time{}
		for _, t := range made {
			changed[t.ID] = t.UpdatedAt
		}
		slices.SortStableFunc(own, func(a, b LabTest) int { return changed[a.ID].Compare(changed[b.ID]) })
	}
	mine := make(map[LabTestID]bool, len(own))
	for _, t := range own {
		mine[t.ID] = true
	}
	// A cursor stays valid if its test no longer matches the query: page finds the test first, then removes
	// hidden ones.
	hidden := func(t LabTest) bool { return mine[t.ID] && !q.matches(&t) }
	if page, err = q.page(q.join(page.Tests, own), hidden); err != nil {
		return LabTestPage{}, err
	}
	for i := range page.Tests {
		if t := &page.Tests[i]; mine[t.ID] {
			if err := s.detach(ctx, t); err != nil {
				return LabTestPage{}, err
			}
		}
	}
	return page, nil
}

// join returns the catalogue's tests (theirs) and the team's tests (own) in the sort order of the query. Except by
// price, own sorts after theirs when ascending.
func (q *LabTestQuery) join(theirs, own []LabTest) []LabTest {
	if q.Direction == Descending {
		slices.Reverse(own)
		if q.Sort != SortTestsByPrice {
			return append(own, theirs...)
		}
	}
	all := append(theirs, own...)
	if q.Sort == SortTestsByPrice {
		slices.SortFunc(all, func(a, b LabTest) int {
			c := a.Price.Compare(b.Price.Decimal)
			if q.Direction == Descending {
				c = -c
			}
			return cmp.Or(c, bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]))
		})
	}
	return all
}

// page returns the page of the query from sorted tests. It leaves out the tests for which hidden returns true.
func (q *LabTestQuery) page(all []LabTest, hidden func(LabTest) bool) (LabTestPage, error) {
	after, err := testAfter(q.Cursor)
	if err != nil {
		return LabTestPage{}, err
	}
	if q.Cursor != "" {
		i := slices.IndexFunc(all, func(t LabTest) bool { return t.ID == after })
		if i < 0 {
			return LabTestPage{}, BadCursor()
		}
		all = all[i+1:]
	}
	all = slices.DeleteFunc(all, hidden)
	page := LabTestPage{Tests: all}
	if q.Limit > 0 && len(all) > q.Limit {
		page.Tests, page.Next = all[:q.Limit], testCursor(all[q.Limit-1].ID)
	}
	return page, nil
}

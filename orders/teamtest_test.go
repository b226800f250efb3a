package orders_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

func ownTest() catalogue.LabTestRequest {
	return catalogue.LabTestRequest{Name: "Own", Method: catalogue.WalkInTest, MarkerIDs: []int{11, 12, 11}}
}

func TestCreateLabTest_waitsForApproval(t *testing.T) {
	tests := memory.New(nil).LabTests()
	d := newFixture(t, func(o *options) { o.LabTests, o.HoldLabTests = tests, true })
	made, err := d.Catalogue().CreateLabTest(t.Context(), d.team, ownTest())
	require.NoError(t, err)
	require.Equal(t, catalogue.LabTestPendingApproval, made.Status)
	require.Equal(t, []int{11, 12}, made.MarkerIDs(), "each once")

	order := d.asks("kit")
	order.OrderSet, order.LabTestID = nil, &made.ID
	_, err = d.Place(t.Context(), d.team, order)
	requireRule(t, err, catalogue.LabTestNotOrderable, healthlab.Precondition)
	yes, no := true, false
	_, err = d.Catalogue().ChangeLabTest(t.Context(), d.team, made.ID, catalogue.LabTestChange{Active: &yes})
	requireRule(t, err, catalogue.LabTestPending, healthlab.Precondition)
	same, err := d.Catalogue().ChangeLabTest(t.Context(), d.team, made.ID, catalogue.LabTestChange{Active: &no})
	require.NoError(t, err)
	require.Equal(t, catalogue.LabTestPendingApproval, same.Status, "it cannot be brought into use by way of out of use")

	approved, err := d.Catalogue().ApproveLabTest(t.Context(), d.team, made.ID)
	require.NoError(t, err)
	require.Equal(t, catalogue.LabTestActive, approved.Status)
	_, err = d.Catalogue().ApproveLabTest(t.Context(), healthlab.TeamID{UUID: id("other team")}, made.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	off, err := d.Catalogue().ChangeLabTest(t.Context(), d.team, made.ID, catalogue.LabTestChange{Active: &no})
	require.NoError(t, err)
	again, err := d.Catalogue().ApproveLabTest(t.Context(), d.team, made.ID)
	require.NoError(t, err)
	require.Equal(t, off, again, "approval does not bring a test back")
}

// A team's test has a price only if all its parts have one.
func TestCreateLabTest_priceIsKnownIfAllPartsHaveOne(t *testing.T) {
	d := newFixture(t, func(o *options) { o.LabTests = memory.New(nil).LabTests() })
	for _, row := range []struct {
		markers []int
		price   string
		unknown bool
	}{
		{[]int{12}, "1.25", false},
		{[]int{12, 11}, "0", true},
		{[]int{11}, "0", true},
		{[]int{12, 18}, "0", true},
	} {
		made, err := d.Catalogue().CreateLabTest(t.Context(), d.team, catalogue.LabTestRequest{Name: "Own", Method: catalogue.WalkInTest, MarkerIDs: row.markers})
		require.NoError(t, err)
		require.Equal(t, row.price, made.Price.String(), "%v", row.markers)
		require.Equal(t, row.unknown, made.PriceUnknown, "%v", row.markers)

		// What an order of it and another test costs is known where this is.
		o := d.placed("kit", func(r *orders.PlaceRequest) {
			r.OrderSet.LabTestIDs = append(r.OrderSet.LabTestIDs, made.ID)
			r.CollectionMethod = ptr(catalogue.WalkInTest)
		})
		built, err := d.Catalogue().LabTest(t.Context(), d.team, nil, o.LabTest.ID)
		require.NoError(t, err)
		require.Equal(t, row.unknown, built.PriceUnknown, "%v", row.markers)
		require.Equal(t, o.LabTest.Price.String(), built.Price.String(), "%v", row.markers)
		require.Equal(t, row.unknown, built.Price.IsZero(), "%v", row.markers)

		// So is that of markers on their own.
		o = d.placed("kit", func(r *orders.PlaceRequest) {
			r.OrderSet = &catalogue.OrderSet{AddOn: &catalogue.AddOn{MarkerIDs: row.markers}}
			r.CollectionMethod = ptr(catalogue.WalkInTest)
		})
		built, err = d.Catalogue().LabTest(t.Context(), d.team, nil, o.LabTest.ID)
		require.NoError(t, err)
		require.Equal(t, row.unknown, built.PriceUnknown, "%v", row.markers)
		require.Equal(t, row.price, built.Price.String(), "%v", row.markers)
	}
}

func TestCreateLabTest_isUnimplementedWithoutAStore(t *testing.T) {
	d := newFixture(t)
	_, err := d.Catalogue().CreateLabTest(t.Context(), d.team, ownTest())
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

// A test whose markers have left the catalogue cannot be ordered.
func TestLabTest_isInactiveIfAMarkerLeftTheCatalogue(t *testing.T) {
	tests := memory.New(nil).LabTests()
	d := newFixture(t, func(o *options) { o.LabTests = tests })
	made, err := d.Catalogue().CreateLabTest(t.Context(), d.team, ownTest())
	require.NoError(t, err)
	_, err = tests.UpdateLabTest(t.Context(), d.team, made.ID, func(t *catalogue.TeamTest) error {
		t.MarkerIDs = append(t.MarkerIDs, 987654)
		return nil
	})
	require.NoError(t, err)
	got, err := d.Catalogue().LabTest(t.Context(), d.team, nil, made.ID)
	require.NoError(t, err)
	require.Equal(t, catalogue.LabTestInactive, got.Status)
	require.False(t, got.IsActive)
}

// askedBook counts for how many lab tests it is asked for instructions.
type askedBook struct {
	*catalogue.StaticCatalog
	asked int
}

func (b *askedBook) Instructions(context.Context, catalogue.LabTest) ([]catalogue.InstructionSheet, error) {
	b.asked++
	return nil, nil
}

// selections gives the fixture's team that many selections of markers.
func (d *fixture) selections(tests catalogue.LabTestStore, n int) {
	d.t.Helper()
	for i := range n {
		made := catalogue.TeamTest{ID: catalogue.LabTestID{UUID: id(fmt.Sprintf("selection %d", i))}, Team: d.team, Slug: fmt.Sprintf("s%d", i), Name: "Selection",
			Method: catalogue.WalkInTest, SampleType: catalogue.Serum, Status: catalogue.LabTestActive, LabID: 1, MarkerIDs: []int{11, 12}, Auto: true,
			CreatedAt: d.now(), UpdatedAt: d.now()}
		require.NoError(d.t, tests.InsertLabTest(d.t.Context(), made))
	}
}

// Only the tests of the requested page are loaded in full, however many a team has.
func TestLabTests_loadOnlyTheTestsOfThePage(t *testing.T) {
	const many, limit = 230, 50
	tests, cat := memory.New(nil).LabTests(), &askedBook{StaticCatalog: book(t)}
	d := newFixture(t, func(o *options) { o.LabTests = tests })
	d.selections(tests, many)
	s, err := d.newServices(cat, d.lab, d.opts)
	require.NoError(t, err)
	q := catalogue.LabTestQuery{Team: d.team, Generation: catalogue.GeneratedAll, Limit: limit}
	seen := map[catalogue.LabTestID]bool{}
	for {
		cat.asked = 0
		page, err := s.Catalogue().LabTests(t.Context(), nil, q)
		require.NoError(t, err)
		require.Positive(t, cat.asked)
		require.LessOrEqual(t, cat.asked, limit)
		for _, found := range page.Tests {
			require.False(t, seen[found.ID])
			seen[found.ID] = true
			require.NotEmpty(t, found.Markers)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
		require.Len(t, page.Tests, limit)
	}
	require.Greater(t, len(seen), many, "with those of the catalogue")
}

// A cursor stays valid if its test no longer matches the filter.
func TestLabTests_cursorStaysValidIfItsTestChanges(t *testing.T) {
	d := newFixture(t, func(o *options) { o.LabTests = memory.New(nil).LabTests() })
	var want []catalogue.LabTestID
	for range 3 {
		made, err := d.Catalogue().CreateLabTest(t.Context(), d.team, ownTest())
		require.NoError(t, err)
		want = append(want, made.ID)
		d.advance(time.Second)
	}
	// One that is put aside before the first page is on none.
	gone, err := d.Catalogue().CreateLabTest(t.Context(), d.team, ownTest())
	require.NoError(t, err)
	_, err = d.Catalogue().ChangeLabTest(t.Context(), d.team, gone.ID, catalogue.LabTestChange{Active: ptr(false)})
	require.NoError(t, err)
	q := catalogue.LabTestQuery{Team: d.team, Status: catalogue.LabTestActive, Name: ownTest().Name, Limit: 1}
	for i, id := range want {
		page, err := d.Catalogue().LabTests(t.Context(), nil, q)
		require.NoError(t, err)
		require.Len(t, page.Tests, 1)
		require.Equal(t, id, page.Tests[0].ID)
		require.Equal(t, i == len(want)-1, page.Next == "")
		_, err = d.Catalogue().ChangeLabTest(t.Context(), d.team, id, catalogue.LabTestChange{Active: ptr(false)})
		require.NoError(t, err)
		q.Cursor = page.Next
	}
}

// Selected markers have the sample type that their lab uses for the collection method.
func TestPlace_selectedMarkersHaveTheLabsSampleType(t *testing.T) {
	d := newFixture(t)
	b, err := sandbox.Catalogue()
	require.NoError(t, err)
	d.services, err = d.newServices(b, d.lab, d.opts)
	require.NoError(t, err)
	for method, want := range map[catalogue.CollectionMethod]catalogue.SampleType{catalogue.Testkit: catalogue.DriedBloodSpot, catalogue.WalkInTest: catalogue.Serum} {
		o := d.placed("kit", func(r *orders.PlaceRequest) {
			r.OrderSet = &catalogue.OrderSet{AddOn: &catalogue.AddOn{MarkerIDs: []int{1001}}}
			r.CollectionMethod = &method
		})
		require.Equal(t, want, o.LabTest.SampleType)
	}
}

// BenchmarkPageOfSelections lists a page of all lab tests of a team that made many.
func BenchmarkPageOfSelections(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			tests := memory.New(nil).LabTests()
			d := newFixture(b, func(o *options) { o.LabTests = tests })
			d.selections(tests, n)
			b.ReportAllocs()
			for b.Loop() {
				_, err := d.Catalogue().LabTests(b.Context(), nil, catalogue.LabTestQuery{Team: d.team, Generation: catalogue.GeneratedAll, Limit: 50})
				require.NoError(b, err)
			}
		})
	}
}

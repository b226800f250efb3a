package orders_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func TestRedraw_isOrderedForMissingResultsOnly(t *testing.T) {
	d := newFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
	d.settings.Redraws = true
	o := d.placed("walk-in", withOutcome("missing,repeats"))
	d.advance(day)
	o = d.get(o)
	require.Equal(t, levels("ordered requisition_created redraw_available"), history(o))
	require.Equal(t, orders.TransactionActive, o.OrderTransaction.Status)
	require.Len(t, o.OrderTransaction.Orders, 2)
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, labresult.Final, results.Metadata.Status, "its result is final")

	member := o.OrderTransaction.Orders[1]
	require.Equal(t, o.ID, *member.ParentID)
	again := d.get(orders.Order{ID: member.ID})
	require.Equal(t, orders.OriginRedraw, again.Origin)
	require.Len(t, again.LabTest.Markers, 1, "what is missing, and no more")
	require.NotEqual(t, o.SampleID, again.SampleID)
	d.advance(day)
	again = d.get(again)
	require.Equal(t, levels("ordered requisition_created completed"), history(again), "no third try, whatever is missing")
	require.True(t, *again.HasMissingResults)
	require.Equal(t, orders.TransactionCompleted, again.OrderTransaction.Status)
	require.Equal(t, again.OrderTransaction, d.get(o).OrderTransaction)
	require.Equal(t, strings.Fields("ordered requisition_created redraw_available"), d.notified(o))
	require.Equal(t, strings.Fields("ordered requisition_created completed"), d.notified(again))

	// What was told of either shows both as they were then.
	for _, m := range [][]byte{d.messages(o)[2].Body, d.messages(again)[0].Body} {
		var body struct {
			Data orders.Order `json:"data"`
		}
		require.NoError(t, json.Unmarshal(m, &body))
		require.Equal(t, orders.TransactionActive, body.Data.OrderTransaction.Status)
		require.Equal(t, orders.RedrawAvailable, *body.Data.OrderTransaction.Orders[0].LowLevelStatus)
		require.Equal(t, orders.Ordered, *body.Data.OrderTransaction.Orders[1].LowLevelStatus)
		require.Equal(t, o.ID, *body.Data.OrderTransaction.Orders[1].ParentID)
	}
}

// A lab that reports results has accepted the order, even if its acceptance was lost.
func TestRedraw_reportOfResultsImpliesThatTheLabAccepted(t *testing.T) {
	d := newFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
	d.settings.Redraws = true
	o := d.placed("walk-in")
	require.NoError(t, d.Receive(t.Context(), d.report(o, lost)))
	o = d.get(o)
	require.Equal(t, levels("ordered requisition_created redraw_available"), history(o))
	require.Equal(t, strings.Fields("ordered requisition_created redraw_available"), d.notified(o))
	require.Len(t, o.OrderTransaction.Orders, 2)
	d.advance(day)
	require.Equal(t, levels("ordered requisition_created redraw_available"), history(d.get(o)), "the lab is not asked again")
	require.Equal(t, orders.OriginRedraw, d.get(orders.Order{ID: o.OrderTransaction.Orders[1].ID}).Origin)
}

func TestRedraw_isNotMadeIfDisabledForTeamLabOrMethod(t *testing.T) {
	for _, tc := range []struct {
		name, test string
		on         bool
		labs       []string
	}{
		{"not switched on", "walk-in", false, []string{"northlab"}},
		{"not at this lab", "walk-in", true, []string{"southlab"}},
		{"not for a visit", "at home", true, []string{"northlab"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t, func(o *options) { o.RedrawLabs = tc.labs })
			d.settings.Redraws = tc.on
			o := d.placed(tc.test, withOutcome("missing"))
			for range 10 {
				d.advance(day)
			}
			require.Equal(t, orders.Completed, d.get(o).LowLevel())
			require.Len(t, d.get(o).OrderTransaction.Orders, 1)
		})
	}
}

func (d *fixture) creates(parent *orders.OrderID, name string, edit ...func(*orders.CreateRequest)) (orders.Order, error) {
	req := orders.CreateRequest{PlaceRequest: d.asks(name), ParentID: parent}
	for _, e := range edit {
		e(&req)
	}
	return d.Create(d.t.Context(), d.team, orders.OrderID{UUID: uuid.New()}, req)
}

func TestRecreation_cancelsAndReplacesTheOrder(t *testing.T) {
	d := newFixture(t)
	first := d.placed("walk-in")
	d.advance(0)
	second, err := d.creates(&first.ID, "at home")
	require.NoError(t, err)
	require.Equal(t, orders.OriginRecreation, second.Origin)
	require.Equal(t, first.ID, *second.Parent())
	require.Equal(t, first.OrderTransaction.ID, second.OrderTransaction.ID)
	require.Equal(t, orders.TransactionActive, second.OrderTransaction.Status)
	require.Equal(t, orders.Cancelled, d.get(first).LowLevel(), "cancelled, since it still could be")
	require.Equal(t, strings.Fields("ordered requisition_created cancelled"), d.notified(first))
	require.Equal(t, []string{"ordered"}, d.notified(second))
	_, err = d.creates(&first.ID, "at home")
	requireRule(t, err, orders.AlreadyRecreated, healthlab.Precondition)

	_, err = d.Simulate(t.Context(), d.team, second.ID, "", orders.SimulationFlags{})
	require.NoError(t, err)
	third, err := d.creates(&second.ID, "walk-in")
	require.NoError(t, err)
	require.Equal(t, orders.Completed, d.get(second).LowLevel(), "left as it is")
	require.Len(t, third.OrderTransaction.Orders, 3)

	_, err = d.creates(&orders.OrderID{UUID: id("nothing")}, "walk-in")
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)
	_, err = d.creates(nil, "walk-in", func(r *orders.CreateRequest) { r.UpdateReason = ptr(orders.IncorrectLab) })
	require.ErrorIs(t, err, healthlab.Invalid)
	alone, err := d.creates(nil, "walk-in")
	require.NoError(t, err)
	require.Equal(t, orders.OriginInitial, alone.Origin)
}

func TestRecreation_usesTheLabOfTheAccount(t *testing.T) {
	team := []healthlab.TeamID{{UUID: id("team")}}
	billing := map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}
	one := catalogue.LabAccount{ID: account("one"), Lab: "northlab", Status: catalogue.LabAccountActive, TeamIDAllowlist: team, AllowedBilling: billing}
	two, south := one, one
	two.ID, south.ID, south.Lab = account("two"), account("south"), "southlab"
	entry := func(name string, lab int) catalogue.StaticTest {
		return catalogue.StaticTest{LabTest: catalogue.LabTest{ID: test(name), Method: catalogue.WalkInTest, Status: catalogue.LabTestActive}, LabID: lab}
	}
	all := catalogue.CollectionMethods()
	b, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{
		Labs:  []catalogue.Lab{{ID: 1, Slug: "northlab", CollectionMethods: all}, {ID: 2, Slug: "southlab", CollectionMethods: all}},
		Tests: []catalogue.StaticTest{entry("walk-in", 1), entry("south", 2)}, Accounts: []catalogue.LabAccount{one, two, south}})
	require.NoError(t, err)
	named := func(name string) func(*orders.CreateRequest) {
		return func(r *orders.CreateRequest) { r.LabAccountID = ptr(account(name)) }
	}
	wrong := func(r *orders.CreateRequest) { r.UpdateReason = ptr(orders.IncorrectLab) }
	for _, tc := range []struct {
		name, test string
		edit       func(*orders.CreateRequest)
		used, rule string
	}{
		{"the parent's account is carried", "walk-in", func(*orders.CreateRequest) {}, "two", ""},
		{"another one is named", "walk-in", named("one"), "one", ""},
		{"found afresh", "walk-in", wrong, "", catalogue.LabAccountAmbiguous},
		{"another lab", "south", func(*orders.CreateRequest) {}, "south", ""},
		{"another lab, said so", "south", wrong, "south", ""},
		{"an account of the wrong lab", "south", named("one"), "", catalogue.MarkerNotInLab},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			service, err := d.newServices(b, d.lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now}}})
			require.NoError(t, err)
			d.services = service
			first, err := d.creates(nil, "walk-in", named("two"))
			require.NoError(t, err)
			o, err := d.creates(&first.ID, tc.test, tc.edit)
			d.replaced(t, first, o, err, tc.rule, tc.used)
		})
	}
}

// replaced checks what became of the replacement of an order: it broke a rule, and nothing
// happened, or it uses an account.
func (d *fixture) replaced(t *testing.T, first, next orders.Order, err error, rule, used string) {
	t.Helper()
	if rule != "" {
		requireRule(t, err, rule, healthlab.Precondition)
		require.Equal(t, orders.Ordered, d.get(first).LowLevel(), "nothing happened to it")
		return
	}
	require.NoError(t, err)
	record, err := d.store.Orders().Get(t.Context(), d.team, next.ID)
	require.NoError(t, err)
	require.Equal(t, account(used), *record.LabAccountID)
}

func TestImport_storesAnOrderThatTheLabHas(t *testing.T) {
	d := newFixture(t)
	req := orders.ImportRequest{UserID: d.user, BillingType: catalogue.ClientBill, CollectionMethod: catalogue.WalkInTest,
		OrderSet:       catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test("walk-in")}},
		PatientDetails: patient(), PatientAddress: people.ImportAddressInput(address()), SampleID: "R-1"}
	req.PatientAddress.Zip = "somewhere"
	_, err := d.Import(t.Context(), d.team, req)
	requireRule(t, err, catalogue.FeatureNotEnabled, healthlab.Forbidden)
	d.settings.OrderImport = true
	o, err := d.Import(t.Context(), d.team, req)
	require.NoError(t, err)
	require.Equal(t, levels("ordered requisition_bypassed"), history(o))
	require.Equal(t, strings.Fields("ordered requisition_bypassed"), d.notified(o))
	require.Equal(t, "R-1", *o.SampleID)
	require.Equal(t, "somewhere", o.PatientAddress.Zip)
	d.advance(day)
	record, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.False(t, record.Lab.Started, "the lab has it from elsewhere")

	_, err = d.Import(t.Context(), d.team, req)
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, []any{"sample_id"}, invalid.Problems[0].Path)
	_, err = d.Import(t.Context(), d.team, orders.ImportRequest{})
	require.ErrorAs(t, err, &invalid)

	// Results come by the lab's own number, of the order's patient.
	m := exchange.Message{ID: "m", Team: d.team, SampleID: "R-1", On: orders.FinalResult, At: noon, Results: &labresult.Report{}}
	require.NoError(t, d.Receive(t.Context(), m))
	require.Equal(t, orders.RequisitionBypassed, d.get(o).LowLevel(), "a number alone names nobody")
	m.ID, m.Patient = "n", &orders.ReportedPatient{FirstName: "ana", LastName: "ROE", DOB: patient().DOB}
	require.NoError(t, d.Receive(t.Context(), m))
	require.Equal(t, orders.Completed, d.get(o).LowLevel())
}

// An import does not validate the address, because the lab has it already.
func TestImport_doesNotValidateTheAddressForm(t *testing.T) {
	d := newFixture(t)
	d.settings.OrderImport = true
	req := orders.ImportRequest{UserID: d.user, BillingType: catalogue.ClientBill, CollectionMethod: catalogue.WalkInTest,
		OrderSet:       catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test("east")}},
		PatientDetails: patient(), PatientAddress: people.ImportAddressInput(address()), SampleID: "R-1"}
	req.PatientAddress.State, req.PatientAddress.Zip = "Arizona", "n/a"
	_, err := d.Import(t.Context(), d.team, req)
	requireRule(t, err, catalogue.NoLabAccount, healthlab.Precondition)
	req.OrderSet.LabTestIDs[0] = test("walk-in")
	_, err = d.Import(t.Context(), d.team, req)
	requireRule(t, err, catalogue.BillingStateNotAllowed, healthlab.Precondition)
	for _, state := range []string{"", "A\x00Z", strings.Repeat("x", 1001)} {
		req.PatientAddress.State = state
		_, err = d.Import(t.Context(), d.team, req)
		var invalid *healthlab.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Len(t, invalid.Problems, 1)
		require.Equal(t, []any{"patient_address", "state"}, invalid.Problems[0].Path)
	}
}

// An import with insurance billing needs no diagnosis codes, because the lab has them; it
// needs an insurance on record.
func TestImport_withInsuranceNeedsNoDiagnosisCodes(t *testing.T) {
	d := newFixture(t, withRegistry(t))
	d.insure()
	d.settings.OrderImport = true
	req := orders.ImportRequest{UserID: d.user, BillingType: catalogue.CommercialInsurance, CollectionMethod: catalogue.WalkInTest,
		OrderSet:       catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test("asked")}},
		PatientDetails: patient(), PatientAddress: people.ImportAddressInput(address()), SampleID: "R-1"}
	o, err := d.Import(t.Context(), d.team, req)
	require.NoError(t, err)
	require.NotNil(t, o.HealthInsuranceID)
	require.Empty(t, o.ICDCodes)
	req.UserID, req.SampleID = healthlab.UserID{UUID: id("patient")}, "R-2"
	_, err = d.Import(t.Context(), d.team, req)
	requireRule(t, err, orders.InsuranceMissing, healthlab.Precondition)
	req.UserID, req.OrderSet.LabTestIDs[0] = d.user, test("walk-in")
	_, err = d.Import(t.Context(), d.team, req)
	requireRule(t, err, orders.MarkerNotInsurable, healthlab.Precondition)
}

// accountsOf gives a fixture a catalogue of two tests at one lab, with these accounts.
func (d *fixture) accountsOf(accounts ...catalogue.LabAccount) {
	d.t.Helper()
	all := catalogue.CollectionMethods()
	b, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{
		Labs: []catalogue.Lab{{ID: 1, Slug: "northlab", CollectionMethods: all}, {ID: 2, Slug: "southlab", CollectionMethods: all}},
		Tests: []catalogue.StaticTest{{LabTest: catalogue.LabTest{ID: test("walk-in"), Method: catalogue.WalkInTest, Status: catalogue.LabTestActive}, LabID: 1},
			{LabTest: catalogue.LabTest{ID: test("south"), Method: catalogue.WalkInTest, Status: catalogue.LabTestActive}, LabID: 2}},
		Accounts: accounts})
	require.NoError(d.t, err)
	d.services, err = d.newServices(b, d.lab, d.opts)
	require.NoError(d.t, err)
}

func (d *fixture) accountAt(lab, name string, status catalogue.LabAccountStatus) catalogue.LabAccount {
	return catalogue.LabAccount{ID: account(name), Lab: lab, Status: status, TeamIDAllowlist: []healthlab.TeamID{d.team},
		AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}}
}

// A replacement uses the lab account of the order that it replaces, in its present state.
// Another account is chosen only if that one is at another lab or no longer the team's.
func TestRecreation_usesTheSameLabAccountIfStillAvailable(t *testing.T) {
	d := newFixture(t)
	own := func(name string, status catalogue.LabAccountStatus) catalogue.LabAccount {
		return d.accountAt("northlab", name, status)
	}
	platform := func(lab, name string) catalogue.LabAccount {
		a := d.accountAt(lab, name, catalogue.LabAccountActive)
		a.TeamIDAllowlist = nil
		return a
	}
	const active = catalogue.LabAccountActive
	list := func(a ...catalogue.LabAccount) []catalogue.LabAccount { return a }
	for _, tc := range []struct {
		name, test   string
		before, then []catalogue.LabAccount
		used, rule   string
	}{
		{"several now", "walk-in", list(own("one", active)), list(own("one", active), own("two", active)), "one", ""},
		{"suspended since", "walk-in", list(own("one", active)), list(own("one", catalogue.LabAccountSuspended), own("two", active)), "", catalogue.LabAccountNotActive},
		{"pending again", "walk-in", list(own("one", active)), list(own("one", catalogue.LabAccountPending), platform("northlab", "p")), "", catalogue.LabAccountNotActive},
		{"no longer the team's", "walk-in", list(own("one", active)), list(own("two", active)), "two", ""},
		{"the platform's, and the team has its own", "walk-in", list(platform("northlab", "p")), list(platform("northlab", "p"), own("one", active)), "p", ""},
		{"the platform has another", "walk-in", list(platform("northlab", "p")), list(platform("northlab", "q")), "q", ""},
		{"another lab", "south", list(own("one", active)), list(own("one", catalogue.LabAccountSuspended), platform("southlab", "p")), "p", ""},
		{"another lab than the platform's", "south", list(platform("northlab", "p")), list(platform("northlab", "p"), platform("southlab", "q")), "q", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d.accountsOf(tc.before...)
			first, err := d.creates(nil, "walk-in")
			require.NoError(t, err)
			d.accountsOf(tc.then...)
			o, err := d.creates(&first.ID, tc.test)
			d.replaced(t, first, o, err, tc.rule, tc.used)
		})
	}
}

// An import uses the one pending account that a team has at a lab, whatever else it has
// there that is not active.
func TestImport_usesTheOnePendingLabAccount(t *testing.T) {
	d := newFixture(t)
	d.settings.OrderImport = true
	own := func(name string, status catalogue.LabAccountStatus) catalogue.LabAccount {
		return d.accountAt("northlab", name, status)
	}
	const pending, suspended = catalogue.LabAccountPending, catalogue.LabAccountSuspended
	list := func(a ...catalogue.LabAccount) []catalogue.LabAccount { return a }
	for i, tc := range []struct {
		accounts   []catalogue.LabAccount
		used, rule string
	}{
		{list(own("one", pending)), "one", ""},
		{list(own("one", suspended), own("two", pending), own("three", "ready_to_launch")), "two", ""},
		{list(own("one", pending), own("two", pending)), "", catalogue.NoActiveLabAccount},
		{list(own("one", pending), own("two", catalogue.LabAccountActive)), "two", ""},
		{list(own("one", suspended)), "", catalogue.NoActiveLabAccount},
	} {
		d.accountsOf(tc.accounts...)
		o, err := d.Import(t.Context(), d.team, orders.ImportRequest{UserID: d.user, BillingType: catalogue.ClientBill, CollectionMethod: catalogue.WalkInTest,
			OrderSet:       catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{test("walk-in")}},
			PatientDetails: patient(), PatientAddress: people.ImportAddressInput(address()), SampleID: fmt.Sprint("R-", i)})
		if tc.rule != "" {
			requireRule(t, err, tc.rule, healthlab.Precondition)
			continue
		}
		require.NoError(t, err)
		record, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
		require.NoError(t, err)
		require.Equal(t, account(tc.used), *record.LabAccountID)
	}
}

// reusing is a lab that gives every order the same sample id.
type reusing struct{ exchange.LabBackend }

func (r reusing) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	a, err := r.LabBackend.Submit(ctx, s)
	a.SampleID = "SAME"
	return a, err
}

func TestSampleID_reusedByTheLabGoesToTheFirstOrder(t *testing.T) {
	d := newFixture(t)
	lab := reusing{d.lab}
	service, err := d.newServices(book(t), lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now}}})
	require.NoError(t, err)
	d.services = service
	one := d.placed("walk-in", withOutcome("never_again"))
	d.advance(0)
	two := d.placed("walk-in", withOutcome("never_again"))
	d.advance(0)
	require.Equal(t, "SAME", *d.get(one).SampleID)
	require.Equal(t, two.ID.String(), *d.get(two).SampleID, "not the other one's sample")
	require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: "m", Team: d.team, Order: two.ID, SampleID: "SAME", On: orders.FinalResult,
		Results: &labresult.Report{}}))
	require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: "n", Team: d.team, Order: two.ID, SampleID: "N\x00", On: orders.FinalResult}))
	require.Equal(t, orders.RequisitionCreated, d.get(two).LowLevel(), "and not its result")
}

func TestReceive_contradictoryMessagesChangeNoOrder(t *testing.T) {
	d := newFixture(t)
	ana, bo := d.placed("walk-in"), d.placed("walk-in")
	d.advance(0)
	ana, bo = d.get(ana), d.get(bo)
	for _, m := range []exchange.Message{
		{ID: "1", Team: d.team, Order: ana.ID, SampleID: *bo.SampleID, On: orders.FinalResult, Results: &labresult.Report{}},
		{ID: "2", Team: d.team, SampleID: "0" + *ana.SampleID, On: orders.FinalResult, Results: &labresult.Report{}},
		{ID: "3", Team: healthlab.TeamID{UUID: id("other team")}, SampleID: *ana.SampleID, On: orders.FinalResult, Results: &labresult.Report{}},
		{ID: "4", Team: d.team, Order: ana.ID, On: orders.CancelRequested},
		{ID: "5", Team: d.team, On: orders.FinalResult, Results: &labresult.Report{}},
	} {
		require.NoError(t, d.Receive(t.Context(), m))
		require.Equal(t, ana, d.get(ana))
		require.Equal(t, bo, d.get(bo))
	}
}

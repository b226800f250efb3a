package orders_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// insure gives the user of a fixture demographics and an insurance record, and returns its
// id.
func (d *fixture) insure() uuid.UUID {
	d.t.Helper()
	home := people.AddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201"}
	_, err := d.People().SetUserInfo(d.t.Context(), d.team, d.user, people.UserInfoRequest{FirstName: "Ana", LastName: "Roe", Email: "ana@example.com",
		PhoneNumber: "5550100", Gender: "female", DOB: patient().DOB, Address: people.UserAddressInput{AddressInput: home}})
	require.NoError(d.t, err)
	_, err = d.People().AddInsurance(d.t.Context(), d.team, d.user, people.InsuranceRequest{PayorCode: "P1", MemberID: "M", Relationship: people.RelationSelf,
		Insured: people.PersonDetailsInput{FirstName: "Ana", LastName: "Roe", Gender: "FEMALE", DOB: patient().DOB, Email: "ana@example.com",
			PhoneNumber: "5550100", Address: home}})
	require.NoError(d.t, err)
	c, err := d.People().InsuranceAt(d.t.Context(), d.team, d.user, true, d.now())
	require.NoError(d.t, err)
	return c.ID
}

// TestPlace_refusesEachBrokenRuleAndStoresNothing breaks one rule of the business after another.
func TestPlace_refusesEachBrokenRuleAndStoresNothing(t *testing.T) {
	set := func(names ...string) func(*orders.PlaceRequest) {
		return func(r *orders.PlaceRequest) {
			r.OrderSet.LabTestIDs = nil
			for _, n := range names {
				r.OrderSet.LabTestIDs = append(r.OrderSet.LabTestIDs, test(n))
			}
		}
	}
	addOn := func(a catalogue.AddOn, m catalogue.CollectionMethod) func(*orders.PlaceRequest) {
		return func(r *orders.PlaceRequest) {
			r.OrderSet.AddOn = &a
			if m != "" {
				r.CollectionMethod = &m
			}
		}
	}
	only := func(a catalogue.AddOn) func(*orders.PlaceRequest) {
		return func(r *orders.PlaceRequest) {
			r.OrderSet.LabTestIDs = nil
			addOn(a, catalogue.WalkInTest)(r)
		}
	}
	answered := func(given ...catalogue.AOEAnswer) func(*orders.PlaceRequest) {
		return func(r *orders.PlaceRequest) { set("asked")(r); r.AOEAnswers = given }
	}
	const walkIn = catalogue.WalkInTest
	for _, tc := range []struct {
		name string
		edit func(*orders.PlaceRequest)
		rule string
		kind healthlab.ErrorKind
	}{
		{"unknown user", func(r *orders.PlaceRequest) { r.UserID = healthlab.UserID{UUID: id("stranger")} }, people.UserNotFound, healthlab.NotFound},
		{"nothing selected", func(r *orders.PlaceRequest) { r.OrderSet = nil }, catalogue.NoTestsSelected, healthlab.Precondition},
		{"empty set", set(), catalogue.NoTestsSelected, healthlab.Precondition},
		{"set and test", func(r *orders.PlaceRequest) { r.LabTestID = ptr(test("walk-in")) }, catalogue.ConflictingSelection, healthlab.Precondition},
		{"two accounts", func(r *orders.PlaceRequest) {
			r.LabAccountID, r.OrderSet.LabAccountID = ptr(account("one")), ptr(account("two"))
		}, catalogue.ConflictingSelection, healthlab.Precondition},
		{"add-on without method", addOn(catalogue.AddOn{MarkerIDs: []int{11}}, ""), catalogue.AddOnRequiresMethod, healthlab.Precondition},
		{"add-on without ids", addOn(catalogue.AddOn{}, walkIn), catalogue.AddOnIDsMissing, healthlab.Precondition},
		{"add-on with both ids", addOn(catalogue.AddOn{MarkerIDs: []int{11}, ProviderIDs: []string{"code-urea"}}, walkIn), catalogue.AddOnIDsConflict, healthlab.Precondition},
		{"unknown test", set("nothing"), catalogue.LabTestNotFound, healthlab.NotFound},
		{"test of another team", set("private"), catalogue.LabTestNotFound, healthlab.NotFound},
		{"archived test", set("archived"), catalogue.LabTestNotOrderable, healthlab.Precondition},
		{"tests of two labs", set("walk-in", "south"), catalogue.MultipleLabs, healthlab.Precondition},
		{"marker of another lab", addOn(catalogue.AddOn{MarkerIDs: []int{21}}, walkIn), catalogue.MultipleLabs, healthlab.Precondition},
		{"code of two labs", only(catalogue.AddOn{ProviderIDs: []string{"code-urea"}}), catalogue.MultipleLabs, healthlab.Precondition},
		{"tests of two methods", set("walk-in", "kit"), catalogue.MultipleMethods, healthlab.Precondition},
		{"method that the lab lacks", func(r *orders.PlaceRequest) { set("south")(r); r.CollectionMethod = ptr(catalogue.Testkit) }, catalogue.MethodNotSupported, healthlab.Precondition},
		{"on site, not switched on", set("on site"), catalogue.FeatureNotEnabled, healthlab.Forbidden},
		{"unknown marker", addOn(catalogue.AddOn{MarkerIDs: []int{99}}, walkIn), catalogue.MarkerNotFound, healthlab.Precondition},
		{"unknown code", addOn(catalogue.AddOn{ProviderIDs: []string{"nothing"}}, walkIn), catalogue.MarkerNotFound, healthlab.Precondition},
		{"reflex marker", addOn(catalogue.AddOn{MarkerIDs: []int{14}}, walkIn), catalogue.MarkerNotALaCarte, healthlab.Precondition},
		{"marker of panels only", addOn(catalogue.AddOn{MarkerIDs: []int{15}}, walkIn), catalogue.MarkerNotALaCarte, healthlab.Precondition},
		{"no account at the lab", set("east"), catalogue.NoLabAccount, healthlab.Precondition},
		{"billing type", func(r *orders.PlaceRequest) { r.BillingType = catalogue.PatientBill }, catalogue.BillingTypeNotAllowed, healthlab.Precondition},
		{"billing state", func(r *orders.PlaceRequest) { r.PatientAddress.State, r.PatientAddress.Zip = "TX", "78701" }, catalogue.BillingStateNotAllowed, healthlab.Precondition},
		{"insurer without diagnosis", func(r *orders.PlaceRequest) { r.BillingType = catalogue.CommercialInsurance }, orders.ICDCodesRequired, healthlab.Precondition},
		{"insurer with a bad diagnosis", func(r *orders.PlaceRequest) {
			r.BillingType, r.ICDCodes = catalogue.CommercialInsurance, []string{"E11.9", "x"}
		}, orders.ICDCodeInvalid, healthlab.Precondition},
		{"no insurance record", func(r *orders.PlaceRequest) {
			r.BillingType, r.ICDCodes = catalogue.CommercialInsurance, []string{"E11.9"}
		}, orders.InsuranceMissing, healthlab.Precondition},
		{"consent missing", func(r *orders.PlaceRequest) { r.Consents = nil }, orders.ConsentRequired, healthlab.Precondition},
		{"minor", func(r *orders.PlaceRequest) {
			r.PatientDetails.DOB = healthlab.Date{Year: 2008, Month: 3, Day: 3}
		}, orders.MinorNotAllowed, healthlab.Precondition},
		{"question not answered", answered(), catalogue.AOEMissing, healthlab.Precondition},
		{"answer not allowed", answered(catalogue.AOEAnswer{MarkerID: 13, QuestionID: 131, Answer: "Maybe"}), catalogue.AOEInvalid, healthlab.Precondition},
		{"two answers", answered(catalogue.AOEAnswer{MarkerID: 13, QuestionID: 131, Answer: "Y"}, catalogue.AOEAnswer{MarkerID: 13, QuestionID: 131, Answer: "N"}), catalogue.AOEInvalid, healthlab.Precondition},
		{"not a number", answered(catalogue.AOEAnswer{MarkerID: 13, QuestionID: 131, Answer: "Y"}, catalogue.AOEAnswer{MarkerID: 13, QuestionID: 133, Answer: "heavy"}), catalogue.AOEInvalid, healthlab.Precondition},
		{"question not asked", answered(catalogue.AOEAnswer{MarkerID: 13, QuestionID: 131, Answer: "Y"}, catalogue.AOEAnswer{MarkerID: 11, QuestionID: 131, Answer: "Y"}), catalogue.AOEInvalid, healthlab.Precondition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			d.settings.RequiredConsents = []people.ConsentType{people.TermsOfUse}
			_, err := d.Place(t.Context(), d.team, d.asks("walk-in", agreed, tc.edit))
			requireRule(t, err, tc.rule, tc.kind)
			page, err := d.List(t.Context(), orders.Query{Team: d.team})
			require.NoError(t, err)
			require.Zero(t, page.Total, "nothing is stored")
		})
	}
}

func agreed(r *orders.PlaceRequest) {
	r.Consents = []people.Consent{{ConsentType: people.TermsOfUse}}
}

func TestPlace_minorsNeedASettingAndAProxy(t *testing.T) {
	d := newFixture(t)
	d.settings.Minors = true
	born := func(day healthlab.Date) func(*orders.PlaceRequest) {
		return func(r *orders.PlaceRequest) { r.PatientDetails.DOB = day }
	}
	d.placed("walk-in", born(healthlab.Date{Year: 2008, Month: 3, Day: 2})) // 18 today
	_, err := d.Place(t.Context(), d.team, d.asks("walk-in", born(healthlab.Date{Year: 2008, Month: 3, Day: 3})))
	requireRule(t, err, orders.MedicalProxyRequired, healthlab.Precondition)
	o := d.placed("walk-in", born(healthlab.Date{Year: 2008, Month: 3, Day: 3}), func(r *orders.PlaceRequest) {
		r.PatientDetails.MedicalProxy = &people.GuarantorInput{FirstName: "Bo", LastName: "Roe", PhoneNumber: "+15550101",
			Address: people.AddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}}
	})
	require.Equal(t, "Bo", o.PatientDetails.MedicalProxy.FirstName)
}

// TestPlace_choosesAUsableLabAccountOfTeamAndLab goes through every case of which account an order uses.
func TestPlace_choosesAUsableLabAccountOfTeamAndLab(t *testing.T) {
	team := healthlab.TeamID{UUID: id("team")}
	north, south := catalogue.Lab{ID: 1, Slug: "northlab", CollectionMethods: catalogue.CollectionMethods()}, catalogue.Lab{ID: 2, Slug: "southlab"}
	own := func(name, lab string, status catalogue.LabAccountStatus) catalogue.LabAccount {
		return catalogue.LabAccount{ID: account(name), Lab: lab, Status: status, TeamIDAllowlist: []healthlab.TeamID{team},
			AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}}
	}
	platform := own("platform", "northlab", catalogue.LabAccountActive)
	platform.TeamIDAllowlist = nil
	closed := own("closed", "northlab", catalogue.LabAccountSuspended)
	closed.TeamIDAllowlist = nil
	stranger := own("stranger", "northlab", catalogue.LabAccountActive)
	stranger.TeamIDAllowlist = []healthlab.TeamID{{UUID: id("other team")}}
	active, second := own("active", "northlab", catalogue.LabAccountActive), own("second", "northlab", catalogue.LabAccountActive)
	suspended, pending := own("suspended", "northlab", catalogue.LabAccountSuspended), own("pending", "northlab", catalogue.LabAccountPending)
	elsewhere := own("elsewhere", "southlab", catalogue.LabAccountActive)
	for _, tc := range []struct {
		name     string
		accounts []catalogue.LabAccount
		want     string
		used     string
		rule     string
		kind     healthlab.ErrorKind
	}{
		{"named", []catalogue.LabAccount{active, second}, "active", "active", "", 0},
		{"named, unknown", []catalogue.LabAccount{active, platform}, "nothing", "", catalogue.LabAccountNotFound, healthlab.NotFound},
		{"named, of another team", []catalogue.LabAccount{stranger}, "stranger", "", catalogue.LabAccountNotFound, healthlab.NotFound},
		{"named, the platform's", []catalogue.LabAccount{platform}, "platform", "", catalogue.LabAccountNotFound, healthlab.NotFound},
		{"named, other lab", []catalogue.LabAccount{elsewhere}, "elsewhere", "", catalogue.LabAccountWrongLab, healthlab.Precondition},
		{"named, suspended", []catalogue.LabAccount{suspended}, "suspended", "", catalogue.LabAccountNotActive, healthlab.Precondition},
		{"named, pending", []catalogue.LabAccount{pending}, "pending", "", catalogue.LabAccountNotActive, healthlab.Precondition},
		{"none", []catalogue.LabAccount{elsewhere, stranger}, "", "", catalogue.NoLabAccount, healthlab.Precondition},
		{"none but the platform's", []catalogue.LabAccount{platform, elsewhere}, "", "platform", "", 0},
		{"none, and the platform's is suspended", []catalogue.LabAccount{closed}, "", "", catalogue.NoLabAccount, healthlab.Precondition},
		{"one active", []catalogue.LabAccount{active, suspended, pending, platform}, "", "active", "", 0},
		{"two active", []catalogue.LabAccount{active, second}, "", "", catalogue.LabAccountAmbiguous, healthlab.Precondition},
		{"none active", []catalogue.LabAccount{suspended, pending, platform}, "", "", catalogue.NoActiveLabAccount, healthlab.Precondition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			b, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{Labs: []catalogue.Lab{north, south}, Accounts: tc.accounts,
				Tests: []catalogue.StaticTest{{LabTest: catalogue.LabTest{ID: test("walk-in"), Method: catalogue.WalkInTest, Status: catalogue.LabTestActive}, LabID: 1}}})
			require.NoError(t, err)
			service, err := d.newServices(b, d.lab, &options{orderOptions: orders.Options{Environment: healthlab.Production}})
			require.NoError(t, err)
			o, err := service.Place(t.Context(), d.team, d.asks("walk-in", func(r *orders.PlaceRequest) {
				if tc.want != "" {
					r.LabAccountID = ptr(account(tc.want))
				}
			}))
			if tc.rule != "" {
				requireRule(t, err, tc.rule, tc.kind)
				return
			}
			require.NoError(t, err)
			record, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
			require.NoError(t, err)
			require.Equal(t, account(tc.used), *record.LabAccountID)
		})
	}
}

func TestPlace_delegatedAccountNeedsAPhysician(t *testing.T) {
	for _, flow := range []catalogue.DelegatedFlow{catalogue.OrderDelegated, catalogue.FullyDelegated, catalogue.ResultDelegated, catalogue.NotDelegated} {
		t.Run(string(flow), func(t *testing.T) {
			d := newFixture(t)
			b, err := catalogue.NewStaticCatalog(catalogue.StaticCatalogContents{
				Labs: []catalogue.Lab{{ID: 1, Slug: "northlab", CollectionMethods: catalogue.CollectionMethods()}},
				Accounts: []catalogue.LabAccount{{ID: account("a"), Lab: "northlab", Status: catalogue.LabAccountActive, DelegatedFlow: flow,
					TeamIDAllowlist: []healthlab.TeamID{d.team}, AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"az"}}}},
				Tests: []catalogue.StaticTest{{LabTest: catalogue.LabTest{ID: test("walk-in"), Method: catalogue.WalkInTest, Status: catalogue.LabTestActive}, LabID: 1}}})
			require.NoError(t, err)
			service, err := d.newServices(b, d.lab, &options{orderOptions: orders.Options{Environment: healthlab.Production}})
			require.NoError(t, err)
			needed := flow == catalogue.OrderDelegated || flow == catalogue.FullyDelegated
			_, err = service.Place(t.Context(), d.team, d.asks("walk-in"))
			if needed {
				requireRule(t, err, orders.PhysicianRequired, healthlab.Precondition)
			} else {
				require.NoError(t, err)
			}
			o, err := service.Place(t.Context(), d.team, d.asks("walk-in", func(r *orders.PlaceRequest) {
				r.Physician = &people.PhysicianInput{FirstName: "Cy", LastName: "Vale", NPI: "1234567893"}
			}))
			require.NoError(t, err)
			require.Equal(t, "Vale", o.Physician.LastName)
		})
	}
}

func TestPlace_storesTheRequestWithAccountAndInsurance(t *testing.T) {
	d := newFixture(t, withRegistry(t))
	insurance := d.insure()
	member := id("member")
	o := d.placed("asked", func(r *orders.PlaceRequest) {
		r.BillingType, r.ICDCodes, r.Priority = catalogue.CommercialInsurance, []string{"E11.9"}, true
		r.ClinicalNotes, r.Passthrough, r.CreatorMemberID = ptr("fast please"), ptr("ours"), &member
		r.AOEAnswers = []catalogue.AOEAnswer{{MarkerID: 13, QuestionID: 131, Answer: "N"}, {MarkerID: 13, QuestionID: 134, Answer: "Y"}, {MarkerID: 13, QuestionID: 134, Answer: "N"}}
		r.Consents = []people.Consent{{ConsentType: people.TermsOfUse}}
	})
	require.Equal(t, catalogue.CommercialInsurance, o.BillingType)
	require.Equal(t, insurance, *o.HealthInsuranceID)
	require.Equal(t, "fast please", *o.ClinicalNotes, "as submitted")
	require.True(t, o.Priority)
	require.Equal(t, orders.OriginInitial, o.Origin)
	r, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "fast please\ncall us", r.Comment)
	require.Equal(t, "P-1", r.LabAccountNumber)
	require.Equal(t, member, *r.CreatorMemberID)
	require.Equal(t, "1.0", r.Consents[0].Version)
	require.True(t, r.Consents[0].TimeOfConsent.Equal(noon))
	require.Equal(t, []catalogue.AOEAnswer{{MarkerID: 13, QuestionID: 131, Answer: "N"}, {MarkerID: 13, QuestionID: 134, Answer: "Y"},
		{MarkerID: 13, QuestionID: 134, Answer: "N"}, {MarkerID: 13, QuestionID: 135, Answer: "arm"}},
		r.AOEAnswers, "with the preset of the optional question, and without an answer about fasting")
}

// Options.FastingCodes lists the codes of fasting questions.
func TestPlace_fastingQuestionsAreAnsweredFromFastingCodes(t *testing.T) {
	answered := []catalogue.AOEAnswer{{MarkerID: 13, QuestionID: 131, Answer: "N"}}
	asks := func(r *orders.PlaceRequest) { r.AOEAnswers = answered }
	d := newFixture(t, func(o *options) { o.FastingCodes = []string{"FAST", "PREG"} })
	_, err := d.Place(t.Context(), d.team, d.asks("asked", asks))
	requireRule(t, err, catalogue.AOEMissing, healthlab.Precondition) // FSTING is no fasting question here
	answered = []catalogue.AOEAnswer{{MarkerID: 13, QuestionID: 132, Answer: "Y"}}
	o := d.placed("asked", asks)
	r, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, r.AOEAnswers, catalogue.AOEAnswer{MarkerID: 13, QuestionID: 132, Answer: "Y"})
	require.False(t, slices.ContainsFunc(r.AOEAnswers, func(a catalogue.AOEAnswer) bool { return a.QuestionID == 131 }), "the patient did not say")
}

// Tests and markers of one name in one order are told apart.
func TestBuildLabTest_makesEqualNamesDiffer(t *testing.T) {
	one := catalogue.BuildLabTest([]catalogue.LabTest{{Name: "Iron", Markers: []catalogue.Marker{{ID: 3, Name: "Ferritin"}, {ID: 1, Name: "Ferritin"}}}, {Name: "Iron"}, {Name: "Iron (2)"}},
		[]catalogue.Marker{{ID: 2, Name: "Iron"}, {ID: 4, Name: "Ferritin (2)"}}, nil, catalogue.WalkInTest, uuid.UUID{})
	require.Equal(t, "Iron + Iron (3) + Iron (2) + Iron (4) + Ferritin (2)", one.Name)
	var names []string
	for _, m := range one.Markers {
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"Ferritin", "Iron", "Ferritin (3)", "Ferritin (2)"}, names)
}

func TestPlace_combinesSeveralLabTestsIntoOne(t *testing.T) {
	d := newFixture(t)
	o := d.placed("walk-in", func(r *orders.PlaceRequest) {
		r.CollectionMethod = ptr(catalogue.AtHomePhlebotomy)
		r.OrderSet.LabTestIDs = []catalogue.LabTestID{test("at home"), test("kit")}
		r.OrderSet.AddOn = &catalogue.AddOn{ProviderIDs: []string{"code-urea"}}
	})
	require.True(t, o.LabTest.AutoGenerated)
	require.Equal(t, catalogue.AtHomePhlebotomy, o.Method())
	require.Equal(t, "at home + kit + urea", o.LabTest.Name)
	require.Equal(t, "101.05", o.LabTest.Price.Decimal.String())
	var ids []int
	for _, m := range o.LabTest.Markers {
		ids = append(ids, m.ID)
	}
	require.Equal(t, []int{11, 12}, ids, "each once")
	require.Equal(t, 5, *o.LabTest.CommonTATDays, "the slowest")
	require.Nil(t, d.placed("walk-in").LabTest.CommonTATDays, "nobody knows how long one of them takes")
}

func TestPlaceAs_secondCallReturnsTheSameOrder(t *testing.T) {
	d := newFixture(t)
	id := orders.OrderID{UUID: id("chosen")}
	first, err := d.PlaceAs(t.Context(), d.team, id, d.asks("walk-in"))
	require.NoError(t, err)
	again, err := d.PlaceAs(t.Context(), d.team, id, d.asks("archived"))
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, []string{"ordered"}, d.notified(first))
}

func TestPlaceTestkit_refusesEachBrokenRule(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*orders.TestkitRequest)
		rule string
		kind healthlab.ErrorKind
	}{
		{"unknown user", func(r *orders.TestkitRequest) { r.UserID = healthlab.UserID{UUID: id("stranger")} }, people.UserNotFound, healthlab.NotFound},
		{"unknown test", func(r *orders.TestkitRequest) { r.LabTestID = test("nothing") }, catalogue.LabTestNotFound, healthlab.NotFound},
		{"not a kit", func(r *orders.TestkitRequest) { r.LabTestID = test("walk-in") }, catalogue.MethodNotSupported, healthlab.Precondition},
		{"not a kit, of a kind that is not switched on", func(r *orders.TestkitRequest) { r.LabTestID = test("on site") }, catalogue.MethodNotSupported, healthlab.Precondition},
		{"archived", func(r *orders.TestkitRequest) { r.LabTestID = test("archived") }, catalogue.LabTestNotOrderable, healthlab.Precondition},
		{"unknown account", func(r *orders.TestkitRequest) { r.LabAccountID = ptr(account("x")) }, catalogue.LabAccountNotFound, healthlab.NotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			req := d.kit()
			tc.edit(&req)
			_, err := d.PlaceTestkit(t.Context(), d.team, req)
			requireRule(t, err, tc.rule, tc.kind)
		})
	}
}

// A kit is ordered without answers to its questions; preset answers are sent with it.
func TestPlaceTestkit_sendsPresetAnswersOnly(t *testing.T) {
	d := newFixture(t)
	req := d.kit()
	req.LabTestID = test("asked kit")
	o, err := d.PlaceTestkit(t.Context(), d.team, req)
	require.NoError(t, err, "the caller need not answer")
	want := []catalogue.AOEAnswer{{MarkerID: 13, QuestionID: 135, Answer: "arm"}}
	answers := func() []catalogue.AOEAnswer {
		r, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
		require.NoError(t, err)
		return r.AOEAnswers
	}
	require.Equal(t, want, answers())
	d.advance(3 * day)
	_, err = d.Register(t.Context(), d.team, orders.RegisterRequest{SampleID: *d.get(o).SampleID, PatientDetails: patient(), PatientAddress: address()})
	require.NoError(t, err)
	require.Equal(t, want, answers())
}

// A kit is registered with its lab account in its present state; without an active account
// the registration is refused.
func TestRegister_needsAnActiveLabAccount(t *testing.T) {
	d := newFixture(t)
	o, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	d.advance(3 * day)
	req := orders.RegisterRequest{SampleID: *d.get(o).SampleID, PatientDetails: patient(), PatientAddress: address()}
	d.accountsOf(d.accountAt("northlab", "another", catalogue.LabAccountActive))
	before := d.get(o)
	_, err = d.Register(t.Context(), d.team, req)
	requireRule(t, err, catalogue.LabAccountNotActive, healthlab.Precondition)
	require.Equal(t, before, d.get(o))
	d.restart()
	_, err = d.Register(t.Context(), d.team, req)
	require.NoError(t, err)
}

func TestRegister_refusesEachBrokenRule(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*orders.RegisterRequest)
		rule string
		kind healthlab.ErrorKind
	}{
		{"unknown user", func(r *orders.RegisterRequest) { r.UserID = &healthlab.UserID{UUID: id("stranger")} }, people.UserNotFound, healthlab.NotFound},
		{"state", func(r *orders.RegisterRequest) { r.PatientAddress.State, r.PatientAddress.Zip = "TX", "78701" }, catalogue.BillingStateNotAllowed, healthlab.Precondition},
		{"consent", func(r *orders.RegisterRequest) { r.Consents = nil }, orders.ConsentRequired, healthlab.Precondition},
		{"minor", func(r *orders.RegisterRequest) {
			r.PatientDetails.DOB = healthlab.Date{Year: 2020, Month: 1, Day: 1}
		}, orders.MinorNotAllowed, healthlab.Precondition},
		{"a kit that is bound to its patient", func(r *orders.RegisterRequest) { r.SampleID = "bound" }, orders.KitNotFound, healthlab.NotFound},
		{"a kit that was cancelled", func(r *orders.RegisterRequest) { r.SampleID = "cancelled" }, orders.KitNotRegistrable, healthlab.Precondition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			d.settings.RequiredConsents = []people.ConsentType{people.TermsOfUse}
			name := func(o orders.Order, sample string) {
				_, err := d.store.Orders().Update(t.Context(), d.team, o.ID, func(r *orders.Record) ([]healthlab.Event, error) {
					r.SampleID = &sample
					return nil, nil
				})
				require.NoError(t, err)
			}
			var kits []orders.Order
			for range 2 {
				o, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
				require.NoError(t, err)
				kits = append(kits, o)
			}
			name(kits[0], "A1")
			name(kits[1], "cancelled")
			_, err := d.Cancel(t.Context(), d.team, kits[1].ID)
			require.NoError(t, err)
			name(d.placed("kit", agreed), "bound")
			req := orders.RegisterRequest{SampleID: "A1", PatientDetails: patient(), PatientAddress: address(),
				Consents: []people.Consent{{ConsentType: people.TermsOfUse}}}
			tc.edit(&req)
			before := d.get(kits[0])
			_, err = d.Register(t.Context(), d.team, req)
			requireRule(t, err, tc.rule, tc.kind)
			require.Equal(t, before, d.get(kits[0]))
		})
	}
}

// TestPlace_reportsEveryInvalidFieldWithoutValues finds every problem of a request at once, and names no value.
func TestPlace_reportsEveryInvalidFieldWithoutValues(t *testing.T) {
	d := newFixture(t)
	long := strings.Repeat("SECRET", 200)
	req := d.asks("walk-in", func(r *orders.PlaceRequest) {
		r.UserID = healthlab.UserID{}
		r.BillingType, r.CollectionMethod, r.ICDCodes = "SECRET", ptr(catalogue.CollectionMethod("SECRET")), []string{"SECRET!"}
		r.ClinicalNotes, r.Passthrough = &long, ptr("a\x00")
		r.Physician = &people.PhysicianInput{SignatureImage: &people.ImageBlob{ContentType: "SECRET"}, Email: ptr("SECRET"), LicensedStates: []string{"AZ", ""}}
		r.Consents = []people.Consent{{ConsentType: "SECRET"}}
		r.HealthInsurance = &people.HealthInsuranceInput{BackImage: &people.ImageBlob{ContentType: "SECRET"}, ResponsibleRelationship: ptr("SECRET"),
			ResponsibleDetails: &people.ResponsiblePerson{FirstName: "SECRET;", LastName: "Roe", PhoneNumber: "+SECRET",
				Address: people.AddressInput{FirstLine: "1", City: "1", State: "AZ", Country: "US", Zip: "SECRET"}},
			DiagnosisCodes: []string{"SECRET"}}
		r.PatientDetails = people.PatientDetailsInput{FirstName: " SECRET", LastName: "SECRET@", DOB: healthlab.Date{Year: 2026, Month: 3, Day: 3},
			Gender: "SECRET", Email: "SECRET@", Race: ptr(people.Race("SECRET")), HouseholdSize: ptr(-1),
			MedicalProxy: &people.GuarantorInput{FirstName: "Bo", LastName: "Roe", PhoneNumber: "1"}}
		r.PatientAddress = people.PatientAddressInput{Zip: "SECRET", AccessNotes: &long}
	})
	_, err := d.Place(t.Context(), d.team, req)
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.NotContains(t, fmt.Sprintf("%+v", invalid), "SECRET")
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, p.Code+" "+strings.TrimSuffix(p.String(), ": "+p.Msg))
	}
	want := strings.Split(strings.TrimSpace(`
missing user_id
enum collection_method
missing physician.first_name
missing physician.last_name
missing physician.npi
email_form physician.email
state_form physician.licensed_states[1]
missing physician.signature_image.content
enum physician.signature_image.content_type
missing health_insurance.back_image.content
enum health_insurance.back_image.content_type
enum health_insurance.responsible_relationship
name_form health_insurance.responsible_details.first_name
phone_form health_insurance.responsible_details.phone_number
zip_form health_insurance.responsible_details.address.zip
icd_form health_insurance.diagnosis_codes[0]
enum billing_type
icd_form icd_codes[0]
enum consents[0].consentType
nul passthrough
string_length clinical_notes
name_form patient_details.first_name
name_form patient_details.last_name
date_in_future patient_details.dob
enum patient_details.gender
missing patient_details.phone_number
email_form patient_details.email
phone_form patient_details.medical_proxy.phone_number
missing patient_details.medical_proxy.address.first_line
missing patient_details.medical_proxy.address.city
missing patient_details.medical_proxy.address.state
missing patient_details.medical_proxy.address.zip
enum patient_details.race
greater_than_equal patient_details.household_size
missing patient_address.first_line
missing patient_address.city
missing patient_address.state
missing patient_address.country
zip_form patient_address.zip
string_length patient_address.access_notes`), "\n")
	require.ElementsMatch(t, want, got)

	_, err = d.PlaceTestkit(t.Context(), d.team, orders.TestkitRequest{})
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 9)
	_, err = d.Register(t.Context(), d.team, orders.RegisterRequest{})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestPlace_checksTheFormOfPatientNames(t *testing.T) {
	d := newFixture(t)
	for name, ok := range map[string]bool{
		"Ana": true, "O'Neil-Roe Jr.": true, "4th": true, "A B C": true, "x": true, strings.Repeat("a", 50): true,
		"José": true, "Jose\u0301": true, "Nguyễn": true, "Østergård": true, "O’Brien": true, "李": true, "Мария": true, "محمد": true, "अनिता": true,
		"": false, " Ana": false, "Ana ": false, "A  B": false, "-Ana": false, "Ana;": false, "Ana\u200b": false, "<Ana>": false, strings.Repeat("a", 51): false,
	} {
		err := new(d.asks("walk-in", func(r *orders.PlaceRequest) { r.PatientDetails.FirstName = name })).Check(healthlab.DateOf(noon))
		require.Equal(t, ok, err == nil, name)
	}
}

func TestParseCatalog_refusesInconsistentData(t *testing.T) {
	north := `{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["testkit"]}`
	testOf := `{"id": "` + id("t").String() + `", "method": %q, "status": "active", "lab_id": %d, "marker_ids": [%d]}`
	markers := `{"id": 11, "lab_id": 1, "name": "Glucose"}, {"id": 21, "lab_id": 2}`
	south := `{"id": 2, "slug": "southlab"}`
	book := func(labs, markers, tests, accounts string) string {
		return `{"labs": [` + labs + `], "markers": [` + markers + `], "lab_tests": [` + tests + `], "lab_accounts": [` + accounts + `]}`
	}
	for _, tc := range []struct{ name, text, want string }{
		{"good", book(north+","+south, markers, fmt.Sprintf(testOf, "testkit", 1, 11), `{"lab": "northlab", "status": "active"}`), ""},
		{"not JSON", `{"labs": [}`, "catalogue at byte"},
		{"unknown key", `{"laps": []}`, "catalogue at byte"},
		{"lab twice", book(north+","+north, "", "", ""), "labs[1]"},
		{"marker twice", book(north, `{"id": 11, "lab_id": 1}, {"id": 11, "lab_id": 1}`, "", ""), "markers[1]"},
		{"marker without lab", book(north, `{"id": 11}`, "", ""), "markers[0].lab_id"},
		{"test of no lab", book(north, "", fmt.Sprintf(testOf, "testkit", 3, 11), ""), "lab_tests[0].lab_id"},
		{"method", book(north, markers, fmt.Sprintf(testOf, "walk_in_test", 1, 11), ""), "lab_tests[0].method"},
		{"unknown marker", book(north, "", fmt.Sprintf(testOf, "testkit", 1, 99), ""), "lab_tests[0].marker_ids[0]"},
		{"marker of another lab", book(north+","+south, markers, fmt.Sprintf(testOf, "testkit", 1, 21), ""), "lab_tests[0].marker_ids[0]"},
		{"account of no lab", book(north, "", "", `{"lab": "x"}`), "lab_accounts[0].lab"},
		{"a platform account with own physicians", book(north, "", "", `{"lab": "northlab", "delegated_flow": "order_delegated"}`), "lab_accounts[0].delegated_flow"},
		{"a platform account with own results", book(north, "", "", `{"lab": "northlab", "delegated_flow": "result_delegated"}`), "lab_accounts[0].delegated_flow"},
		{"two platform accounts", book(north, "", "", `{"lab": "northlab"}, {"lab": "northlab"}`), "lab_accounts[1]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := catalogue.ReadStaticCatalog(strings.NewReader(tc.text))
			if tc.want != "" {
				require.ErrorIs(t, err, healthlab.Invalid)
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			tests, err := b.LabTests(t.Context(), healthlab.TeamID{}, []catalogue.LabTestID{{UUID: id("t")}, {UUID: id("u")}})
			require.NoError(t, err)
			require.Len(t, tests, 1)
			require.Equal(t, "Northlab", tests[0].Lab.Name)
			require.Equal(t, "Glucose", tests[0].Markers[0].Name)
			tests[0].Markers[0].Name = "changed"
			again, err := b.LabTests(t.Context(), healthlab.TeamID{}, []catalogue.LabTestID{{UUID: id("t")}})
			require.NoError(t, err)
			require.Equal(t, "Glucose", again[0].Markers[0].Name)
			require.True(t, slices.Equal(tests[0].Lab.CollectionMethods, []catalogue.CollectionMethod{catalogue.Testkit}))
		})
	}
}

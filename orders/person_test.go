package orders_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/portal"
)

// withRegistry gives a fixture one payor and a marker that no insurer pays for.
func withRegistry(t testing.TB) func(*options) {
	r, err := people.NewRegistry(people.RegistryContents{
		ClearingHouses: []string{"house_a"},
		Payors:         []people.RegistryPayor{{Payor: people.Payor{PayorCode: "P1", Name: "Payor One"}, IDs: map[string][]string{"house_a": {"1"}}}},
		Diagnoses:      []people.DiagnosisEntry{{Code: "E11.9", Description: "Type 2 diabetes"}},
		NotInsurable:   []people.NotInsurable{{Lab: "northlab", ProviderID: "code-glucose", States: []string{"AZ"}}},
	})
	require.NoError(t, err)
	return func(o *options) { o.Registry = r }
}

func TestNewRegistry_reportsEveryProblem(t *testing.T) {
	_, err := people.NewRegistry(people.RegistryContents{
		Payors:     []people.RegistryPayor{{Payor: people.Payor{PayorCode: "P"}}, {Payor: people.Payor{PayorCode: "P"}, IDs: map[string][]string{"x": nil}}},
		StatePlans: map[string]map[string]string{"FED": {"AZ": "Q"}},
		Diagnoses:  []people.DiagnosisEntry{{Code: "nope"}},
	})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 4)
}

// The record that was valid on the day of the draw can be asked for.
func TestCoverageAt_returnsTheRecordValidOnThatDay(t *testing.T) {
	d := newFixture(t, withRegistry(t))
	first := d.insure()
	drawn := d.now()
	d.advance(day)
	second := d.insure()
	require.NotEqual(t, first, second)
	for at, want := range map[time.Time]any{drawn: first, d.now().Add(-time.Microsecond): first, d.now(): second, {}: second} {
		c, err := d.People().InsuranceAt(t.Context(), d.team, d.user, true, at)
		require.NoError(t, err)
		require.Equal(t, want, c.ID)
	}
	_, err := d.People().InsuranceAt(t.Context(), d.team, d.user, true, drawn.Add(-time.Hour))
	requireRule(t, err, people.InsuranceNotFound, healthlab.NotFound)
}

func TestPlace_refusesInsuranceForAMarkerNoInsurerPays(t *testing.T) {
	d := newFixture(t, withRegistry(t))
	d.insure()
	_, err := d.Place(t.Context(), d.team, d.asks("walk-in", func(r *orders.PlaceRequest) {
		r.BillingType, r.ICDCodes = catalogue.CommercialInsurance, []string{"E11.9"}
	}))
	requireRule(t, err, orders.MarkerNotInsurable, healthlab.Precondition)
}

// The medical proxy of a minor may come from the user's demographics.
func TestPlace_takesAMinorsProxyFromTheDemographics(t *testing.T) {
	d := newFixture(t)
	d.settings.Minors = true
	young := func(r *orders.PlaceRequest) { r.PatientDetails.DOB = healthlab.Date{Year: 2012, Month: 1, Day: 1} }
	_, err := d.Place(t.Context(), d.team, d.asks("walk-in", young))
	requireRule(t, err, orders.MedicalProxyRequired, healthlab.Precondition)
	home := people.AddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201"}
	_, err = d.People().SetUserInfo(t.Context(), d.team, d.user, people.UserInfoRequest{FirstName: "Ana", LastName: "Roe", Email: "ana@example.com",
		PhoneNumber: "5550100", Gender: "female", DOB: patient().DOB, Address: people.UserAddressInput{AddressInput: home},
		MedicalProxy: &people.GuarantorInput{FirstName: "Bo", LastName: "Roe", PhoneNumber: "5550101", Address: home}})
	require.NoError(t, err)
	require.Equal(t, "Bo", d.placed("walk-in", young).PatientDetails.MedicalProxy.FirstName)
}

// New checks the options of the portal.
func TestNew_refusesAPortalKeyBelow32Bytes(t *testing.T) {
	d := newFixture(t)
	for n, want := range map[int]error{31: healthlab.Invalid, 32: nil} {
		_, err := d.newServices(book(t), d.lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Portal: &portal.Options{Key: make([]byte, n)}}})
		require.ErrorIs(t, err, want, n)
	}
}

func TestPortalToken_opensTheOrderOfItsLink(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	d := newFixture(t, withRegistry(t), func(o *options) { o.Portal = &portal.Options{BaseURL: "https://p.example.com", Key: key} })
	d.insure()
	o := d.placed("walk-in")
	link, err := d.PortalLink(t.Context(), d.team, d.user, portal.Request{Context: portal.Communications, OrderID: &o.ID.UUID})
	require.NoError(t, err)
	token := link.URL[len("https://p.example.com/l/"):]
	got, err := portal.ReadToken(key, token, d.now())
	require.NoError(t, err)
	require.Equal(t, portal.Token{Context: portal.Communications, User: d.user, Order: o.ID.UUID, Expires: d.now().Add(28 * day).Truncate(time.Second)}, got)
}

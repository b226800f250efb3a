package orders_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// zips is where some postal codes are.
type zips map[string]appointment.Zip

func (z zips) FindZip(_ context.Context, code string) (appointment.Zip, bool, error) {
	at, ok := z[code]
	return at, ok, nil
}

var mesa = appointment.LngLat{Lng: -111.83, Lat: 33.42}

func someZips() zips {
	return zips{"85201": {Location: mesa, State: "AZ"}, "10001": {Location: appointment.LngLat{Lng: -73.99, Lat: 40.75}, State: "NY"},
		"59001": {Location: appointment.LngLat{Lng: -109.4, Lat: 45.5}, State: "MT"}}
}

func centerAt(lab int, code string, lng, lat float64, has ...appointment.PSCCapability) appointment.Center {
	return appointment.Center{LabID: lab, SiteCode: code, Location: appointment.LngLat{Lng: lng, Lat: lat}, IANATimezone: "America/Phoenix", Capabilities: has,
		Metadata: appointment.PSCMetadata{Name: "Center " + code, FirstLine: "1 Main St", City: "Mesa", State: "AZ", ZipCode: "85201"}}
}

func atlas(t testing.TB, centers ...appointment.Center) *appointment.CenterIndex {
	t.Helper()
	a, err := appointment.NewCenterIndex(centers)
	require.NoError(t, err)
	return a
}

// places are centers of two labs: at Mesa, some miles to the north, and far away.
func places(t testing.TB) *appointment.CenterIndex {
	north := func(lab int, code string, miles float64, has ...appointment.PSCCapability) appointment.Center {
		return centerAt(lab, code, mesa.Lng, mesa.Lat+miles/69.0932, has...)
	}
	closed := north(1, "CLOSED", 1, appointment.PSCSchedulingViaService)
	closed.Inactive = true
	return atlas(t, closed, north(1, "HERE", 0), north(1, "THERE", 9.9, appointment.PSCSchedulingViaService, appointment.PSCStat),
		north(1, "FAR", 24.4, appointment.PSCSchedulingViaService), north(1, "AWAY", 99.6, appointment.PSCStat), north(2, "SOUTH", 60))
}

func withPlaces(t testing.TB) func(*options) {
	return func(o *options) { o.Centers, o.Zips = places(t), someZips() }
}

// everywhere gives the team accounts at the other labs, too.
func (d *fixture) everywhere() {
	d.t.Helper()
	for _, lab := range []string{"southlab", "eastlab"} {
		d.more = append(d.more, catalogue.LabAccount{ID: account(lab), Lab: lab, Status: catalogue.LabAccountActive, DelegatedFlow: catalogue.NotDelegated,
			AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}})
	}
	d.restart()
}

func TestCenters_areFilteredByRadiusLabAndCapability(t *testing.T) {
	d := newFixture(t, withPlaces(t))
	find := func(edit func(*appointment.CenterRequest)) []string {
		req := appointment.CenterRequest{Zip: "85201", LabID: 1}
		edit(&req)
		info, err := d.visits.Places().PSCs(t.Context(), d.team, req)
		require.NoError(t, err)
		require.Equal(t, "northlab", info.Slug)
		out := []string{}
		for _, at := range info.PatientServiceCenters {
			out = append(out, at.SiteCode+" "+at.Distance)
		}
		return out
	}
	require.Equal(t, []string{"HERE 0", "THERE 10", "FAR 24"}, find(func(*appointment.CenterRequest) {}))
	require.Equal(t, []string{"HERE 0", "THERE 10"}, find(func(r *appointment.CenterRequest) { r.Radius = 10 }))
	require.Equal(t, []string{"HERE 0", "THERE 10", "FAR 24", "AWAY 100"}, find(func(r *appointment.CenterRequest) { r.Radius = 100 }))
	require.Equal(t, []string{"THERE 10"}, find(func(r *appointment.CenterRequest) {
		r.Capabilities = []appointment.PSCCapability{appointment.PSCStat, appointment.PSCSchedulingViaService}
	}))
	require.Empty(t, find(func(r *appointment.CenterRequest) { r.Zip = "10001" }))

	info, err := d.visits.Places().PSCs(t.Context(), d.team, appointment.CenterRequest{Zip: "85201", LabID: 1})
	require.NoError(t, err)
	require.Equal(t, []catalogue.BillingType{catalogue.ClientBill, catalogue.CommercialInsurance}, info.PatientServiceCenters[0].SupportedBillTypes)
	_, err = d.visits.Places().PSCs(t.Context(), d.team, appointment.CenterRequest{Zip: "85201", LabID: 77})
	requireRule(t, err, catalogue.LabNotFound, healthlab.NotFound)
	_, err = d.visits.Places().PSCs(t.Context(), d.team, appointment.CenterRequest{Zip: "00000", LabID: 1})
	requireRule(t, err, appointment.ZipCodeUnknown, healthlab.Precondition)
	unlinked := account("of nobody")
	_, err = d.visits.Places().PSCs(t.Context(), d.team, appointment.CenterRequest{Zip: "85201", LabID: 1, LabAccountID: &unlinked})
	requireRule(t, err, catalogue.LabAccountNotFound, healthlab.NotFound)
	_, err = d.visits.Places().PSCs(t.Context(), d.team, appointment.CenterRequest{Zip: "8520", LabID: 1, Radius: 30, Capabilities: []appointment.PSCCapability{"parking"}})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 3)
	_, err = newFixture(t).visits.Places().PSCs(t.Context(), d.team, appointment.CenterRequest{Zip: "85201", LabID: 1})
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

func TestOrderCenters_areThoseOfTheOrdersLab(t *testing.T) {
	d := newFixture(t, withPlaces(t))
	o := d.placed("walk-in")
	info, err := d.visits.OrderPSCs(t.Context(), d.team, o.ID, appointment.CenterRequest{})
	require.NoError(t, err)
	require.Equal(t, 1, info.LabID)
	require.Len(t, info.PatientServiceCenters, 3)
	d.everywhere()
	o = d.placed("south")
	info, err = d.visits.OrderPSCs(t.Context(), d.team, o.ID, appointment.CenterRequest{Radius: 100})
	require.NoError(t, err)
	require.Equal(t, "southlab", info.Slug)
	require.Equal(t, "60", info.PatientServiceCenters[0].Distance)
	kit, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	_, err = d.visits.OrderPSCs(t.Context(), d.team, kit.ID, appointment.CenterRequest{})
	requireRule(t, err, visits.PatientAddressMissing, healthlab.Precondition)
	_, err = d.visits.OrderPSCs(t.Context(), healthlab.TeamID{UUID: id("other")}, o.ID, appointment.CenterRequest{})
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)
}

func TestArea_listsLabsCentersAndBillingOfAPostalCode(t *testing.T) {
	d := newFixture(t, withPlaces(t))
	info, err := d.visits.Places().Area(t.Context(), d.team, appointment.AreaRequest{Zip: "85201", Radius: 50})
	require.NoError(t, err)
	require.Equal(t, "85201", info.ZipCode)
	require.Equal(t, map[string]appointment.PSCAreaInfo{"northlab": {LabID: 1, SupportedBillTypes: []catalogue.BillingType{catalogue.ClientBill, catalogue.CommercialInsurance},
		PatientServiceCenters: appointment.PSCAreaDetails{AppointmentWithService: true, WithinRadius: 3, Radius: "50",
			Capabilities: []appointment.PSCCapability{appointment.PSCStat, appointment.PSCSchedulingViaService}}}}, info.CentralLabs)
	info, err = d.visits.Places().Area(t.Context(), d.team, appointment.AreaRequest{Zip: "85201", Radius: 100})
	require.NoError(t, err)
	require.Len(t, info.CentralLabs, 2)
	require.Equal(t, []catalogue.BillingType{}, info.CentralLabs["southlab"].SupportedBillTypes, "the team has no account there")
	require.False(t, info.CentralLabs["southlab"].PatientServiceCenters.AppointmentWithService)
	info, err = d.visits.Places().Area(t.Context(), d.team, appointment.AreaRequest{Zip: "59001"})
	require.NoError(t, err)
	require.Empty(t, info.CentralLabs)
	require.NotNil(t, info.CentralLabs)
	_, err = d.visits.Places().Area(t.Context(), d.team, appointment.AreaRequest{Zip: "x", Radius: 1, Labs: []string{"northlab", "nolab"}})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 3)
}

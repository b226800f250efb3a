package orders_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// zips is where some postal codes are.
type zips map[string]orders.Zip

func (z zips) FindZip(_ context.Context, code string) (orders.Zip, bool, error) {
	at, ok := z[code]
	return at, ok, nil
}

var mesa = orders.LngLat{Lng: -111.83, Lat: 33.42}

func someZips() zips {
	return zips{"85201": {Location: mesa, State: "AZ"}, "10001": {Location: orders.LngLat{Lng: -73.99, Lat: 40.75}, State: "NY"},
		"59001": {Location: orders.LngLat{Lng: -109.4, Lat: 45.5}, State: "MT"}}
}

// places are centers of two labs: at Mesa, some miles to the north, and far away.
func places(t testing.TB) *orders.CenterIndex {
	north := func(lab int, code string, miles float64, has ...orders.PSCCapability) orders.Center {
		return centerAt(lab, code, mesa.Lng, mesa.Lat+miles/69.0932, has...)
	}
	closed := north(1, "CLOSED", 1, orders.PSCSchedulingViaService)
	closed.Inactive = true
	return atlas(t, closed, north(1, "HERE", 0), north(1, "THERE", 9.9, orders.PSCSchedulingViaService, orders.PSCStat),
		north(1, "FAR", 24.4, orders.PSCSchedulingViaService), north(1, "AWAY", 99.6, orders.PSCStat), north(2, "SOUTH", 60))
}

func withPlaces(t testing.TB) func(*orders.Options) {
	return func(o *orders.Options) { o.Centers, o.Zips = places(t), someZips() }
}

// everywhere gives the team accounts at the other labs, too.
func (d *desk) everywhere() {
	d.t.Helper()
	for _, lab := range []string{"southlab", "eastlab"} {
		d.more = append(d.more, catalogue.LabAccount{ID: account(lab), Lab: lab, Status: catalogue.LabAccountActive, DelegatedFlow: catalogue.NotDelegated,
			AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}})
	}
	d.again()
}

func TestPSCs(t *testing.T) {
	d := newDesk(t, withPlaces(t))
	find := func(edit func(*orders.CenterRequest)) []string {
		req := orders.CenterRequest{Zip: "85201", LabID: 1}
		edit(&req)
		info, err := d.PSCs(t.Context(), d.team, req)
		require.NoError(t, err)
		require.Equal(t, "northlab", info.Slug)
		out := []string{}
		for _, at := range info.PatientServiceCenters {
			out = append(out, at.SiteCode+" "+at.Distance)
		}
		return out
	}
	require.Equal(t, []string{"HERE 0", "THERE 10", "FAR 24"}, find(func(*orders.CenterRequest) {}))
	require.Equal(t, []string{"HERE 0", "THERE 10"}, find(func(r *orders.CenterRequest) { r.Radius = 10 }))
	require.Equal(t, []string{"HERE 0", "THERE 10", "FAR 24", "AWAY 100"}, find(func(r *orders.CenterRequest) { r.Radius = 100 }))
	require.Equal(t, []string{"THERE 10"}, find(func(r *orders.CenterRequest) {
		r.Capabilities = []orders.PSCCapability{orders.PSCStat, orders.PSCSchedulingViaService}
	}))
	require.Empty(t, find(func(r *orders.CenterRequest) { r.Zip = "10001" }))

	info, err := d.PSCs(t.Context(), d.team, orders.CenterRequest{Zip: "85201", LabID: 1})
	require.NoError(t, err)
	require.Equal(t, []catalogue.BillingType{catalogue.ClientBill, catalogue.CommercialInsurance}, info.PatientServiceCenters[0].SupportedBillTypes)
	_, err = d.PSCs(t.Context(), d.team, orders.CenterRequest{Zip: "85201", LabID: 77})
	requireRule(t, err, catalogue.LabNotFound, healthlab.NotFound)
	_, err = d.PSCs(t.Context(), d.team, orders.CenterRequest{Zip: "00000", LabID: 1})
	requireRule(t, err, orders.ZipCodeUnknown, healthlab.Precondition)
	unlinked := account("of nobody")
	_, err = d.PSCs(t.Context(), d.team, orders.CenterRequest{Zip: "85201", LabID: 1, LabAccountID: &unlinked})
	requireRule(t, err, catalogue.LabAccountNotFound, healthlab.NotFound)
	_, err = d.PSCs(t.Context(), d.team, orders.CenterRequest{Zip: "8520", LabID: 1, Radius: 30, Capabilities: []orders.PSCCapability{"parking"}})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 3)
	_, err = newDesk(t).PSCs(t.Context(), d.team, orders.CenterRequest{Zip: "85201", LabID: 1})
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

func TestOrderPSCs(t *testing.T) {
	d := newDesk(t, withPlaces(t))
	o := d.placed("walk-in")
	info, err := d.OrderPSCs(t.Context(), d.team, o.ID, orders.CenterRequest{})
	require.NoError(t, err)
	require.Equal(t, 1, info.LabID)
	require.Len(t, info.PatientServiceCenters, 3)
	d.everywhere()
	o = d.placed("south")
	info, err = d.OrderPSCs(t.Context(), d.team, o.ID, orders.CenterRequest{Radius: 100})
	require.NoError(t, err)
	require.Equal(t, "southlab", info.Slug)
	require.Equal(t, "60", info.PatientServiceCenters[0].Distance)
	kit, err := d.PlaceTestkit(t.Context(), d.team, d.kit())
	require.NoError(t, err)
	_, err = d.OrderPSCs(t.Context(), d.team, kit.ID, orders.CenterRequest{})
	requireRule(t, err, orders.PatientAddressMissing, healthlab.Precondition)
	_, err = d.OrderPSCs(t.Context(), healthlab.TeamID{UUID: id("other")}, o.ID, orders.CenterRequest{})
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)
}

func TestArea(t *testing.T) {
	d := newDesk(t, withPlaces(t))
	info, err := d.Area(t.Context(), d.team, orders.AreaRequest{Zip: "85201", Radius: 50})
	require.NoError(t, err)
	require.Equal(t, "85201", info.ZipCode)
	require.Equal(t, map[string]orders.PSCAreaInfo{"northlab": {LabID: 1, SupportedBillTypes: []catalogue.BillingType{catalogue.ClientBill, catalogue.CommercialInsurance},
		PatientServiceCenters: orders.PSCAreaDetails{AppointmentWithService: true, WithinRadius: 3, Radius: "50",
			Capabilities: []orders.PSCCapability{orders.PSCStat, orders.PSCSchedulingViaService}}}}, info.CentralLabs)
	info, err = d.Area(t.Context(), d.team, orders.AreaRequest{Zip: "85201", Radius: 100})
	require.NoError(t, err)
	require.Len(t, info.CentralLabs, 2)
	require.Equal(t, []catalogue.BillingType{}, info.CentralLabs["southlab"].SupportedBillTypes, "the team has no account there")
	require.False(t, info.CentralLabs["southlab"].PatientServiceCenters.AppointmentWithService)
	info, err = d.Area(t.Context(), d.team, orders.AreaRequest{Zip: "59001"})
	require.NoError(t, err)
	require.Empty(t, info.CentralLabs)
	require.NotNil(t, info.CentralLabs)
	_, err = d.Area(t.Context(), d.team, orders.AreaRequest{Zip: "x", Radius: 1, Labs: []string{"northlab", "nolab"}})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 3)
}

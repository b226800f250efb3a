package appointment_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// A table of centers answers which of them are near a place.
func Example() {
	index, err := appointment.ReadCenterIndex(strings.NewReader(
		"lab_id,site_code,name,first_line,city,state,zip_code,lng,lat,iana_timezone\n" +
			"1,MESA,Mesa Center,1 Main St,Mesa,AZ,85201,-111.83,33.42,America/Phoenix\n" +
			"1,TUCSON,Tucson Center,9 Oak St,Tucson,AZ,85701,-110.97,32.22,America/Phoenix\n"))
	if err != nil {
		panic(err)
	}
	phoenix := appointment.LngLat{Lng: -112.07, Lat: 33.45}
	near, err := index.CentersNear(context.Background(), appointment.CenterQuery{LabID: 1, Near: phoenix, Miles: 25, Most: 10})
	if err != nil {
		panic(err)
	}
	for _, c := range near.Centers {
		fmt.Printf("%s, %.0f miles\n", c.Metadata.Name, phoenix.Miles(c.Location))
	}
	// Output: Mesa Center, 14 miles
}

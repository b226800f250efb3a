package catalogue_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// A catalogue in a file answers which markers a name means.
func Example() {
	source, err := catalogue.ReadStaticCatalog(strings.NewReader(`{
		"labs":    [{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["testkit"]}],
		"markers": [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "unit": "ug/L"},
		            {"id": 12, "lab_id": 1, "name": "Glucose", "slug": "glucose", "unit": "mg/dL"}]}`))
	if err != nil {
		panic(err)
	}
	service := catalogue.New(source, nil)
	page, err := service.Markers(context.Background(), healthlab.TeamID{}, nil, catalogue.MarkerQuery{Name: "feritin"})
	if err != nil {
		panic(err)
	}
	for _, m := range page.Markers {
		fmt.Println(m.ID, m.Name)
	}
	// Output: 11 Ferritin
}

package tables_test

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

func Example() {
	weight := 71.5
	row := tables.Row{
		Record:  &healthdata.Record{Index: time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC), Offset: 3600},
		Summary: &healthdata.Body{Weight: &weight},
	}
	table := tables.ByName("body")
	for i := range table.Columns {
		c := &table.Columns[i]
		if v := c.Value(&row); c.Type == tables.TypeFloat64 && v.Valid {
			fmt.Println(c.Name, v.Float, c.Unit)
		}
	}
	fmt.Println(time.UnixMicro(table.Index(&row)).UTC().Format(time.TimeOnly), table.IndexType)
	// Output:
	// weight_kilogram 71.5 kg
	// 07:00:00 timestamp
}

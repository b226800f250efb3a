package parquet_test

import (
	"bytes"
	"fmt"
	"log"

	parquetgo "github.com/parquet-go/parquet-go"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// The frames of a result come from [aggregate.Service.Query]; this one has values of its own.
func Example() {
	index, err := aggregate.NewColumn("index", tables.TypeInt64, []any{int64(0), int64(1)})
	if err != nil {
		log.Fatal(err)
	}
	steps, err := aggregate.NewColumn("sum.steps", tables.TypeFloat64, []any{8000.0, nil})
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if err := parquet.WriteFrame(&file, &aggregate.Frame{Columns: []aggregate.Column{index, steps}}); err != nil {
		log.Fatal(err)
	}
	got, err := parquetgo.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Schema())
	// Output:
	// message result {
	// 	optional int64 index (INT(64,true));
	// 	optional double sum.steps;
	// }
}

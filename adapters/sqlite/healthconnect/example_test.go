package healthconnect_test

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/sqlite/healthconnect"
)

// An import that reads the exports of phones, those of Health Connect among them.
func Example() {
	var sink kept // the host's sink
	_, err := fileimport.ImportFile(context.Background(), "Health Connect.zip", &sink, &fileimport.Options{Database: healthconnect.Read})
	fmt.Println(err != nil) // there is no such file here
	// Output: true
}

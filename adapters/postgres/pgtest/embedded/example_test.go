package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest/embedded"
)

// A machine without the server's programs: the error says what to do, and the folder is
// left alone. (Where they are, Start returns a server, and URL its address.)
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	_, err = embedded.Start(context.Background(), dir, &embedded.Options{Programs: dir})
	fmt.Println(err)
	fmt.Println(errors.Is(err, healthlab.Unimplemented))
	// Output:
	// embedded PostgreSQL: unimplemented: the server's programs are missing: install the server package (on Debian: apt-get install postgresql)
	// true
}

// Command gen joins the parts of the contract: gen FOLDER FILE.
package main

import (
	"fmt"
	"os"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen FOLDER FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder, file string) error {
	b, err := openapi.Join(os.DirFS(folder))
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644) //nolint:gosec // a source file
}

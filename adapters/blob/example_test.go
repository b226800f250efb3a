package blob_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/blob"
)

// Files in a folder, under a key that would come from a vault.
func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	place, err := blob.OpenDirectory(dir, nil)
	if err != nil {
		panic(err)
	}
	seal, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)})
	if err != nil {
		panic(err)
	}
	files, err := blob.New(place, seal)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := files.Put(ctx, "lab-reports/1", strings.NewReader("a report")); err != nil {
		panic(err)
	}
	r, err := files.Get(ctx, "lab-reports/1")
	if err != nil {
		panic(err)
	}
	content, err := io.ReadAll(r)
	fmt.Println(string(content), err, r.Close())
	keys, err := files.Keys(ctx)
	fmt.Println(keys, err)
	// Output:
	// a report <nil> <nil>
	// map[2026:1] <nil>
}

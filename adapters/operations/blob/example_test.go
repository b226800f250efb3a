package blob_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// Files in a folder, each under the key of the person whom it is about.
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
	keys := personkey.New(memory.NewPersonKeys(), seal, nil) // for good: postgres.NewPersonKeys
	files, err := blob.New(place, seal, &blob.Options{Keys: keys})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := files.Put(ctx, team, user, "lab-reports/1", strings.NewReader("a report")); err != nil {
		panic(err)
	}
	r, err := files.Get(ctx, team, user, "lab-reports/1")
	if err != nil {
		panic(err)
	}
	content, err := io.ReadAll(r)
	fmt.Println(string(content), err, r.Close())

	// Without the key of the person, the file and all copies of it are unreadable.
	err = keys.Delete(ctx, personkey.Ref{Team: team, User: user})
	_, gone := files.Get(ctx, team, user, "lab-reports/1")
	fmt.Println(err, gone)
	// Output:
	// a report <nil> <nil>
	// <nil> read file: not found: the key of the person was deleted
}

package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/healthlab-dev/healthlab/examples/customstore/boltstore"
	"github.com/healthlab-dev/healthlab/store"
)

// What was committed is there when the file is opened again.
func Example() {
	dir, err := os.MkdirTemp("", "boltstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, path, tables := context.Background(), filepath.Join(dir, "rows.db"), []store.Definition{{Name: "host_note"}}
	key := store.Key{Table: "host_note", ID: "first"}
	for range 2 {
		s, err := boltstore.Open(path, tables, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		rows, err := s.Read(ctx, store.Query{Key: key})
		fmt.Println(len(rows[0]), err)
		err = s.Update(ctx, func(_ context.Context, tx store.Tx) error {
			if len(rows[0]) == 0 {
				tx.Put(store.Row{Key: key, Doc: []byte("call back")})
			}
			return nil
		})
		fmt.Println(err, s.Close())
	}
	// Output:
	// 0 <nil>
	// <nil> <nil>
	// 1 <nil>
	// <nil> <nil>
}

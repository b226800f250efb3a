// Customstore keeps users in a store that the host has written itself, on bbolt. It creates a user, closes
// the files, opens them again and reads the user.
//
//	go run ./examples/customstore
//
// The store is package boltstore, in 300 lines. Its test runs the conformance suite of stores (store/storetest), and
// the test of this program runs the suites of the domain packages on it. docs/guides/store.md explains the store
// in steps.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/examples/customstore/boltstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// zone is the time zone of the user.
const zone = "Europe/Lisbon"

func main() {
	if err := inFolder(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "customstore:", err)
		os.Exit(1)
	}
}

// inFolder calls run with a temporary folder.
func inFolder(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "customstore")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return run(ctx, dir, out)
}

func run(ctx context.Context, dir string, out io.Writer) error {
	secret := make([]byte, 32) // of the host, which keeps it apart from both files
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	sealer, err := healthlab.NewAESSealer("first", map[string][]byte{"first": secret})
	if err != nil {
		return err
	}
	user := healthdata.User{
		ID: healthlab.UserID{UUID: uuid.New()}, Team: healthlab.TeamID{UUID: uuid.New()},
		ClientUserID: "member-42", CreatedOn: healthlab.At(time.Now()), FallbackTimeZone: healthdata.FallbackTimeZone{ID: zone},
	}
	if err := withStore(dir, sealer, func(s store.Store) error {
		return healthdata.NewUsers(s, nil).Insert(ctx, user, 0)
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, "created:", user.ClientUserID)
	return withStore(dir, sealer, func(s store.Store) error {
		found, err := healthdata.NewUsers(s, nil).Get(ctx, user.Team, user.ID)
		if err == nil {
			fmt.Fprintln(out, "opened again and read:", found.ClientUserID, found.FallbackTimeZone.ID)
		}
		return err
	})
}

// withStore opens the two files in dir, calls do with the store of users, and closes both files. The store encrypts the
// rows of each user with a key of that user. sealer encrypts these keys, which have a file of their own, so that a
// backup of the rows does not contain them.
func withStore(dir string, sealer healthlab.Sealer, do func(store.Store) error) (err error) {
	keyRows, err := boltstore.Open(filepath.Join(dir, "keys.db"), personkey.Tables(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keyRows.Close()) }()
	tables := healthdata.UserTables()
	rows, err := boltstore.Open(filepath.Join(dir, "rows.db"), tables, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	keys := personkey.New(personkey.NewStore(keyRows), sealer, nil)
	return do(personkey.Encrypt(rows, keys, tables))
}

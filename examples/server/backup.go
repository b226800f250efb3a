package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/healthlab-dev/healthlab/adapters/sqlite"
)

// runBackup is the command "server backup": it copies the folder of -data, even while a server uses it. It writes
// the keys of persons and the secret to another folder, so the copy of the data cannot be read without that folder.
// Erasing a person deletes the person's key and so makes the person's data in all copies unreadable.
func runBackup(ctx context.Context, args []string, stdout, _ io.Writer) error {
	f := flag.NewFlagSet("server backup", flag.ContinueOnError)
	dir := f.String("data", defaultDataDir, "`folder` as the server has it")
	to := f.String("to", "", "new `folder` for the data and the files")
	keysTo := f.String("keys-to", "", "new `folder` for the keys of persons and the secret, kept apart from the data")
	if done, err := parseOwn(f, args, stdout); done || err != nil {
		return err
	}
	if *to == "" || *keysTo == "" || filepath.Clean(*to) == filepath.Clean(*keysTo) {
		return errors.New("backup: -to and -keys-to are required and must be new folders")
	}
	for _, folder := range []string{*to, *keysTo} {
		if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
			return err
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	// The data is copied before the keys, so that there is a key for each copied row. It is copied before the
	// files, because a row without its file would be a visible loss, but a file without a row is never shown.
	if err := sqlite.Backup(ctx, filepath.Join(*dir, dataFile), filepath.Join(*to, dataFile)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := sqlite.Backup(ctx, filepath.Join(*dir, keysFile), filepath.Join(*keysTo, keysFile)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := copyIfThere(filepath.Join(*dir, filesDir), filepath.Join(*to, filesDir)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := copyIfThere(filepath.Join(*dir, secretName), filepath.Join(*keysTo, secretName)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err := fmt.Fprintf(stdout, "data and files: %s\nkeys and secret: %s\n", *to, *keysTo)
	return err
}

// copyIfThere copies a file or a folder. A missing one is no error.
func copyIfThere(from, to string) error {
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

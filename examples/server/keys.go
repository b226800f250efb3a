package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

func (c *config) at() storeAt {
	return storeAt{dir: c.dataDir, database: c.databaseURL, shards: c.shards, keys: keysAt{sealer: c.sealer, address: c.keysURL, samples: c.encryptSamples}, pipelines: c.ehrPipelines, log: c.log}
}

// runKeys executes "server keys rotate" and "server keys erase". rotate encrypts the keys of persons anew with the
// first key of -sealing-keys. erase erases the users whose key is deleted; a restored backup contains such users. Both
// take the flags of the server, and can run while a server with -database-url runs. After an interruption, run the
// command again to continue.
func runKeys(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] != "rotate" && args[0] != "erase" {
		return errors.New("keys: the command is: server keys rotate|erase [flags of the server]")
	}
	return withStoredData(ctx, args[1:], stderr, func(s *host) error {
		if args[0] == "rotate" {
			return s.rotate(ctx, stdout)
		}
		return s.eraseWithoutKey(ctx, stdout)
	})
}

func (s *host) rotate(ctx context.Context, stdout io.Writer) error {
	return s.store.PersonKeys().Rotate(ctx, func(p personkey.Progress) {
		fmt.Fprintf(stdout, "%d of %d keys are sealed under the current key\n", p.Done, p.Total)
	})
}

// eraseWithoutKey erases every user whose encryption key is deleted, and prints how many were erased.
func (s *host) eraseWithoutKey(ctx context.Context, stdout io.Writer) error {
	erased, shown := 0, time.Now()
	err := s.store.PersonKeys().EachDeleted(ctx, func(ref personkey.Ref) error {
		err := s.Health.Deletions().Erase(ctx, ref.Team, ref.User)
		if errors.Is(err, healthlab.NotFound) {
			return nil
		} else if err != nil {
			return fmt.Errorf("user %s: %w", ref.User, err)
		}
		erased++
		if now := time.Now(); now.Sub(shown) >= progressEvery {
			shown = now
			fmt.Fprintf(stdout, "erasing: %d users so far\n", erased)
		}
		return nil
	})
	fmt.Fprintf(stdout, "%d users without a key were erased\n", erased)
	return err
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
	"github.com/healthlab-dev/healthlab/webhook"
)

// keySetTimeout is the longest duration of reading a client's key set.
const keySetTimeout = 10 * time.Second

// smartTokens returns the token server for the clients in -smart-clients; nil without the flag.
func (s *host) smartTokens() (*smart.Server, error) {
	if s.smartClients == "" {
		return nil, nil
	}
	clients, err := smart.OpenClientFile(s.smartClients)
	if err != nil {
		return nil, fmt.Errorf("-smart-clients: %w", err)
	}
	secret, err := s.signing.derive("SMART tokens")
	if err != nil {
		return nil, err
	}
	c := smart.Config{
		TokenURL: s.url + fhirPath + "/auth/token", Clients: clients.Find, Secrets: [][]byte{secret}, Log: s.log,
		Client: webhook.NewClient(&webhook.ClientOptions{Guard: s.guard(), Timeout: keySetTimeout}),
	}
	if s.filesPath != "" {
		c.Use = (&usedAssertions{dir: filepath.Join(s.filesPath, usedDir), now: time.Now}).use
	}
	return smart.New(c)
}

// usedDir is the folder of used assertions below the folder of -files.
const usedDir = "smart-assertions"

// usedAssertions records assertions that clients have used, each as an empty file. All processes on the folder see
// them, also after a restart.
type usedAssertions struct {
	dir string
	now func() time.Time

	mu    sync.Mutex
	swept time.Time
}

// use reports whether an assertion is used for the first time.
func (u *usedAssertions) use(_ context.Context, client, id string, until time.Time) (bool, error) {
	if err := u.sweep(); err != nil {
		return false, err
	}
	sum := sha256.Sum256([]byte(client + "\x00" + id))
	name := filepath.Join(u.dir, hex.EncodeToString(sum[:]))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(f.Close(), os.Chtimes(name, until, until))
}

// sweepEvery is the interval at which files of expired assertions are removed. sweepAfter is how long an assertion
// must have been expired, because the clocks of machines differ.
const (
	sweepEvery = time.Minute
	sweepAfter = 10 * time.Minute
)

func (u *usedAssertions) sweep() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if now.Sub(u.swept) < sweepEvery {
		return nil
	}
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(u.dir)
	if err != nil {
		return err
	}
	for _, one := range list {
		// A file whose time of expiry is not set yet has the time of its creation.
		info, err := one.Info()
		if err == nil && now.Sub(info.ModTime()) > sweepAfter {
			err = os.Remove(filepath.Join(u.dir, one.Name()))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another process may have removed it
			return err
		}
	}
	u.swept = now
	return nil
}

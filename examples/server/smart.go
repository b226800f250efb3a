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

// keySetTimeout is the time limit for fetching the key set (JWKS) of a client.
const keySetTimeout = 10 * time.Second

// smartTokens returns the SMART token server for the clients in the file of -smart-clients; nil without the flag.
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

// usedDir is the folder, below the folder of -files, with a file for each used assertion (signed token request).
const usedDir = "smart-assertions"

// usedAssertions records the assertions (signed token requests) that clients have used, so that none is accepted twice.
// Each assertion is an empty file, which all processes that share the folder see, even after a restart.
type usedAssertions struct {
	dir string
	now func() time.Time

	mu    sync.Mutex
	swept time.Time
}

// use records that a client has used the assertion with this id, which expires at until. It reports whether this is the
// first use.
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

// sweepEvery is the interval at which files of expired assertions are deleted. sweepAfter is how long an assertion
// must have been expired before that, because the clocks of machines differ.
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
		// The modification time of a file is the expiry of its assertion, or for a moment the time of its creation.
		info, err := one.Info()
		if err == nil && now.Sub(info.ModTime()) > sweepAfter {
			err = os.Remove(filepath.Join(u.dir, one.Name()))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // ErrNotExist: another process has deleted it
			return err
		}
	}
	u.swept = now
	return nil
}

package main

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// master is a secret from which others are derived: the one in -signing-key for signatures, the one in -secret-file
// for all secrets that no flag sets. All processes on one database must use the same.
type master []byte

// masterBytes is the length of a master secret in random bytes.
const masterBytes = 32

// String and LogValue do not contain the secret.
func (master) String() string { return "secret" }

func (m master) derive(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, m, nil, "healthlab server: "+purpose, 32)
}

func (m master) reader(purpose string) (io.Reader, error) {
	b, err := m.derive(purpose)
	return bytes.NewReader(b), err
}

// sealer returns the sealer of personal keys and secrets. It encrypts with the first key in a file or, without a
// file, with a key derived from the secret. It decrypts with every key in the file, and, if kept is true, also with
// the derived key.
func (m master) sealer(file string, kept bool) (healthlab.Sealer, error) {
	const own = "secret-file"
	key, err := m.derive("sealing")
	if err != nil {
		return nil, err
	}
	current, keys := own, map[string][]byte{own: key}
	if file == "" {
		return healthlab.NewAESSealer(current, keys)
	}
	if !kept {
		delete(keys, own)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("-sealing-keys: %w", err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		name, coded, _ := strings.Cut(strings.TrimSpace(line), " ")
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(coded))
		if err != nil || len(key) != masterBytes || name == "" || keys[name] != nil {
			return nil, fmt.Errorf("-sealing-keys: line %d must be a name of its own, a space and %d bytes in base64", i+1, masterBytes)
		}
		if keys[name] = key; i == 0 {
			current = name
		}
	}
	return healthlab.NewAESSealer(current, keys)
}

func (c *config) secretPlace() string {
	if c.secretFile == "" {
		return "made by this process, but for the parts that flags set; they end with it"
	}
	return "made of " + c.secretFile
}

// newMaster returns the secret in a file, and creates a missing file. Without a file the secret exists as long
// as the process.
func newMaster(file string) (master, error) {
	drawn := make([]byte, masterBytes)
	if _, err := rand.Read(drawn); err != nil {
		return nil, err
	}
	if file == "" {
		return drawn, nil
	}
	if err := keepNew(file, base64.StdEncoding.EncodeToString(drawn)+"\n"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kept, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(kept) != masterBytes {
		return nil, fmt.Errorf("the file must have %d bytes in base64", masterBytes)
	}
	return kept, nil
}

// keepNew creates a file that only its owner can read, unless it exists. A reader never sees a part of it, even if
// several processes create it.
func keepNew(file, text string) error {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".secret") // only its owner can read a temporary file
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		if err = os.Link(f.Name(), file); errors.Is(err, os.ErrExist) {
			err = nil // another process has created the file
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}

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

// master is a secret from which other secrets are derived: the one in -signing-key for signatures, the one in
// -secret-file for all secrets that no flag sets. All processes on one database must have the same master secrets.
type master []byte

// masterBytes is the length of a master secret in bytes.
const masterBytes = 32

// String returns a constant text, so that the secret is not printed by mistake.
func (master) String() string { return "secret" }

func (m master) derive(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, m, nil, "healthlab server: "+purpose, 32)
}

func (m master) reader(purpose string) (io.Reader, error) {
	b, err := m.derive(purpose)
	return bytes.NewReader(b), err
}

// sealer returns the sealer that encrypts keys of persons and stored secrets. It encrypts with the first key in file
// or, if file is empty, with a key derived from m. It decrypts with every key in file and, if kept is true, with the
// derived key.
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
			return nil, fmt.Errorf("-sealing-keys: line %d must be a unique name, a space and %d bytes in base64", i+1, masterBytes)
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

// newMaster returns the secret in a file, and creates the file if it is missing. If file is empty, the secret is
// random and ends with the process.
func newMaster(file string) (master, error) {
	drawn := make([]byte, masterBytes)
	if _, err := rand.Read(drawn); err != nil {
		return nil, err
	}
	if file == "" {
		return drawn, nil
	}
	if err := writeIfAbsent(file, base64.StdEncoding.EncodeToString(drawn)+"\n"); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kept, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(kept) != masterBytes {
		return nil, fmt.Errorf("%s must have %d bytes in base64", file, masterBytes)
	}
	return kept, nil
}

// writeIfAbsent creates a file with text, which only its owner can read, unless the file exists. The creation is
// atomic, also if several processes do it at once.
func writeIfAbsent(file, text string) error {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".secret") // CreateTemp lets only the owner read it
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		if err = os.Link(f.Name(), file); errors.Is(err, os.ErrExist) {
			err = nil // another process has created it first
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}

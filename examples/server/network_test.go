package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate writes a certificate for 127.0.0.1 and its key into files.
func certificate(t *testing.T) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	bytes, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes}), 0o600))
	trust = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	trust.AddCert(parsed)
	return cert, key, trust
}

// With a certificate the service answers over TLS and tells browsers to stay there.
func TestTLS_servesWithACertificate(t *testing.T) {
	t.Parallel()
	cert, key, trust := certificate(t)
	p := start(t, "-tls-cert", cert, "-tls-key", key)
	require.True(t, strings.HasPrefix(p.url, "https://"))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/readyz", http.NoBody)
	require.NoError(t, err)
	answer, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "max-age=31536000", answer.Header.Get("Strict-Transport-Security"))
	client.CloseIdleConnections()
	out, err := output(t, "health", "-addr", strings.TrimPrefix(p.url, "https://"), "-tls-cert", cert, "-tls-key", key)
	require.NoError(t, err)
	require.Equal(t, "ready\n", out)
	p.quit()
}

// Links name the public address, whatever the service listens on.
func TestPublicURL_isUsedInLinks(t *testing.T) {
	t.Parallel()
	p := start(t, "-public-url", "https://api.example.com/", "-invite")
	require.Contains(t, p.until("https://api.example.com/link"), "https://api.example.com/link")
	p.quit()
}

// Production has no laboratory, no insurers and no provider that is invented, unless it is
// named.
func TestProduction_hasNoInventedPartsUnlessNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args   []string
		status int
	}{
		"nothing named": {nil, http.StatusNotFound},
		"lab named":     {[]string{"-invented", "lab"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, append([]string{"-env", "production", "-store", "memory"}, tt.args...)...)
			ask(p, "GET", "/v3/lab_tests/labs", "", tt.status, nil)
			p.quit()
		})
	}
	for _, bad := range [][]string{
		{"-env", "production", "-lab-hl7", "127.0.0.1:1"}, {"-invented", "people"}, {"-public-url", "api.example.com"}, {"-public-url", "https://example.com/path"},
		{"-tls-cert", "cert.pem"}, {"-trusted-proxy", "proxy"}, {"-lab-catalogue", "no-such-file"},
	} {
		require.Error(t, run(t.Context(), bad, io.Discard, io.Discard), bad)
	}
}

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// healthTime is the time within which the server must answer runHealth.
const healthTime = 5 * time.Second

// runHealth executes "server health", the health check of container images without a shell: it requests /readyz
// from the server on this machine that has the same settings. The exit status is 1 if the server is not ready.
func runHealth(ctx context.Context, args []string, stdout, _ io.Writer) error {
	c, _, err := settings(args, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, healthTime)
	defer stop()
	transport := &http.Transport{DisableKeepAlives: true}
	scheme := "http"
	if c.metricsAddr == "" && c.tlsCert != "" {
		scheme = "https"
		if transport.TLSClientConfig, err = trustCertificate(c.tlsCert); err != nil {
			return fmt.Errorf("-tls-cert: %w", err)
		}
	}
	host, port, err := net.SplitHostPort(cmp.Or(c.metricsAddr, c.addr))
	if err != nil {
		return fmt.Errorf("-addr must be HOST:PORT: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server is not ready: /readyz answers %d", answer.StatusCode)
	}
	_, err = fmt.Fprintln(stdout, "ready")
	return err
}

// trustCertificate returns TLS settings that trust only the first certificate in a file. They compare its names with
// the first name in the certificate itself, so the client may call the server by any address.
func trustCertificate(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the file must begin with a certificate in PEM")
	}
	own, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(own)
	c := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	switch {
	case len(own.DNSNames) > 0:
		c.ServerName = strings.Replace(own.DNSNames[0], "*", "health", 1)
	case len(own.IPAddresses) > 0:
		c.ServerName = own.IPAddresses[0].String()
	}
	return c, nil
}

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab/linking"
)

// signInTime is the time that a person has to sign in at the provider.
const signInTime = 10 * time.Minute

// browser lets a person sign in at the provider: it prints an address to open, and waits for the redirect to the
// local callback.
func (k *check) browser(ctx context.Context) (linking.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", k.config.addr)
	if err != nil {
		return linking.Grant{}, fmt.Errorf("-addr: %w", err)
	}
	back := k.config.callback
	if back == "" {
		back = "http://" + listener.Addr().String() + "/callback"
	}
	state, verifier := word(), word()
	sum := sha256.Sum256([]byte(verifier))
	page, err := k.connector.Authorize(ctx, linking.AuthorizeRequest{
		State: state, RedirectURL: back, Scopes: k.requiredScopes(), Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
	})
	if err != nil {
		return linking.Grant{}, errors.Join(err, listener.Close())
	}
	codes := make(chan string, 1)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("state") != state {
			http.Error(w, "the state must be that of the sign-in this program started", http.StatusBadRequest)
			return
		}
		select {
		case codes <- q.Get("code"): // empty if the person refused access
		default:
		}
		fmt.Fprintln(w, "Thank you. You can close this window.")
	})}
	go func() { _ = server.Serve(listener) }() // Serve ends when the server is closed
	defer server.Close()
	fmt.Fprintf(k.out, "Register this callback at the provider: %s\nOpen this address and sign in:\n\n    %s\n\n", back, page)
	var code string
	select {
	case <-ctx.Done():
		return linking.Grant{}, fmt.Errorf("sign-in: the provider did not redirect to %s within %v", back, signInTime)
	case code = <-codes:
	}
	if code == "" {
		return linking.Grant{}, errors.New("sign-in: the provider sent no code: the person refused access, or the client, its callback or its scopes are not registered")
	}
	g, err := k.connector.Exchange(ctx, linking.ExchangeRequest{Code: code, RedirectURL: back, Verifier: verifier, Scopes: k.requiredScopes()})
	var refused *linking.Error
	switch {
	case errors.As(err, &refused):
		return g, errors.New("sign-in: the provider refused the code; -callback must be a redirect URL that is registered with the client")
	case err != nil:
		return g, fmt.Errorf("sign-in: the code gives no token; the client id or secret may be wrong: %w", err)
	}
	return g, nil
}

func word() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // crypto/rand never returns an error
	return base64.RawURLEncoding.EncodeToString(b)
}

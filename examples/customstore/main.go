// Customstore is a receiver of events whose memory is a store of its own, on bbolt: an event
// that comes again after a restart is not handled again.
//
//	go run ./examples/customstore -secret whsec_… -file seen.db
//
// The store is in seen.go. Its test runs the conformance suite of the interface that it
// implements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"go.etcd.io/bbolt"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8090", "`address` to listen on")
	secret := flag.String("secret", "", "the endpoint's `secret`, whsec_…")
	file := flag.String("file", "seen.db", "`file` of the memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr, *secret, *file, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "customstore:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, addr, secret, file string, out io.Writer) error {
	key, err := webhook.ParseSecret(secret)
	if err != nil {
		return fmt.Errorf("-secret: %w", err)
	}
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // each change is on disk when its call returns
	seen, err := NewSeen(db, time.Now)
	if err != nil {
		return err
	}
	events, err := receiver.New([]webhook.Secret{key}, seen, nil)
	if err != nil {
		return err
	}
	receiver.On(events, func(_ context.Context, e receiver.Event, b *healthdata.Batch) error {
		_, err := fmt.Fprintf(out, "%s: %d new samples\n", e.Name.Resource, len(b.Data))
		return err
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: events, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

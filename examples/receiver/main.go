// Receiver is a program that only receives webhooks: it checks the signatures of a healthlab service's events and
// prints each once: go run ./examples/receiver -secret whsec_… (-secret twice during a rotation). It prints what
// people measured, so use it only with invented people. events.go decides what happens with an event.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if stop(); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

// run receives webhooks until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("receiver", flag.ContinueOnError)
	f.SetOutput(stderr)
	addr, data := f.String("addr", "127.0.0.1:8090", "`address` to listen on"), f.String("data", "", "`file` that remembers events; default: memory")
	var secrets []webhook.Secret
	var wrong error // apart, because package flag repeats what cannot be read
	f.Func("secret", "the endpoint's `secret`, whsec_…; during a rotation give both", func(text string) error {
		s, err := webhook.ParseSecret(text)
		secrets, wrong = append(secrets, s), errors.Join(wrong, err)
		return nil
	})
	if err := errors.Join(f.Parse(args), wrong); err != nil || f.NArg() > 0 || len(secrets) == 0 {
		return errors.Join(err, errors.New("-secret is required, and arguments other than flags are not expected"))
	}
	events, err := newReceiver(ctx, secrets, *data, stdout)
	l, bad := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err := errors.Join(err, bad); err != nil {
		return err
	}
	server := httpserver.New(events, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintf(stdout, "listening on http://%s/\n", l.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done(): // running handlers may finish; the sender repeats other messages
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}

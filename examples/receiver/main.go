// Receiver is the other end of webhooks in one small program: it takes the events of a
// healthlab service, checks them, and prints each of them once.
//
//	go run ./examples/receiver -secret whsec_…
//
// Give -secret twice during a rotation. It prints what people measured, so it is for
// trying out, with invented people. What it has seen is forgotten when it ends; a
// program that matters gives the kit a memory in its database.
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
	"sync"
	"syscall"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	addr    string
	secrets []webhook.Secret
}

func flags(args []string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("receiver", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.addr, "addr", "127.0.0.1:8090", "`address` to listen on; port 0 takes a free one")
	var texts []string // parsed later, because package flag repeats what it cannot read
	f.Func("secret", "the endpoint's `secret`, whsec_…; during a rotation give both", func(text string) error {
		texts = append(texts, text)
		return nil
	})
	if err := f.Parse(args); err != nil {
		return config{}, err
	}
	for _, text := range texts {
		s, err := webhook.ParseSecret(text)
		if err != nil {
			return config{}, fmt.Errorf("-secret: %w", err)
		}
		c.secrets = append(c.secrets, s)
	}
	switch {
	case f.NArg() > 0:
		return config{}, errors.New("arguments other than flags are not expected")
	case len(c.secrets) == 0:
		return config{}, errors.New("-secret is needed: nothing is believed without a signature")
	}
	return c, nil
}

// run serves until ctx ends, and then says what came.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := flags(args, stderr)
	if err != nil {
		return err
	}
	d := &reporter{out: stdout, counts: map[receiver.Outcome]int{}}
	r, err := d.receiver(c.secrets)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	d.print("listening on http://%s/", l.Addr())
	server := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		// What is being handled may finish; the sender repeats the rest.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		err = server.Shutdown(last)
	}
	d.print("%s", d.total())
	return err
}

// reporter prints events and counts what became of them.
type reporter struct {
	out io.Writer

	mu      sync.Mutex // guards the counts, and lines from mixing
	counts  map[receiver.Outcome]int
	refused int
}

func (d *reporter) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = fmt.Fprintf(d.out, format+"\n", args...)
}

func (d *reporter) total() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("%d events; %d came again, %d came too late, %d were tests, %d refused",
		d.counts[receiver.Applied], d.counts[receiver.Duplicate], d.counts[receiver.Stale],
		d.counts[receiver.Tested], d.refused)
}

// observe counts.
func (d *reporter) observe(_ context.Context, e receiver.Event, o receiver.Outcome, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil:
		d.refused++
		_, _ = fmt.Fprintf(d.out, "refused: %s\n", healthlab.KindOf(err))
	case o == receiver.Applied: // printed already
		d.counts[o]++
	default:
		d.counts[o]++
		_, _ = fmt.Fprintf(d.out, "%s: %s\n", o, e.Type)
	}
}

// Server is the whole service in one program: users, sources, health data, questions,
// lab orders and signed events over HTTP.
//
//	go run ./examples/server -tour
//
// demonstrates the service once, over real HTTP, and then continues to serve.
//
//	go run ./examples/server -invite
//
// makes a user and prints the address of link pages, at which you connect a source in a browser
// as this person. Without both flags it only serves.
//
//	go run ./examples/server help
//
// lists the commands and the groups of flags, with an example of each. All data is stored in the folder
// healthlab-data, unless -data, -database-url or -store says otherwise.
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

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
)

func main() {
	// Child reads PDFs, which may be malicious, if this process is the separate one that package pdftext started
	// for that.
	pdftext.Child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run executes the command that args name, until ctx ends. It uses no global state, so tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	named, rest, err := findCommand(args)
	if err != nil {
		return err
	}
	err = named.run(ctx, rest, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return runHelp(ctx, nil, stdout, stderr)
	}
	return err
}

// runServe executes "server serve": it serves until ctx ends.
func runServe(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	c, settings, err := flags(args, stderr)
	if err != nil {
		return err
	}
	if c.version {
		_, err := fmt.Fprintln(stdout, healthlab.Version)
		return err
	}
	if c.printConfig {
		return printSettings(stdout, settings)
	}
	if c.freshDir {
		defer func() { err = errors.Join(err, os.RemoveAll(c.dataDir)) }()
	}
	defer func() { err = errors.Join(err, c.closeLog()) }()
	// Listen before the service is built, because its links contain the address.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	url := c.baseURL(listener.Addr())
	if c.doubles {
		if err := c.startDoubles(ctx, url); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	t, err := newTelemetry(ctx, c.otlpEndpoint)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	kept, err := openStorage(ctx, c.at(), t.tracer())
	if err != nil {
		return errors.Join(err, t.close(ctx), listener.Close())
	}
	s, err := build(ctx, c, kept, t, url)
	if err != nil {
		err = errors.Join(err, listener.Close())
	} else {
		err = s.serve(ctx, listener, stdout)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageGrace)
	defer cancel()
	return errors.Join(err, kept.close(closing), t.close(closing))
}

func (c *config) baseURL(listens net.Addr) string {
	if c.publicURL != "" {
		return c.publicURL
	}
	return c.listenURL(listens)
}

func (c *config) listenURL(listens net.Addr) string {
	if c.tlsCert != "" {
		return "https://" + listens.String()
	}
	return "http://" + listens.String()
}

// Files in the order of reading: each uses those before it.
//
//	secret.go organisation.go docs.go store.go metrics.go service.go orders.go hl7.go environment.go
//	assistants.go help.go flags.go audit.go console.go doubles.go fhir.go health.go importing.go keys.go
//	main.go receiver.go reports.go lake.go invite.go fileupload.go documents.go connectors.go export.go
//	backup.go commands.go tour.go smart.go

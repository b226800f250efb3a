// Server is the whole service in one program: users, sources, health data, questions,
// lab orders and signed events over HTTP.
//
//	go run ./examples/server -tour
//
// plays the main job once, over real HTTP, and then goes on serving.
//
//	go run ./examples/server -invite
//
// prints the address of the link pages for a person who does not exist, to open in a
// browser and connect a source by hand. Without both it only serves. See -help for the
// flags.
//
// Everything is kept in the folder healthlab-data, unless -data, -database-url or -store says otherwise.
//
//	go run ./examples/server backup -to DIR -keys-to DIR
//
// copies that folder while a server uses it.
//
//	go run ./examples/server export -database-url postgres://… -team ID -user ID -resource heartrate
//
// writes the samples of one user and resource as JSON, one sample a line.
//
// Each flag can also be set by an environment variable, HEALTHLAB_DATABASE_URL for
// -database-url, and by a line "database-url VALUE" of the file that -config names. A flag wins
// over the environment, and the environment over the file. -print-config prints what holds.
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
	// Hostile PDFs are read in a process of their own, which is this program again.
	pdftext.Child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run is the program without its process: it serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	if len(args) > 0 && args[0] == "export" {
		return runExport(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == "audit" {
		return runAudit(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == "keys" {
		return runKeys(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == "mcp" {
		return runAssistant(ctx, args[1:], os.Stdin, os.Stdout, stderr)
	}
	if len(args) > 0 && args[0] == "backup" {
		return runBackup(ctx, args[1:], stdout, stderr)
	}
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
	// Links name the address, so it has to be known first.
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

// baseURL is where callers reach the service that listens at an address.
func (c *config) baseURL(listens net.Addr) string {
	if c.publicURL != "" {
		return c.publicURL
	}
	return c.listenURL(listens)
}

// listenURL is the address that the service listens on, as a URL.
func (c *config) listenURL(listens net.Addr) string {
	if c.tlsCert != "" {
		return "https://" + listens.String()
	}
	return "http://" + listens.String()
}

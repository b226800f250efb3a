package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

const auditUsage = "audit: the commands are: server audit verify [-anchor FILE] [flags of the server], server audit anchor [flags of the server]"

// runAudit executes "server audit verify" and "server audit anchor". verify checks the access log of every team in
// the store and prints a line for each. anchor prints a signed copy of the last line of each log, to be kept
// outside of the store. Both take the flags of the server.
func runAudit(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New(auditUsage)
	}
	command, args := args[0], args[1:]
	switch command {
	case "anchor":
		return withStoredData(ctx, args, stderr, func(s *host) error { return s.printAnchors(ctx, stdout) })
	case "verify":
		kept, args, err := parseAnchorFlag(args)
		if err != nil {
			return err
		}
		return withStoredData(ctx, args, stderr, func(s *host) error { return s.verifyAccess(ctx, kept, stdout) })
	default:
		return errors.New(auditUsage)
	}
}

// withStoredData is [withHost] for commands about what is stored: it returns an error if the folder of -data has no
// data, and does not create it.
func withStoredData(ctx context.Context, args []string, stderr io.Writer, do func(*host) error) error {
	c, _, err := settings(args, slog.New(slog.DiscardHandler))
	if err == nil && c.dataDir != "" { // withHost returns err
		if _, err := os.Stat(filepath.Join(c.dataDir, dataFile)); err != nil {
			return fmt.Errorf("-data must be a folder in which a server has stored data: %w", err)
		}
	}
	return withHost(ctx, args, stderr, do)
}

// withHost assembles the service that the flags in args describe, calls do with it, and closes it. The service serves
// no requests meanwhile.
func withHost(ctx context.Context, args []string, stderr io.Writer, do func(*host) error) (err error) {
	c, _, err := flags(args, stderr)
	if err != nil {
		return err
	}
	if c.freshDir {
		return errors.Join(errors.New("-tour must be given to server serve only"), c.closeLog(), os.RemoveAll(c.dataDir))
	}
	defer func() { err = errors.Join(err, c.closeLog()) }()
	t, err := newTelemetry(ctx, "")
	if err != nil {
		return err
	}
	kept, err := openStorage(ctx, c.at(), t.tracer())
	if err != nil {
		return errors.Join(err, t.close(ctx))
	}
	defer func() {
		err = errors.Join(err, kept.close(context.WithoutCancel(ctx)), t.close(context.WithoutCancel(ctx)))
	}()
	s, err := build(ctx, c, kept, t, "http://"+c.addr)
	if err != nil {
		return err
	}
	return do(s)
}

// parseAnchorFlag removes -anchor FILE from the start of the arguments. It returns the anchors in FILE, nil without the
// flag, and the remaining arguments.
func parseAnchorFlag(args []string) ([]accesslog.Anchor, []string, error) {
	if len(args) == 0 || args[0] != "-anchor" {
		return nil, args, nil
	}
	if len(args) == 1 {
		return nil, nil, errors.New("audit: -anchor must name a file that server audit anchor wrote")
	}
	file, err := os.Open(args[1])
	if err != nil {
		return nil, nil, fmt.Errorf("audit: -anchor: %w", err)
	}
	defer func() { _ = file.Close() }() // closing a file that was only read loses nothing
	kept, err := accesslog.ReadAnchors(file)
	if err != nil {
		return nil, nil, fmt.Errorf("audit: -anchor must name what server audit anchor or an export of the log wrote: %w", err)
	}
	return kept, args[2:], nil
}

// printAnchors prints an anchor (a signed copy of the last line) of each team's access log, one JSON object on each
// line.
func (s *host) printAnchors(ctx context.Context, stdout io.Writer) error {
	anchors, err := s.Access.SignHeads(ctx)
	if err != nil {
		return err
	}
	var out []byte
	for i := range anchors {
		out = anchors[i].AppendNDJSON(out)
	}
	_, err = stdout.Write(out)
	return err
}

// verifyAccess checks the access logs of all teams, also against the anchors in kept, and prints a line for each log.
// It checks all logs before it returns an error.
func (s *host) verifyAccess(ctx context.Context, kept []accesslog.Anchor, stdout io.Writer) error {
	return s.Access.VerifyAll(ctx, kept, func(team healthlab.TeamID, v accesslog.Verification, err error) {
		if err != nil {
			fmt.Fprintf(stdout, "team %s: %v\n", team, err)
			return
		}
		fmt.Fprintf(stdout, "team %s: %d lines, the chain is whole up to line %d, hash %s; %d lines not sealed yet\n", team, v.Lines, v.Seq, v.Hash, v.Unsealed)
	})
}

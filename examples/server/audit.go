package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// runAudit is server audit verify: it checks the access log of every team of the organisation,
// and prints a line for each. It takes the flags of the server.
func runAudit(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] != "verify" {
		return errors.New("audit: the command is: server audit verify [flags of the server]")
	}
	return onHost(ctx, args[1:], stderr, func(s *host) error { return s.verifyAccess(ctx, stdout) })
}

// onHost calls do with the host that the flags of the server describe, which serves nothing.
func onHost(ctx context.Context, args []string, stderr io.Writer, do func(*host) error) (err error) {
	c, _, err := flags(args, stderr)
	if err != nil {
		return err
	}
	t, err := newTelemetry(ctx, "")
	if err != nil {
		return err
	}
	kept, err := openStorage(ctx, c.databaseURL, c.keys(), t.tracer())
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

// verifyAccess checks the chains of all teams before it fails.
func (s *host) verifyAccess(ctx context.Context, stdout io.Writer) error {
	var failed error
	const page = 500
	for q := (organisation.Query{Org: organisationOf(s.team), N: page}); ; {
		teams, err := s.Organisations.Teams(ctx, q)
		if err != nil {
			return err
		}
		for i := range teams {
			q.After = teams[i].ID
			head, err := s.Access.Verify(ctx, teams[i].ID)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("team %s: %w", teams[i].ID, err))
				continue
			}
			fmt.Fprintf(stdout, "team %s: the chain is whole up to line %d, hash %s\n", teams[i].ID, head.Seq, head.Hash)
		}
		if len(teams) < page {
			return failed
		}
	}
}

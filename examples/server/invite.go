package main

import (
	"context"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// printInvitation creates a user, and prints the address of link pages at which this person connects sources.
func (s *host) printInvitation(ctx context.Context, stdout io.Writer) error {
	u, err := s.Health.CreateUser(ctx, s.team, healthdata.NewUser{ClientUserID: "invited-" + uuid.NewString()[:8]})
	if err != nil {
		return err
	}
	token, err := s.Linking.CreateToken(ctx, s.team, linking.NewToken{User: u.ID})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "link pages of user %s, for an hour:\n%s\n", u.ID, token.WebURL)
	return nil
}

package service

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// Resealed says how far [Service.Reseal] is.
type Resealed struct {
	// Team is the team whose secrets were looked at last.
	Team healthlab.TeamID
	// Endpoints, Clients and Credentials count what this call sealed: webhook endpoints, OAuth
	// clients of teams, and credentials of connections.
	Endpoints, Clients, Credentials int
}

// resealPage is how many users are read at a time.
const resealPage = 500

// Reseal seals the secrets of teams that an older key of Config.Sealer seals, so that the key is
// not needed for them: signing secrets and headers of webhook endpoints, OAuth clients, and
// credentials of connections. The service goes on meanwhile. A call that was stopped goes on where
// it was when it is made again. progress is called after each team, and after each page of users;
// nil for no reports. Link sessions and bulk imports that are under way keep their key until they
// end, an hour or a day later.
func (s *Service) Reseal(ctx context.Context, teams []healthlab.TeamID, progress func(Resealed)) error {
	if progress == nil {
		progress = func(Resealed) {}
	}
	var p Resealed
	for _, team := range teams {
		p.Team = team
		n, err := s.Webhooks.Reseal(ctx, team)
		p.Endpoints += n
		if err != nil {
			return err
		}
		n, err = s.Linking.ResealClients(ctx, team)
		p.Clients += n
		if err != nil {
			return err
		}
		for offset := 0; ; offset += resealPage {
			page, err := s.Health.Users(ctx, team, offset, resealPage)
			if err != nil {
				return fmt.Errorf("reseal credentials: %w", err)
			}
			for _, u := range page.Users {
				n, err := s.grants.ResealCredentials(ctx, u)
				p.Credentials += n
				if err != nil {
					return err
				}
			}
			progress(p)
			if len(page.Users) < resealPage {
				break
			}
		}
	}
	return nil
}

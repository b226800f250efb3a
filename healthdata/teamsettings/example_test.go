package teamsettings_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
)

func Example() {
	providers, err := healthdata.NewProviders(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	off := false
	s, err := teamsettings.New(memory.New(nil).Teams(), providers, teamsettings.Choices{Texts: &off})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, team := context.Background(), healthlab.TeamID{UUID: uuid.New()}
	on := true
	if _, err := s.Change(ctx, team, func(c *teamsettings.Choices) { c.Texts = &on }); err != nil {
		fmt.Println(err)
		return
	}
	c, err := s.Of(ctx, team)
	fmt.Println(*c.Texts, *c.PatientEmail, *c.VerbMode, err)
	// Output: true true upsert <nil>
}

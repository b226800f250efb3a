package organisation_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

func Example() {
	// httpapi.KeyMaker makes real keys.
	newKey := func() (key, hint string, err error) { return "sk_us_5ec4e7", "sk_us_…", nil }
	s, err := organisation.New(memory.New(nil).Organisations(), &organisation.Options{NewKey: newKey})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, org := context.Background(), uuid.New()
	team, err := s.CreateTeam(ctx, org, organisation.NewTeam{Name: "Riverside", IntegrationID: "crm 7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, key, err := s.CreateKey(ctx, org, team.ID, organisation.NewKey{Label: "backend"})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := s.FindKey(ctx, sha256.Sum256([]byte(key)))
	fmt.Println(found.Label, found.Hint, found.Team == team.ID, err)

	_, err = s.CreateTeam(ctx, org, organisation.NewTeam{Name: "Lakeside", IntegrationID: "crm 7"})
	var taken *organisation.IntegrationTakenError
	fmt.Println(errors.As(err, &taken), strings.Contains(err.Error(), "crm"))
	// Output:
	// backend sk_us_… true <nil>
	// true false
}

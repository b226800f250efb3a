package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// A deployment whose operator holds one key for everything, and a partner one for a
// single team.
func ExampleManagementAuth() {
	clinic := healthlab.TeamID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-00000000000a")}
	authenticate := httpapi.ManagementAuth([]httpapi.ManagementKey{
		{Sum: httpapi.SumKey("the operator's key"), Mandate: httpapi.EveryTeam},
		{Sum: httpapi.SumKey("the partner's key"), Mandate: func(_ uuid.UUID, team healthlab.TeamID) bool { return team == clinic }},
	}, nil)
	// Config{…, Webhooks: service, AuthenticateManagement: authenticate, Environment: healthlab.Production}

	other := healthlab.TeamID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-00000000000b")}
	for _, key := range []string{"the operator's key", "the partner's key", "somebody's key"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("x-management-key", key)
		manager, err := authenticate(r)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(manager.Mandate(uuid.Nil, clinic), manager.Mandate(uuid.Nil, other))
	}
	// Output:
	// true true
	// true false
	// unauthenticated: header x-management-key: must be a known management key
}

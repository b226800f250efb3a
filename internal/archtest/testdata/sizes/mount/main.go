// Mount serves the health data of one team over HTTP.
package main

import (
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func main() {
	handler, err := mount()
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Addr: "127.0.0.1:0", Handler: handler}
	fmt.Println(server.ListenAndServe())
}

func mount() (http.Handler, error) {
	providers, err := healthdata.ReadProviders(strings.NewReader(`[{"slug": "manual", "name": "Manual", "source_type": "app", "class": "manual"}]`))
	if err != nil {
		return nil, err
	}
	engine, err := memstore.New(slices.Concat(healthdata.UserTables(), healthdata.DataTables(false)), nil)
	if err != nil {
		return nil, err
	}
	health, err := healthdata.New(healthdata.NewUsers(engine, nil), healthdata.NewData(engine, nil), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		return nil, err
	}
	team := healthlab.TeamID{UUID: uuid.New()}
	return httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
		Parts:        []httpapi.Part{httpapi.HealthData(health)},
	}), nil
}

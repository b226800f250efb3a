package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/fhir/push"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/webhook"
)

// fhirPath is the path at which FHIR R4 is served.
const fhirPath = "/fhir/r4"

// withFHIR adds FHIR to the API, with the API's authentication and limits.
func (s *host) withFHIR(next http.Handler) (http.Handler, error) {
	tokens, err := s.smartTokens()
	if err != nil {
		return nil, err
	}
	h, err := fhir.Handler(fhir.Config{
		API: s.API(), URL: s.url + fhirPath, Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders, Documents: s.Documents, Exports: s.files, Tokens: tokens,
	})
	if err != nil {
		return nil, err
	}
	h = http.StripPrefix(fhirPath, h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, fhirPath+"/") {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// pushTimeout is the time limit of one request to a team's FHIR server.
const pushTimeout = 30 * time.Second

// addPipelines adds the background work that sends data of users to the FHIR servers of their teams.
func (s *host) addPipelines(c *service.Config) error {
	if !s.ehrPipelines {
		return nil
	}
	c.Pipelines.Resources = fhir.Resources()
	guard := c.Guard
	s.loops = append(s.loops, func(all *service.Service) (service.Loop, error) {
		reader, err := fhir.NewReader(fhir.Config{URL: s.url + fhirPath, Health: all.Health, Aggregate: all.Aggregate, Orders: all.Orders, Continuous: all.Continuous})
		if err != nil {
			return service.Loop{}, err
		}
		pusher, err := push.New(all.Pipelines, reader, &push.Options{
			Client: webhook.NewClient(&webhook.ClientOptions{Guard: guard, Timeout: pushTimeout}), Timeout: pushTimeout,
			Accessed: all.Accessed("ehr_pipeline", "data", "push_person"), Log: c.Log,
		})
		if err != nil {
			return service.Loop{}, err
		}
		return service.Loop{Name: "FHIR servers", Run: pusher.Run}, nil
	})
	return nil
}

package main

import (
	"net/http"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/fhir"
)

// fhirPath is where FHIR R4 is served.
const fhirPath = "/fhir/r4"

// withFHIR serves FHIR beside the API, under the same rules.
func (s *host) withFHIR(next http.Handler) (http.Handler, error) {
	h, err := fhir.Handler(fhir.Config{API: s.API(), URL: s.url + fhirPath, Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders, Documents: s.Documents, Exports: s.files})
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

package fhir_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A service, with FHIR mounted beside its API.
func Example() {
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memory.New(nil)
	s, err := service.New(context.Background(), service.Config{
		AllowPlaintext: true, Environment: healthlab.Sandbox, URL: "https://api.example.com", Stores: store.Stores, Files: store.Blobs(),
		Secret: []byte(strings.Repeat("a secret of 32 bytes at least ", 2)), Providers: providers,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := fhir.Handler(fhir.Config{
		API: s.API(), URL: "https://api.example.com/fhir/r4", Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.Handler())
	mux.Handle("/fhir/r4/", http.StripPrefix("/fhir/r4", h))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/fhir/r4/Patient", http.NoBody))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output:
	// 401 application/fhir+json; charset=utf-8
}

package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A whole service in memory, with one provider that people upload to.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", SourceType: "app", Class: "manual"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memory.New(nil)
	s, err := service.New(ctx, service.Config{
		AllowPlaintext: true,
		Environment:    healthlab.Sandbox,
		URL:            "http://localhost:8080",
		Stores:         store.Stores,
		Files:          store.Blobs(),
		Secret:         []byte(strings.Repeat("a secret of 32 bytes at least ", 2)),
		Providers:      providers,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	server := httptest.NewServer(s.Handler())
	defer server.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/healthz", http.NoBody)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = answer.Body.Close()
	fmt.Println(answer.Status)

	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 OK
	// <nil>
}

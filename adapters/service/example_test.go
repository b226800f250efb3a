package service_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// secret is random in a program, and the same for each of its processes.
var secret = []byte(strings.Repeat("a secret of 32 bytes at least ", 2))

// serve serves until ctx ends, with one provider that people upload to.
func serve(ctx context.Context, listener net.Listener) error {
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Category: "app", Class: "manual"}})
	if err != nil {
		return err
	}
	store := memory.New(nil) // or stores.New over sqlite.Open or postgres.Open
	s, err := service.New(ctx, service.Config{
		Environment: healthlab.Sandbox, URL: "http://" + listener.Addr().String(), AllowPlaintext: true,
		Stores: store.Stores, Files: store.Blobs(), Secret: secret, Providers: providers,
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second} // or httpserver.New
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	return s.Run(ctx)
}

// A whole service in memory.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+"/healthz", http.NoBody)
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

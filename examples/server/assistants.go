package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/peterbourgon/ff/v3"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/operations/mcp"
)

// assistantsPath is the path at which AI assistants connect by the Model Context Protocol.
const assistantsPath = "/mcp"

// withAssistants adds the Model Context Protocol to the API. Assistants authenticate with API keys.
func (s *host) withAssistants(next http.Handler) (http.Handler, error) {
	name := s.keyHeader
	if name == "" {
		name = "x-service-api-key"
	}
	address := httpapi.ForwardedAddress(s.proxies)
	server, err := mcp.New(mcp.Services{Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders, Labs: s.LabHistory, Access: s.Access}, mcp.Options{
		Version: healthlab.Version, Log: s.log, ClientAddress: address,
		Authenticate: func(r *http.Request) (mcp.Caller, error) {
			if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && r.Header.Get(name) == "" {
				r = r.Clone(r.Context())
				r.Header.Set(name, key)
			}
			c, err := s.Authenticate(r)
			return mcp.Caller{Team: c.Team, User: c.User, Key: c.Key, Scopes: c.Scopes}, err
		},
	})
	if err != nil {
		return nil, err
	}
	handler := httpserver.LimitBodies(server.Handler(), httpserver.BodyTimes{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != assistantsPath {
			next.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}), nil
}

func runAssistant(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return passAssistant(ctx, args, os.Stdin, openOutput{stdout}, stderr)
}

// openOutput is an output whose Close does nothing, so that a protocol connection cannot close standard output.
type openOutput struct{ io.Writer }

// Close does nothing.
func (openOutput) Close() error { return nil }

// passAssistant connects an AI assistant, which speaks the Model Context Protocol on stdin and stdout, to a running
// server.
func passAssistant(ctx context.Context, args []string, stdin io.ReadCloser, stdout io.WriteCloser, stderr io.Writer) error {
	f := flag.NewFlagSet("server mcp", flag.ContinueOnError)
	f.SetOutput(stderr)
	url := f.String("url", "http://127.0.0.1:8080"+assistantsPath, "where the server answers assistants")
	key := f.String("api-key", "", "API key of the team; better in the variable HEALTHLAB_API_KEY")
	if err := ff.Parse(f, args, ff.WithEnvVarPrefix(variablePrefix)); err != nil {
		return err
	}
	if *key == "" {
		return errors.New("-api-key or the variable HEALTHLAB_API_KEY is required: an API key of the team whose users the assistant may query")
	}
	remote, err := (&sdk.StreamableClientTransport{Endpoint: *url, HTTPClient: &http.Client{Transport: bearer(*key)}}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("connect with the server: %w", err)
	}
	defer remote.Close()
	local, err := (&sdk.IOTransport{Reader: stdin, Writer: stdout}).Connect(ctx)
	if err != nil {
		return err
	}
	defer local.Close()
	ended := make(chan error, 2)
	go func() { ended <- copyMessages(ctx, local, remote) }()
	go func() { ended <- copyMessages(ctx, remote, local) }()
	if err := <-ended; err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return err
	}
	return nil
}

// copyMessages copies protocol messages from one connection to the other until one of them ends, and returns the error
// of that connection.
func copyMessages(ctx context.Context, from, to sdk.Connection) error {
	for {
		m, err := from.Read(ctx)
		if err != nil {
			return err
		}
		if err := to.Write(ctx, m); err != nil {
			return err
		}
	}
}

// bearer is an HTTP transport that sends an API key with each request.
type bearer string

// RoundTrip implements [http.RoundTripper]. It sends the key as a bearer token.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

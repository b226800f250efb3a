// Provider is a connector of your own: it signs a person in at an invented maker of scales,
// and fetches a month of weights. connector.go is the connector, double.go stands for the
// provider's API, and the test runs the conformance suite of connectors.
//
//	go run ./examples/provider
//
// A service fetches by itself: give it Record in service.Config.Providers, and
// NewConnector(url).Flows() in service.Config.Connectors.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"time"

	"github.com/healthlab-dev/healthlab/linking"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	api := httptest.NewServer(&double{tokens: map[string]bool{}})
	defer api.Close()
	c := NewConnector(api.URL).Flows()

	answer, err := c.Password.SignIn(ctx, linking.PasswordRequest{Username: "ann", Password: "correct horse"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "signed in as", answer.Grant.ExternalUserID)
	to := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	request := linking.PullRequest{Secret: answer.Grant.Secret, Resource: "weight", From: to.AddDate(0, -1, 0), To: to}
	for pages := 1; ; pages++ {
		page, err := c.Puller.Pull(ctx, request)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "page %d: %d weights\n", pages, len(page.Items[0].Samples))
		if page.Next == "" {
			return c.Revoker.Revoke(ctx, answer.Grant.Secret)
		}
		request.Cursor = page.Next
	}
}

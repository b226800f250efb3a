// Walk counts the functions and files of this repository that run for one request, in a service that keeps its data
// in memory: for the upload of a sample, the delivery of its event, and an order.
//
//	make walk
//
// The program must be built with counters of code coverage, which it resets before each request.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/webhook"
)

// module is the module path with which the names of this repository's files begin in coverage data.
const module = "github.com/healthlab-dev/healthlab/"

// labTest is the id of a test kit in examples/server/lab.json.
const labTest = "dfe2bc7d-9b6d-50bf-a9af-9c33cb9131f2"

// apiKey is a constant API key, in the form of keys that the service makes.
var apiKey = "sk_us_" + strings.Repeat("0", 64)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	received := make(chan struct{}, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received <- struct{}{} }))
	defer receiver.Close()
	s, user, err := build(ctx, receiver.URL)
	if err != nil {
		return err
	}
	sample := fmt.Sprintf(`{"provider": "manual", "source": {"type": "app"}, "data": [{"timestamp": %q, "unit": "bpm", "value": 61}]}`,
		time.Now().UTC().Format(time.RFC3339))
	order := fmt.Sprintf(`{"user_id": %q, "order_set": {"lab_test_ids": [%q]},
		"patient_details": {"first_name": "Kim", "last_name": "Walk", "dob": "1984-05-09", "gender": "female",
			"phone_number": "+12175550100", "email": "walk@example.org"},
		"patient_address": {"receiver_name": "Kim Walk", "first_line": "1 Example Street", "city": "Springfield", "state": "IL",
			"zip": "62701", "country": "US", "phone_number": "+12175550100"}}`, user, labTest)
	if _, err := s.Deliveries.Step(ctx); err != nil { // delivers the connection's event now
		return err
	}
	for len(received) > 0 {
		<-received
	}
	deliver := func() error {
		if _, err := s.Deliveries.Step(ctx); err != nil {
			return err
		}
		select {
		case <-received:
			return nil
		default:
			return errors.New("no event was delivered")
		}
	}
	for _, w := range []struct {
		name string
		do   func() error
	}{
		{"the upload of a sample", func() error { return post(ctx, s, "/v2/timeseries/"+user+"/heartrate", sample) }},
		{"the delivery of its event", deliver},
		{"an order", func() error { return post(ctx, s, "/v3/order", order) }},
	} {
		functions, err := counted(ctx, w.do)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		files, packages := map[string]bool{}, map[string]bool{}
		for _, f := range functions {
			name, _, _ := strings.Cut(f, ":")
			files[name], packages[filepath.Dir(name)] = true, true
		}
		fmt.Fprintf(out, "%s: %d functions in %d files of %d packages\n", w.name, len(functions), len(files), len(packages))
		if len(os.Args) > 1 && os.Args[1] == "-v" {
			for _, f := range functions {
				fmt.Fprintln(out, "  "+f)
			}
		}
	}
	return nil
}

// build assembles a service with one user, and an endpoint at url that receives the events. It returns the id of
// the user.
func build(ctx context.Context, url string) (*service.Service, string, error) {
	lab, err := os.ReadFile("examples/server/lab.json")
	if err != nil {
		return nil, "", fmt.Errorf("run it in the root folder: %w", err)
	}
	book, err := catalogue.ReadStaticCatalog(bytes.NewReader(lab))
	if err != nil {
		return nil, "", err
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Category: "app", Class: "manual"}})
	if err != nil {
		return nil, "", err
	}
	store := memory.New(nil)
	s, err := service.New(ctx, service.Config{
		Environment: healthlab.Sandbox, URL: "https://walk.example.org", AllowPlaintext: true,
		Log: slog.New(slog.DiscardHandler), Secret: bytes.Repeat([]byte("walk"), 16),
		Stores: store.Stores, Files: store.Blobs(), Providers: providers,
		Guard:     &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Catalogue: book, Laboratory: sandbox.NewLab(&sandbox.LabOptions{Catalogue: book}),
	})
	if err != nil {
		return nil, "", err
	}
	team := healthlab.TeamID{UUID: uuid.UUID{1}}
	if _, err := s.Organisations.EnsureTeam(ctx, uuid.UUID{2}, organisation.NewTeam{ID: team, Name: "Walk"}); err != nil {
		return nil, "", err
	}
	if err := s.Organisations.AdmitKey(ctx, team, "walk", apiKey, "sk_us_…"); err != nil {
		return nil, "", err
	}
	if _, err := s.Webhooks.Create(ctx, team, webhook.NewEndpoint{URL: url}); err != nil {
		return nil, "", err
	}
	user, err := s.Health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "walk"})
	if err == nil {
		_, err = s.Health.Connections().Connect(ctx, team, user.ID, healthdata.NewConnection{Provider: "manual"})
	}
	return s, user.ID.String(), err
}

// post sends a request with a body to the service. An answer with an error status is an error.
func post(ctx context.Context, s *service.Service, path, body string) error {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("content-type", "application/json")
	r.Header.Set("x-service-api-key", apiKey)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Errorf("status %d: %s", w.Code, w.Body)
	}
	return nil
}

// counted calls do, and returns the functions of this repository that ran meanwhile, each as FILE:LINE: NAME.
func counted(ctx context.Context, do func() error) ([]string, error) {
	dir, err := os.MkdirTemp("", "walk")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := coverage.ClearCounters(); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
		return nil, err
	}
	table, err := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i", dir).Output() //nolint:gosec // the folder is ours
	if err != nil {
		return nil, err
	}
	var ran []string
	for line := range strings.Lines(string(table)) {
		place, ours := strings.CutPrefix(strings.TrimSpace(line), module)
		if ours && !strings.HasSuffix(place, "\t0.0%") && !strings.HasPrefix(place, "examples/") {
			ran = append(ran, strings.Join(strings.Fields(place)[:2], " "))
		}
	}
	slices.Sort(ran)
	return ran, nil
}

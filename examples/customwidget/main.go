// Customwidget is a customer's own page for linking sources, in place of healthlab's link pages.
// The page offers every way to link and needs only the operations that a link token allows: sign-in
// at the provider's own page, name and password, code, address.
//
//	go run ./examples/server -api-key sk_us_…          # or whatever key it prints
//	go run ./examples/customwidget -api-key sk_us_…    # then open the address that it prints
//
// The program represents the customer's own service. It has the API key, which never
// reaches the browser. It makes a link token for the person who is signed in, and forwards the
// page's requests with the link token to healthlab, so that the page needs no other origin.
//
// Healthlab's link pages bind a sign-in at a provider's page to the browser in which it began.
// A widget must do this itself, because healthlab first sees its browser after the sign-in. So the
// link token must stay in the session of the person for whom it was made, and oauth_url must be
// opened by this person's click and given to no other person. This page has the token in memory
// only, and accepts the result in its address only if it started the sign-in itself.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

//go:embed index.html
var index []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "customwidget:", err)
		os.Exit(1)
	}
}

// run serves the page and forwards its requests to healthlab until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("customwidget", flag.ContinueOnError)
	f.SetOutput(stderr)
	addr := f.String("addr", "127.0.0.1:8090", "`address` to listen on; port 0 takes a free one")
	api := f.String("api", "http://127.0.0.1:8080", "`URL` of the service")
	key := f.String("api-key", "", "the team's API `key`")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *key == "" {
		return errors.New("-api-key: is required")
	}
	base, err := url.Parse(*api)
	if err != nil {
		return errors.New("-api: must be an http:// or https:// URL")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	c := &customer{api: base, key: *key, url: "http://" + listener.Addr().String()}
	server := &http.Server{Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(stdout, "open %s/\n", c.url)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	return server.Shutdown(grace)
}

// customer is the web service of a customer. It serves the page, and keeps the API key away from the browser.
type customer struct {
	api      *url.URL
	key, url string
}

func (c *customer) handler() http.Handler {
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(c.api)
		// Cookies and other credentials of the browser belong to the customer's service and must not reach
		// healthlab.
		r.Out.Header.Del("Cookie")
		r.Out.Header.Del("X-Service-Api-Key")
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(index)
	})
	mux.HandleFunc("POST /begin", c.begin)
	for _, operation := range []string{
		"GET /v2/link/providers", "GET /v2/link/state", "GET /v2/link/provider/oauth/{provider}",
		"POST /v2/link/provider/password/{provider}", "POST /v2/link/provider/password/{provider}/complete_mfa",
		"POST /v2/link/provider/email/{provider}",
	} {
		mux.Handle(operation, pass)
	}
	return mux
}

// begin makes a link token for the person who is signed in to the customer's service. In this example each call
// makes a new person.
func (c *customer) begin(w http.ResponseWriter, r *http.Request) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		http.Error(w, "this request must come from the page of the same origin", http.StatusForbidden)
		return
	}
	var user struct {
		ID string `json:"user_id"`
	}
	err := c.call(r.Context(), "/v2/user/", map[string]any{"client_user_id": "widget-" + uuid.NewString()}, &user)
	var token struct {
		Token string `json:"link_token"`
	}
	if err == nil {
		err = c.call(r.Context(), "/v2/link/token", map[string]any{"user_id": user.ID, "redirect_url": c.url + "/"}, &token)
	}
	if err != nil {
		http.Error(w, "healthlab did not answer; try again later", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]string{"link_token": token.Token})
}

// call sends a request to healthlab with the team's API key, and decodes the answer into out.
func (c *customer) call(ctx context.Context, path string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.api.String(), "/")+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("x-service-api-key", c.key)
	r.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(out)
}

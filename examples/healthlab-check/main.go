// Healthlab-check tests a provider's connector against the real service, with an account of your own: it signs in,
// and requests one page of each kind of data.
//
//	go run ./examples/healthlab-check -providers-config clients.json whoop
//
// It prints an address to open in a browser, and receives the result of the sign-in at a local callback address,
// which must be registered with the provider (-callback sets another one). With -token-file it uses a token that you
// have, and needs no sign-in.
//
// For each kind of data it prints how many items came, for which resources they were read, and which items could not
// be read or stored, and why. It prints names of fields, rules and counts, never a value of the person and never a
// token. It stores nothing. The exit status is 1 if anything failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "healthlab-check:", err)
		os.Exit(1)
	}
}

// config has the values of the command line flags.
type config struct {
	slug     string
	clients  string
	token    string
	account  string
	addr     string
	callback string
	origin   string
	days     int
	wait     time.Duration
	revoke   bool
}

func flags(args []string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("healthlab-check", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: healthlab-check [flags] SLUG\n\nSLUG is one of %s.\n\n", strings.Join(registry.Slugs(), ", "))
		f.PrintDefaults()
	}
	f.StringVar(&c.clients, "providers-config", "", "JSON `file` with your client id and secret at the provider (docs/providers/README.md)")
	f.StringVar(&c.token, "token-file", "", "`file` with an access token and, on a second line, a refresh token, in place of a sign-in; without -providers-config, the token is not renewed")
	f.StringVar(&c.account, "account", "", "with -token-file: the provider's `id` of the person, for providers that need it in addresses")
	f.StringVar(&c.addr, "addr", "127.0.0.1:8765", "`address` that the callback listens on")
	f.StringVar(&c.callback, "callback", "", "`URL` of the callback as the provider has it registered, if something leads from there to -addr (default: http://ADDR/callback)")
	f.StringVar(&c.origin, "origin", "", "`URL` of a double in place of the provider, such as http://127.0.0.1:9000")
	f.IntVar(&c.days, "days", 30, "`number` of days before today that are asked for")
	f.DurationVar(&c.wait, "wait", time.Minute, "longest `time` to wait for a limit of the provider")
	f.BoolVar(&c.revoke, "revoke", false, "end the grant when everything is checked")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch c.slug = f.Arg(0); {
	case f.NArg() != 1 || registry.Find(c.slug) == nil:
		return c, fmt.Errorf("SLUG: must be one of %s", strings.Join(registry.Slugs(), ", "))
	case c.clients == "" && c.token == "":
		return c, errors.New("-providers-config or -token-file is required")
	case c.days < 1 || c.days > 365:
		return c, errors.New("-days: must be 1 to 365")
	}
	return c, nil
}

// errFailed says that at least one check failed. The printed lines say which one.
var errFailed = errors.New("not everything is right; see the lines that begin with FAIL")

// run checks the provider that the arguments name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := flags(args, stderr)
	if err != nil {
		return err
	}
	connector, err := c.connect(time.Now)
	if err != nil {
		return err
	}
	k := &check{config: c, connector: connector, record: registry.Find(c.slug).Record(), out: stdout, now: time.Now, sleep: sleep}
	return k.run(ctx)
}

// connect makes the provider's connector, with the OAuth client from the file of -providers-config if there is one.
func (c *config) connect(now func() time.Time) (*rest.Connector, error) {
	opts := &rest.Options{Origin: c.origin, Now: now}
	if c.origin != "" {
		opts.Guard = &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	}
	if c.clients == "" {
		return registry.Find(c.slug).New(rest.Client{ID: "none", Secret: "none", Key: "none"}, opts)
	}
	clients, err := registry.ReadFile(c.clients, os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("-providers-config: %w", err)
	}
	setup, ok := clients[c.slug]
	if !ok {
		return nil, fmt.Errorf("-providers-config: %s: is required", c.slug)
	}
	setup.MessageURL = "" // without it, the connector subscribes to no messages of the provider
	all, err := registry.Config{c.slug: setup}.Connectors(opts)
	if err != nil {
		return nil, fmt.Errorf("-providers-config: %w", err)
	}
	return all[0].Connector, nil
}

// readToken reads the provider's tokens from a file.
func readToken(name string) (linking.Tokens, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return linking.Tokens{}, fmt.Errorf("-token-file: %w", err)
	}
	access, refresh, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	t := linking.Tokens{Access: strings.TrimSpace(access), Refresh: strings.TrimSpace(refresh)}
	if t.Access == "" {
		return t, errors.New("-token-file: the first line must be an access token")
	}
	return t, nil
}

// sleep waits for d. It returns the error of ctx if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// inbox is a customer's server that counts what it gets, by message. It does not answer
// what comes while it is held, and lets go when its sender has gone.
type inbox struct {
	mu   sync.Mutex
	seen map[string]int
	held bool
	got  chan string
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // who has sent all can be seen to go
	id := r.Header.Get("webhook-id")
	b.mu.Lock()
	b.seen[id]++
	held := b.held
	b.mu.Unlock()
	b.got <- id
	if held {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *inbox) hold(held bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = held
}

// connect makes a user of the team with a connection, which is an event.
func (p *program) connect(name string) {
	p.Helper()
	post(p, "/v2/user/", `{"client_user_id":"`+name+`"}`)
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/"+name, &user)
	post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+user.ID+`"}`)
}

// When a process dies, another one sends its deliveries after the lease has ended. While
// both run, no event is sent twice, whichever process took the change. It does not run beside
// other tests, for its leases are short.
func TestDatabase_anotherProcessTakesOverDeliveries(t *testing.T) {
	b := &inbox{seen: map[string]int{}, held: true, got: make(chan string, 1000)}
	url := newServer(t, b.ServeHTTP)
	args := []string{"-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir(), "-webhook-url", url, "-lease", "4s"}
	one, process := spawn(t, args...)
	one.connect("first")
	id := <-b.got
	one.kill(process)
	b.hold(false)

	two, other := spawn(t, args...)
	require.Equal(t, id, <-b.got)
	one, process = spawn(t, args...)
	const events = 40
	var all sync.WaitGroup
	for i := range events {
		p := []*program{one, two}[i%2]
		all.Go(func() { p.connect(fmt.Sprint("person ", i)) })
	}
	for range events {
		require.NotEqual(t, id, <-b.got)
	}
	all.Wait()
	for p, its := range map[*program]*os.Process{one: process, two: other} {
		require.NoError(t, its.Signal(os.Interrupt))
		for range p.lines { // until it has ended
		}
		require.NoError(t, <-p.done)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Len(t, b.seen, events+1)
	for message, n := range b.seen {
		want := 1
		if message == id {
			want = 2
		}
		require.Equal(t, want, n)
	}
}

// onListening is called with what a program says of where it listens, before it goes on.
type onListening func(url, key string)

func (f onListening) Write(said []byte) (int, error) {
	var url, key string
	if _, err := fmt.Sscanf(string(said), "listening on %s\napi key: %s", &url, &key); err == nil {
		f(url, key)
	}
	return len(said), nil
}

// The receiver that the program's flags name gets the events of the first changes after the
// start.
func TestWebhookURL_receivesTheFirstEvent(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	receiver := newServer(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Webhook-Id") })
	ctx, stop := context.WithCancel(t.Context())
	listens := onListening(func(url, key string) {
		(&program{T: t, url: url, key: key}).connect("first")
		stop()
	})
	require.NoError(t, run(ctx, []string{"-addr", "127.0.0.1:0", "-store", "memory", "-webhook-url", receiver}, listens, io.Discard))
	require.Len(t, got, 1)
}

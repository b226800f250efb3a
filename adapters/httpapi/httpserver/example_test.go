package httpserver_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
)

// A host serves its own handler with the limits, here with room for 1000 connections.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := httpserver.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "answered")
	}), &httpserver.Options{Connections: 1000, Idle: time.Minute})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	answer, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	fmt.Println(string(text))

	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(server.Shutdown(stop), <-ended)
	// Output:
	// answered
	// <nil> http: Server closed
}

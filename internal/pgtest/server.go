package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/embedded"
)

// Safety says what a private server does for its data.
type Safety bool

const (
	// Fast does not wait for the disk. What is answered may be lost with the machine,
	// which a test does not outlive anyway.
	Fast Safety = false
	// Durable waits for the disk, as a real server does.
	Durable Safety = true
)

// Server is a private PostgreSQL, reached through a socket in its own folder. Safe for
// concurrent use.
type Server struct {
	*embedded.Server
	dir string
}

// Start makes a server in a temporary folder. If this process ends without removing it,
// it ends and removes itself.
func Start(ctx context.Context, safety Safety) (*Server, error) {
	dir, err := folder(safety)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{"max_connections": "200", "shared_buffers": "64MB", "max_wal_size": "2GB"}
	if safety == Fast {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}
	server, err := embedded.Start(ctx, dir, &embedded.Options{Temporary: true, Settings: settings})
	if errors.Is(err, healthlab.Unimplemented) {
		err = fmt.Errorf("%w: %w", errNoServer, err)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Server{server, dir}, nil
}

// folder makes one for a server: on the disk for one that waits for it.
func folder(safety Safety) (string, error) {
	if safety == Durable {
		return os.MkdirTemp("", "pgtest")
	}
	return fastDir()
}

// Remove stops the server and deletes everything.
func (s *Server) Remove() {
	s.Crash()
	_ = os.RemoveAll(s.dir)
}

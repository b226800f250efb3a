package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest/embedded"
)

// Durability says whether a private server waits until commits are on the disk (fsync).
type Durability bool

const (
	// Fast turns fsync off. A crash of the machine may lose committed data.
	Fast Durability = false
	// Durable leaves fsync on, as in production.
	Durable Durability = true
)

// Server is a private PostgreSQL server that listens on a socket in its own folder. Safe
// for concurrent use.
type Server struct {
	*embedded.Server
	dir string
}

// Start starts a server in a temporary folder. If this process dies, the server stops and
// removes the folder.
func Start(ctx context.Context, durability Durability) (*Server, error) {
	return start(ctx, durability, nil)
}

// start starts a server with additional settings.
func start(ctx context.Context, durability Durability, more map[string]string) (*Server, error) {
	dir, err := folder(durability)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{"max_connections": "200", "shared_buffers": "64MB", "max_wal_size": "2GB"}
	if durability == Fast {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}
	maps.Copy(settings, more)
	server, err := embedded.Start(ctx, dir, &embedded.Options{Temporary: true, Settings: settings})
	if errors.Is(err, healthlab.Unimplemented) {
		err = fmt.Errorf("%w: %w", errNoServer, err)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Server{server, dir}, nil
}

func folder(durability Durability) (string, error) {
	if durability == Durable {
		return os.MkdirTemp("", "pgtest")
	}
	return fastDir()
}

// Remove stops the server and deletes its data.
func (s *Server) Remove() {
	s.Crash()
	_ = os.RemoveAll(s.dir)
}

// Is reports whether node is the name by which a cluster knows this server.
func (s *Server) Is(node string) bool { return s.dir == node }

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
)

// EnvCitus is the environment variable that, if not empty, makes tests run on a Citus cluster instead of one server.
// The extension must be installed for the PostgreSQL server that runs the tests.
const EnvCitus = "TEST_CITUS"

// Spread reports whether tests run on a cluster, so that a migration must distribute its tables.
func Spread() bool { return os.Getenv(EnvCitus) != "" }

// Cluster is a coordinator with workers. Each is a server with a database postgres that has the extension citus. Safe
// for concurrent use, except [Cluster.Grow].
type Cluster struct {
	Coordinator *Server
	Workers     []*Server
	durability  Durability
}

// StartCluster starts a coordinator and some workers.
func StartCluster(ctx context.Context, durability Durability, workers int) (*Cluster, error) {
	c := &Cluster{durability: durability}
	var err error
	if c.Coordinator, err = startNode(ctx, durability); err != nil {
		return nil, err
	}
	if err = execute(ctx, c.URL(), "select citus_set_coordinator_host('"+c.Coordinator.dir+"', 5432)"); err != nil {
		c.Remove()
		return nil, err
	}
	for range workers {
		if err := c.Grow(ctx); err != nil {
			c.Remove()
			return nil, err
		}
	}
	return c, nil
}

// Grow adds a worker. Data is not moved to it until a rebalance.
func (c *Cluster) Grow(ctx context.Context) error {
	w, err := startNode(ctx, c.durability)
	if err != nil {
		return err
	}
	c.Workers = append(c.Workers, w)
	return execute(ctx, c.URL(), "select citus_add_node('"+w.dir+"', 5432)")
}

// URL is the address of the coordinator's database.
func (c *Cluster) URL() string { return c.Coordinator.URL("postgres") }

// Remove stops all servers and deletes their data.
func (c *Cluster) Remove() {
	c.Coordinator.Remove()
	for _, w := range c.Workers {
		w.Remove()
	}
}

// nodes returns the URLs of the database postgres on each server, the coordinator's first.
func (c *Cluster) nodes() []string {
	all := []string{c.URL()}
	for _, w := range c.Workers {
		all = append(all, w.URL("postgres"))
	}
	return all
}

// startNode starts a server whose database postgres has the extension citus.
func startNode(ctx context.Context, durability Durability) (*Server, error) {
	s, err := start(ctx, durability, map[string]string{
		"shared_preload_libraries": "citus", "max_prepared_transactions": "200", "max_worker_processes": "250",
		"wal_level": "logical", "max_replication_slots": "64", "max_wal_senders": "64",
		"citus.node_conninfo": "sslmode=disable", "citus.max_cached_conns_per_worker": "4", "citus.recover_2pc_interval": "2s",
		"citus.node_connection_timeout": "5s", "citus.defer_shard_delete_interval": "1s",
	})
	if err != nil {
		if errors.Is(err, healthlab.Unavailable) {
			err = fmt.Errorf("%w: a server with the library citus does not start: %w", errNoServer, err)
		}
		return nil, err
	}
	for _, sql := range []string{
		"create extension citus",
		"alter system set citus.local_hostname = '" + s.dir + "'", // the address at which the node connects to itself
		"select pg_reload_conf()",
	} {
		if err := execute(ctx, s.URL("postgres"), sql); err != nil {
			s.Remove()
			return nil, err
		}
	}
	return s, nil
}

// build creates a database on all nodes from a template, which must exist on all of them.
func (c *Cluster) build(ctx context.Context, name, template string) error {
	for _, node := range c.nodes() {
		if err := execute(ctx, node, "create database "+name+" template "+template); err != nil {
			return err
		}
	}
	return nil
}

// join makes one cluster of the databases with this name on all nodes, which must be empty.
func (c *Cluster) join(ctx context.Context, name string) error {
	var first string
	for i, node := range c.nodes() {
		address, err := database(node, name)
		if err != nil {
			return err
		}
		if err := execute(ctx, address, "create extension citus"); err != nil {
			return err
		}
		if i == 0 {
			first = address
		}
	}
	join := "select citus_set_coordinator_host('" + c.Coordinator.dir + "', 5432)"
	for _, w := range c.Workers {
		join += "; select citus_add_node('" + w.dir + "', 5432)"
	}
	return execute(ctx, first, join)
}

// freeze ends the sessions of a database on all nodes and allows no new ones, so that it can be a template.
func (c *Cluster) freeze(ctx context.Context, name string) error {
	for _, node := range c.nodes() {
		conn, err := pgx.Connect(ctx, node)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "alter database "+name+" allow_connections false")
		if err == nil {
			_, err = conn.Exec(ctx, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '"+name+"' and backend_type not like 'autovacuum%'")
		}
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// drop drops the databases with a name on all nodes.
func (c *Cluster) drop(ctx context.Context, name string) error {
	var all []error
	all = append(all, c.freeze(ctx, name)) // sessions of the extension's own processes do not end quickly by themselves
	for _, node := range c.nodes() {
		all = append(all, execute(ctx, node, "drop database if exists "+name+" with (force)"))
	}
	return errors.Join(all...)
}

func nameOf(statement string) (name, template string) {
	words := strings.Fields(statement)
	return words[2], words[4]
}

package postgres

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
)

// How long connections to a server that does not answer are waited for.
const (
	// dialTime is how long the server's machine may take to take a connection.
	dialTime = 2 * time.Second
	// startupTime is how long the server may take to begin a session. A server that was stopped
	// answers those that wait, as soon as it goes on; each new try costs it a process then.
	startupTime = 2 * time.Minute
	// aliveAfter is after how much silence the machine of the server is asked whether it is there,
	// every aliveEvery. After aliveTries of them, or after lostTime without a receipt of what was
	// sent, the connection is closed.
	aliveAfter, aliveEvery, aliveTries = 5 * time.Second, time.Second, 3
	lostTime                           = 8 * time.Second
)

// statementCapacity is how many prepared statements a connection keeps. All tables of a service have
// more statements in use than the 512 that pgx keeps by default.
const statementCapacity = 1024

// PoolConfig reads an address (a URL, or keywords and values) and returns the settings of a pool
// that notices a server that is gone: 2 seconds to connect, TCP keep-alives, and on Linux a limit
// for data without a receipt. A connection keeps 1024 prepared statements, enough for all tables of
// a service. The address may set connect_timeout, statement_cache_capacity and the pool_ settings
// of pgxpool. Invalid if it is not an address; the error does not quote it.
func PoolConfig(address string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("%w: not an address of PostgreSQL", healthlab.Invalid)
	}
	dialer := &net.Dialer{
		Timeout: dialTime, Control: limitUnreceived,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: aliveAfter, Interval: aliveEvery, Count: aliveTries},
	}
	if at := &config.ConnConfig.ConnectTimeout; *at == 0 {
		*at = startupTime
	} else {
		dialer.Timeout = min(dialTime, *at)
	}
	config.ConnConfig.DialFunc = dialer.DialContext
	if !strings.Contains(address, "statement_cache_capacity") {
		config.ConnConfig.StatementCacheCapacity = statementCapacity
	}
	return config, nil
}

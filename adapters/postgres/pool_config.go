package postgres

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
)

// Time limits for a server that does not answer.
const (
	// dialTime is the longest time to open a TCP connection.
	dialTime = 2 * time.Second
	// startupTime is the longest time for the server to begin a session. It is long, because a suspended server answers
	// all waiting clients when it resumes, and would start a process for each try that a client gave up before.
	startupTime = 2 * time.Minute
	// aliveAfter is the silence after which TCP keepalives are sent every aliveEvery. The connection is closed after
	// aliveTries of them, or if sent data is not acknowledged for lostTime.
	aliveAfter, aliveEvery, aliveTries = 5 * time.Second, time.Second, 3
	lostTime                           = 8 * time.Second
)

// statementCapacity is the number of prepared statements per connection. A service uses more than the default 512 of
// pgx.
const statementCapacity = 1024

// PoolConfig parses an address (a URL, or keywords and values) and returns the settings of a pool that detects a
// dead server: 2 seconds to connect, TCP keep-alives, and on Linux a limit for data that the server does not
// acknowledge. A connection keeps 1024 prepared statements, enough for all tables of a service. The address may set
// connect_timeout, statement_cache_capacity and the pool_ settings of pgxpool. It returns Invalid, without quoting
// the address, if the address cannot be parsed.
func PoolConfig(address string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("%w: address: must be a postgres:// URL, or keywords and values such as host=localhost dbname=healthlab", healthlab.Invalid)
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

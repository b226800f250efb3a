// Package httpserver serves a handler to callers that may be slow, idle or hostile.
//
// It is for programs that accept connections from the internet without a proxy that limits them. [New] makes a
// [Server] of a handler and [Options]; [Server.Serve] accepts connections, and [Server.Shutdown] ends them. Four
// separate limits of time apply: for the header, for the body, between requests and for the answer. The number of
// connections is limited for each address and in total, below the limit of file handles of the process. At a limit,
// a new connection replaces the one that has waited longest for its caller.
//
// [LimitBodies] limits the time of bodies for a handler that another server serves.
//
// The package is no router and no proxy, and it does not limit the rate of requests.
package httpserver

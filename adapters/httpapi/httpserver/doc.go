// Package httpserver serves a handler to callers that may be slow, idle or hostile.
//
// It is for programs that accept connections from the internet without a proxy that limits
// them. [New] makes a [Server] of a handler and [Options]; [Server.Serve] accepts connections,
// and [Server.Shutdown] ends them. Four limits of time hold apart from each other: for the
// header, for the body, between requests and for the answer. Connections are bounded in total,
// below the limit of file handles of the process, and for each address. Where a bound is
// reached, a new connection takes the place of the one that has waited longest for its caller.
//
// A handler that another server serves gets the limits of bodies from [LimitBodies].
//
// The package is no router and no proxy, and it limits no rate of requests.
package httpserver

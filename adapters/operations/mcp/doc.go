// Package mcp lets assistants ask about a team's people over the Model Context Protocol: numbers that the
// engine has computed, with their unit, window, sources and rule, and no rows to add up.
//
//	assistant, err := mcp.New(mcp.Services{Health: health, Aggregate: questions, Orders: orders, Labs: history, Access: log}, mcp.Options{Authenticate: whose})
//	mux.Handle("/mcp", assistant.Handler())
//
// The tools are ask, coverage, labs, orders and explain. All of them read, and none changes anything.
//
// Who calls decides what is answered: a Caller's team, its user where it is bound to one, and its scopes
// (data:read, orders:read and reports:read). Data of a source whose consent is withdrawn is left out, and the answer says
// so. Each call is a line of the access log, with the name that the client gives itself. Texts that people
// and laboratories wrote come as data, marked as such: they are never part of a tool's description or of an
// instruction.
//
// "No data" is an answer of its own (no_data), never the number 0.
//
// A Server is safe for concurrent use.
package mcp

// Package mcp lets assistants ask about a team's people over the Model Context Protocol. Answers are numbers that
// the engine has computed, with their unit, window, sources and rule, and no rows that the assistant would have to
// add up.
//
//	assistant, err := mcp.New(mcp.Services{Health: health, Aggregate: questions, Orders: orders, Labs: history, Access: log},
//		mcp.Options{Authenticate: whose})
//	mux.Handle("/mcp", assistant.Handler())
//
// The tools are ask, coverage, labs, orders and explain. All of them only read.
//
// A Caller sees only its team, one user if it is bound to one, and what its scopes allow (data:read, orders:read and
// reports:read). Data of a source whose consent is withdrawn is left out, and the answer says so. Each call is an
// entry of the access log, with the name that the client gives itself. Texts by people and laboratories are returned
// as data and marked as such. They are never part of a tool's description or of an instruction.
//
// "No data" is an answer of its own (no_data), never the number 0.
//
// A Server is safe for concurrent use.
package mcp

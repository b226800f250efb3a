package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// Serve replaces what the server serves: authentication, sessions and transport stay.
func (v *Server) Serve(protocol *sdk.Server) { v.mcp = protocol }

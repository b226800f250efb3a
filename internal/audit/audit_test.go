package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBehind_listsOutdatedModules(t *testing.T) {
	modules, err := direct(strings.NewReader(`
		{"Path": "example.com/us", "Main": true}
		{"Path": "example.com/newest", "Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}
		{"Path": "example.com/late", "Version": "v1.0.0", "Time": "2025-01-01T00:00:00Z", "Update": {"Version": "v1.1.0", "Time": "2026-01-02T00:00:00Z"}}
		{"Path": "example.com/near", "Version": "v1.0.0", "Time": "2025-01-01T00:00:00Z", "Update": {"Version": "v1.1.0", "Time": "2025-12-31T00:00:00Z"}}
		{"Path": "example.com/indirect", "Version": "v1.0.0", "Time": "2015-01-01T00:00:00Z", "Indirect": true, "Update": {"Version": "v2.0.0", "Time": "2026-01-02T00:00:00Z"}}
		{"Path": "example.com/down", "Version": "v1.0.0", "Error": {"Err": "no answer"}}`))
	require.NoError(t, err)
	require.Len(t, modules, 4)
	late, unknown := behind(modules)
	require.Equal(t, []string{"example.com/late v1.0.0 of 2025-01-01; the newest is v1.1.0 of 2026-01-02"}, late)
	require.Equal(t, []string{"example.com/down"}, unknown)
	_, err = direct(strings.NewReader("{"))
	require.Error(t, err)
}

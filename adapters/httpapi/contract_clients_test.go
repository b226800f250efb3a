package httpapi_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/aggregate"
)

var generateClients = flag.Bool("clients", false, "generate Go clients; fetches the generators")

// The contract has no form that generators of Go clients refuse.
func TestContract_hasNoFormThatClientGeneratorsRefuse(t *testing.T) {
	found, err := contract.GeneratorFaults(httpapi.OpenAPI())
	require.NoError(t, err)
	require.Empty(t, found)
}

// The generators make clients of the contract, and what they make compiles.
func TestContract_generatedGoClientsCompile(t *testing.T) {
	if !*generateClients {
		t.Skip("needs the network: make clients")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), httpapi.OpenAPI(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module clients\n\ngo 1.25\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "oapi"), 0o700))
	for _, args := range []string{
		"run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -generate types,client -package oapi -o oapi/client.go openapi.json",
		"run github.com/ogen-go/ogen/cmd/ogen@v1.24.0 -target ogen -package ogen --clean openapi.json",
		"mod tidy",
		"vet ./...",
	} {
		c := exec.CommandContext(t.Context(), "go", strings.Fields(args)...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "go %s: %s", args, out)
	}
}

// A column of a query is of one of the tables that queries can name.
func TestContract_listsEveryTableOfQueries(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas struct {
				AggregateTableColumn struct{ Properties map[string]any }
			}
		}
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	var want []string
	for _, table := range aggregate.Describe().Tables {
		want = append(append(want, table.Name), table.Aliases...)
	}
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(doc.Components.Schemas.AggregateTableColumn.Properties)))
}

// Every operation has a summary and a description, which generators make doc comments of.
func TestContract_everyOperationHasSummaryAndDescription(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct{ Summary, Description string }
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	for path, item := range doc.Paths {
		for method, op := range item {
			require.NotEmpty(t, op.Summary, "%s %s", method, path)
			require.NotEmpty(t, op.Description, "%s %s", method, path)
		}
	}
}

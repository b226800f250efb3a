package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table in the repository is what the generator writes.
func TestGeneratedTable_isUpToDate(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "data", "ucum-essence.xml"))
	require.NoError(t, err)
	want, err := generate(doc)
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join("..", "table_gen.go"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run go generate ./ucum")
}

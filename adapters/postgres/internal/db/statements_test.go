package db

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants.
var statements = map[string]string{
	"insertTeam": insertTeam, "lockTeam": lockTeam, "readClock": readClock,
	"setTeam": setTeam, "setSteady": setSteady,
}

// Every statement fits the schema that the migrations make.
func TestStatements(t *testing.T) {
	t.Parallel()
	pgtest.PrepareStatements(t, statements)
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	pgtest.CheckListed(t, statements)
}

package userstore

import (
	"fmt"
	"maps"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants, but those of
// userLists.
var statements = map[string]string{
	"countUsers": countUsers, "countConnections": countConnections,
	"insertUser": insertUser, "updateUser": updateUser, "deleteConnections": deleteConnections, "insertConnection": insertConnection,
	"insertName": insertName, "deleteName": deleteName, "countNames": countNames, "selectHolder": selectHolder, "selectUser": selectUser,
	"lockUser": lockUser, "claimErasures": claimErasures, "lockForErase": lockForErase,
}

// Every statement fits the schema that the migrations make.
func TestStatements(t *testing.T) {
	t.Parallel()
	all := maps.Clone(statements)
	for l, sql := range userLists {
		all[fmt.Sprintf("count of %+v", l)], all[fmt.Sprintf("page of %+v", l)] = sql.count, sql.page
	}
	pgtest.PrepareStatements(t, all)
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	pgtest.CheckListed(t, statements)
}

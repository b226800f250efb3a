package postgres

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are all statements by the name of their constant, but those of lists of
// users and of erasing, which come from tables.
var statements = map[string]string{
	"setTeam": setTeam, "setSteady": setSteady, "selectMigration": selectMigration, "insertMigration": insertMigration, "countMigrations": countMigrations, "selectBacklog": selectBacklog,
	"selectNames": selectNames, "drawSeq": drawSeq, "insertEvents": insertEvents, "insertPending": insertPending,
	"selectMessage": selectMessage,
	"insertUser":    insertUser, "updateUser": updateUser, "deleteConnections": deleteConnections, "insertConnection": insertConnection,
	"insertTeam": insertTeam, "lockTeam": lockTeam, "insertName": insertName, "deleteName": deleteName, "countNames": countNames,
	"selectHolder": selectHolder, "selectUser": selectUser, "lockUser": lockUser, "claimErasures": claimErasures,
	"lockForErase": lockForErase, "selectVisibleJob": selectVisibleJob, "selectVisibleResult": selectVisibleResult,
	"selectOrdersOfUser": selectOrdersOfUser, "hideOrdersOfUser": hideOrdersOfUser, "lockJobsOfUser": lockJobsOfUser, "dropAnswersOfUser": dropAnswersOfUser,
	"countUsers": countUsers, "countConnections": countConnections,
	"lockLiveUser": lockLiveUser, "selectDigests": selectDigests, "putRecords": putRecords, "findRecords": findRecords, "selectLiveOf": selectLiveOf,
	"selectRecords":  selectRecords,
	"selectLiveUser": selectLiveUser, "selectSeries": selectSeries, "selectHeaders": selectHeaders, "selectSegments": selectSegments,
	"selectNumber": selectNumber, "selectChunks": selectChunks,
	"growTail": growTail, "growTails": growTails, "appendPiece": appendPiece, "appendPieces": appendPieces, "appendBody": appendBody, "selectLiveName": selectLiveName,
	"selectLiveNames": selectLiveNames, "lockSeries": lockSeries, "loadSegments": loadSegments, "loadChunks": loadChunks,
	"lockUsers": lockUsers, "createSeries": createSeries,
	"dropSegments": dropSegments, "dropChunks": dropChunks, "putChunk": putChunk, "putSegments": putSegments,
	"selectCitus": selectCitus, "updateSeries": updateSeries, "recallDirect": recallDirect, "selectUsersOfTeam": selectUsersOfTeam, "selectAwaited": selectAwaited, "setDirect": setDirect, "selectFolds": selectFolds, "selectFoldLag": selectFoldLag, "claimFolds": claimFolds, "selectNumbered": selectNumbered, "lockNumbered": lockNumbered,
}

// Every statement fits the schema that the migrations make.
func TestStatements(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	for name, sql := range statements {
		all[name] = sql
	}
	for l, sql := range userLists {
		all[fmt.Sprintf("count of %+v", l)], all[fmt.Sprintf("page of %+v", l)] = sql.count, sql.page
	}
	for i, sql := range eraseUser {
		all[fmt.Sprintf("eraseUser %d", i)] = sql
	}
	for i, sql := range eraseMessages {
		all[fmt.Sprintf("eraseMessages %d", i)] = sql
	}
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	for name, sql := range all {
		_, err := conn.Prepare(t.Context(), name, sql)
		require.NoError(t, err, name)
	}
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") || e.Name() == "personkeys.go" { // another schema
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if isStatement(spec.Values[0]) && spec.Names[0].Name != "grow" && spec.Names[0].Name != "appendTo" { // the beginning of several
				require.Contains(t, statements, spec.Names[0].Name, e.Name())
			}
			return true
		})
	}
}

// isStatement reports whether an expression is a text that begins as a statement does.
func isStatement(e ast.Expr) bool {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		if name, ok := sum.X.(*ast.Ident); ok {
			return statements[name.Name] != ""
		}
		return isStatement(sum.X)
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimSpace(strings.Trim(lit.Value, "`\"")), " ")
	switch first {
	case "select", "insert", "update", "delete", "with":
		return true
	}
	return false
}

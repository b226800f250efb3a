package linkstore

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants.
var statements = map[string]string{
	"lockUserForApp": lockUserForApp, "insertApp": insertApp, "selectApp": selectApp, "lockApp": lockApp, "updateApp": updateApp,
	"deleteApps": deleteApps, "pruneApps": pruneApps,
	"selectHeldConnections": selectHeldConnections,
	"lockUserOfItem":        lockUserOfItem, "lockItem": lockItem, "selectUserOfItem": selectUserOfItem, "itemAccountTaken": itemAccountTaken,
	"settleItem": settleItem,
	"insertOp":   insertOp, "insertItems": insertItems, "selectOp": selectOp, "lockOp": lockOp, "updateOp": updateOp, "setRunning": setRunning,
	"claimOps": claimOps, "selectItems": selectItems, "dropGrants": dropGrants, "pruneOps": pruneOps, "selectOps": selectOps,
	"selectClients": selectClients, "selectClient": selectClient, "retireClients": retireClients, "putClient": putClient,
	"proveClient": proveClient, "forgetClients": forgetClients, "eraseClients": eraseClients,
	"insertTries": insertTries, "shareTries": shareTries, "lockTries": lockTries, "updateTries": updateTries,
	"dropExpiredCode": dropExpiredCode, "insertCode": insertCode, "selectCode": selectCode, "selectOpenCode": selectOpenCode,
	"useCode": useCode, "pruneCodes": pruneCodes, "selectGuesser": selectGuesser, "putGuesser": putGuesser, "deleteGuesser": deleteGuesser,
	"pruneGuessers": pruneGuessers,
	"putCredential": putCredential, "selectCredential": selectCredential, "takeCredential": takeCredential,
	"insertSession": insertSession, "selectSession": selectSession, "lockSession": lockSession, "updateSession": updateSession,
	"pruneSessions": pruneSessions, "lockUserOfSession": lockUserOfSession, "selectUserOfSession": selectUserOfSession,
	"hasAccount": hasAccount,
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

package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"insertSession": insertSession, "selectSession": selectSession, "lockSession": lockSession, "updateSession": updateSession,
		"pruneSessions": pruneSessions, "lockUserOfSession": lockUserOfSession, "selectUserOfSession": selectUserOfSession,
		"hasAccount": hasAccount, "putCredential": putCredential, "selectCredential": selectCredential, "takeCredential": takeCredential,
		"insertTries": insertTries, "shareTries": shareTries, "lockTries": lockTries, "updateTries": updateTries,
		"dropExpiredCode": dropExpiredCode, "insertCode": insertCode, "selectCode": selectCode, "selectOpenCode": selectOpenCode, "useCode": useCode, "pruneCodes": pruneCodes,
		"selectGuesser": selectGuesser, "putGuesser": putGuesser, "deleteGuesser": deleteGuesser, "pruneGuessers": pruneGuessers,
		"removeRecords": removeRecords, "selectHeldConnections": selectHeldConnections,
		"insertOp": insertOp, "insertItems": insertItems, "selectOp": selectOp, "lockOp": lockOp, "updateOp": updateOp, "setRunning": setRunning,
		"claimOps": claimOps, "selectItems": selectItems, "selectOps": selectOps, "pruneOps": pruneOps,
		"dropGrants": dropGrants, "lockUserOfItem": lockUserOfItem, "lockItem": lockItem, "selectUserOfItem": selectUserOfItem,
		"itemAccountTaken": itemAccountTaken, "settleItem": settleItem,
		"insertApp": insertApp, "lockUserForApp": lockUserForApp, "selectApp": selectApp, "lockApp": lockApp, "updateApp": updateApp, "deleteApps": deleteApps, "pruneApps": pruneApps,
		"selectClients": selectClients, "selectClient": selectClient, "retireClients": retireClients, "putClient": putClient, "proveClient": proveClient,
		"forgetClients": forgetClients, "eraseClients": eraseClients,
	})
}

package postgres

import (
	"fmt"
	"maps"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants, but those of
// eraseUser, orderPages.
var statements = map[string]string{
	"insertAccessHead": insertAccessHead, "lockAccessHead": lockAccessHead, "updateAccessHead": updateAccessHead,
	"insertAccessLines": insertAccessLines, "selectAccessLines": selectAccessLines, "selectAccessLinesOf": selectAccessLinesOf,
	"selectUnanchored": selectUnanchored, "insertAccessAnchor": insertAccessAnchor, "selectAccessHead": selectAccessHead,
	"selectAccessAnchors": selectAccessAnchors, "pruneAccessLines": pruneAccessLines, "pruneAccessAnchors": pruneAccessAnchors,
	"selectHeldConnections": selectHeldConnections,
	"lockUserOfItem":        lockUserOfItem, "lockItem": lockItem, "selectUserOfItem": selectUserOfItem, "itemAccountTaken": itemAccountTaken,
	"settleItem": settleItem,
	"insertOp":   insertOp, "insertItems": insertItems, "selectOp": selectOp, "lockOp": lockOp, "updateOp": updateOp, "setRunning": setRunning,
	"claimOps": claimOps, "selectItems": selectItems, "dropGrants": dropGrants, "pruneOps": pruneOps, "selectOps": selectOps,
	"centersNear": centersNear, "centersAt": centersAt, "nextCenters": nextCenters, "deleteCenters": deleteCenters, "keepCenter": keepCenter,
	"insertQuery": insertQuery, "updateQuery": updateQuery, "selectQuery": selectQuery, "lockQuery": lockQuery, "findQuery": findQuery,
	"listQueries": listQueries, "selectContinuousResult": selectContinuousResult, "selectWaiting": selectWaiting,
	"selectHistory": selectHistory,
	"touchTasks":    touchTasks, "lockBackfill": lockBackfill, "selectForBackfill": selectForBackfill, "lockForBackfill": lockForBackfill,
	"backfillTasks": backfillTasks, "moveBackfill": moveBackfill, "claimContinuousTasks": claimContinuousTasks, "finishTask": finishTask,
	"putResult": putResult, "trimHistory": trimHistory,
	"removeRecords": removeRecords,
	"selectCitus":   selectCitus,
	"selectFolds":   selectFolds, "selectFoldLag": selectFoldLag, "claimFolds": claimFolds, "selectNumbered": selectNumbered,
	"lockNumbered":    lockNumbered,
	"insertLabRecord": insertLabRecord, "selectLabRecords": selectLabRecords, "updateLabRecord": updateLabRecord,
	"lockLabJournal": lockLabJournal, "advanceLabJournal": advanceLabJournal, "hasLabDelivery": hasLabDelivery,
	"insertLabDelivery": insertLabDelivery, "settleLabDelivery": settleLabDelivery, "insertLabMessage": insertLabMessage,
	"forgetLabMessages": forgetLabMessages, "selectLabFeed": selectLabFeed, "labDeliveryColumns": labDeliveryColumns,
	"selectLabDeliveries": selectLabDeliveries, "selectLabReview": selectLabReview, "deleteLabRecordsOfUser": deleteLabRecordsOfUser,
	"deleteLabDeliveriesOfUser": deleteLabDeliveriesOfUser, "deleteLabMessagesOfUser": deleteLabMessagesOfUser,
	"countJobs": countJobs, "insertJob": insertJob, "selectJob": selectJob, "selectVisibleJob": selectVisibleJob, "lockJob": lockJob,
	"updateJob": updateJob, "deleteJob": deleteJob, "listJobs": listJobs, "claimJobs": claimJobs, "deleteJobsOfUser": deleteJobsOfUser,
	"emptyJobsOfUser": emptyJobsOfUser,
	"insertSession":   insertSession, "selectSession": selectSession, "lockSession": lockSession, "updateSession": updateSession,
	"pruneSessions": pruneSessions, "lockUserOfSession": lockUserOfSession, "selectUserOfSession": selectUserOfSession,
	"hasAccount":     hasAccount,
	"lockUserForApp": lockUserForApp, "insertApp": insertApp, "selectApp": selectApp, "lockApp": lockApp, "updateApp": updateApp,
	"deleteApps": deleteApps, "pruneApps": pruneApps,
	"selectClients": selectClients, "selectClient": selectClient, "retireClients": retireClients, "putClient": putClient,
	"proveClient": proveClient, "forgetClients": forgetClients, "eraseClients": eraseClients,
	"insertTries": insertTries, "shareTries": shareTries, "lockTries": lockTries, "updateTries": updateTries,
	"dropExpiredCode": dropExpiredCode, "insertCode": insertCode, "selectCode": selectCode, "selectOpenCode": selectOpenCode,
	"useCode": useCode, "pruneCodes": pruneCodes, "selectGuesser": selectGuesser, "putGuesser": putGuesser, "deleteGuesser": deleteGuesser,
	"pruneGuessers": pruneGuessers,
	"putCredential": putCredential, "selectCredential": selectCredential, "takeCredential": takeCredential,
	"selectMigration": selectMigration, "countMigrations": countMigrations, "insertMigration": insertMigration,
	"selectOrder": selectOrder, "selectSample": selectSample, "lockOrder": lockOrder, "drawForNew": drawForNew, "drawForOrder": drawForOrder,
	"shareUserOfOrder": shareUserOfOrder, "hasOrder": hasOrder, "selectOrdersOfUser": selectOrdersOfUser, "claimOrders": claimOrders,
	"claimNotifications": claimNotifications, "claimFeed": claimFeed, "moveFeed": moveFeed,
	"lockOrdersOfUser": lockOrdersOfUser, "deleteKeysOfUser": deleteKeysOfUser, "dropAnswersOfUser": dropAnswersOfUser,
	"hideOrdersOfUser": hideOrdersOfUser, "lockJobsOfUser": lockJobsOfUser, "deleteTransactionsOfUser": deleteTransactionsOfUser,
	"deleteInfoOfUser": deleteInfoOfUser, "deleteInsuranceOfUser": deleteInsuranceOfUser, "deleteResultsOfUser": deleteResultsOfUser,
	"deleteSearchOfUser": deleteSearchOfUser, "deleteOrdersOfUser": deleteOrdersOfUser,
	"insertKey": insertKey, "lockKey": lockKey, "startKey": startKey, "finishKey": finishKey, "pruneKeys": pruneKeys,
	"insertLabTest": insertLabTest, "updateLabTest": updateLabTest, "selectLabTests": selectLabTests, "listLabTests": listLabTests,
	"listLabTestsOfKind": listLabTestsOfKind, "findLabTests": findLabTests, "lockLabTest": lockLabTest,
	"planLists": planLists, "countOrders": countOrders, "countOrdersByStatus": countOrdersByStatus, "selectNamesOfOrders": selectNamesOfOrders,
	"selectOrders": selectOrders,
	"insertOrder":  insertOrder, "updateOrder": updateOrder,
	"releaseHolds": releaseHolds, "takeHolds": takeHolds, "selectHeld": selectHeld, "deleteHoldsOfUser": deleteHoldsOfUser,
	"claimVisits": claimVisits, "keepSlots": keepSlots, "selectSlots": selectSlots,
	"holdOrg": holdOrg, "insertOrgTeam": insertOrgTeam, "selectOrgTeam": selectOrgTeam, "lockOrgTeam": lockOrgTeam,
	"selectIntegration": selectIntegration, "selectOrgTeams": selectOrgTeams, "updateOrgTeam": updateOrgTeam, "countLiveUsers": countLiveUsers,
	"deleteOrgTeam": deleteOrgTeam, "deleteTeamKeys": deleteTeamKeys, "deleteChoices": deleteChoices, "deleteClients": deleteClients,
	"countTeamKeys": countTeamKeys, "insertTeamKey": insertTeamKey, "expireTeamKey": expireTeamKey, "touchTeamKey": touchTeamKey,
	"selectTeamKeys": selectTeamKeys, "selectTeamKey": selectTeamKey, "selectTeamKeyBySum": selectTeamKeyBySum, "deleteTeamKey": deleteTeamKey,
	"lockExportUser": lockExportUser, "countExports": countExports, "insertExport": insertExport, "selectExport": selectExport,
	"lockExport": lockExport, "updateExport": updateExport, "selectExportsOfUser": selectExportsOfUser, "claimExports": claimExports,
	"deleteExport": deleteExport, "deleteExportsOfUser": deleteExportsOfUser, "emptyExportsOfUser": emptyExportsOfUser,
	"putInfo": putInfo, "selectInfo": selectInfo, "lockInfo": lockInfo, "hasCoverage": hasCoverage, "endCoverage": endCoverage,
	"insertCoverage": insertCoverage, "coverageColumns": coverageColumns, "selectCoverage": selectCoverage,
	"selectCoverageAt": selectCoverageAt, "insertPayor": insertPayor, "selectPayors": selectPayors,
	"selectPriorities": selectPriorities, "startPriorities": startPriorities, "lockPriorities": lockPriorities,
	"updatePriorities": updatePriorities, "rescheduleQueries": rescheduleQueries,
	"claimConnections": claimConnections, "setConnectionDue": setConnectionDue, "queueTasks": queueTasks, "claimTasks": claimTasks,
	"selectTasks": selectTasks, "lockTask": lockTask, "deleteTasks": deleteTasks, "putTask": putTask, "updateTask": updateTask,
	"insertNotice": insertNotice, "forgetNotices": forgetNotices, "lockAnnounced": lockAnnounced, "selectPeople": selectPeople,
	"selectTheirProviders": selectTheirProviders, "selectTheirTasks": selectTheirTasks, "selectTheirRefused": selectTheirRefused,
	"shareLiveUser": shareLiveUser, "insertBudget": insertBudget, "lockBudget": lockBudget, "updateBudget": updateBudget,
	"putRefused": putRefused, "dropRefused": dropRefused, "selectRefused": selectRefused,
	"lockLiveUser": lockLiveUser, "selectDigests": selectDigests, "putRecords": putRecords, "findRecords": findRecords,
	"selectLiveOf": selectLiveOf, "selectRecords": selectRecords,
	"insertResult": insertResult, "shareUserOfResult": shareUserOfResult, "updateResult": updateResult, "selectResult": selectResult,
	"selectVisibleResult": selectVisibleResult, "lockResult": lockResult, "countResults": countResults, "selectResults": selectResults,
	"startMatchTestRun": startMatchTestRun, "trialColumns": trialColumns, "selectMatchTestRunByKey": selectMatchTestRunByKey,
	"selectMatchTestRun": selectMatchTestRun, "lockMatchTestRun": lockMatchTestRun, "updateMatchTestRun": updateMatchTestRun,
	"claimResultMatchTestRuns": claimResultMatchTestRuns,
	"addSeen":                  addSeen, "lockSeen": lockSeen, "updateSeen": updateSeen, "releaseSeen": releaseSeen, "forgetSeen": forgetSeen,
	"growTails": growTails, "appendPieces": appendPieces, "growTail": growTail, "appendPiece": appendPiece,
	"recallDirect": recallDirect, "selectUsersOfTeam": selectUsersOfTeam, "setDirect": setDirect, "selectAwaited": selectAwaited,
	"lockSeries": lockSeries, "loadSegments": loadSegments, "loadChunks": loadChunks, "lockUsers": lockUsers, "createSeries": createSeries,
	"appendBody": appendBody, "selectLiveName": selectLiveName,
	"dropSegments": dropSegments, "dropChunks": dropChunks, "putChunk": putChunk, "putSegments": putSegments, "updateSeries": updateSeries,
	"selectChoices": selectChoices, "startChoices": startChoices, "lockChoices": lockChoices, "updateChoices": updateChoices,
	"selectLiveUser": selectLiveUser, "selectSeries": selectSeries, "selectHeaders": selectHeaders, "selectSegments": selectSegments,
	"selectNumber": selectNumber, "selectChunks": selectChunks,
}

// Every statement fits the schema that the migrations make.
func TestStatements(t *testing.T) {
	t.Parallel()
	all := maps.Clone(statements)
	for i, sql := range eraseUser {
		all[fmt.Sprintf("eraseUser %d", i)] = sql
	}
	for by, sql := range orderPages {
		all[fmt.Sprintf("page by %+v", by)] = sql
	}
	pgtest.PrepareStatements(t, all)
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	// The schema of keys is another one; grow and appendTo are the beginnings of several.
	pgtest.CheckListed(t, statements, "personkeys.go", "grow", "appendTo")
}

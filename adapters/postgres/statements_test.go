package postgres

import (
	"fmt"
	"maps"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants, but those of
// eraseUser.
var statements = map[string]string{
	"insertAccessHead": insertAccessHead, "lockAccessHead": lockAccessHead, "updateAccessHead": updateAccessHead,
	"insertAccessLines": insertAccessLines, "selectAccessLines": selectAccessLines, "selectAccessLinesOf": selectAccessLinesOf,
	"selectUnanchored": selectUnanchored, "insertAccessAnchor": insertAccessAnchor, "selectAccessHead": selectAccessHead,
	"selectAccessAnchors": selectAccessAnchors, "selectAccessHeads": selectAccessHeads, "selectAccessHeadOf": selectAccessHeadOf, "pruneAccessLines": pruneAccessLines, "pruneAccessAnchors": pruneAccessAnchors,
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
	"lockNumbered": lockNumbered,
	"countJobs":    countJobs, "insertJob": insertJob, "selectJob": selectJob, "selectVisibleJob": selectVisibleJob, "lockJob": lockJob,
	"updateJob": updateJob, "deleteJob": deleteJob, "listJobs": listJobs, "claimJobs": claimJobs, "deleteJobsOfUser": deleteJobsOfUser,
	"emptyJobsOfUser": emptyJobsOfUser, "lockJobsOfUser": lockJobsOfUser,
	"selectMigration": selectMigration, "countMigrations": countMigrations, "insertMigration": insertMigration,
	"holdOrg": holdOrg, "insertOrgTeam": insertOrgTeam, "selectOrgTeam": selectOrgTeam, "lockOrgTeam": lockOrgTeam,
	"selectIntegration": selectIntegration, "selectOrgTeams": selectOrgTeams, "updateOrgTeam": updateOrgTeam, "countLiveUsers": countLiveUsers,
	"deleteOrgTeam": deleteOrgTeam, "deleteTeamKeys": deleteTeamKeys, "deleteChoices": deleteChoices, "deleteClients": deleteClients,
	"countTeamKeys": countTeamKeys, "insertTeamKey": insertTeamKey, "expireTeamKey": expireTeamKey, "touchTeamKey": touchTeamKey,
	"selectTeamKeys": selectTeamKeys, "selectTeamKey": selectTeamKey, "selectTeamKeyBySum": selectTeamKeyBySum, "deleteTeamKey": deleteTeamKey,
	"lockExportUser": lockExportUser, "countExports": countExports, "insertExport": insertExport, "selectExport": selectExport,
	"lockExport": lockExport, "updateExport": updateExport, "selectExportsOfUser": selectExportsOfUser, "claimExports": claimExports,
	"deleteExport": deleteExport, "deleteExportsOfUser": deleteExportsOfUser, "emptyExportsOfUser": emptyExportsOfUser,
	"selectPriorities": selectPriorities, "startPriorities": startPriorities, "lockPriorities": lockPriorities,
	"updatePriorities": updatePriorities, "rescheduleQueries": rescheduleQueries,
	"claimConnections": claimConnections, "setConnectionDue": setConnectionDue, "queueTasks": queueTasks, "claimTasks": claimTasks,
	"selectTasks": selectTasks, "lockTask": lockTask, "deleteTasks": deleteTasks, "putTask": putTask, "updateTask": updateTask,
	"insertNotice": insertNotice, "forgetNotices": forgetNotices, "lockAnnounced": lockAnnounced, "selectPeople": selectPeople,
	"selectTheirProviders": selectTheirProviders, "selectTheirTasks": selectTheirTasks, "selectTheirRefused": selectTheirRefused,
	"shareLiveUser": shareLiveUser, "insertBudget": insertBudget, "lockBudget": lockBudget, "updateBudget": updateBudget,
	"putRefused": putRefused, "dropRefused": dropRefused, "selectRefused": selectRefused,
	"keepPlans": keepPlans, "lockLiveUser": lockLiveUser, "selectDigests": selectDigests, "putRecords": putRecords, "findRecords": findRecords,
	"selectLiveOf": selectLiveOf, "selectRecords": selectRecords,
	"addSeen": addSeen, "lockSeen": lockSeen, "updateSeen": updateSeen, "releaseSeen": releaseSeen, "forgetSeen": forgetSeen,
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
	pgtest.PrepareStatements(t, all)
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	// The schema of keys is another one; grow and appendTo are the beginnings of several.
	pgtest.CheckListed(t, statements, "personkeys.go", "grow", "appendTo")
}

package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"insertQuery": insertQuery, "updateQuery": updateQuery, "selectQuery": selectQuery, "lockQuery": lockQuery,
		"findQuery": findQuery, "listQueries": listQueries, "selectResult": selectResult, "selectWaiting": selectWaiting,
		"selectHistory": selectHistory, "touchTasks": touchTasks, "lockBackfill": lockBackfill, "backfillTasks": backfillTasks,
		"moveBackfill": moveBackfill, "claimTasks": claimTasks, "finishTask": finishTask, "putResult": putResult, "trimHistory": trimHistory,
	})
}

package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"insertQuery": insertQuery, "updateQuery": updateQuery, "selectQuery": selectQuery, "lockQuery": lockQuery,
		"findQuery": findQuery, "listQueries": listQueries, "selectContinuousResult": selectContinuousResult, "selectWaiting": selectWaiting,
		"selectHistory": selectHistory, "touchTasks": touchTasks, "lockBackfill": lockBackfill, "selectForBackfill": selectForBackfill, "lockForBackfill": lockForBackfill, "backfillTasks": backfillTasks,
		"moveBackfill": moveBackfill, "claimContinuousTasks": claimContinuousTasks, "finishTask": finishTask, "putResult": putResult, "trimHistory": trimHistory,
		"selectPriorities": selectPriorities, "startPriorities": startPriorities, "lockPriorities": lockPriorities,
		"updatePriorities": updatePriorities, "rescheduleQueries": rescheduleQueries,
	})
}

package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"claimConnections": claimConnections, "setConnectionDue": setConnectionDue, "queueTasks": queueTasks, "claimTasks": claimTasks,
		"selectTasks": selectTasks, "lockTask": lockTask, "deleteTasks": deleteTasks, "putTask": putTask, "updateTask": updateTask,
		"shareLiveUser": shareLiveUser, "insertBudget": insertBudget, "lockBudget": lockBudget, "updateBudget": updateBudget, "putRefused": putRefused, "selectRefused": selectRefused, "dropRefused": dropRefused,
		"insertNotice": insertNotice, "forgetNotices": forgetNotices, "lockAnnounced": lockAnnounced, "selectPeople": selectPeople,
		"selectTheirProviders": selectTheirProviders, "selectTheirTasks": selectTheirTasks, "selectTheirRefused": selectTheirRefused,
	})
}

package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"countJobs": countJobs, "insertJob": insertJob, "selectJob": selectJob, "lockJob": lockJob, "updateJob": updateJob,
		"deleteJob": deleteJob, "listJobs": listJobs, "claimJobs": claimJobs,
		"deleteJobsOfUser": deleteJobsOfUser, "emptyJobsOfUser": emptyJobsOfUser,
	})
}

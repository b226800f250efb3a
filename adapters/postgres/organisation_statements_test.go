package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"holdOrg": holdOrg, "insertOrgTeam": insertOrgTeam, "selectOrgTeam": selectOrgTeam, "lockOrgTeam": lockOrgTeam, "selectIntegration": selectIntegration,
		"selectOrgTeams": selectOrgTeams, "updateOrgTeam": updateOrgTeam, "countLiveUsers": countLiveUsers, "deleteOrgTeam": deleteOrgTeam,
		"deleteTeamKeys": deleteTeamKeys, "deleteChoices": deleteChoices, "deleteClients": deleteClients, "countTeamKeys": countTeamKeys,
		"insertTeamKey": insertTeamKey, "selectTeamKeys": selectTeamKeys, "selectTeamKey": selectTeamKey, "selectTeamKeyBySum": selectTeamKeyBySum, "deleteTeamKey": deleteTeamKey, "expireTeamKey": expireTeamKey, "touchTeamKey": touchTeamKey,
	})
}

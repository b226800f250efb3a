package postgres

import (
	"fmt"
	"maps"
)

func init() {
	maps.Copy(statements, map[string]string{
		"selectEndpoint": selectEndpoint, "lockEndpoint": lockEndpoint, "insertEndpoint": insertEndpoint, "updateEndpoint": updateEndpoint,
		"deleteEndpoint": deleteEndpoint, "countEndpoints": countEndpoints, "listEndpoints": listEndpoints, "armedEndpoints": armedEndpoints,
		"lockDeliveries": lockDeliveries, "cancelDeliveries": cancelDeliveries, "resumeHeads": resumeHeads, "shareEndpoint": shareEndpoint,
		"peekHeads": peekHeads, "lockHeads": lockHeads, "tryHeads": tryHeads, "readHeads": readHeads, "readSame": readSame, "lockWhole": lockWhole,
		"readWhole": readWhole, "readClock": readClock, "dropDeliveries": dropDeliveries, "insertDeliveries": insertDeliveries,
		"updateDeliveries": updateDeliveries, "insertAttempts": insertAttempts, "insertLost": insertLost,
		"sendSignal": sendSignal, "tryRouting": tryRouting, "holdRouting": holdRouting, "tuneQueue": tuneQueue, "tuneRelaxed": tuneRelaxed,
		"tunePatience": tunePatience, "selectPending": selectPending, "selectTargets": selectTargets, "tryTargets": tryTargets,
		"peekTargets": peekTargets, "dropPending": dropPending,
		"selectDue": selectDue, "selectTrials": selectTrials, "lockTrials": lockTrials, "claimDeliveries": claimDeliveries,
		"claimTrials": claimTrials, "lockLeased": lockLeased, "peekLeased": peekLeased, "readNext": readNext,
		"endLeased": endLeased, "selectOutdated": selectOutdated,
		"releaseDeliveries": releaseDeliveries, "selectSent": selectSent, "selectSince": selectSince, "selectWritten": selectWritten,
		"selectLanes": selectLanes, "listAttempts": listAttempts, "selectStaleTeams": selectStaleTeams, "selectStale": selectStale,
		"countUnfinished": countUnfinished,
		"addSeen":         addSeen, "lockSeen": lockSeen, "updateSeen": updateSeen, "releaseSeen": releaseSeen, "forgetSeen": forgetSeen,
	})
	for i, sql := range dropMessages {
		statements[fmt.Sprintf("dropMessages %d", i)] = sql
	}
}

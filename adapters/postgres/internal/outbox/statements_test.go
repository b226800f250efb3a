package outbox

import (
	"fmt"
	"maps"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants, but those of
// eraseMessages, dropMessages.
var statements = map[string]string{
	"insertAttempts": insertAttempts, "insertLost": insertLost,
	"selectBacklog":   selectBacklog,
	"selectBodyTeams": selectBodyTeams, "selectOver": selectOver, "emptyBodies": emptyBodies, "selectFirstBody": selectFirstBody,
	"selectDue": selectDue, "selectTrials": selectTrials, "lockTrials": lockTrials, "claimDeliveries": claimDeliveries,
	"claimTrials":    claimTrials,
	"selectEndpoint": selectEndpoint, "lockEndpoint": lockEndpoint, "insertEndpoint": insertEndpoint, "updateEndpoint": updateEndpoint,
	"deleteEndpoint": deleteEndpoint, "countEndpoints": countEndpoints, "listEndpoints": listEndpoints, "armedEndpoints": armedEndpoints,
	"lockDeliveries": lockDeliveries, "cancelDeliveries": cancelDeliveries, "resumeHeads": resumeHeads,
	"selectStaleTeams": selectStaleTeams, "selectStale": selectStale, "countUnfinished": countUnfinished,
	"peekHeads": peekHeads, "lockHeads": lockHeads, "tryHeads": tryHeads, "readHeads": readHeads, "readSame": readSame, "lockWhole": lockWhole,
	"readWhole": readWhole, "dropDeliveries": dropDeliveries, "insertDeliveries": insertDeliveries, "updateDeliveries": updateDeliveries,
	"listAttempts": listAttempts, "selectMessage": selectMessage,
	"selectNames": selectNames, "lockNames": lockNames, "selectLiveNames": selectLiveNames, "drawSeq": drawSeq, "insertEvents": insertEvents,
	"insertPending": insertPending,
	"shareEndpoint": shareEndpoint, "selectSent": selectSent, "selectSince": selectSince, "selectWritten": selectWritten,
	"selectLanes": selectLanes,
	"tryRouting":  tryRouting, "holdRouting": holdRouting, "tuneQueue": tuneQueue, "tuneRelaxed": tuneRelaxed, "tunePatience": tunePatience,
	"selectPending": selectPending, "selectTargets": selectTargets, "tryTargets": tryTargets, "peekTargets": peekTargets,
	"dropPending": dropPending,
	"lockLeased":  lockLeased, "peekLeased": peekLeased, "endLeased": endLeased, "readNext": readNext, "selectOutdated": selectOutdated,
	"releaseDeliveries": releaseDeliveries,
	"sendSignal":        sendSignal,
}

// Every statement fits the schema that the migrations make.
func TestStatements(t *testing.T) {
	t.Parallel()
	all := maps.Clone(statements)
	for i, sql := range eraseMessages {
		all[fmt.Sprintf("eraseMessages %d", i)] = sql
	}
	for i, sql := range dropMessages {
		all[fmt.Sprintf("dropMessages %d", i)] = sql
	}
	pgtest.PrepareStatements(t, all)
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	pgtest.CheckListed(t, statements)
}

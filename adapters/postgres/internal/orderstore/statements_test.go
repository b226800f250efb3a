package orderstore

import (
	"fmt"
	"maps"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// statements are the statements of the package by the names of their constants, but those of
// orderPages.
var statements = map[string]string{
	"lockOrdersOfUser": lockOrdersOfUser, "deleteKeysOfUser": deleteKeysOfUser, "dropAnswersOfUser": dropAnswersOfUser,
	"hideOrdersOfUser": hideOrdersOfUser, "deleteTransactionsOfUser": deleteTransactionsOfUser, "deleteInfoOfUser": deleteInfoOfUser,
	"deleteInsuranceOfUser": deleteInsuranceOfUser, "deleteResultsOfUser": deleteResultsOfUser, "deleteSearchOfUser": deleteSearchOfUser,
	"deleteOrdersOfUser": deleteOrdersOfUser,
	"insertKey":          insertKey, "lockKey": lockKey, "startKey": startKey, "finishKey": finishKey, "pruneKeys": pruneKeys,
	"insertLabRecord": insertLabRecord, "selectLabRecords": selectLabRecords, "updateLabRecord": updateLabRecord,
	"lockLabJournal": lockLabJournal, "advanceLabJournal": advanceLabJournal, "hasLabDelivery": hasLabDelivery,
	"insertLabDelivery": insertLabDelivery, "settleLabDelivery": settleLabDelivery, "insertLabMessage": insertLabMessage,
	"forgetLabMessages": forgetLabMessages, "selectLabFeed": selectLabFeed, "labDeliveryColumns": labDeliveryColumns,
	"selectLabDeliveries": selectLabDeliveries, "selectLabReview": selectLabReview, "deleteLabRecordsOfUser": deleteLabRecordsOfUser,
	"deleteLabDeliveriesOfUser": deleteLabDeliveriesOfUser, "deleteLabMessagesOfUser": deleteLabMessagesOfUser,
	"insertLabTest": insertLabTest, "updateLabTest": updateLabTest, "selectLabTests": selectLabTests, "listLabTests": listLabTests,
	"listLabTestsOfKind": listLabTestsOfKind, "findLabTests": findLabTests, "lockLabTest": lockLabTest,
	"planLists": planLists, "countOrders": countOrders, "countOrdersByStatus": countOrdersByStatus, "selectNamesOfOrders": selectNamesOfOrders,
	"selectOrders": selectOrders,
	"selectOrder":  selectOrder, "selectSample": selectSample, "lockOrder": lockOrder, "drawForNew": drawForNew, "drawForOrder": drawForOrder,
	"shareUserOfOrder": shareUserOfOrder, "hasOrder": hasOrder, "selectOrdersOfUser": selectOrdersOfUser, "claimOrders": claimOrders,
	"claimNotifications": claimNotifications, "claimFeed": claimFeed, "moveFeed": moveFeed,
	"putInfo": putInfo, "selectInfo": selectInfo, "lockCoverages": lockCoverages, "hasCoverage": hasCoverage, "endCoverage": endCoverage,
	"insertCoverage": insertCoverage, "coverageColumns": coverageColumns, "selectCoverage": selectCoverage,
	"selectCoverageAt": selectCoverageAt, "insertPayor": insertPayor, "selectPayors": selectPayors,
	"insertResult": insertResult, "shareUserOfResult": shareUserOfResult, "updateResult": updateResult, "selectResult": selectResult,
	"selectVisibleResult": selectVisibleResult, "lockResult": lockResult, "countResults": countResults, "selectResults": selectResults,
	"startMatchTestRun": startMatchTestRun, "trialColumns": trialColumns, "selectMatchTestRunByKey": selectMatchTestRunByKey,
	"selectMatchTestRun": selectMatchTestRun, "lockMatchTestRun": lockMatchTestRun, "updateMatchTestRun": updateMatchTestRun,
	"claimResultMatchTestRuns": claimResultMatchTestRuns,
	"insertOrder":              insertOrder, "updateOrder": updateOrder,
	"releaseHolds": releaseHolds, "takeHolds": takeHolds, "selectHeld": selectHeld, "deleteHoldsOfUser": deleteHoldsOfUser,
	"claimVisits": claimVisits, "putSlots": putSlots, "selectSlots": selectSlots,
}

// Every statement fits the schema that the migrations make.
func TestStatements(t *testing.T) {
	t.Parallel()
	all := maps.Clone(statements)
	for by, sql := range orderPages {
		all[fmt.Sprintf("page by %+v", by)] = sql
	}
	pgtest.PrepareStatements(t, all)
}

// The list above has every constant that is a statement.
func TestStatementsAreAllListed(t *testing.T) {
	t.Parallel()
	pgtest.CheckListed(t, statements)
}
